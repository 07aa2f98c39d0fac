// A memory for proofs about control: it answers anything.
module ram #(
    parameter WIDTH = 64,
    parameter DEPTH = 256
) (
    input                          clk,
    input                          write,
    input      [$clog2(DEPTH)-1:0] write_at,
    input      [WIDTH-1:0]         in,
    input      [$clog2(DEPTH)-1:0] read_at,
    output     [WIDTH-1:0]         out
);
  (* anyseq *) reg [WIDTH-1:0] any;
  assign out = any;
endmodule
