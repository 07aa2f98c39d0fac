// One round of keccak-f[1600] (FIPS 202, 3.2): theta, rho, pi, chi, iota. No clock.
//
// A round's constant has ones in bits 0, 1, 3, 7, 15, 31 and 63 only; these are `constant`, bit 0
// lowest.
//
// Lane (x, y) lies at bits 64(5y+x)+63..64(5y+x), its bit z at z; so byte k is at 8k+7..8k.
module keccak_round (
    input  [1599:0] in,
    input  [6:0]    constant,
    output [1599:0] out
);
  // How far rho turns lane 5y+x, a byte each, lane 0 lowest: (t+1)(t+2)/2 mod 64 along the walk
  // (x, y) -> (y, 2x + 3y) from (1, 0).
  localparam [199:0] RHO = {
    8'd14, 8'd56, 8'd61, 8'd2, 8'd18,
    8'd8, 8'd21, 8'd15, 8'd45, 8'd41,
    8'd39, 8'd25, 8'd43, 8'd10, 8'd3,
    8'd20, 8'd55, 8'd6, 8'd44, 8'd36,
    8'd27, 8'd28, 8'd62, 8'd1, 8'd0
  };

  function [63:0] turn(input [63:0] lane, input [7:0] by);
    turn = (lane << by) | (lane >> (64 - by));
  endfunction

  // A function, so that a simulator does a round once for each change of `in`.
  function [1599:0] permute(input [1599:0] state);
    integer x, y;
    reg [319:0] parity;
    reg [63:0] effect;
    reg [1599:0] moved;
    begin
      for (x = 0; x < 5; x = x + 1)
        parity[64*x+:64] = state[64*x+:64] ^ state[64*(x+5)+:64] ^ state[64*(x+10)+:64]
            ^ state[64*(x+15)+:64] ^ state[64*(x+20)+:64];
      for (x = 0; x < 5; x = x + 1) begin
        effect = parity[64*((x+4)%5)+:64] ^ turn(parity[64*((x+1)%5)+:64], 1);
        for (y = 0; y < 5; y = y + 1)
          moved[64*(5*((2*x+3*y)%5)+y)+:64] =
              turn(state[64*(5*y+x)+:64] ^ effect, RHO[8*(5*y+x)+:8]);
      end
      for (y = 0; y < 5; y = y + 1)
        for (x = 0; x < 5; x = x + 1)
          permute[64*(5*y+x)+:64] = moved[64*(5*y+x)+:64]
              ^ (~moved[64*(5*y+(x+1)%5)+:64] & moved[64*(5*y+(x+2)%5)+:64]);
    end
  endfunction

  function [63:0] spread(input [6:0] bits);
    spread = {
      bits[6], 31'd0, bits[5], 15'd0, bits[4], 7'd0, bits[3], 3'd0, bits[2], 1'd0, bits[1:0]
    };
  endfunction

  assign out = permute(in) ^ {1536'd0, spread(constant)};
endmodule
