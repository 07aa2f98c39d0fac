// The back end (Freecursive section 3.1): reads a path into the stash, hands the wanted block out,
// takes it back, and writes the path again; or appends a block without a path (section 4.2.2).
//
// `operation_valid` and `operation_ready` start one. A path: the block comes out in parts
// (`got_valid`, `got_part`, `got_data`, and `got_mac` with the first), then `delivered` for a cycle.
// The front end answers with `resume`, when it pleases: `keep` with `address`, `new_leaf`, `mac` and
// `block` to put the block back or add it, else the block goes if it was found. Then the path is
// written. An append takes its block from the same ports. `overflow` ends everything.
//
// What the memory sees follows one schedule, whatever is read, found and put back.
module backend #(
    parameter DEPTH = 8,
    parameter SUBTREE = 4,
    parameter STASH = 308,
    parameter LANES = 1,
    parameter LINES = 6,
    parameter LINE_BITS = 32
) (
    input                       clk,
    input                       reset,
    input  [1407:0]             round_keys,
    // Operations.
    input                       operation_valid,
    output                      operation_ready,
    input                       append,
    input  [31:0]               address,
    input  [DEPTH-1:0]          leaf,
    output                      got_valid,
    output [1:0]                got_part,
    output [128*LANES-1:0]      got_data,
    output [127:0]              got_mac,
    output                      delivered,
    output                      got_found,
    output                      overflow,
    input                       resume,
    input                       keep,
    input  [DEPTH-1:0]          new_leaf,
    input  [127:0]              mac,
    input  [511:0]              block,
    // Memory.
    output                      command_valid,
    input                       command_ready,
    output                      command_write,
    output [LINE_BITS-1:0]      command_line,
    input                       read_valid,
    output                      read_ready,
    input  [128*LANES-1:0]      read_data,
    output                      write_valid,
    input                       write_ready,
    output [128*LANES-1:0]      write_data
);
  localparam LINE_BEATS = 4 / LANES;
  localparam BEATS = LINES * LINE_BEATS;
  localparam SLOT_BITS = $clog2(STASH);
  localparam LEVEL_BITS = $clog2(DEPTH + 1);

  localparam IDLE = 0, READ = 1, DELIVER = 2, WAIT = 3, PUT = 4, WRITE = 5, APPEND = 6, DEAD = 7;
  reg [2:0] state;
  reg [2:0] part;
  reg [DEPTH-1:0] path;
  reg [31:0] wanted;
  reg keeps;

  wire starts = state == IDLE && operation_valid;
  wire reads = starts && !append;
  wire put_ends = part == LINE_BEATS[2:0] - 1'b1;
  wire put_fails;
  wire writes = state == PUT && put_ends && !put_fails;
  wire read_done, write_done, found, read_overflow, any_free;
  wire [SLOT_BITS-1:0] found_slot, free_slot;

  assign operation_ready = state == IDLE;
  assign delivered = state == DELIVER && part == LINE_BEATS[2:0];
  assign got_found = found;

  // A block that comes in.
  wire puts = state == PUT && keeps || state == APPEND;
  wire adds = state == APPEND || !found;
  wire put_first = puts && part == 0;
  assign put_fails = put_first && adds && !any_free;
  wire put_enters = put_first && !put_fails;
  reg [SLOT_BITS-1:0] put_slot_kept;
  wire [SLOT_BITS-1:0] put_slot = part != 0 ? put_slot_kept : adds ? free_slot : found_slot;
  wire [DEPTH-1:0] put_leaf = state == APPEND ? leaf : new_leaf;
  wire [511:0] put_rest = block >> (128 * LANES * part);
  wire removes = state == PUT && !keeps && part == 0 && found;
  assign overflow = state == DEAD || (delivered && read_overflow);

  always @(posedge clk) begin
    if (reset) state <= IDLE;
    else
      case (state)
        IDLE: if (operation_valid) state <= append ? APPEND : READ;
        READ: if (read_done) state <= DELIVER;
        DELIVER: if (delivered) state <= read_overflow ? DEAD : WAIT;
        WAIT: if (resume) state <= PUT;
        PUT: state <= put_fails ? DEAD : put_ends ? WRITE : PUT;
        APPEND: state <= put_fails ? DEAD : put_ends ? IDLE : APPEND;
        WRITE: if (write_done) state <= IDLE;
        default: state <= DEAD;
      endcase

    if (state == DELIVER || state == PUT || state == APPEND) part <= part + 1'b1;
    if (state == IDLE || state == READ || state == WAIT) part <= 0;
    if (put_first) put_slot_kept <= put_slot;
    if (reads) begin
      path   <= leaf;
      wanted <= address;
    end
    if (resume) keeps <= keep;
  end

  // The memory's commands.
  reg  writing;
  assign command_write = writing;
  address #(
      .DEPTH(DEPTH),
      .SUBTREE(SUBTREE),
      .LINES(LINES),
      .LINE_BITS(LINE_BITS)
  ) lines (
      .clk(clk),
      .reset(reset),
      .start(reads || writes),
      .leaf(reads ? leaf : path),
      .valid(command_valid),
      .line(command_line),
      .last(),
      .next(command_ready)
  );
  always @(posedge clk) if (reads || writes) writing <= writes;

  // Data from the memory. The seeds of its buckets start their pads.
  wire data_full, data_empty, seeds_full, seeds_empty, pad_valid, seed_take;
  wire [128*LANES-1:0] data, pad;
  wire [63:0] seed_read;
  reg [5:0] arriving;
  wire arrives = read_valid && read_ready;
  assign read_ready = !data_full && !seeds_full;
  always @(posedge clk) begin
    if (reads) arriving <= 0;
    else if (arrives) arriving <= arriving == BEATS[5:0] - 1'b1 ? 0 : arriving + 1'b1;
  end

  wire beat_take, out_take;
  wire [5:0] beat_number;
  /* verilator lint_off PINCONNECTEMPTY */
  fifo #(
      .WIDTH(128 * LANES),
      .DEPTH(16)
  ) data_queue (
      .clk(clk),
      .reset(reset),
      .push(arrives),
      .in(read_data),
      .full(data_full),
      .pop(beat_take),
      .out(data),
      .empty(data_empty),
      .used()
  );
  fifo #(
      .WIDTH(64),
      .DEPTH(4)
  ) seed_queue (
      .clk(clk),
      .reset(reset),
      .push(arrives && arriving == 0),
      .in(read_data[63:0]),
      .full(seeds_full),
      .pop(seed_take && state == READ),
      .out(seed_read),
      .empty(seeds_empty),
      .used()
  );
  /* verilator lint_on PINCONNECTEMPTY */

  // Seeds of the buckets that are written: one counter for all (section 6.4). Pads are ahead.
  reg [63:0] seed, pad_seed;
  reg [LEVEL_BITS:0] pads_left;
  wire header_taken;
  always @(posedge clk) begin
    if (reset) begin
      seed <= 1;
      pad_seed <= 1;
      pads_left <= 0;
    end else begin
      if (header_taken) seed <= seed + 1'b1;
      if (seed_take && state != READ) pad_seed <= pad_seed + 1'b1;
      if (writes) pads_left <= DEPTH[LEVEL_BITS:0] + 1'b1;
      else if (seed_take && state != READ) pads_left <= pads_left - 1'b1;
    end
  end

  pads #(
      .LANES(LANES),
      .BEATS(BEATS)
  ) pads (
      .clk(clk),
      .reset(reset),
      .round_keys(round_keys),
      .seed_valid(state == READ ? !seeds_empty : pads_left != 0),
      .seed(state == READ ? seed_read : pad_seed),
      .seed_take(seed_take),
      .valid(pad_valid),
      .pad(pad),
      .take(beat_take || out_take)
  );

  // A bucket's first chunk has its seed and is not encrypted.
  reg [5:0] leaving;
  wire first_beat = state == READ ? beat_number == 0 : leaving == 0;
  wire [128*LANES-1:0] mask = first_beat ? (pad >> 128) << 128 : pad;

  wire enter, mac_write, data_write, free;
  wire [1:0] meet;
  wire [31:0] enter_address, tag_address;
  wire [63:0] pair_addresses;
  wire [DEPTH-1:0] enter_leaf, tag_leaf;
  wire [2*DEPTH-1:0] pair_leaves, meet_leaves;
  wire [2*SLOT_BITS-1:0] meet_slots;
  wire [SLOT_BITS-1:0] scan_at, write_slot, asked_slot, data_slot, place_slot;
  wire [1:0] write_part, data_part, read_number;
  wire [127:0] mac_read, mac_out;
  wire [128*LANES-1:0] content, beat_out;
  wire [LEVEL_BITS-1:0] read_level;
  wire [STASH-1:0] used;
  wire place_valid, out_valid;

  reader #(
      .DEPTH(DEPTH),
      .STASH(STASH),
      .LANES(LANES),
      .LINES(LINES)
  ) reader (
      .clk(clk),
      .reset(reset),
      .start(reads),
      .wanted(wanted),
      .beat_valid(state == READ && !data_empty && pad_valid),
      .beat(data ^ mask),
      .beat_take(beat_take),
      .beat_number(beat_number),
      .free_slot(free_slot),
      .any_free(any_free),
      .used(used),
      .enter(enter),
      .enter_address(enter_address),
      .enter_leaf(enter_leaf),
      .tag_at(scan_at),
      .pair_addresses(pair_addresses),
      .pair_leaves(pair_leaves),
      .mac_write(mac_write),
      .mac(mac_read),
      .data_write(data_write),
      .data_write_slot(write_slot),
      .data_write_part(write_part),
      .meet(meet),
      .meet_slots(meet_slots),
      .meet_leaves(meet_leaves),
      .done(read_done),
      .found(found),
      .found_slot(found_slot),
      .overflow(read_overflow)
  );

  wire put_meets = put_enters && state == PUT;
  evict #(
      .DEPTH(DEPTH),
      .SLOT_BITS(SLOT_BITS)
  ) evict (
      .clk(clk),
      .clear(reads),
      .path(path),
      .meet(put_meets ? 2'b01 : meet),
      .slots(put_meets ? {{SLOT_BITS{1'b0}}, put_slot} : meet_slots),
      .leaves(put_meets ? {{DEPTH{1'b0}}, put_leaf} : meet_leaves),
      .read_level(read_level),
      .read_number(read_number),
      .read_slot(place_slot),
      .read_valid(place_valid)
  );

  stash #(
      .DEPTH(DEPTH),
      .SLOTS(STASH),
      .LANES(LANES)
  ) stash (
      .clk(clk),
      .reset(reset),
      .free_slot(free_slot),
      .any_free(any_free),
      .used(used),
      .enter(enter || put_enters),
      .enter_slot(put_enters ? put_slot : free_slot),
      .enter_address(put_enters ? address : enter_address),
      .enter_leaf(put_enters ? put_leaf : enter_leaf),
      .free(free || removes),
      .freed_slot(removes ? found_slot : asked_slot),
      .tag_at(state == READ ? scan_at : asked_slot),
      .tag_address(tag_address),
      .tag_leaf(tag_leaf),
      .pair_addresses(pair_addresses),
      .pair_leaves(pair_leaves),
      .mac_write(mac_write || put_enters),
      .mac_write_at(put_enters ? put_slot : write_slot),
      .mac_in(put_enters ? mac : mac_read),
      .mac_at(state == DELIVER ? found_slot : asked_slot),
      .mac(mac_out),
      .data_write(data_write || (puts && !put_fails)),
      .data_write_slot(puts ? put_slot : write_slot),
      .data_write_part(puts ? part[1:0] : write_part),
      .data_in(puts ? put_rest[128*LANES-1:0] : data ^ mask),
      .data_slot(state == DELIVER ? found_slot : data_slot),
      .data_part(state == DELIVER ? part[1:0] : data_part),
      .data(content)
  );

  // The wanted block, a cycle after its parts were asked for.
  wire [2:0] part_before = part - 1'b1;
  assign got_valid = state == DELIVER && part != 0;
  assign got_part = part_before[1:0];
  assign got_data = content;
  assign got_mac = mac_out;

  // The last block has its place a cycle later.
  reg writes_later;
  always @(posedge clk) writes_later <= writes && !reset;
  writer #(
      .DEPTH(DEPTH),
      .LANES(LANES),
      .LINES(LINES),
      .SLOT_BITS(SLOT_BITS)
  ) writer (
      .clk(clk),
      .reset(reset),
      .start(writes_later),
      .seed(seed),
      .seed_taken(header_taken),
      .read_level(read_level),
      .read_number(read_number),
      .read_slot(place_slot),
      .read_valid(place_valid),
      .free(free),
      .asked_slot(asked_slot),
      .tag_address(tag_address),
      .tag_leaf(tag_leaf),
      .mac(mac_out),
      .data_slot(data_slot),
      .data_part(data_part),
      .data(content),
      .beat_valid(out_valid),
      .beat(beat_out),
      .beat_take(out_take),
      .done(write_done)
  );

  assign write_valid = out_valid && pad_valid;
  assign write_data = beat_out ^ mask;
  assign out_take = write_valid && write_ready;
  always @(posedge clk) begin
    if (writes) leaving <= 0;
    else if (out_take) leaving <= leaving == BEATS[5:0] - 1'b1 ? 0 : leaving + 1'b1;
  end

endmodule
