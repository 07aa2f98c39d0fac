// Proof: the PLB says that it has a block exactly if that block was the last to be put into its row
// (rtl/plb.sv), and then gives its count and content as they were written last. For the first cycles
// after every row was emptied, with any block that the solver chooses to follow.
module plb_proof (
    input clk,
    input [3:0] read_level,
    input [27:0] read_index,
    input tag_write,
    input content_write,
    input [3:0] in_level,
    input [27:0] in_index,
    input [63:0] in_count,
    input [7:0] in_content
);
  localparam ROWS = 4;
  (* anyconst *) reg [3:0] level;
  (* anyconst *) reg [27:0] index;

  reg [2:0] emptied = 0;
  wire clear = emptied < ROWS;
  always @(posedge clk) if (clear) emptied <= emptied + 1;

  wire valid;
  wire [3:0] out_level;
  wire [27:0] out_index;
  wire [63:0] count;
  wire [511:0] content;
  plb #(.ROWS(ROWS)) plb (
      .clk(clk), .read_level(read_level), .read_index(read_index), .valid(valid), .level(out_level),
      .index(out_index), .count(count), .content(content), .tag_write(tag_write && !clear),
      .content_write(content_write && !clear), .clear(clear), .in_level(in_level),
      .in_index(clear ? {25'd0, emptied} : in_index), .in_count(in_count), .in_content({504'd0, in_content})
  );

  // The engine's set function.
  function [1:0] row(input [3:0] at_level, input [27:0] at_index);
    row = at_index[1:0] + at_level[1:0] * 2'd1;
  endfunction

  reg there = 0, asked = 0, was_there = 0;
  reg [63:0] last_count, was_count;
  reg [7:0] last_content, was_content;
  wire same_row = row(in_level, in_index) == row(level, index);
  always @(posedge clk) begin
    asked <= !clear && read_level == level && read_index == index;
    was_there <= there;
    was_count <= last_count;
    was_content <= last_content;
    if (!clear && same_row && tag_write) begin
      there <= in_level == level && in_index == index;
      last_count <= in_count;
    end
    if (!clear && same_row && content_write) last_content <= in_content;
  end

  wire hit = valid && out_level == level && out_index == index;
  always @* begin
    // A new block comes with its content.
    if (tag_write && !clear && same_row && !(there && in_level == level && in_index == index))
      assume (content_write);
    if (asked) begin
      assert (hit == was_there);
      if (hit) assert (count == was_count && content == {504'd0, was_content});
      cover (hit);
      cover (!hit && valid);
    end
  end
endmodule
