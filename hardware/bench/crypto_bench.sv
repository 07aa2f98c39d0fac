// Runs the ciphers, the queue and the memory on vectors from a file, for
// crates/lab/tests/hardware_crypto.rs, which also says what has to come out.
//
//   crypto_bench +vectors=FILE +results=FILE
//
// A line of vectors is a letter and numbers in hex; a result line starts with the same letter.
//   k KEY                       expand the key of the pipeline        k CYCLES
//   a BLOCK                     a block into the pipeline, one cycle  a CYCLE_IN CYCLE_OUT BLOCK
//   w CYCLES                    wait
//   g CYCLES                    start all of the next four with anything, that long before the next
//   i KEY BLOCK                 aes_iterative                         i CYCLES BLOCK
//   p KEY ADDRESS COUNT         prf                                   p CYCLES LABEL
//   f STATE                     keccak                                f CYCLES STATE
//   m KEY COUNT ADDRESS DATA    pmmac                                 m CYCLES MAC
//   q PUSH POP WORD             one cycle of the queue                q FULL EMPTY USED OUT
//   r WRITE AT WORD READ_AT     one cycle of the memory               r OUT
// The queue's line shows it before the clock edge (OUT is 0 when it is empty), the memory's after
// it. Inputs change at the falling edge. Numbers in results are in hex, too.
module crypto_bench;
  reg clk = 0;
  reg reset = 1;
  reg [31:0] cycle = 0;
  initial forever #5 clk = !clk;
  always @(posedge clk) cycle <= cycle + 1;

  reg [127:0] key, block;
  reg [63:0] address, count;
  reg [511:0] data;
  reg [1599:0] state;
  reg key_start = 0, in_valid = 0, iterative_start = 0, prf_start = 0;
  reg keccak_start = 0, pmmac_start = 0;

  wire [1407:0] round_keys;
  wire key_ready, out_valid, iterative_done, prf_done, keccak_done, pmmac_done;
  wire [127:0] out, iterative_out, mac;
  wire [63:0] label;
  wire [1599:0] keccak_out;

  aes_key schedule (
      .clk(clk), .reset(reset), .start(key_start), .key(key),
      .round_keys(round_keys), .ready(key_ready)
  );
  aes pipeline (
      .clk(clk), .reset(reset), .round_keys(round_keys),
      .in_valid(in_valid), .in(block), .out_valid(out_valid), .out(out)
  );
  aes_iterative iterative (
      .clk(clk), .reset(reset), .start(iterative_start), .key(key), .in(block),
      .done(iterative_done), .out(iterative_out)
  );
  prf leaf (
      .clk(clk), .reset(reset), .start(prf_start), .key(key), .address(address), .count(count),
      .done(prf_done), .label(label)
  );
  keccak permutation (
      .clk(clk), .reset(reset), .start(keccak_start), .in(state),
      .done(keccak_done), .out(keccak_out)
  );
  pmmac code (
      .clk(clk), .reset(reset), .start(pmmac_start), .key(key), .count(count),
      .address(address), .data(data), .done(pmmac_done), .mac(mac)
  );

  reg push = 0, pop = 0, write = 0;
  reg [31:0] word;
  reg [3:0] write_at, read_at;
  wire full, empty;
  wire [3:0] used;
  wire [31:0] oldest, read;
  fifo #(.WIDTH(32), .DEPTH(8)) queue (
      .clk(clk), .reset(reset), .push(push), .in(word), .full(full),
      .pop(pop), .out(oldest), .empty(empty), .used(used)
  );
  ram #(.WIDTH(32), .DEPTH(16)) memory (
      .clk(clk), .write(write), .write_at(write_at), .in(word), .read_at(read_at), .out(read)
  );

  integer vectors, results, got;
  reg [8191:0] path;
  reg [7:0] operation;
  reg [31:0] since, wait_for;

  // When each block went into the pipeline; more than it ever holds.
  reg [31:0] entered[0:63];
  reg [5:0] ins = 0, outs = 0;
  always @(negedge clk)
    if (!reset && out_valid) begin
      $fdisplay(results, "a %h %h %h", entered[outs], cycle, out);
      outs <= outs + 1;
    end

  task tick;
    @(negedge clk);
  endtask

  task run_line;
    case (operation)
      "k": begin
        got = $fscanf(vectors, "%h", key);
        key_start = 1; since = cycle; tick; key_start = 0;
        key = ~key;
        while (!key_ready) tick;
        $fdisplay(results, "k %h", cycle - since);
      end
      "a": begin
        got = $fscanf(vectors, "%h", block);
        in_valid = 1; entered[ins] = cycle; ins = ins + 1; tick; in_valid = 0;
        block = ~block;
      end
      "w": begin
        got = $fscanf(vectors, "%h", wait_for);
        repeat (wait_for) tick;
      end
      "g": begin
        got = $fscanf(vectors, "%h", wait_for);
        {iterative_start, prf_start, keccak_start, pmmac_start} = 4'hf; tick;
        {iterative_start, prf_start, keccak_start, pmmac_start} = 4'h0;
        repeat (wait_for) tick;
      end
      "i": begin
        got = $fscanf(vectors, "%h %h", key, block);
        iterative_start = 1; since = cycle; tick; iterative_start = 0;
        key = ~key; block = ~block;
        while (!iterative_done) tick;
        $fdisplay(results, "i %h %h", cycle - since, iterative_out);
      end
      "p": begin
        got = $fscanf(vectors, "%h %h %h", key, address, count);
        prf_start = 1; since = cycle; tick; prf_start = 0;
        key = ~key; address = ~address; count = ~count;
        while (!prf_done) tick;
        $fdisplay(results, "p %h %h", cycle - since, label);
      end
      "f": begin
        got = $fscanf(vectors, "%h", state);
        keccak_start = 1; since = cycle; tick; keccak_start = 0;
        state = ~state;
        while (!keccak_done) tick;
        $fdisplay(results, "f %h %h", cycle - since, keccak_out);
      end
      "m": begin
        got = $fscanf(vectors, "%h %h %h %h", key, count, address, data);
        pmmac_start = 1; since = cycle; tick; pmmac_start = 0;
        key = ~key; count = ~count; address = ~address; data = ~data;
        while (!pmmac_done) tick;
        $fdisplay(results, "m %h %h", cycle - since, mac);
      end
      "q": begin
        got = $fscanf(vectors, "%h %h %h", push, pop, word);
        $fdisplay(results, "q %h %h %h %h", full, empty, used, empty ? 32'd0 : oldest);
        tick; push = 0; pop = 0;
      end
      "r": begin
        got = $fscanf(vectors, "%h %h %h %h", write, write_at, word, read_at);
        tick; write = 0;
        $fdisplay(results, "r %h", read);
      end
      default: begin
        $display("crypto_bench: unknown operation %c", operation);
        $finish;
      end
    endcase
    if (got < 1) $display("crypto_bench: a line ends early");
  endtask

  initial begin
    if (!$value$plusargs("vectors=%s", path)) $display("crypto_bench: no +vectors=FILE");
    vectors = $fopen(path, "r");
    if (!$value$plusargs("results=%s", path)) $display("crypto_bench: no +results=FILE");
    results = $fopen(path, "w");
    repeat (3) tick;
    reset = 0;
    while ($fscanf(vectors, " %c", operation) == 1) run_line;
    // What is still in the pipeline comes out.
    repeat (16) tick;
    $fclose(results);
    $finish;
  end
endmodule
