// Expands a 128-bit AES key into its eleven round keys once, one a cycle (FIPS 197, 5.2).
//
// `start` takes `key` (it need not stay); 11 cycles later `ready` rises and `round_keys` is good
// until the next `start` or `reset`. Round key i lies at bits 128i+127..128i. A `start` while it
// works starts anew. One such schedule serves all pipelines of `aes.sv` that share a key.
//
// The paper encrypts each path by AES-128 in counter mode (sections 3.1, 6.4 and 7.2.1).
module aes_key (
    input               clk,
    input               reset,
    input               start,
    input      [127:0]  key,
    output reg [1407:0] round_keys,
    output reg          ready
);
  reg busy;
  reg [7:0] constant;
  wire [127:0] next;

  aes_next_key step (
      .key     (round_keys[1407:1280]),
      .constant(constant),
      .next    (next)
  );

  // The constants are the powers of x modulo x^8 + x^4 + x^3 + x + 1: 01, 02 .. 80, 1b, 36. The
  // tenth and last key is made with 36.
  wire [7:0] doubled = {constant[6:0], 1'b0} ^ (constant[7] ? 8'h1b : 8'h00);

  // New keys enter at the top and push the others down: the newest, from which the next one is
  // made, is always in the same place, and after ten steps the first one lies lowest.
  always @(posedge clk) begin
    if (reset) begin
      busy  <= 0;
      ready <= 0;
    end else if (start) begin
      busy  <= 1;
      ready <= 0;
    end else if (busy && constant == 8'h36) begin
      busy  <= 0;
      ready <= 1;
    end
    constant <= start ? 8'h01 : doubled;
    if (start || busy) round_keys <= {start ? key : next, round_keys[1407:128]};
  end
endmodule
