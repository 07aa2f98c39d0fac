// AES for proofs of timing: as late as the cipher, with any output at all.
module aes (
    input           clk,
    input           reset,
    input  [1407:0] round_keys,
    input           in_valid,
    input  [127:0]  in,
    output          out_valid,
    output [127:0]  out
);
  localparam LATENCY = 11;
  reg [LATENCY-1:0] valid;
  assign out_valid = valid[LATENCY-1];
  always @(posedge clk) valid <= reset ? 0 : {valid[LATENCY-2:0], in_valid};
  (* anyseq *) reg [127:0] any;
  assign out = any;
endmodule
