// The position map on-chip: ROWS map blocks of 512 bits, the root of every walk (Freecursive sections
// 3.2 and 5.2). Its answer comes a cycle after `read_at`.
module posmap #(
    parameter ROWS = 128
) (
    input                     clk,
    input                     write,
    input  [$clog2(ROWS)-1:0] write_at,
    input  [511:0]            in,
    input  [$clog2(ROWS)-1:0] read_at,
    output [511:0]            out
);
  ram #(
      .WIDTH(512),
      .DEPTH(ROWS)
  ) rows (
      .clk(clk),
      .write(write),
      .write_at(write_at),
      .in(in),
      .read_at(read_at),
      .out(out)
  );
endmodule
