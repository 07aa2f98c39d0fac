// The only memory of the design: one synchronous read port and one write port.
//
// `out` holds the word at `read_at` one cycle after the address; a read of the address that is
// written in the same cycle gives the OLD word. There is no reset: what was never written is
// undefined, so a user fills it or keeps valid bits elsewhere. DEPTH is at least 2.
//
// In silicon this is a macro from a memory generator (section 7.2.1 of the paper: PLB data and
// tags, on-chip PosMap, stash data and tags); the synthesis counts its bits and maps no cell.
module ram #(
    parameter WIDTH = 64,
    parameter DEPTH = 256
) (
    input                          clk,
    input                          write,
    input      [$clog2(DEPTH)-1:0] write_at,
    input      [WIDTH-1:0]         in,
    input      [$clog2(DEPTH)-1:0] read_at,
    output reg [WIDTH-1:0]         out
);
  reg [WIDTH-1:0] words[0:DEPTH-1];

  always @(posedge clk) begin
    out <= words[read_at];
    if (write) words[write_at] <= in;
  end
endmodule
