// The position-map lookaside buffer (Freecursive section 4.2.3): ROWS map blocks, direct-mapped, each
// with its address and its count, which gives its leaf when it is appended. The row of a block is the
// engine's set function. Memories answer a cycle after `read_level` and `read_index`.
module plb #(
    parameter ROWS = 128
) (
    input              clk,
    input      [3:0]   read_level,
    input      [27:0]  read_index,
    output             valid,
    output     [3:0]   level,
    output     [27:0]  index,
    output     [63:0]  count,
    output     [511:0] content,
    // Of the row of `in_level` and `in_index`: its tag, its content, or both. `clear` empties
    // the row `in_index`.
    input              tag_write,
    input              content_write,
    input              clear,
    input      [3:0]   in_level,
    input      [27:0]  in_index,
    input      [63:0]  in_count,
    input      [511:0] in_content
);
  localparam ROW_BITS = $clog2(ROWS);

  /* verilator lint_off UNUSEDSIGNAL */
  wire [31:0] read_mixed = {4'd0, read_index} + {28'd0, read_level} * 32'h9e37_79b9;
  wire [31:0] in_mixed = {4'd0, in_index} + {28'd0, clear ? 4'd0 : in_level} * 32'h9e37_79b9;
  /* verilator lint_on UNUSEDSIGNAL */

  ram #(
      .WIDTH(97),
      .DEPTH(ROWS)
  ) tags (
      .clk(clk),
      .write(tag_write || clear),
      .write_at(in_mixed[ROW_BITS-1:0]),
      .in({!clear, in_level, in_index, in_count}),
      .read_at(read_mixed[ROW_BITS-1:0]),
      .out({valid, level, index, count})
  );

  ram #(
      .WIDTH(512),
      .DEPTH(ROWS)
  ) contents (
      .clk(clk),
      .write(content_write),
      .write_at(in_mixed[ROW_BITS-1:0]),
      .in(in_content),
      .read_at(read_mixed[ROW_BITS-1:0]),
      .out(content)
  );
endmodule
