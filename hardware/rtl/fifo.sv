// A queue of DEPTH words held in flip-flops, first word fall-through.
//
// `out` is the oldest word whenever `empty` is low, with no request. A cycle with `pop` takes it
// away; a cycle with `push` adds `in`, which is at `out` one cycle later at the earliest. Both may
// come in the same cycle. A push into a full queue and a pop from an empty one do nothing, so
// neither can lose or invent a word; whoever pushes must look at `full`. `used` counts the words
// that are held. DEPTH is a power of two and at least 2.
//
// These are the small buffers of section 7.2.1 of the paper, "implemented in standard cells".
module fifo #(
    parameter WIDTH = 64,
    parameter DEPTH = 4
) (
    input                        clk,
    input                        reset,
    input                        push,
    input      [WIDTH-1:0]       in,
    output                       full,
    input                        pop,
    output     [WIDTH-1:0]       out,
    output                       empty,
    output reg [$clog2(DEPTH):0] used
`ifdef FORMAL
    // What proof/fifo.sv has to see of the inside: all words, and where the oldest lies.
    , output [WIDTH*DEPTH-1:0] formal_words
    , output [$clog2(DEPTH)-1:0] formal_first
`endif
);
  localparam BITS = $clog2(DEPTH);

  reg [WIDTH-1:0] words[0:DEPTH-1];
  reg [BITS-1:0] first;

  // A full queue wraps to where `first` is: the sum is cut to BITS bits, which is the remainder.
  wire [BITS-1:0] free = first + used[BITS-1:0];
  wire pushes = push && !full;
  wire pops = pop && !empty;

  // Never more than DEPTH, a power of two: the top bit alone says full.
  assign full  = used[BITS];
  assign empty = used == 0;
  assign out   = words[first];

  always @(posedge clk) begin
    if (reset) begin
      used  <= 0;
      first <= 0;
    end else begin
      if (pops) first <= first + 1'b1;
      if (pushes && !pops) used <= used + 1'b1;
      if (pops && !pushes) used <= used - 1'b1;
    end
    if (pushes) words[free] <= in;
  end

`ifdef FORMAL
  genvar k;
  generate
    for (k = 0; k < DEPTH; k = k + 1) begin : seen
      assign formal_words[WIDTH*k+:WIDTH] = words[k];
    end
  endgenerate
  assign formal_first = first;
`endif
endmodule
