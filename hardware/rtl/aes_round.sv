// One round of AES without its key (FIPS 197, 5.1.1 to 5.1.3): SubBytes, ShiftRows and, where `mix` is
// high, MixColumns. The caller adds the round key; the last round has `mix` low.
// No clock: `out` follows `in`.
//
// Byte k of the block lies at bits 8k+7..8k and is row k % 4 of column k / 4.
module aes_round (
    input  [127:0] in,
    input          mix,
    output [127:0] out
);
  wire [127:0] boxed, shifted, mixed;

  genvar k;
  generate
    for (k = 0; k < 16; k = k + 1) begin : box
      aes_sbox sbox (
          .in (in[8*k+:8]),
          .out(boxed[8*k+:8])
      );
      // Row r moves left by r columns: the byte comes from column c + r.
      assign shifted[8*k+:8] = boxed[8*((4*(k/4)+5*(k%4))%16)+:8];
    end

    // 2 a0 + 3 a1 + a2 + a3 = 2 (a0 + a1) + (a0 + a1 + a2 + a3) + a0, for each row turned on.
    for (k = 0; k < 16; k = k + 1) begin : byte_of_column
      wire [7:0] a = shifted[8*k+:8];
      wire [7:0] b = shifted[8*(4*(k/4)+(k+1)%4)+:8];
      wire [7:0] c = shifted[8*(4*(k/4)+(k+2)%4)+:8];
      wire [7:0] d = shifted[8*(4*(k/4)+(k+3)%4)+:8];
      wire [7:0] s = a ^ b;
      // Doubling modulo x^8 + x^4 + x^3 + x + 1.
      wire [7:0] twice = {s[6:4], s[3] ^ s[7], s[2] ^ s[7], s[1], s[0] ^ s[7], s[7]};
      assign mixed[8*k+:8] = twice ^ b ^ (c ^ d);
    end
  endgenerate

  assign out = mix ? mixed : shifted;
endmodule
