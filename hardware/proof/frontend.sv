// Proof: a block is appended only after another one was read and removed, so that the stash holds no
// more than before (Freecursive, observation 2), whatever the cache asks and the memory answers. For
// the first cycles of rtl/frontend.sv with two levels of recursion and two rows; labels and MACs are
// any (proof/abstract), and `resume` comes as soon as it can, so that an append is within reach.
module frontend_proof (
    input clk,
    input reset,
    input request_valid,
    input request_write,
    input [27:0] request_block,
    input operation_ready,
    input got_found,
    input [511:0] got_data,
    input [127:0] got_mac,
    input word_moves
);
  reg started = 0;
  always @(posedge clk) started <= 1;
  always @* assume (reset == !started);

  wire operation_valid, append, resume, keep;
  wire takes = operation_valid && operation_ready;
  // The back end, as fast as it may be: the block, and then it waits for `resume`.
  reg [1:0] phase = 0;
  reg path = 0;
  always @(posedge clk) begin
    if (reset) {phase, path} <= 0;
    else if (takes && !append) {phase, path} <= {2'd1, 1'b1};
    else if (phase == 1) phase <= 2;
    else if (phase == 2) phase <= 0;
    if (resume) path <= 0;
  end
  always @* if (path) assume (!operation_ready);

  frontend #(
      .DEPTH(3), .LANES(4), .GROUP(0), .MACS(0), .RECURSION(2), .PLB_ROWS(2), .MAP_ROWS(2), .RESUME(2)
  ) frontend (
      .clk(clk), .reset(reset), .label_key(128'd0), .mac_key(128'd0), .request_valid(request_valid),
      .request_ready(), .request_write(request_write), .request_block(request_block),
      .word_out_valid(), .word_out_ready(word_moves), .word_out(), .word_in_valid(word_moves),
      .word_in_ready(), .word_in(64'd0), .failed(), .operation_valid(operation_valid),
      .operation_ready(operation_ready), .append(append), .address(), .leaf(),
      .got_valid(phase == 1), .got_part(2'd0), .got_data(got_data), .got_mac(got_mac),
      .delivered(phase == 2), .got_found(got_found), .overflow(1'b0), .resume(resume), .keep(keep),
      .new_leaf(), .mac(), .block()
  );

  reg [3:0] removed = 0, appended = 0;
  always @(posedge clk) if (!reset) begin
    removed <= removed + (resume && !keep);
    appended <= appended + (takes && append && path == 0 && operation_valid && !held);
  end
  // APPENDS waits with the operation taken: count it once.
  reg held = 0;
  always @(posedge clk) held <= !reset && takes && append;

  always @* if (started) begin
    assert (appended <= removed);
    cover (appended == 1);
  end
endmodule
