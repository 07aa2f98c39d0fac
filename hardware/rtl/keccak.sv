// The permutation keccak-f[1600] (FIPS 202, 3.3), two rounds a cycle, 12 cycles.
//
// `start` takes `in` (it need not stay) and already does the first two rounds; `done` is high for
// one cycle, 12 cycles later, and `out` is good in THAT cycle only. A `start` while it works starts
// anew. Nothing holds the state when it rests: that saves a multiplexer a bit. It is then fed with
// zeros, so that after a cycle nothing toggles.
//
// The paper's MAC is SHA3-224, 18 cycles (sections 6.1 and 7.2.1, Table 1).
module keccak (
    input           clk,
    input           reset,
    input           start,
    input  [1599:0] in,
    output          done,
    output [1599:0] out
);
  reg [3:0] step;
  reg [1599:0] state;
  wire busy = step != 0 && !done;
  wire [1599:0] first = start ? in : (busy ? state : 1600'd0);
  wire [1599:0] middle, second;

  // Of the first round in the low half; see keccak_round.sv.
  reg [13:0] constants;
  always @* begin
    case (start ? 4'd0 : step)
      4'd0:    constants = {7'h1a, 7'h01};
      4'd1:    constants = {7'h70, 7'h5e};
      4'd2:    constants = {7'h21, 7'h1f};
      4'd3:    constants = {7'h55, 7'h79};
      4'd4:    constants = {7'h0c, 7'h0e};
      4'd5:    constants = {7'h26, 7'h35};
      4'd6:    constants = {7'h4f, 7'h3f};
      4'd7:    constants = {7'h53, 7'h5d};
      4'd8:    constants = {7'h48, 7'h52};
      4'd9:    constants = {7'h66, 7'h16};
      4'd10:   constants = {7'h58, 7'h79};
      default: constants = {7'h74, 7'h21};
    endcase
  end

  keccak_round round0 (
      .in      (first),
      .constant(constants[6:0]),
      .out     (middle)
  );
  keccak_round round1 (
      .in      (middle),
      .constant(constants[13:7]),
      .out     (second)
  );

  assign done = step == 4'd12;
  assign out  = state;

  always @(posedge clk) begin
    state <= second;
    if (reset) step <= 0;
    else if (start) step <= 4'd1;
    else if (busy) step <= step + 4'd1;
    else step <= 0;
  end
endmodule
