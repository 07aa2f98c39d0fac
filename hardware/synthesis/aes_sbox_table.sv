// The S-box of AES as a table of 256 entries, to compare rtl/aes_sbox.sv with: no other use.
//
// 3 generates the field's units: while p runs through its powers, q runs through their inverses.
module aes_sbox_table #(
    parameter BYTES = 1
) (
    input  [8*BYTES-1:0] in,
    output [8*BYTES-1:0] out
);
  function [2047:0] entries(input [7:0] first);
    integer k;
    reg [7:0] p, q;
    begin
      entries[7:0] = 8'h63;
      p = first;
      q = first;
      for (k = 0; k < 255; k = k + 1) begin
        p = p ^ {p[6:0], 1'b0} ^ (p[7] ? 8'h1b : 8'h00);
        q = q ^ {q[6:0], 1'b0};
        q = q ^ {q[5:0], 2'b0};
        q = q ^ {q[3:0], 4'b0};
        q = q ^ (q[7] ? 8'h09 : 8'h00);
        entries[8*p+:8] = q ^ {q[6:0], q[7]} ^ {q[5:0], q[7:6]} ^ {q[4:0], q[7:5]}
            ^ {q[3:0], q[7:4]} ^ 8'h63;
      end
    end
  endfunction

  localparam [2047:0] ENTRIES = entries(8'h01);

  genvar k;
  generate
    for (k = 0; k < BYTES; k = k + 1) begin : box
      assign out[8*k+:8] = ENTRIES[8*in[8*k+:8]+:8];
    end
  endgenerate
endmodule
