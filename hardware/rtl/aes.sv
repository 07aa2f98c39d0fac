// Pipelined AES-128 encryption (FIPS 197): one block a cycle, one round a stage.
//
// A block given with `in_valid` comes out with `out_valid` LATENCY = 11 cycles later, always; there
// is no back-pressure, so whoever feeds it has room for what is in flight. `round_keys` comes from
// `aes_key.sv` and must not change while blocks are in flight. `reset` only clears the valid bits.
// Byte k of a block lies at bits 8k+7..8k.
//
// The paper uses a pipelined core of 21 cycles for the pads of its paths (sections 6.4 and 7.2.1).
module aes (
    input           clk,
    input           reset,
    input  [1407:0] round_keys,
    input           in_valid,
    input  [127:0]  in,
    output          out_valid,
    output [127:0]  out
);
  localparam LATENCY = 11;

  reg [LATENCY-1:0] valid;
  assign out_valid = valid[LATENCY-1];

  always @(posedge clk) begin
    if (reset) valid <= 0;
    else valid <= {valid[LATENCY-2:0], in_valid};
  end

  genvar r;
  generate
    for (r = 0; r < LATENCY; r = r + 1) begin : stage
      wire [127:0] before_key;
      reg  [127:0] state;

      if (r == 0) begin : whiten
        assign before_key = in;
      end else begin : turn
        aes_round round (
            .in (stage[r-1].state),
            .mix(r != LATENCY - 1),
            .out(before_key)
        );
      end

      always @(posedge clk) state <= before_key ^ round_keys[128*r+:128];
    end
  endgenerate

  assign out = stage[LATENCY-1].state;
endmodule
