// The MAC of PMMAC (sections 6.1 and 6.2 of the paper): SHA3-224 over key || count || address ||
// data, 16 + 8 + 8 + 64 = 96 bytes in one permutation, cut to its first 16 bytes.
//
// `start` takes all inputs (none need stay); `done` is high for one cycle, 13 cycles later, and
// `mac` is good from then until the next `done`. A `start` while it works starts anew; there is
// room for a new one every 12 cycles. Comparing it, and refusing all service on a mismatch, is the
// front end's.
//
// SHA3 is not open to the extension of a message, so the key in front makes it a MAC (FIPS 202,
// 6.1; the capacity is 448 bits, the message ends with 01 and is padded with 10*1 to 144 bytes).
module pmmac (
    input              clk,
    input              reset,
    input              start,
    input      [127:0] key,
    input      [63:0]  count,
    input      [63:0]  address,
    input      [511:0] data,
    output reg         done,
    output reg [127:0] mac
);
  wire permuted;
  // A digest has 224 bits, of which 128 go with the block.
  /* verilator lint_off UNUSED */
  wire [1599:0] out;
  /* verilator lint_on UNUSED */

  keccak permutation (
      .clk  (clk),
      .reset(reset),
      .start(start),
      .in   ({448'd0, 8'h80, 368'd0, 8'h06, data, address, count, key}),
      .done (permuted),
      .out  (out)
  );

  always @(posedge clk) begin
    done <= permuted && !start && !reset;
    if (permuted) mac <= out[127:0];
  end
endmodule
