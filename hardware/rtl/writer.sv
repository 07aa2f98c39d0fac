// Puts the buckets of a path together from the stash (Freecursive section 3.1, step 5).
//
// For each bucket it asks `evict` for the slots, a cycle each, filled or not, and reads their headers
// and MACs while the blocks of the bucket before go out. The beats are plain; a slot without a block
// has an address of ones, and zeros. The schedule is the same for all contents.
module writer #(
    parameter DEPTH = 8,
    parameter LANES = 1,
    parameter LINES = 6,
    parameter SLOT_BITS = 9,
    parameter LEVEL_BITS = $clog2(DEPTH + 1)
) (
    input                          clk,
    input                          reset,
    input                          start,
    // For the header; `seed_taken` when the bucket ends.
    input      [63:0]              seed,
    output                         seed_taken,
    // Where the blocks are.
    output     [LEVEL_BITS-1:0]    read_level,
    output     [1:0]               read_number,
    input      [SLOT_BITS-1:0]     read_slot,
    input                          read_valid,
    // The stash.
    output                         free,
    output     [SLOT_BITS-1:0]     asked_slot,
    input      [31:0]              tag_address,
    input      [DEPTH-1:0]         tag_leaf,
    input      [127:0]             mac,
    output     [SLOT_BITS-1:0]     data_slot,
    output     [1:0]               data_part,
    input      [128*LANES-1:0]     data,
    // The path.
    output                         beat_valid,
    output     [128*LANES-1:0]     beat,
    input                          beat_take,
    output                         done
);
  localparam LINE_BEATS = 4 / LANES;
  localparam PART_BITS = LANES == 4 ? 0 : LANES == 2 ? 1 : 2;
  localparam BEATS = LINES * LINE_BEATS;
  localparam FIRST = (LINES - 4) * LINE_BEATS;
  localparam NOBODY = 32'hffff_ffff;

  // The next bucket: its slots, headers and MACs.
  reg fetching, fetched;
  reg [2:0] step;
  reg [LEVEL_BITS-1:0] fetch_level;
  reg [4*SLOT_BITS-1:0] next_slots;
  reg [3:0] next_filled;
  reg [255:0] headers;
  reg [511:0] macs;

  assign read_level = fetch_level;
  assign read_number = step[1:0];
  // A slot comes a cycle after its question, and its header one later.
  wire slot_comes = fetching && step >= 1 && step < 5;
  wire [1:0] slot_number = step[1:0] - 2'd1;
  wire header_comes = fetching && step >= 2;
  wire [1:0] header_number = step[1:0] - 2'd2;
  wire header_filled = next_filled[header_number];
  assign free = slot_comes && read_valid;
  assign asked_slot = read_slot;

  // The bucket that goes out.
  reg running;
  reg [LEVEL_BITS:0] level;
  reg [5:0] number;
  reg [4*SLOT_BITS-1:0] slots;
  reg [3:0] filled;
  reg staged, staged_block, staged_empty;
  reg [128*LANES-1:0] plain;
  wire [2:0] queued;
  wire queue_empty;

  wire in_blocks = number >= FIRST[5:0];
  wire [5:0] in_block = number - FIRST[5:0];
  wire [1:0] block = in_block[PART_BITS+:2];
  wire room = queued + {2'd0, staged} < 3'd4;
  wire left = level != DEPTH[LEVEL_BITS:0] + 1'b1;
  wire issue = running && left && room && (in_blocks || fetched);
  wire blocks_begin = issue && number == FIRST[5:0] - 1'b1;
  wire bucket_ends = issue && number == BEATS[5:0] - 1'b1;

  wire [511:0] header = {128'd0, headers, 64'd0, seed};
  wire [1023:0] lines = {macs, header};
  wire [1023:0] shifted = lines >> (128 * LANES * number);

  assign seed_taken = bucket_ends;
  assign data_slot = slots[SLOT_BITS*block+:SLOT_BITS];
  assign data_part = in_block[1:0] & (LINE_BEATS[1:0] - 1'b1);
  assign done = running && !left && !staged && queue_empty;

  always @(posedge clk) begin
    if (reset) begin
      running  <= 0;
      fetching <= 0;
      fetched  <= 0;
      staged   <= 0;
    end else begin
      staged <= issue;
      if (start) begin
        running <= 1;
        level <= 0;
        number <= 0;
      end else if (done) running <= 0;
      if (issue) number <= bucket_ends ? 0 : number + 1'b1;
      if (bucket_ends) level <= level + 1'b1;

      if (start || blocks_begin) begin
        fetching <= start || level < DEPTH[LEVEL_BITS:0];
        fetched <= 0;
        step <= 0;
      end else if (fetching) begin
        step <= step + 1'b1;
        if (step == 5) begin
          fetching <= 0;
          fetched  <= 1;
        end
      end
    end

    if (start) fetch_level <= 0;
    else if (blocks_begin) fetch_level <= fetch_level + 1'b1;
    if (slot_comes) begin
      next_slots[SLOT_BITS*slot_number+:SLOT_BITS] <= read_slot;
      next_filled[slot_number] <= read_valid;
    end
    if (header_comes) begin
      headers[64*header_number+:64] <= header_filled ? {{(32 - DEPTH) {1'b0}}, tag_leaf, tag_address} : {32'd0, NOBODY};
      macs[128*header_number+:128] <= header_filled ? mac : 128'd0;
    end
    if (blocks_begin) begin
      slots  <= next_slots;
      filled <= next_filled;
    end
    if (issue) begin
      plain <= shifted[128*LANES-1:0];
      staged_block <= in_blocks;
      staged_empty <= !filled[block];
    end
  end

  wire [128*LANES-1:0] content = staged_empty ? 0 : data;

  /* verilator lint_off PINCONNECTEMPTY */
  fifo #(
      .WIDTH(128 * LANES),
      .DEPTH(4)
  ) queue (
      .clk(clk),
      .reset(reset),
      .push(staged),
      .in(staged_block ? content : plain),
      .full(),
      .pop(beat_take),
      .out(beat),
      .empty(queue_empty),
      .used(queued)
  );
  /* verilator lint_on PINCONNECTEMPTY */

  assign beat_valid = !queue_empty;
endmodule
