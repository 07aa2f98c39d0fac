// Where the blocks of the stash go on the path that is read: each, when it is met, to the deepest
// bucket on both its own path and this one that still has room (Freecursive section 3.1, step 5).
//
// `meet` gives a block a cycle. A block without room keeps its slot of the stash. Afterwards
// `read_level` and `read_number` ask for the slot of a bucket's block; the answer comes a cycle later.
module evict #(
    parameter DEPTH = 8,
    parameter SLOT_BITS = 9,
    parameter LEVEL_BITS = $clog2(DEPTH + 1)
) (
    input                       clk,
    input                       clear,
    input  [DEPTH-1:0]          path,
    input                       meet,
    input  [SLOT_BITS-1:0]      slot,
    input  [DEPTH-1:0]          leaf,
    input  [LEVEL_BITS-1:0]     read_level,
    input  [1:0]                read_number,
    output [SLOT_BITS-1:0]      read_slot,
    output reg                  read_valid
);
  localparam LEVELS = DEPTH + 1;
  localparam PLACES = 4 << LEVEL_BITS;

  // Blocks of each bucket, 0 to 4.
  reg [3*LEVELS-1:0] counts;
  wire [LEVELS-1:0] shared, fits;
  reg [LEVEL_BITS-1:0] level;
  reg [2:0] count;
  reg found;

  genvar l;
  generate
    assign shared[0] = 1'b1;
    for (l = 1; l < LEVELS; l = l + 1) begin : prefix
      assign shared[l] = path[DEPTH-1:DEPTH-l] == leaf[DEPTH-1:DEPTH-l];
    end
    for (l = 0; l < LEVELS; l = l + 1) begin : room
      assign fits[l] = shared[l] && !counts[3*l+2];
    end
  endgenerate

  integer i;
  always @* begin
    level = 0;
    count = 0;
    found = 0;
    for (i = 0; i < LEVELS; i = i + 1) begin
      if (fits[i]) begin
        level = i[LEVEL_BITS-1:0];
        count = counts[3*i+:3];
        found = 1;
      end
    end
  end

  wire [2:0] read_count = counts[3*read_level+:3];

  always @(posedge clk) begin
    if (clear) counts <= 0;
    else if (meet && found) counts[3*level+:3] <= count + 1'b1;
    read_valid <= {1'b0, read_number} < read_count;
  end

  ram #(
      .WIDTH(SLOT_BITS),
      .DEPTH(PLACES)
  ) places (
      .clk(clk),
      .write(meet && found),
      .write_at({level, count[1:0]}),
      .in(slot),
      .read_at({read_level, read_number}),
      .out(read_slot)
  );
endmodule
