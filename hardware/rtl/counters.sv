// The entries of a map block (Freecursive sections 5.2 and 6.2.2). Combinational.
//
// GROUP = 0: eight counters of 64 bits. GROUP = 1: a group counter of 64 bits and 32 individual
// counters, each in 14 bits of which BITS are used; a count is both together. When an individual
// counter rolls over, the group counter goes up and all individual counters begin at zero.
module counters #(
    parameter GROUP = 1,
    parameter BITS = 14,
    parameter INDEX_BITS = GROUP ? 5 : 3
) (
    input      [511:0]            row,
    input      [INDEX_BITS-1:0]   index,
    output     [63:0]             old_count,
    output     [63:0]             new_count,
    output     [511:0]            new_row,
    output                        rolls_over
);
  generate
    if (GROUP) begin : compressed
      wire [63:0] group = row[63:0];
      wire [13:0] individual = row[64+14*index+:14];
      wire [13:0] next = individual + 1'b1;
      reg [511:0] counted;
      always @* begin
        counted = row;
        counted[64+14*index+:14] = next;
      end
      // The highest value in BITS bits is followed by a roll-over.
      assign rolls_over = &individual[BITS-1:0];
      assign old_count = (group << BITS) | {50'd0, individual};
      assign new_count = rolls_over ? (group + 1'b1) << BITS : (group << BITS) | {50'd0, next};
      assign new_row = rolls_over ? {448'd0, group + 1'b1} : counted;
    end else begin : flat
      reg [511:0] counted;
      always @* begin
        counted = row;
        counted[64*index+:64] = new_count;
      end
      assign rolls_over = 1'b0;
      assign old_count = row[64*index+:64];
      assign new_count = old_count + 1'b1;
      assign new_row = counted;
    end
  endgenerate
endmodule
