// One step of AES-128's key schedule (FIPS 197, 5.2): from round key i and the constant of round i
// + 1 to round key i + 1. No clock: `next` follows `key`. Four S-boxes.
//
// Word w of the key lies at bits 32w+31..32w, its first byte lowest.
module aes_next_key (
    input  [127:0] key,
    input  [7:0]   constant,
    output [127:0] next
);
  wire [31:0] last = key[127:96];
  wire [31:0] turned = {last[7:0], last[31:8]};
  wire [31:0] boxed;

  aes_sbox #(
      .BYTES(4)
  ) boxes (
      .in (turned),
      .out(boxed)
  );

  wire [31:0] word0 = key[31:0] ^ boxed ^ {24'd0, constant};
  wire [31:0] word1 = key[63:32] ^ word0;
  wire [31:0] word2 = key[95:64] ^ word1;
  wire [31:0] word3 = key[127:96] ^ word2;

  assign next = {word3, word2, word1, word0};
endmodule
