// Proof: an entry of a map block never comes to a count that it had (rtl/counters.sv), for every
// map block and every entry of it. Its own count goes up; when the group rolls over, all counts do;
// else the others stay. So no pair of address and count is used twice (Freecursive, observation 3).
module counters_proof (
    input clk,
    input [511:0] row,
    input [4:0] index,
    input [4:0] other,
    input [511:0] flat_row,
    input [2:0] flat_index,
    input [2:0] flat_other
);
  localparam BITS = 9;

  wire [63:0] old_count, new_count, before, after, unused_a, unused_b;
  wire [511:0] new_row, unused_c, unused_d;
  wire rolls_over, unused_e, unused_f;

  counters #(.GROUP(1), .BITS(BITS)) entry (
      .row(row), .index(index), .old_count(old_count), .new_count(new_count), .new_row(new_row),
      .rolls_over(rolls_over)
  );
  // The same and any other entry, as read before and after.
  counters #(.GROUP(1), .BITS(BITS)) read_before (
      .row(row), .index(other), .old_count(before), .new_count(unused_a), .new_row(unused_c),
      .rolls_over(unused_e)
  );
  counters #(.GROUP(1), .BITS(BITS)) read_after (
      .row(new_row), .index(other), .old_count(after), .new_count(unused_b), .new_row(unused_d),
      .rolls_over(unused_f)
  );

  wire [63:0] flat_old, flat_new, flat_before, flat_after, unused_g, unused_h;
  wire [511:0] flat_new_row, unused_i, unused_j;
  wire unused_k, unused_l, unused_m;
  counters #(.GROUP(0)) flat (
      .row(flat_row), .index(flat_index), .old_count(flat_old), .new_count(flat_new),
      .new_row(flat_new_row), .rolls_over(unused_k)
  );
  counters #(.GROUP(0)) flat_read_before (
      .row(flat_row), .index(flat_other), .old_count(flat_before), .new_count(unused_g),
      .new_row(unused_i), .rolls_over(unused_l)
  );
  counters #(.GROUP(0)) flat_read_after (
      .row(flat_new_row), .index(flat_other), .old_count(flat_after), .new_count(unused_h),
      .new_row(unused_j), .rolls_over(unused_m)
  );

  // An individual counter has BITS bits, which stays so; 64 bits of count are never used up.
  wire fits = row[64+14*other+BITS+:14-BITS] == 0 && row[64+14*index+BITS+:14-BITS] == 0;
  wire lasts = row[63:64-BITS-1] == 0;
  always @* begin
    assume (fits && lasts);
    assume (!(&flat_old));
    assert (new_row[64+14*other+BITS+:14-BITS] == 0);
    if (other == index) assert (before == old_count && after == new_count && after > before);
    else if (rolls_over) assert (after > before);
    else assert (after == before);
    assert (flat_new == flat_old + 1);
    assert (flat_after == (flat_other == flat_index ? flat_before + 1 : flat_before));
    cover (rolls_over && other != index && before != 0);
    cover (!rolls_over);
  end
endmodule
