// The S-box of AES (FIPS 197, 5.1.1) in composite fields, for BYTES bytes side by side. No clock:
// `out` follows `in`. Bit i of all bytes is one vector, so that a simulator has one operation where
// the hardware has BYTES equal gates; a function, so that it runs once for each change of `in`.
//
// The S-box inverts in GF(256) and applies an affine map. Written over small fields, the inverse is
// products of few bits. The steps (numbers in hex are elements of FIPS 197's field):
//
//  1. Y = ff and Y^16 = fe are conjugate over GF(16), and Y + Y^16 = 1. Let N = Y^17 be their
//     product. Write x = a Y^16 + b Y with a, b in GF(16). Then x^16 = b Y^16 + a Y; the norm is
//         n = x x^16 = (a^2 + b^2) N + a b (Y^32 + Y^2) = N (a + b)^2 + a b,
//     since Y^32 + Y^2 = (Y^16 + Y)^2 = 1. It lies in GF(16), and 1 / x = x^16 / n:
//         1 / x = (b / n) Y^16 + (a / n) Y.
//  2. In GF(16) the basis is Z, Z W, Z^4, Z^4 W with Z = 5c, Z + Z^4 = 1, and W = bc in GF(4). A
//     product of u = u1 Z^4 + u0 Z and v = v1 Z^4 + v0 Z is, with c = Z^5 (u1 + u0) (v1 + v0),
//         (u1 v1 + c) Z^4 + (u0 v0 + c) Z,
//     three products in GF(4), each three products of bits by the same trick. So it takes nine ANDs
//     of nine sums of each factor, in this order: bits 0, 1, 0+1, 2, 3, 2+3, 0+2, 1+3, all four.
//  3. 1 / n is a function of four bits. Squares and the changes of basis are linear.
//
// Of 1,024 towers of this kind (each field by a normal or a polynomial basis) the 24 whose linear
// layers take the fewest XORs, shared greedily, were mapped with abc and osu018's cells; this one
// had the least area x delay. Beside a table of 256 entries (synthesis/aes_sbox_table.sv, both by
// synthesis/clock): 236 GE and 3.0 ns, the table 591 GE and 1.1 ns. A round has 4,966 GE and 3.9
// ns, with the table 10,938 GE and 1.9 ns; with its key and register the area x delay is a sixth
// less than with the table, the area half. Where only the clock counts, the table is the better
// one.
module aes_sbox #(
    parameter BYTES = 16
) (
    input  [8*BYTES-1:0] in,
    output [8*BYTES-1:0] out
);
  function [8*BYTES-1:0] substitute(input [8*BYTES-1:0] bytes);
    integer k;
    reg [BYTES-1:0] x0, x1, x2, x3, x4, x5, x6, x7;
    reg [BYTES-1:0] s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16,
        s17, s18, s19, s20, s21, s22, s23, s24, s25;
    reg [BYTES-1:0] a0, a1, a2, a3, a4, a5, a6, a7, a8;
    reg [BYTES-1:0] b0, b1, b2, b3, b4, b5, b6, b7, b8;
    reg [BYTES-1:0] l0, l1, l2, l3;
    reg [BYTES-1:0] m0, m1, m2, m3, m4, m5, m6, m7, m8;
    reg [BYTES-1:0] c0, c1;
    reg [BYTES-1:0] d0, d1, d2, d3;
    reg [BYTES-1:0] g0, g1, g2, g3;
    reg [BYTES-1:0] e0, e1, e2, e3, e4, e5, e6, e7, e8;
    reg [BYTES-1:0] p0, p1, p2, p3, p4, p5, p6, p7, p8;
    reg [BYTES-1:0] q0, q1, q2, q3, q4, q5, q6, q7, q8;
    reg [BYTES-1:0] u0, u1, u2, u3, u4, u5, u6, u7, u8, u9, u10, u11, u12, u13, u14, u15, u16,
        u17, u18, u19, u20, u21, u22, u23, u24, u25, u26, u27, u28, u29, u30, u31, u32, u33;
    begin
      for (k = 0; k < BYTES; k = k + 1)
        {x7[k], x6[k], x5[k], x4[k], x3[k], x2[k], x1[k], x0[k]} = bytes[8*k+:8];

      // Sums of input bits, each used more than once or an entry of a, b or l.
      s0 = x1 ^ x3; s1 = x5 ^ x6; s2 = x4 ^ x7; s3 = x0 ^ s1; s4 = x2 ^ s0; s5 = s0 ^ s2;
      s6 = x1 ^ x2; s7 = x5 ^ x7; s8 = x6 ^ s4; s9 = x7 ^ s3; s10 = x0 ^ s5; s11 = x0 ^ s8;
      s12 = x1 ^ x7; s13 = x1 ^ s3; s14 = x2 ^ x4; s15 = x2 ^ x5; s16 = x2 ^ x7; s17 = x4 ^ s1;
      s18 = x4 ^ s3; s19 = x5 ^ s4; s20 = s1 ^ s5; s21 = s2 ^ s6; s22 = s2 ^ s15; s23 = s4 ^ s7;
      s24 = s4 ^ s17; s25 = s6 ^ s9;

      // The two halves of the input in the new basis, each as nine sums.
      a0 = s9; a1 = s12; a2 = s13; a3 = s18; a4 = s21; a5 = s25; a6 = s2; a7 = s14; a8 = s16;
      b0 = s11; b1 = s19; b2 = s3; b3 = x0; b4 = s5; b5 = s10; b6 = s8; b7 = s22; b8 = s20;

      // The norm: a b by its nine products, and N (a + b)^2, which is linear: l.
      l0 = s23; l1 = x1; l2 = s24; l3 = s7;
      m0 = a0 & b0; m1 = a1 & b1; m2 = a2 & b2; m3 = a3 & b3; m4 = a4 & b4; m5 = a5 & b5;
      m6 = a6 & b6; m7 = a7 & b7; m8 = a8 & b8; c0 = m0 ^ m8; c1 = m3 ^ m8;
      d0 = (l0 ^ c0) ^ (m1 ^ m6); d1 = (l1 ^ c0) ^ (m2 ^ m7);
      d2 = (l2 ^ c1) ^ (m4 ^ m6); d3 = (l3 ^ c1) ^ (m5 ^ m7);

      // Its inverse in GF(16), as polynomials over GF(2), and as nine sums.
      g0 = d2 ^ (d1 & d3) ^ (d0 & d2 & d3) ^ (d1 & d2 & d3);
      g1 = d2 ^ (d0 & d2) ^ (d1 & d2) ^ d3 ^ (d1 & d2 & d3);
      g2 = d0 ^ (d0 & d1 & d2) ^ (d1 & d3) ^ (d0 & d1 & d3);
      g3 = d0 ^ d1 ^ (d0 & d2) ^ (d0 & d3) ^ (d0 & d1 & d3);
      e0 = g0; e1 = g1; e2 = g0 ^ g1; e3 = g2; e4 = g3; e5 = g2 ^ g3; e6 = g0 ^ g2; e7 = g1 ^ g3;
      e8 = e2 ^ e5;

      // The two halves of the result, b e and a e, as nine products each; then what turns them back
      // into FIPS 197's basis with the affine map, in one.
      p0 = b0 & e0; p1 = b1 & e1; p2 = b2 & e2; p3 = b3 & e3; p4 = b4 & e4; p5 = b5 & e5;
      p6 = b6 & e6; p7 = b7 & e7; p8 = b8 & e8; q0 = a0 & e0; q1 = a1 & e1; q2 = a2 & e2;
      q3 = a3 & e3; q4 = a4 & e4; q5 = a5 & e5; q6 = a6 & e6; q7 = a7 & e7; q8 = a8 & e8;
      u0 = q6 ^ q7; u1 = p2 ^ u0; u2 = q4 ^ q5; u3 = p1 ^ p4; u4 = p3 ^ q1; u5 = p5 ^ u2;
      u6 = p7 ^ u1; u7 = p0 ^ q2; u8 = p4 ^ p6; u9 = p8 ^ q0; u10 = u1 ^ u5; u11 = u3 ^ u4;
      u12 = p0 ^ p3; u13 = p1 ^ p6; u14 = p7 ^ u0; u15 = p8 ^ q1; u16 = q3 ^ q5; u17 = q6 ^ q8;
      u18 = u0 ^ u7; u19 = u2 ^ u6; u20 = u3 ^ u10; u21 = u4 ^ u8; u22 = u5 ^ u8; u23 = u6 ^ u7;
      u24 = u6 ^ u9; u25 = u9 ^ u17; u26 = u10 ^ u12; u27 = u11 ^ u16; u28 = u11 ^ u18;
      u29 = u13 ^ u19; u30 = u14 ^ u22; u31 = u15 ^ u23; u32 = u21 ^ u25; u33 = u24 ^ u27;

      for (k = 0; k < BYTES; k = k + 1)
        substitute[8*k+:8] = {
          u29[k], ~u30[k], ~u32[k], u20[k], u26[k], u33[k], ~u31[k], ~u28[k]
        };
    end
  endfunction

  assign out = substitute(in);
endmodule
