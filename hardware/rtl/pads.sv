// Pads for buckets in counter mode (Freecursive section 6.4): LANES pipelines of AES-128, each with a
// chunk of 16 bytes a cycle, over the bucket's seed and the chunk's number.
//
// While `seed_valid`, the unit takes `seed` when it begins a bucket (`seed_take`), and makes a pad for
// each of the BEATS beats of that bucket. They come out in order; `take` removes one.
module pads #(
    parameter LANES = 1,
    parameter BEATS = 24
) (
    input                   clk,
    input                   reset,
    input  [1407:0]         round_keys,
    input                   seed_valid,
    input  [63:0]           seed,
    output                  seed_take,
    output                  valid,
    output [128*LANES-1:0]  pad,
    input                   take
);
  localparam BEAT_BITS = $clog2(BEATS);
  // As many as are in the pipeline and one more step of the queue need, so that none is lost.
  localparam QUEUE = 16;

  reg [BEAT_BITS-1:0] beat;
  reg [4:0] room;
  reg [63:0] bucket_seed;

  wire begins = beat == 0;
  wire issue = room != 0 && (!begins || seed_valid);
  wire [63:0] seed_now = begins ? seed : bucket_seed;
  wire [LANES-1:0] made;
  wire [128*LANES-1:0] out;
  wire empty;

  assign seed_take = issue && begins;
  assign valid = !empty;

  always @(posedge clk) begin
    if (reset) begin
      beat <= 0;
      room <= QUEUE;
    end else begin
      if (issue) beat <= beat == BEATS[BEAT_BITS-1:0] - 1'b1 ? 0 : beat + 1'b1;
      if (issue && !(take && valid)) room <= room - 1'b1;
      if (!issue && take && valid) room <= room + 1'b1;
    end
    if (seed_take) bucket_seed <= seed;
  end

  genvar lane;
  generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : pipeline
      wire [63:0] number = {{(64 - BEAT_BITS) {1'b0}}, beat} * LANES + lane;
      aes cipher (
          .clk(clk),
          .reset(reset),
          .round_keys(round_keys),
          .in_valid(issue),
          .in({number, seed_now}),
          .out_valid(made[lane]),
          .out(out[128*lane+:128])
      );
    end
  endgenerate

  /* verilator lint_off PINCONNECTEMPTY */
  fifo #(
      .WIDTH(128 * LANES),
      .DEPTH(QUEUE)
  ) queue (
      .clk(clk),
      .reset(reset),
      .push(made[0]),
      .in(out),
      .full(),
      .pop(take),
      .out(pad),
      .empty(empty),
      .used()
  );
  /* verilator lint_on PINCONNECTEMPTY */
endmodule
