// Where the blocks of the stash go on the path that is read: each, when it is met, to the deepest
// bucket on both its own path and this one that still has room (Freecursive section 3.1, step 5).
//
// `meet` gives up to two blocks a cycle, the lower half of the ports first. A block without room keeps
// its slot of the stash. Two cycles after the last, `read_level` and `read_number` may ask for the slot
// of a bucket's block; the answer comes a cycle later.
module evict #(
    parameter DEPTH = 8,
    parameter SLOT_BITS = 9,
    parameter LEVEL_BITS = $clog2(DEPTH + 1)
) (
    input                       clk,
    input                       clear,
    input  [DEPTH-1:0]          path,
    input  [1:0]                meet,
    input  [2*SLOT_BITS-1:0]    slots,
    input  [2*DEPTH-1:0]        leaves,
    input  [LEVEL_BITS-1:0]     read_level,
    input  [1:0]                read_number,
    output [SLOT_BITS-1:0]      read_slot,
    output reg                  read_valid
);
  localparam LEVELS = DEPTH + 1;
  localparam PLACES = 4 << LEVEL_BITS;

  // The first cycle: how far both paths are one. A bit for each level.
  reg [1:0] met;
  reg [LEVELS-1:0] on0, on1;
  reg [2*SLOT_BITS-1:0] met_slots;
  wire [DEPTH-1:0] differ0 = path ^ leaves[DEPTH-1:0];
  wire [DEPTH-1:0] differ1 = path ^ leaves[DEPTH+:DEPTH];
  always @(posedge clk) begin
    met <= clear ? 0 : meet;
    met_slots <= slots;
  end

  // The second: blocks of each bucket, 0 to 4, and the buckets that both go to.
  reg [3*LEVELS-1:0] counts;
  wire [LEVELS-1:0] fits0, fits1, goes0, goes1;
  genvar l;
  generate
    for (l = 0; l < LEVELS; l = l + 1) begin : bucket
      wire full = counts[3*l+2];
      wire one_left = counts[3*l+:2] == 3;
      assign fits0[l] = met[0] && on0[l] && !full;
      assign fits1[l] = met[1] && on1[l] && !full && !(one_left && goes0[l]);
      if (l == DEPTH) assign {goes0[l], goes1[l]} = {fits0[l], fits1[l]};
      else assign {goes0[l], goes1[l]} = {fits0[l] && fits0[DEPTH:l+1] == 0, fits1[l] && fits1[DEPTH:l+1] == 0};
      always @(posedge clk) begin
        {on0[l], on1[l]} <= {(differ0 >> (DEPTH - l)) == 0, (differ1 >> (DEPTH - l)) == 0};
        if (clear) counts[3*l+:3] <= 0;
        else counts[3*l+:3] <= counts[3*l+:3] + {2'd0, goes0[l]} + {2'd0, goes1[l]};
      end
    end
  endgenerate

  // Its place there.
  reg [LEVEL_BITS-1:0] level0, level1;
  reg [2:0] count0, count1;
  integer i;
  always @* begin
    {level0, count0, level1, count1} = 0;
    for (i = 0; i < LEVELS; i = i + 1) begin
      if (goes0[i]) {level0, count0} = {level0 | i[LEVEL_BITS-1:0], count0 | counts[3*i+:3]};
      if (goes1[i]) {level1, count1} = {level1 | i[LEVEL_BITS-1:0], count1 | (counts[3*i+:3] + {2'd0, goes0[i]})};
    end
  end
  wire [LEVEL_BITS+1:0] place0 = {level0, count0[1:0]};
  wire [LEVEL_BITS+1:0] place1 = {level1, count1[1:0]};
  wire [LEVEL_BITS+1:0] read_place = {read_level, read_number};

  // Two memories, for two in a cycle; which of them has a place's slot.
  reg [PLACES-1:0] second;
  reg read_second;
  wire [SLOT_BITS-1:0] read_slot0, read_slot1;
  assign read_slot = read_second ? read_slot1 : read_slot0;
  wire [2:0] read_count = counts[3*read_level+:3];
  always @(posedge clk) begin
    if (goes0 != 0) second[place0] <= 0;
    if (goes1 != 0) second[place1] <= 1;
    read_second <= second[read_place];
    read_valid  <= {1'b0, read_number} < read_count;
  end

  ram #(
      .WIDTH(SLOT_BITS),
      .DEPTH(PLACES)
  ) places0 (
      .clk(clk),
      .write(goes0 != 0),
      .write_at(place0),
      .in(met_slots[SLOT_BITS-1:0]),
      .read_at(read_place),
      .out(read_slot0)
  );
  ram #(
      .WIDTH(SLOT_BITS),
      .DEPTH(PLACES)
  ) places1 (
      .clk(clk),
      .write(goes1 != 0),
      .write_at(place1),
      .in(met_slots[SLOT_BITS+:SLOT_BITS]),
      .read_at(read_place),
      .out(read_slot1)
  );
endmodule
