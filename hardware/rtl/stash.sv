// The stash: SLOTS blocks with their addresses, leaves and MACs, in three memories, and a bit for each
// slot that says whether it is used. Memories answer a cycle after they are asked.
module stash #(
    parameter DEPTH = 8,
    parameter SLOTS = 308,
    parameter LANES = 1,
    parameter SLOT_BITS = $clog2(SLOTS)
) (
    input                              clk,
    input                              reset,
    // The lowest free slot, and whether there is one.
    output reg [SLOT_BITS-1:0]         free_slot,
    output reg                         any_free,
    output reg [SLOTS-1:0]             used,
    // A block's address and leaf; `enter` also marks its slot as used.
    input                              enter,
    input      [SLOT_BITS-1:0]         enter_slot,
    input      [31:0]                  enter_address,
    input      [DEPTH-1:0]             enter_leaf,
    input                              free,
    input      [SLOT_BITS-1:0]         freed_slot,
    input      [SLOT_BITS-1:0]         tag_at,
    output     [31:0]                  tag_address,
    output     [DEPTH-1:0]             tag_leaf,
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

  integer i;
  always @* begin
    free_slot = 0;
    any_free  = 0;
    for (i = SLOTS - 1; i >= 0; i = i - 1) begin
      if (!used[i]) begin
        free_slot = i[SLOT_BITS-1:0];
        any_free  = 1;
      end
    end
  end

  always @(posedge clk) begin
    if (reset) used <= 0;
    else begin
      if (free) used[freed_slot] <= 0;
      if (enter) used[enter_slot] <= 1;
    end
  end

  ram #(
      .WIDTH(32 + DEPTH),
      .DEPTH(SLOTS)
  ) tags (
      .clk(clk),
      .write(enter),
      .write_at(enter_slot),
      .in({enter_leaf, enter_address}),
      .read_at(tag_at),
      .out({tag_leaf, tag_address})
  );

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
