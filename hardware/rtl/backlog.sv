// Blocks that wait to move after a roll-over of their group's counters (Freecursive section 5.2.2):
// for each group the map block as it was, and which of its 32 blocks still lie where it says.
//
// `look` by address answers at once (`waits`), and the counts come a cycle later (`old_count`,
// `new_count`). `take` removes that block. `roll` notes that a group rolled over; its old map block was
// written before, by `keep`, to the entry that is free. `pick` finds the block with the lowest address in
// ENTRIES cycles; `picked` then stays until the next.
module backlog #(
    parameter ENTRIES = 8,
    parameter BITS = 14,
    parameter ENTRY_BITS = $clog2(ENTRIES)
) (
    input                         clk,
    input                         reset,
    input      [3:0]              level,
    input      [27:0]             index,
    output reg                    waits,
    input                         take,
    output     [63:0]             old_count,
    output     [63:0]             new_count,
    // A group that rolled over: its address without the lowest 5 bits, and its blocks elsewhere.
    input                         keep,
    input      [511:0]            kept,
    input                         roll,
    input      [26:0]             roll_group,
    input      [31:0]             elsewhere,
    output reg [ENTRY_BITS:0]     used,
    input                         pick,
    output reg                    picked,
    output reg                    pick_found,
    output     [3:0]              pick_level,
    output     [27:0]             pick_index
);
  reg [ENTRIES-1:0] valid;
  reg [27*ENTRIES-1:0] groups;
  reg [32*ENTRIES-1:0] waiting;
  reg [8*ENTRIES-1:0] rolls;

  wire [26:0] group = {level, index[27:5]};
  reg [ENTRY_BITS-1:0] at, free;
  reg [31:0] waiting_already;
  integer i;

  always @* begin
    waits = 0;
    at = 0;
    free = 0;
    used = 0;
    waiting_already = 0;
    for (i = ENTRIES - 1; i >= 0; i = i - 1) begin
      if (valid[i] && groups[27*i+:27] == group && waiting[32*i+{27'd0, index[4:0]}]) begin
        waits = 1;
        at = i[ENTRY_BITS-1:0];
      end
      if (!valid[i]) free = i[ENTRY_BITS-1:0];
      else used = used + 1'b1;
      if (valid[i] && groups[27*i+:27] == roll_group)
        waiting_already = waiting_already | waiting[32*i+:32];
    end
  end

  wire [31:0] roll_waiting = ~elsewhere & ~waiting_already;
  wire [31:0] left = waiting[32*at+:32] & ~(32'd1 << index[4:0]);

  always @(posedge clk) begin
    if (reset) valid <= 0;
    else begin
      if (take && waits) begin
        waiting[32*at+:32] <= left;
        if (left == 0) valid[at] <= 0;
      end
      if (roll) begin
        for (i = 0; i < ENTRIES; i = i + 1)
          if (valid[i] && groups[27*i+:27] == roll_group) rolls[8*i+:8] <= rolls[8*i+:8] + 1'b1;
        if (roll_waiting != 0) begin
          valid[free] <= 1;
          groups[27*free+:27] <= roll_group;
          waiting[32*free+:32] <= roll_waiting;
          rolls[8*free+:8] <= 1;
        end
      end
    end
  end

  // The counts of the block that was looked for.
  wire [511:0] row;
  reg [4:0] asked;
  reg [7:0] asked_rolls;
  always @(posedge clk) begin
    asked <= index[4:0];
    asked_rolls <= rolls[8*at+:8];
  end
  assign old_count = (row[63:0] << BITS) | {50'd0, row[64+14*asked+:14]};
  assign new_count = (row[63:0] + {56'd0, asked_rolls}) << BITS;

  ram #(
      .WIDTH(512),
      .DEPTH(ENTRIES)
  ) rows (
      .clk(clk),
      .write(keep),
      .write_at(free),
      .in(kept),
      .read_at(at),
      .out(row)
  );

  // The lowest address of all.
  reg picking;
  reg [ENTRY_BITS-1:0] looked;
  reg [31:0] lowest;
  reg [4:0] first;
  integer b;
  always @* begin
    first = 0;
    for (b = 31; b >= 0; b = b - 1) if (waiting[32*looked+b]) first = b[4:0];
  end
  wire [31:0] here = {groups[27*looked+:27], first};
  assign {pick_level, pick_index} = lowest;

  always @(posedge clk) begin
    if (reset) begin
      picking <= 0;
      picked  <= 0;
    end else if (pick) begin
      picking <= 1;
      picked <= 0;
      pick_found <= 0;
      looked <= 0;
    end else if (picking) begin
      looked <= looked + 1'b1;
      if (valid[looked] && (!pick_found || here < lowest)) begin
        pick_found <= 1;
        lowest <= here;
      end
      if (looked == ENTRIES[ENTRY_BITS-1:0] - 1'b1) begin
        picking <= 0;
        picked  <= 1;
      end
    end
  end
endmodule
