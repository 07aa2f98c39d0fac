// Proof: what the memory sees of an access has one schedule (rtl/backend.sv). Two back ends get
// operations in the same cycles, and answers of the memory in the same cycles, but any other addresses,
// leaves, data and blocks: their commands and data come in the same cycles. A tree of two levels at
// 512 bits a cycle, for the first cycles; AES is any function that takes its time (proof/abstract).
module backend_proof (
    input clk,
    input reset,
    input operation_valid,
    input append,
    input resume,
    input command_ready,
    input read_valid,
    input write_ready,
    // Of each of the two, whatever the solver likes.
    input [63:0] address,
    input [1:0] leaf,
    input [1:0] new_leaf,
    input [1:0] keep,
    input [255:0] mac,
    input [1023:0] block,
    input [1023:0] read_data
);
  reg started = 0;
  always @(posedge clk) started <= 1;
  always @* assume (reset == !started);

  wire [1:0] operation_ready, delivered, overflow, command_valid, command_write, read_ready, write_valid;
  wire [1:0] got_valid;
  genvar i;
  generate
    for (i = 0; i < 2; i = i + 1) begin : side
      backend #(.DEPTH(1), .SUBTREE(2), .STASH(10), .LANES(4), .LINES(6), .LINE_BITS(8)) backend (
          .clk(clk), .reset(reset), .round_keys(1408'd0), .operation_valid(operation_valid),
          .operation_ready(operation_ready[i]), .append(append), .address(address[32*i+:32]),
          .leaf(leaf[i]), .got_valid(got_valid[i]), .got_part(), .got_data(), .got_mac(),
          .delivered(delivered[i]), .got_found(), .overflow(overflow[i]), .resume(resume),
          .keep(keep[i]), .new_leaf(new_leaf[i]), .mac(mac[128*i+:128]), .block(block[512*i+:512]),
          .command_valid(command_valid[i]), .command_ready(command_ready),
          .command_write(command_write[i]), .command_line(), .read_valid(read_valid),
          .read_ready(read_ready[i]), .read_data(read_data[512*i+:512]), .write_valid(write_valid[i]),
          .write_ready(write_ready), .write_data()
      );
    end
  endgenerate

  always @* if (started) begin
    // A full stash ends the port: both or none.
    assume (overflow == 0);
    assert (operation_ready[0] == operation_ready[1]);
    assert (got_valid[0] == got_valid[1] && delivered[0] == delivered[1]);
    assert (command_valid[0] == command_valid[1]);
    if (command_valid[0]) assert (command_write[0] == command_write[1]);
    assert (read_ready[0] == read_ready[1]);
    assert (write_valid[0] == write_valid[1]);
  end
endmodule
