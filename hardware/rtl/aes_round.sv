// One round of AES without its key (FIPS 197, 5.1.1 to 5.1.3): SubBytes, ShiftRows and, where `mix`
// is high, MixColumns. The caller adds the round key; the last round has `mix` low.
// No clock: `out` follows `in`.
//
// Byte k of the block lies at bits 8k+7..8k and is row k % 4 of column k / 4.
module aes_round (
    input  [127:0] in,
    input          mix,
    output [127:0] out
);
  wire [127:0] boxed;

  aes_sbox #(
      .BYTES(16)
  ) boxes (
      .in (in),
      .out(boxed)
  );

  // Row r moves left by r columns: its byte comes from column c + r.
  function [127:0] shift(input [127:0] bytes);
    integer k;
    for (k = 0; k < 16; k = k + 1) shift[8*k+:8] = bytes[8*((4*(k/4)+5*(k%4))%16)+:8];
  endfunction

  // Doubling modulo x^8 + x^4 + x^3 + x + 1.
  function [7:0] twice(input [7:0] a);
    twice = {a[6:4], a[3] ^ a[7], a[2] ^ a[7], a[1], a[0] ^ a[7], a[7]};
  endfunction

  // Row r becomes 2 a + 3 b + c + d = 2 (a + b) + b + c + d, with a in row r, the others below it.
  function [127:0] mix_columns(input [127:0] bytes);
    integer k;
    reg [7:0] a, b, c, d;
    for (k = 0; k < 16; k = k + 1) begin
      a = bytes[8*k+:8];
      b = bytes[8*(4*(k/4)+(k+1)%4)+:8];
      c = bytes[8*(4*(k/4)+(k+2)%4)+:8];
      d = bytes[8*(4*(k/4)+(k+3)%4)+:8];
      mix_columns[8*k+:8] = twice(a ^ b) ^ b ^ (c ^ d);
    end
  endfunction

  wire [127:0] shifted = shift(boxed);
  assign out = mix ? mix_columns(shifted) : shifted;
endmodule
