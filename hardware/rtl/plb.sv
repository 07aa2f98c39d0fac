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

  // Of the engine's set function only the lowest bits count.
  localparam [31:0] SPREAD = 32'h9e37_79b9;
  function [ROW_BITS-1:0] row(input [3:0] of_level, input [27:0] of_index);
    reg [31:0] spread;
    begin
      spread = {28'd0, of_level} * {{(32 - ROW_BITS) {1'b0}}, SPREAD[ROW_BITS-1:0]};
      row = of_index[ROW_BITS-1:0] + spread[ROW_BITS-1:0];
    end
  endfunction
  wire [ROW_BITS-1:0] read_row = row(read_level, read_index);
  wire [ROW_BITS-1:0] in_row = row(clear ? 4'd0 : in_level, in_index);

  ram #(
      .WIDTH(97),
      .DEPTH(ROWS)
  ) tags (
      .clk(clk),
      .write(tag_write || clear),
      .write_at(in_row),
      .in({!clear, in_level, in_index, in_count}),
      .read_at(read_row),
      .out({valid, level, index, count})
  );

  ram #(
      .WIDTH(512),
      .DEPTH(ROWS)
  ) contents (
      .clk(clk),
      .write(content_write),
      .write_at(in_row),
      .in(in_content),
      .read_at(read_row),
      .out(content)
  );
endmodule
