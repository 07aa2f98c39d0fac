// Proof: the queue of rtl/fifo.sv keeps order, loses and invents no word, and its counts are right,
// for every sequence of pushes and pops, also into a full queue and from an empty one.
//
// One word is followed: the solver chooses which push it is. It must be at the output exactly when
// all that were pushed before it are gone. Words are not looked into, so few bits are enough.
module fifo_proof (
    input clk,
    input reset,
    input push,
    input [3:0] in,
    input pop,
    // The solver raises it in the cycle whose word is to be followed.
    input follow
);
  localparam WIDTH = 4;
  localparam DEPTH = 4;
  localparam BITS = 2;

  wire full, empty;
  wire [WIDTH-1:0] out;
  wire [BITS:0] used;
  wire [WIDTH*DEPTH-1:0] words;
  wire [BITS-1:0] first;

  fifo #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) queue (
      .clk(clk), .reset(reset), .push(push), .in(in), .full(full), .pop(pop), .out(out),
      .empty(empty), .used(used), .formal_words(words), .formal_first(first)
  );

  // The first cycle is a reset.
  reg started = 0;
  always @(posedge clk) started <= 1;
  always @* if (!started) assume (reset);

  // What the queue ought to hold: a number of words and, of one of them, its value and how many are
  // before it.
  reg [7:0] held = 0;
  reg following = 0;
  reg [WIDTH-1:0] word;
  reg [BITS-1:0] ahead;
  wire pushes = push && held < DEPTH;
  wire pops = pop && held > 0;

  always @(posedge clk) begin
    if (reset) begin
      held <= 0;
      following <= 0;
    end else begin
      held <= held + pushes - pops;
      if (following) begin
        if (pops && ahead == 0) following <= 0;
        if (pops) ahead <= ahead - 1;
      end else if (follow && pushes) begin
        following <= 1;
        word <= in;
        ahead <= held - pops;
      end
    end
  end

  // The place where the followed word lies, modulo DEPTH.
  wire [BITS-1:0] place = first + ahead;

  always @(posedge clk)
    if (started) begin
      count: assert (used == held && held <= DEPTH);
      ends: assert (full == (held == DEPTH) && empty == (held == 0));
      inside: assert (!following || ahead < held);
      // The invariant that makes the next one inductive.
      kept: assert (!following || words[WIDTH*place+:WIDTH] == word);
      order: assert (!(following && ahead == 0) || (!empty && out == word));
      // Both ends are reached, and a word that waited behind three others comes out.
      filled: cover (full && push);
      passed: cover (following && ahead == 0 && pop && full);
    end
endmodule
