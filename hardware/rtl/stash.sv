// The stash: SLOTS blocks, an even number, with their addresses, leaves and MACs in memories, and a bit
// for each slot that says whether it is used. Memories answer a cycle after they are asked. Addresses and
// leaves lie in two memories, so that two slots beside each other are looked at in a cycle.
module stash #(
    parameter DEPTH = 8,
    parameter SLOTS = 308,
    parameter LANES = 1,
    parameter SLOT_BITS = $clog2(SLOTS)
) (
    input                              clk,
    input                              reset,
    // The lowest free slot, and whether there is one.
    output     [SLOT_BITS-1:0]         free_slot,
    output reg                         any_free,
    output reg [SLOTS-1:0]             used,
    // A block's address and leaf; `enter` also marks its slot as used.
    input                              enter,
    input      [SLOT_BITS-1:0]         enter_slot,
    input      [31:0]                  enter_address,
    input      [DEPTH-1:0]             enter_leaf,
    input                              free,
    input      [SLOT_BITS-1:0]         freed_slot,
    // The address and leaf of the slot that was asked for, and of both slots of its pair.
    input      [SLOT_BITS-1:0]         tag_at,
    output     [31:0]                  tag_address,
    output     [DEPTH-1:0]             tag_leaf,
    output     [63:0]                  pair_addresses,
    output     [2*DEPTH-1:0]           pair_leaves,
    // MACs.
    input                              mac_write,
    input      [SLOT_BITS-1:0]         mac_write_at,
    input      [127:0]                 mac_in,
    input      [SLOT_BITS-1:0]         mac_at,
    output     [127:0]                 mac,
    // Content, a part of 128 * LANES bits at a time; a block has 4 / LANES.
    input                              data_write,
    input      [SLOT_BITS-1:0]         data_write_slot,
    input      [1:0]                   data_write_part,
    input      [128*LANES-1:0]         data_in,
    input      [SLOT_BITS-1:0]         data_slot,
    input      [1:0]                   data_part,
    output     [128*LANES-1:0]         data
);
  localparam PART_BITS = LANES == 4 ? 0 : LANES == 2 ? 1 : 2;
  localparam PARTS = SLOTS << PART_BITS;
  localparam AT_BITS = $clog2(PARTS);

  // The lowest free slot: the first section of 16 slots that has one, and the first in there.
  localparam SECTIONS = (SLOTS + 15) / 16;
  localparam SECTION_BITS = SECTIONS > 1 ? $clog2(SECTIONS) : 1;
  wire [16*SECTIONS-1:0] taken = {{(16 * SECTIONS - SLOTS) {1'b1}}, used};
  reg [SECTION_BITS-1:0] section;
  reg [3:0] in_section;
  reg [15:0] section_taken;
  integer i;
  always @* begin
    section  = 0;
    any_free = 0;
    for (i = SECTIONS - 1; i >= 0; i = i - 1) begin
      if (taken[16*i+:16] != 16'hffff) begin
        section  = i[SECTION_BITS-1:0];
        any_free = 1;
      end
    end
    section_taken = taken[16*section+:16];
    in_section = 0;
    for (i = 15; i >= 0; i = i - 1) if (!section_taken[i]) in_section = i[3:0];
  end
  wire [SECTION_BITS+3:0] lowest = {section, in_section};
  assign free_slot = lowest[SLOT_BITS-1:0];

  always @(posedge clk) begin
    if (reset) used <= 0;
    else begin
      if (free) used[freed_slot] <= 0;
      if (enter) used[enter_slot] <= 1;
    end
  end

  reg asked_odd;
  always @(posedge clk) asked_odd <= tag_at[0];
  genvar k;
  generate
    for (k = 0; k < 2; k = k + 1) begin : half
      ram #(
          .WIDTH(32 + DEPTH),
          .DEPTH(SLOTS / 2)
      ) tags (
          .clk(clk),
          .write(enter && enter_slot[0] == k),
          .write_at(enter_slot[SLOT_BITS-1:1]),
          .in({enter_leaf, enter_address}),
          .read_at(tag_at[SLOT_BITS-1:1]),
          .out({pair_leaves[DEPTH*k+:DEPTH], pair_addresses[32*k+:32]})
      );
    end
  endgenerate
  assign tag_address = asked_odd ? pair_addresses[63:32] : pair_addresses[31:0];
  assign tag_leaf = asked_odd ? pair_leaves[DEPTH+:DEPTH] : pair_leaves[DEPTH-1:0];

  ram #(
      .WIDTH(128),
      .DEPTH(SLOTS)
  ) macs (
      .clk(clk),
      .write(mac_write),
      .write_at(mac_write_at),
      .in(mac_in),
      .read_at(mac_at),
      .out(mac)
  );

  wire [SLOT_BITS+1:0] write_at = ({2'd0, data_write_slot} << PART_BITS) | {{SLOT_BITS{1'b0}}, data_write_part};
  wire [SLOT_BITS+1:0] read_at = ({2'd0, data_slot} << PART_BITS) | {{SLOT_BITS{1'b0}}, data_part};

  ram #(
      .WIDTH(128 * LANES),
      .DEPTH(PARTS)
  ) content (
      .clk(clk),
      .write(data_write),
      .write_at(write_at[AT_BITS-1:0]),
      .in(data_in),
      .read_at(read_at[AT_BITS-1:0]),
      .out(data)
  );
endmodule
