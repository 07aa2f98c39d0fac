// A Freecursive ORAM controller: a 64-bit port to the last-level cache, and a port of 64 * NCHANNEL bits
// to a memory that learns only how many paths are read and written.
//
// The cache: `request_valid` and `request_ready` take a block's number and whether it is written. Then
// eight words of 64 bits go out (`word_out_*`) or come in (`word_in_*`). The next request may come at once.
// The memory: commands for lines of 64 bytes (`command_*`), and their data in the same order, the lowest
// bits first (`read_*`, `write_*`). `failed`: the memory was tampered with, or the stash is full.
//
// GROUP, BITS and MACS choose the scheme of the paper: PI_X8 is 0, -, 1; PC_X32 is 1, 14, 0; PIC_X32 is
// 1, 14, 1. Data blocks: MAP_ROWS * X^RECURSION, with X = 8 or 32; the tree has 2^DEPTH leaves and should
// have twice as many slots (4 in a bucket) as there are blocks.
module oram #(
    parameter NCHANNEL = 2,
    parameter DEPTH = 23,
    parameter SUBTREE = 4,
    parameter STASH = 308,
    parameter GROUP = 0,
    parameter BITS = 14,
    parameter MACS = 1,
    parameter RECURSION = 5,
    parameter PLB_ROWS = 128,
    parameter MAP_ROWS = 128,
    parameter BACKLOG = 8,
    parameter INTERVAL = 0,
    parameter LINE_BITS = 32
) (
    input                      clk,
    input                      reset,
    // Keys; they must stay.
    input  [127:0]             label_key,
    input  [127:0]             mac_key,
    input  [127:0]             pad_key,
    // The last-level cache.
    input                      request_valid,
    output                     request_ready,
    input                      request_write,
    input  [27:0]              request_block,
    output                     word_out_valid,
    input                      word_out_ready,
    output [63:0]              word_out,
    input                      word_in_valid,
    output                     word_in_ready,
    input  [63:0]              word_in,
    output                     failed,
    // The memory.
    output                     command_valid,
    input                      command_ready,
    output                     command_write,
    output [LINE_BITS-1:0]     command_line,
    input                      read_valid,
    output                     read_ready,
    input  [64*NCHANNEL-1:0]   read_data,
    output                     write_valid,
    input                      write_ready,
    output [64*NCHANNEL-1:0]   write_data
);
  localparam LANES = NCHANNEL > 1 ? NCHANNEL / 2 : 1;
  localparam LINES = MACS ? 6 : 5;
  localparam WIDTH = 128 * LANES;

  // Parameters that the design is not made for end the build: there are no modules of these names.
  generate
    if (NCHANNEL != 1 && NCHANNEL != 2 && NCHANNEL != 4 && NCHANNEL != 8) NCHANNEL_must_be_1_2_4_or_8 wrong ();
    if (STASH % 2 != 0) STASH_must_be_even wrong ();
    if (STASH <= 4 * (DEPTH + 1)) STASH_must_have_room_beyond_a_path wrong ();
    if (GROUP && (BITS < 6 || BITS > 14)) BITS_must_be_6_to_14 wrong ();
    if (GROUP && BACKLOG <= RECURSION) BACKLOG_must_be_more_than_RECURSION wrong ();
    if (PLB_ROWS < 2 || PLB_ROWS != 1 << $clog2(PLB_ROWS)) PLB_ROWS_must_be_a_power_of_two wrong ();
    if (MAP_ROWS < 2 || MAP_ROWS != 1 << $clog2(MAP_ROWS)) MAP_ROWS_must_be_a_power_of_two wrong ();
  endgenerate

  // The pads' key is expanded once.
  wire [1407:0] round_keys;
  wire keys_ready;
  reg  began;
  always @(posedge clk) began <= !reset;
  aes_key aes_key (
      .clk(clk),
      .reset(reset),
      .start(!began && !reset),
      .key(pad_key),
      .round_keys(round_keys),
      .ready(keys_ready)
  );

  wire operation_valid, operation_ready, append, got_valid, delivered, got_found, overflow, resume, keep;
  wire [31:0] address;
  wire [DEPTH-1:0] leaf, new_leaf;
  wire [1:0] got_part;
  wire [WIDTH-1:0] got_data;
  wire [127:0] got_mac, mac;
  wire [511:0] block;

  frontend #(
      .DEPTH(DEPTH),
      .LANES(LANES),
      .GROUP(GROUP),
      .BITS(BITS),
      .MACS(MACS),
      .RECURSION(RECURSION),
      .PLB_ROWS(PLB_ROWS),
      .MAP_ROWS(MAP_ROWS),
      .BACKLOG(BACKLOG),
      .INTERVAL(INTERVAL)
  ) frontend (
      .clk(clk),
      .reset(reset),
      .label_key(label_key),
      .mac_key(mac_key),
      .request_valid(request_valid),
      .request_ready(request_ready),
      .request_write(request_write),
      .request_block(request_block),
      .word_out_valid(word_out_valid),
      .word_out_ready(word_out_ready),
      .word_out(word_out),
      .word_in_valid(word_in_valid),
      .word_in_ready(word_in_ready),
      .word_in(word_in),
      .failed(failed),
      .operation_valid(operation_valid),
      .operation_ready(operation_ready && keys_ready),
      .append(append),
      .address(address),
      .leaf(leaf),
      .got_valid(got_valid),
      .got_part(got_part),
      .got_data(got_data),
      .got_mac(got_mac),
      .delivered(delivered),
      .got_found(got_found),
      .overflow(overflow),
      .resume(resume),
      .keep(keep),
      .new_leaf(new_leaf),
      .mac(mac),
      .block(block)
  );

  wire wide_read_valid, wide_read_ready, wide_write_valid, wide_write_ready;
  wire [WIDTH-1:0] wide_read_data, wide_write_data;

  backend #(
      .DEPTH(DEPTH),
      .SUBTREE(SUBTREE),
      .STASH(STASH),
      .LANES(LANES),
      .LINES(LINES),
      .LINE_BITS(LINE_BITS)
  ) backend (
      .clk(clk),
      .reset(reset),
      .round_keys(round_keys),
      .operation_valid(operation_valid && keys_ready),
      .operation_ready(operation_ready),
      .append(append),
      .address(address),
      .leaf(leaf),
      .got_valid(got_valid),
      .got_part(got_part),
      .got_data(got_data),
      .got_mac(got_mac),
      .delivered(delivered),
      .got_found(got_found),
      .overflow(overflow),
      .resume(resume),
      .keep(keep),
      .new_leaf(new_leaf),
      .mac(mac),
      .block(block),
      .command_valid(command_valid),
      .command_ready(command_ready),
      .command_write(command_write),
      .command_line(command_line),
      .read_valid(wide_read_valid),
      .read_ready(wide_read_ready),
      .read_data(wide_read_data),
      .write_valid(wide_write_valid),
      .write_ready(wide_write_ready),
      .write_data(wide_write_data)
  );

  generate
    if (NCHANNEL > 1) begin : straight
      assign wide_read_valid = read_valid;
      assign read_ready = wide_read_ready;
      assign wide_read_data = read_data;
      assign write_valid = wide_write_valid;
      assign wide_write_ready = write_ready;
      assign write_data = wide_write_data;
    end else begin : halves
      // A chunk is two words of the memory.
      reg read_second, write_second;
      reg [63:0] low;
      assign wide_read_valid = read_valid && read_second;
      assign read_ready = !read_second || wide_read_ready;
      assign wide_read_data = {read_data, low};
      assign write_valid = wide_write_valid;
      assign wide_write_ready = write_ready && write_second;
      assign write_data = write_second ? wide_write_data[127:64] : wide_write_data[63:0];
      always @(posedge clk) begin
        if (reset) {read_second, write_second} <= 0;
        else begin
          if (read_valid && read_ready) read_second <= !read_second;
          if (write_valid && write_ready) write_second <= !write_second;
        end
        if (read_valid && !read_second) low <= read_data;
      end
    end
  endgenerate
endmodule
