// Runs the controller on requests from a file, beside a memory that stalls at random, and prints all
// that the memory and the cache see. `crates/lab/src/hardware/cosim.rs` says what has to come out.
//
//   oram_bench +requests=FILE [+stall=N] [+seed=N] [+times] [+wave]
//
// A line of requests is a letter and numbers in hex:
//   r BLOCK            read                x LINE MASK    flip bits of a line, once all is written
//   w BLOCK DATA       write               k LINE         keep a line as it is
//   z LINE             make a line zeros   b LINE         put it back
//   d CYCLES           ask for nothing for a while
// What it prints:
//   R LINE DATA, W LINE DATA   a line read or written, when its last beat moves
//   A DATA CYCLES              the answer to a read; cycles since the request was taken
//   D CYCLES                   a write was taken
//   F                          the port failed
//   E CYCLES                   the end, and the cycles since reset
//   V CYCLE BITS               with +wave: what moves in a cycle: request, word out, word in, command to
//                              read, command to write, data read, data written (bit 0 first)
//   C CYCLE WRITE              with +times: a command was valid in this cycle
// `stall` of 16 cycles, each ready or valid of the memory is low; N is 0 to 15.
`timescale 1ns / 1ps
module oram_bench #(
    parameter NCHANNEL = 2,
    parameter DEPTH = 8,
    parameter SUBTREE = 4,
    parameter STASH = 308,
    parameter GROUP = 0,
    parameter BITS = 14,
    parameter MACS = 1,
    parameter RECURSION = 2,
    parameter PLB_ROWS = 16,
    parameter MAP_ROWS = 4,
    parameter BACKLOG = 8,
    parameter INTERVAL = 0,
    parameter TABLE_BITS = 18
);
  localparam WIDTH = 64 * NCHANNEL;
  localparam BEATS = 512 / WIDTH;
  localparam TABLE = 1 << TABLE_BITS;

  reg clk = 0;
  reg reset = 1;
  reg [63:0] cycle = 0;
  always #5 clk = !clk;
  always @(posedge clk) cycle <= cycle + 1;

  // The cache.
  reg request_valid = 0, request_write = 0, word_in_valid = 0;
  reg [27:0] request_block = 0;
  wire request_ready, word_out_valid, word_in_ready, failed;
  wire [63:0] word_out;
  reg [511:0] data_in = 0, data_out = 0;

  // The memory.
  wire command_valid, command_write, read_ready, write_valid;
  wire [31:0] command_line;
  wire [WIDTH-1:0] write_data;
  reg command_open = 0, read_open = 0, write_open = 0;

  // Lines by their number: an open hash table. What was never written is zeros.
  reg [32:0] keys[0:TABLE-1];
  reg [511:0] lines[0:TABLE-1];
  integer entry;
  initial for (entry = 0; entry < TABLE; entry = entry + 1) keys[entry] = 0;

  function [TABLE_BITS-1:0] place(input [31:0] number);
    reg [31:0] mixed;
    begin
      mixed = number * 32'h9e37_79b1;
      place = mixed[31-:TABLE_BITS];
      while (keys[place] != 0 && keys[place] != {1'b1, number}) place = place + 1'b1;
    end
  endfunction

  function [511:0] stored(input [31:0] number);
    stored = keys[place(number)] == 0 ? 512'd0 : lines[place(number)];
  endfunction

  // Commands that wait for their data.
  reg [32:0] commands[0:1023];
  reg [9:0] command_first = 0, command_end = 0;
  wire waits = command_first != command_end;
  wire [32:0] command = commands[command_first];
  wire [31:0] line = command[31:0];
  reg [7:0] beat = 0;
  reg [511:0] line_in = 0;
  wire [511:0] line_out = stored(line);
  wire read_valid = waits && !command[32] && read_open;
  wire write_ready = waits && command[32] && write_open;
  wire [511:0] line_rest = line_out >> (WIDTH * beat);
  wire [WIDTH-1:0] read_data = line_rest[WIDTH-1:0];
  wire [WIDTH+511:0] line_shifted = {write_data, line_in} >> WIDTH;

  oram #(
      .NCHANNEL(NCHANNEL), .DEPTH(DEPTH), .SUBTREE(SUBTREE), .STASH(STASH), .GROUP(GROUP),
      .BITS(BITS), .MACS(MACS), .RECURSION(RECURSION), .PLB_ROWS(PLB_ROWS), .MAP_ROWS(MAP_ROWS),
      .BACKLOG(BACKLOG), .INTERVAL(INTERVAL)
  ) oram (
      .clk(clk), .reset(reset),
      .label_key(128'h0f0e0d0c0b0a09080706050403020100),
      .mac_key(128'h1f1e1d1c1b1a19181716151413121110),
      .pad_key(128'h2f2e2d2c2b2a29282726252423222120),
      .request_valid(request_valid), .request_ready(request_ready),
      .request_write(request_write), .request_block(request_block),
      .word_out_valid(word_out_valid), .word_out_ready(1'b1), .word_out(word_out),
      .word_in_valid(word_in_valid), .word_in_ready(word_in_ready), .word_in(data_in[63:0]),
      .failed(failed),
      .command_valid(command_valid), .command_ready(command_open), .command_write(command_write),
      .command_line(command_line),
      .read_valid(read_valid), .read_ready(read_ready), .read_data(read_data),
      .write_valid(write_valid), .write_ready(write_ready), .write_data(write_data)
  );

  // Stalls change at the falling edge, so that they do not race with the clock.
  integer stall = 0, seed = 1;
  reg times = 0, wave = 0;
  wire command_moves = command_valid && command_open;
  always @(negedge clk) begin
    command_open <= $unsigned($random(seed)) % 16 >= stall && command_end + 10'd2 != command_first;
    read_open <= $unsigned($random(seed)) % 16 >= stall;
    write_open <= $unsigned($random(seed)) % 16 >= stall;
  end

  always @(posedge clk) if (!reset) begin
    if (times && command_valid) $write("C %0h %0h\n", cycle, command_write);
    if (wave) $write("V %0h %0h\n", cycle, {write_valid && write_ready, read_valid && read_ready,
        command_moves && command_write, command_moves && !command_write, word_in_valid && word_in_ready,
        word_out_valid, request_valid && request_ready});
    if (command_moves) begin
      commands[command_end] <= {command_write, command_line};
      command_end <= command_end + 1'b1;
    end
    if (read_valid && read_ready || write_valid && write_ready) begin
      beat <= beat == BEATS - 1 ? 0 : beat + 1;
      line_in <= line_shifted[511:0];
      if (beat == BEATS - 1) begin
        command_first <= command_first + 1'b1;
        $write("%s %h %h\n", command[32] ? "W" : "R", line, command[32] ? line_shifted[511:0] : line_out);
        if (command[32]) begin
          lines[place(line)] = line_shifted[511:0];
          keys[place(line)] = {1'b1, line};
        end
      end
    end
  end

  // Requests, one after the other.
  integer file, got, words;
  reg [8*256-1:0] name;
  reg [7:0] letter;
  reg [31:0] number;
  reg [511:0] bytes;
  reg [511:0] kept[0:15];
  reg [31:0] kept_line[0:15];
  integer kept_count = 0, at;
  reg [63:0] began;

  task finish;
    begin
      if (failed) $write("F\n");
      $write("E %0h\n", cycle);
      $finish;
    end
  endtask

  task serve(input write);
    begin
      request_valid = 1;
      request_write = write;
      request_block = number[27:0];
      data_in = bytes;
      @(posedge clk);
      while (!request_ready && !failed) @(posedge clk);
      began = cycle;
      @(negedge clk);
      request_valid = 0;
      word_in_valid = write;
      words = 0;
      while (words < 8 && !failed) begin
        @(posedge clk);
        if (write ? word_in_ready : word_out_valid) begin
          words = words + 1;
          data_out = {word_out, data_out[511:64]};
          @(negedge clk);
          data_in = data_in >> 64;
        end
      end
      @(negedge clk);
      word_in_valid = 0;
      if (failed) finish;
      else if (write) $write("D %0h\n", cycle - began);
      else $write("A %h %0h\n", data_out, cycle - began);
    end
  endtask

  // Until everything is written.
  task settle;
    begin
      @(negedge clk);
      while (!failed && !(request_ready && oram.operation_ready && !waits)) @(negedge clk);
    end
  endtask

  initial begin
    if ($value$plusargs("stall=%d", stall)) ;
    if ($value$plusargs("seed=%d", seed)) ;
    if ($test$plusargs("times")) times = 1;
    if ($test$plusargs("wave")) wave = 1;
    got = $value$plusargs("requests=%s", name);
    file = $fopen(name, "r");
    repeat (4) @(negedge clk);
    reset = 0;
    while ($fscanf(file, " %c", letter) == 1) begin
      got = $fscanf(file, "%h", number);
      if (letter == "w" || letter == "x") got = $fscanf(file, "%h", bytes);
      if (letter == "r" || letter == "w") serve(letter == "w");
      else if (letter == "d") repeat (number) @(negedge clk);
      else settle;
      if (letter == "x") begin
        lines[place(number)] = stored(number) ^ bytes;
        keys[place(number)] = {1'b1, number};
      end
      if (letter == "z") begin
        lines[place(number)] = 0;
        keys[place(number)] = {1'b1, number};
      end
      if (letter == "k") begin
        kept[kept_count] = stored(number);
        kept_line[kept_count] = number;
        kept_count = kept_count + 1;
      end
      if (letter == "b")
        for (at = 0; at < kept_count; at = at + 1)
          if (kept_line[at] == number) begin
            lines[place(number)] = kept[at];
            keys[place(number)] = {1'b1, number};
          end
    end
    settle;
    finish;
  end
endmodule
