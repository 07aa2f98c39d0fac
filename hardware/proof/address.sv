// Proof: two places of two paths have the same line exactly if they are the same place of the tree
// (rtl/address.sv), for every two leaves and every two lines of their paths: no two buckets share a
// line, and paths that meet show it as they must. A tree of five levels in subtrees of two.
module address_proof (
    input clk,
    input reset
);
  localparam DEPTH = 4;
  localparam LINES = 2;
  localparam STEPS = (DEPTH + 1) * LINES;
  localparam LINE_BITS = 12;

  (* anyconst *) reg [DEPTH-1:0] leaf;
  (* anyconst *) reg [DEPTH-1:0] other_leaf;
  (* anyconst *) reg [3:0] step;
  (* anyconst *) reg [3:0] other_step;

  reg [3:0] now = 0;
  reg started = 0;
  reg [LINE_BITS-1:0] seen, other_seen;
  always @(posedge clk) started <= 1;
  always @* if (!started) assume (reset);
  always @* if (started) assume (!reset);

  wire valid, last, other_valid, other_last;
  wire [LINE_BITS-1:0] line, other_line;
  address #(.DEPTH(DEPTH), .SUBTREE(2), .LINES(LINES), .LINE_BITS(LINE_BITS)) path (
      .clk(clk), .reset(reset), .start(started && now == 0), .leaf(leaf), .valid(valid), .line(line),
      .last(last), .next(1'b1)
  );
  address #(.DEPTH(DEPTH), .SUBTREE(2), .LINES(LINES), .LINE_BITS(LINE_BITS)) other_path (
      .clk(clk), .reset(reset), .start(started && now == 0), .leaf(other_leaf), .valid(other_valid),
      .line(other_line), .last(other_last), .next(1'b1)
  );

  always @(posedge clk) begin
    if (started && now != 15) now <= now + 1;
    // Step 0 is in the cycle after the start.
    if (now == step + 1) seen <= line;
    if (now == other_step + 1) other_seen <= other_line;
  end

  wire [2:0] level = step / LINES;
  wire [3:0] unequal = (leaf ^ other_leaf) >> (DEPTH - level);
  wire same = step == other_step && unequal == 0;
  always @* begin
    assume (step < STEPS && other_step < STEPS);
    if (now >= 1 && now <= STEPS) assert (valid && last == (now == STEPS));
    if (now == STEPS + 1) begin
      assert (!valid);
      assert ((seen == other_seen) == same);
      cover (same && leaf != other_leaf);
    end
  end
endmodule
