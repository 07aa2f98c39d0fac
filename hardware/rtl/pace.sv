// When a path may begin: in every cycle, or every INTERVAL cycles (`now`). `late` is the time before, in
// which a request would not be ready.
module pace #(
    parameter INTERVAL = 0,
    parameter PREPARATION = 48
) (
    input  clk,
    input  reset,
    output now,
    output late
);
  generate
    if (INTERVAL > 0) begin : paced
      reg [31:0] left;
      always @(posedge clk) left <= reset || left == 0 ? INTERVAL - 1 : left - 1'b1;
      assign now  = left == 0;
      assign late = left <= PREPARATION;
    end else begin : unpaced
      assign now  = 1'b1;
      assign late = 1'b0;
    end
  endgenerate
endmodule
