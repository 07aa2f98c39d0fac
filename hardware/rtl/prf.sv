// The pseudorandom function that gives a block its leaf (sections 5.1 and 5.2.1 of the paper):
// label = the first 8 bytes of AES-128 under `key` of (address || count), both little-endian.
// The leaf is as many of its top bits as the tree has levels; that is up to the caller.
//
// `start` takes all inputs (none need stay); `done` is high for one cycle, 11 cycles later, and
// `label` is good from then until the next `start`.
module prf (
    input          clk,
    input          reset,
    input          start,
    input  [127:0] key,
    input  [63:0]  address,
    input  [63:0]  count,
    output         done,
    output [63:0]  label
);
  // The rest of the block is a pseudorandom value that nobody needs.
  /* verilator lint_off UNUSED */
  wire [127:0] out;
  /* verilator lint_on UNUSED */

  aes_iterative cipher (
      .clk  (clk),
      .reset(reset),
      .start(start),
      .key  (key),
      .in   ({count, address}),
      .done (done),
      .out  (out)
  );

  assign label = out[63:0];
endmodule
