// Proof: a block that entered the stash (rtl/stash.sv) is there, with its address, leaf and content, until
// its slot is freed; and the slot that is offered is a free one, so that no block is written over.
// Four slots, for the first cycles, with any block that the solver chooses to follow.
module stash_proof (
    input clk,
    input reset,
    input enter,
    input [31:0] address,
    input [2:0] leaf,
    input free,
    input [1:0] freed_slot,
    input [7:0] content,
    input [1:0] ask,
    input follow
);
  wire [1:0] free_slot;
  wire any_free;
  wire [3:0] used;
  wire [31:0] tag_address;
  wire [2:0] tag_leaf;
  wire [127:0] mac;
  wire [511:0] data;

  reg started = 0;
  always @(posedge clk) started <= 1;
  always @* if (!started) assume (reset);
  always @* if (started) assume (!reset);

  wire enters = enter && any_free;
  stash #(.DEPTH(3), .SLOTS(4), .LANES(4)) stash (
      .clk(clk), .reset(reset), .free_slot(free_slot), .any_free(any_free), .used(used),
      .enter(enters), .enter_slot(free_slot), .enter_address(address), .enter_leaf(leaf),
      .free(free), .freed_slot(freed_slot), .tag_at(ask), .tag_address(tag_address),
      .tag_leaf(tag_leaf), .pair_addresses(), .pair_leaves(), .mac_write(enters), .mac_write_at(free_slot), .mac_in({120'd0, content}),
      .mac_at(ask), .mac(mac), .data_write(enters), .data_write_slot(free_slot), .data_write_part(2'd0),
      .data_in({504'd0, content}), .data_slot(ask), .data_part(2'd0), .data(data)
  );

  reg following = 0, asked = 0;
  reg [1:0] slot;
  reg [31:0] its_address;
  reg [2:0] its_leaf;
  reg [7:0] its_content;
  reg [2:0] held = 0;
  always @(posedge clk) if (!reset) begin
    held <= held + enters - (free && used[freed_slot]);
    asked <= following && ask == slot;
    if (follow && enters && !following) begin
      following <= 1;
      slot <= free_slot;
      its_address <= address;
      its_leaf <= leaf;
      its_content <= content;
    end else if (following && free && freed_slot == slot) following <= 0;
  end

  always @* if (started) begin
    // No slot is freed that is not used.
    if (free) assume (used[freed_slot]);
    if (any_free) assert (!used[free_slot]);
    assert (any_free == (used != 4'hf));
    assert (held == used[0] + used[1] + used[2] + used[3]);
    if (following) assert (used[slot]);
    if (asked)
      assert (tag_address == its_address && tag_leaf == its_leaf && data == {504'd0, its_content}
          && mac == {120'd0, its_content});
    cover (asked && used == 4'hf);
  end
endmodule
