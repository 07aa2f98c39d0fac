// Takes the buckets of a path apart while they come in, and looks for the wanted block (Freecursive
// section 3.1, steps 2 and 3).
//
// `beat` is decrypted. After a bucket's header, its four slots are looked at, a cycle each, filled or
// not: a block enters the lowest free slot of the stash. Then a fixed part of the stash is looked
// through, two slots a cycle, so that all of it is once the path has ended. Each block that is met goes to `evict`, but
// for the first with the wanted address. So the schedule is the same for all contents.
module reader #(
    parameter DEPTH = 8,
    parameter STASH = 308,
    parameter LANES = 1,
    parameter LINES = 6,
    parameter SLOT_BITS = $clog2(STASH)
) (
    input                          clk,
    input                          reset,
    input                          start,
    input      [31:0]              wanted,
    // The path.
    input                          beat_valid,
    input      [128*LANES-1:0]     beat,
    output                         beat_take,
    output     [5:0]               beat_number,
    // The stash.
    input      [SLOT_BITS-1:0]     free_slot,
    input                          any_free,
    input      [STASH-1:0]         used,
    output                         enter,
    output     [31:0]              enter_address,
    output     [DEPTH-1:0]         enter_leaf,
    output     [SLOT_BITS-1:0]     tag_at,
    input      [63:0]              pair_addresses,
    input      [2*DEPTH-1:0]       pair_leaves,
    output                         mac_write,
    output     [127:0]             mac,
    output                         data_write,
    output     [SLOT_BITS-1:0]     data_write_slot,
    output     [1:0]               data_write_part,
    // Blocks to place, up to two.
    output     [1:0]               meet,
    output     [2*SLOT_BITS-1:0]   meet_slots,
    output     [2*DEPTH-1:0]       meet_leaves,
    // After the last bucket.
    output                         done,
    output reg                     found,
    output reg [SLOT_BITS-1:0]     found_slot,
    output reg                     overflow
);
  localparam LINE_BEATS = 4 / LANES;
  localparam PART_BITS = LANES == 4 ? 0 : LANES == 2 ? 1 : 2;
  localparam BEATS = LINES * LINE_BEATS;
  localparam FIRST = (LINES - 4) * LINE_BEATS;
  // Pairs of slots that are looked at after a bucket.
  localparam PAIRS = STASH / 2;
  localparam PART = (PAIRS + DEPTH) / (DEPTH + 1);
  localparam STEP_BITS = $clog2(PART + 6);
  localparam LEVEL_BITS = $clog2(DEPTH + 2);

  reg running;
  reg [LEVEL_BITS-1:0] level;
  reg [5:0] number;
  // The last line but blocks: the header, and then the MACs.
  reg [511:0] line;
  wire [511:0] line_next;
  wire [128*LANES+511:0] shifted = {beat, line} >> (128 * LANES);
  assign line_next = shifted[511:0];

  // The header that is worked on.
  reg busy, blank;
  reg [STEP_BITS-1:0] step;
  reg [255:0] header;
  reg [4*SLOT_BITS-1:0] slots;
  reg [3:0] filled;
  reg [STASH-1:0] seen;
  reg [SLOT_BITS-1:0] scan;
  reg [SLOT_BITS-2:0] scanned;
  reg scanned_valid;

  wire header_ends = number == LINE_BEATS[5:0] - 1'b1;
  wire in_blocks = number >= FIRST[5:0];
  wire [5:0] in_block = number - FIRST[5:0];
  wire [1:0] block = in_block[PART_BITS+:2];
  wire [1:0] part = in_block[1:0] & (LINE_BEATS[1:0] - 1'b1);
  wire entered = !busy || step > {{(STEP_BITS - 2) {1'b0}}, block};

  assign beat_number = number;
  assign beat_take = running && beat_valid && (header_ends ? !busy || scan_ends : !in_blocks || entered);
  wire header_taken = beat_take && header_ends;

  // A slot of the header.
  wire arrives = busy && step < 4;
  wire [63:0] fields = header[64*step[1:0]+:64];
  wire present = arrives && !blank && fields[31:0] != 32'hffff_ffff;
  assign enter = present && any_free;
  assign enter_address = fields[31:0];
  assign enter_leaf = fields[32+:DEPTH];

  // Two slots of the stash, asked for in one cycle and met in the next.
  wire scans = busy && step >= 4 && {{(32 - STEP_BITS) {1'b0}}, step} < 4 + PART;
  wire scan_ends = busy && {{(32 - STEP_BITS) {1'b0}}, step} == 4 + PART;
  assign tag_at = {scan[SLOT_BITS-2:0], 1'b0};
  wire [SLOT_BITS-1:0] even = {scanned, 1'b0};
  wire [SLOT_BITS-1:0] odd = {scanned, 1'b1};
  wire even_met = scanned_valid && used[even] && !seen[even];
  wire odd_met = scanned_valid && used[odd] && !seen[odd];

  wire [1:0] met = {odd_met, enter || even_met};
  wire [31:0] met_address = enter ? enter_address : pair_addresses[31:0];
  wire first_wanted = met[0] && !found && met_address == wanted;
  wire odd_wanted = met[1] && !found && !first_wanted && pair_addresses[63:32] == wanted;
  assign meet = met & ~{odd_wanted, first_wanted};
  assign meet_slots = {odd, enter ? free_slot : even};
  assign meet_leaves = {pair_leaves[DEPTH+:DEPTH], enter ? enter_leaf : pair_leaves[DEPTH-1:0]};

  // A block's content. Its MAC goes with the first part.
  wire content = beat_take && in_blocks && filled[block];
  assign data_write = content;
  assign data_write_slot = slots[SLOT_BITS*block+:SLOT_BITS];
  assign data_write_part = part;
  assign mac_write = content && part == 0;
  assign mac = line[128*block+:128];

  assign done = running && level == DEPTH[LEVEL_BITS-1:0] + 1'b1 && !busy;

  always @(posedge clk) begin
    if (reset) running <= 0;
    else if (start) running <= 1;
    else if (done) running <= 0;

    if (start) begin
      level <= 0;
      number <= 0;
      busy <= 0;
      seen <= 0;
      scan <= 0;
      scanned_valid <= 0;
      found <= 0;
      overflow <= 0;
    end else begin
      if (beat_take) begin
        number <= number + 1'b1;
        if (!in_blocks) line <= line_next;
        if (number == BEATS[5:0] - 1'b1) begin
          number <= 0;
          level  <= level + 1'b1;
        end
      end
      scanned_valid <= scans && {{(32 - SLOT_BITS) {1'b0}}, scan} < PAIRS;
      scanned <= scan[SLOT_BITS-2:0];
      if (scans) scan <= scan + 1'b1;
      if (busy) step <= step + 1'b1;
      if (scan_ends) busy <= 0;
      // The next header may come while the last pair is met.
      if (header_taken) begin
        header <= line_next[383:128];
        blank <= line_next[63:0] == 0;
        busy <= 1;
        step <= 0;
      end
      if (arrives) begin
        filled[step[1:0]] <= enter;
        slots[SLOT_BITS*step[1:0]+:SLOT_BITS] <= free_slot;
        if (present && !any_free) overflow <= 1;
      end
      if (met[0]) seen[meet_slots[SLOT_BITS-1:0]] <= 1;
      if (met[1]) seen[odd] <= 1;
      if (first_wanted || odd_wanted) begin
        found <= 1;
        found_slot <= odd_wanted ? odd : meet_slots[SLOT_BITS-1:0];
      end
    end
  end
endmodule
