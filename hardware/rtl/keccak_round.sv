// One round of keccak-f[1600] (FIPS 202, 3.2): theta, rho, pi, chi, iota. No clock.
//
// Lane (x, y) lies at bits 64(5y+x)+63..64(5y+x), its bit z at z: byte k of the state is at 8k+7..8k.
module keccak_round (
    input  [1599:0] in,
    input  [63:0]   constant,
    output [1599:0] out
);
  // Rotation of lane 5y+x by rho, a byte each, lane 0 lowest: (t+1)(t+2)/2 mod 64 along the walk
  // (x, y) -> (y, 2x + 3y) from (1, 0).
  localparam [199:0] RHO = {
    8'd14, 8'd56, 8'd61, 8'd2, 8'd18,
    8'd8, 8'd21, 8'd15, 8'd45, 8'd41,
    8'd39, 8'd25, 8'd43, 8'd10, 8'd3,
    8'd20, 8'd55, 8'd6, 8'd44, 8'd36,
    8'd27, 8'd28, 8'd62, 8'd1, 8'd0
  };

  wire [319:0] parity, effect;
  wire [1599:0] moved, chosen;

  genvar x, y;
  generate
    for (x = 0; x < 5; x = x + 1) begin : column
      assign parity[64*x+:64] = in[64*x+:64] ^ in[64*(x+5)+:64] ^ in[64*(x+10)+:64]
          ^ in[64*(x+15)+:64] ^ in[64*(x+20)+:64];
      wire [63:0] right = parity[64*((x+1)%5)+:64];
      assign effect[64*x+:64] = parity[64*((x+4)%5)+:64] ^ {right[62:0], right[63]};

      for (y = 0; y < 5; y = y + 1) begin : lane
        localparam TURN = RHO[8*(5*y+x)+:8];
        wire [63:0] mixed = in[64*(5*y+x)+:64] ^ effect[64*x+:64];
        assign moved[64*(5*((2*x+3*y)%5)+y)+:64] = (mixed << TURN) | (mixed >> (64 - TURN));
        assign chosen[64*(5*y+x)+:64] = moved[64*(5*y+x)+:64]
            ^ (~moved[64*(5*y+(x+1)%5)+:64] & moved[64*(5*y+(x+2)%5)+:64]);
      end
    end
  endgenerate

  assign out = {chosen[1599:64], chosen[63:0] ^ constant};
endmodule
