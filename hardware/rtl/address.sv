// The lines of a leaf's path, the root's first.
//
// Subtrees of SUBTREE levels lie together, in the order of a heap in which each has 2^SUBTREE
// children; in a subtree, buckets lie in the order of a heap. So a path meets few rows of the
// memory. Handshake: `start` with `leaf` for a cycle; then a line a cycle while `next` is high, until
// `last` was taken.
module address #(
    parameter DEPTH = 8,
    parameter SUBTREE = 4,
    parameter LINES = 6,
    parameter LINE_BITS = 32
) (
    input                      clk,
    input                      reset,
    input                      start,
    input      [DEPTH-1:0]     leaf,
    output reg                 valid,
    output     [LINE_BITS-1:0] line,
    output                     last,
    input                      next
);
  localparam LEVEL_BITS = $clog2(DEPTH + 2);
  localparam INNER_BITS = SUBTREE + 1;

  reg [LINE_BITS-1:0] tree;
  // In its subtree: a bucket's place, the sides taken, and the level.
  reg [INNER_BITS-1:0] inner, below, height;
  reg [DEPTH-1:0] rest;
  reg [LEVEL_BITS-1:0] level;
  reg [2:0] offset;

  wire side = rest[DEPTH-1];
  wire [INNER_BITS-1:0] sides = {below[INNER_BITS-2:0], side};
  wire [LINE_BITS-1:0] bucket = (tree << SUBTREE) - tree + {{(LINE_BITS - INNER_BITS) {1'b0}}, inner};
  wire bucket_ends = {29'd0, offset} == LINES - 1;

  assign line = bucket * LINES[LINE_BITS-1:0] + {{(LINE_BITS - 3) {1'b0}}, offset};
  assign last = bucket_ends && level == DEPTH[LEVEL_BITS-1:0];

  always @(posedge clk) begin
    if (reset) valid <= 0;
    else if (start) valid <= 1;
    else if (next && last) valid <= 0;

    if (start) begin
      tree   <= 0;
      inner  <= 0;
      below  <= 0;
      height <= 1;
      rest   <= leaf;
      level  <= 0;
      offset <= 0;
    end else if (valid && next) begin
      offset <= offset + 1'b1;
      if (bucket_ends) begin
        offset <= 0;
        level  <= level + 1'b1;
        rest   <= rest << 1;
        if (height == SUBTREE[INNER_BITS-1:0]) begin
          tree   <= (tree << SUBTREE) + {{(LINE_BITS - INNER_BITS) {1'b0}}, sides} + 1'b1;
          inner  <= 0;
          below  <= 0;
          height <= 1;
        end else begin
          inner  <= {inner[INNER_BITS-2:0], side} + 1'b1;
          below  <= sides;
          height <= height + 1'b1;
        end
      end
    end
  end
endmodule
