// AES-128 encryption of one block at a time, one round a cycle, with the key schedule made beside
// it (FIPS 197). Twenty S-boxes: sixteen for the round, four for the next round key.
//
// `start` takes `key` and `in` (neither need stay); `done` is high for one cycle, 11 cycles later,
// and `out` is good from then until the next `start`. A `start` while it works starts anew.
//
// The paper's PRF uses "a non-pipelined 12 cycle core" (sections 5.1 and 7.2.1).
module aes_iterative (
    input              clk,
    input              reset,
    input              start,
    input      [127:0] key,
    input      [127:0] in,
    output reg         done,
    output     [127:0] out
);
  reg busy;
  reg [127:0] state, round_key;
  reg [7:0] constant;
  wire [127:0] turned, next_key;
  wire last = constant == 8'h36;

  aes_round round (
      .in (state),
      .mix(!last),
      .out(turned)
  );

  aes_next_key step (
      .key     (round_key),
      .constant(constant),
      .next    (next_key)
  );

  assign out = state;

  always @(posedge clk) begin
    if (reset) begin
      busy <= 0;
      done <= 0;
    end else begin
      busy <= start || (busy && !last);
      done <= !start && busy && last;
    end
    // Powers of x, as in aes_key.sv.
    constant <= start ? 8'h01 : {constant[6:0], 1'b0} ^ (constant[7] ? 8'h1b : 8'h00);
    if (start || busy) round_key <= start ? key : next_key;
    if (start) state <= in ^ key;
    else if (busy) state <= turned ^ next_key;
  end
endmodule
