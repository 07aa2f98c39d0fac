// The front end (Freecursive section 4.2.4): finds a block's count by the PLB and the map blocks in the
// tree, gives it the next one, and checks and makes its MAC (section 6.2).
//
// A request is `request_write` and `request_block`. Its block goes out or comes in by eight words of 64
// bits (`word_out`, `word_in`), when it was found and checked; then the request is over. `failed` means
// that memory was tampered with, or that the stash overflowed: the port stays dead.
//
// With an INTERVAL, a path begins every INTERVAL cycles, whether or not one is needed, and at no other
// time. It must be longer than a path and PREPARATION together.
module frontend #(
    parameter DEPTH = 8,
    parameter LANES = 1,
    parameter GROUP = 1,
    parameter BITS = 14,
    parameter MACS = 1,
    parameter RECURSION = 3,
    parameter PLB_ROWS = 128,
    parameter MAP_ROWS = 128,
    parameter BACKLOG = 8,
    parameter INTERVAL = 0,
    // Cycles from the wanted block to `resume`: the longest way, so that all ways take as long.
    parameter RESUME = MACS ? 56 : 24
) (
    input                      clk,
    input                      reset,
    input      [127:0]         label_key,
    input      [127:0]         mac_key,
    // The last-level cache.
    input                      request_valid,
    output                     request_ready,
    input                      request_write,
    input      [27:0]          request_block,
    output                     word_out_valid,
    input                      word_out_ready,
    output     [63:0]          word_out,
    input                      word_in_valid,
    output                     word_in_ready,
    input      [63:0]          word_in,
    output                     failed,
    // The back end.
    output                     operation_valid,
    input                      operation_ready,
    output                     append,
    output     [31:0]          address,
    output reg [DEPTH-1:0]     leaf,
    input                      got_valid,
    input      [1:0]           got_part,
    input      [128*LANES-1:0] got_data,
    input      [127:0]         got_mac,
    input                      delivered,
    input                      got_found,
    input                      overflow,
    output                     resume,
    output                     keep,
    output reg [DEPTH-1:0]     new_leaf,
    output     [127:0]         mac,
    output reg [511:0]         block
);
  localparam ENTRY_BITS = GROUP ? 5 : 3;
  localparam ROW_BITS = $clog2(MAP_ROWS);
  localparam FILL_ROWS = MAP_ROWS > PLB_ROWS ? MAP_ROWS : PLB_ROWS;
  localparam FILL_BITS = $clog2(FILL_ROWS);
  // The most cycles from a request to its first path: the PLB is asked, and a label is made.
  localparam PREPARATION = 2 * RECURSION + 49;

  localparam FILL = 0, READY = 1, LOOK = 2, LOOKED = 3, ENTRY = 4, COUNT = 5, LABEL = 6, ISSUE = 7,
      NEXT_LABEL = 8, FIRST_COUNT = 9, FIRST_ENTRIES = 10, SIBLING = 11, SIBLINGS = 12, GOT = 13,
      CHECK = 14, CHECKED = 15, WORDS = 16, REMAC = 17, RESUMES = 18, PLACE = 19, PLACED = 20,
      OLD_LABEL = 21, OLD_MAC = 22, APPEND = 23, OWES = 24, PICK = 25, PICKED = 26, MOVE = 27,
      IDLE_LABEL = 28, DEAD = 29, APPENDS = 30, ASK = 31;
  reg [4:0] state;

  // What an operation is for.
  localparam FETCH = 0, DATA = 1, MOVES = 2, NOTHING = 3;
  reg [1:0] purpose;

  // The request, and the walk: its map blocks, the one that was found, and the one in work.
  reg write;
  reg [27:0] wanted;
  reg [3:0] level, first;
  wire [28*(RECURSION+1)-1:0] on_walk;
  genvar l;
  generate
    for (l = 0; l <= RECURSION; l = l + 1) begin : walk
      assign on_walk[28*l+:28] = wanted >> (ENTRY_BITS * l);
    end
  endgenerate
  wire [27:0] index = on_walk[28*level+:28];
  wire [3:0] level_above = level + 1'b1;
  wire [27:0] index_above = on_walk[28*level_above+:28];
  reg on_chip;

  // The block in work, its counts, and what its first counts would be.
  reg [3:0] id_level;
  reg [27:0] id_index;
  reg [63:0] old_count, new_count, idle_count;
  reg [13:0] first_count, first_entries;
  reg found, has_block, rolled;
  reg [127:0] found_mac;
  reg [6:0] since;

  // A block for the stash: displaced from the PLB, or without a row there.
  reg bypass;
  reg [3:0] append_level;
  reg [27:0] append_index;
  reg [63:0] append_count;

  reg [2:0] word;
  reg [FILL_BITS:0] filled;
  reg [5:0] sibling;
  reg [31:0] elsewhere;
  reg [BITS-1:0] due;

  wire [63:0] id = {4'd0, id_level, 28'd0, id_index};
  wire [63:0] append_id = {4'd0, append_level, 28'd0, append_index};
  wire [31:0] short_id = {id_level, id_index};

  // Labels.
  reg asked;
  reg [63:0] label_address, label_count;
  wire [63:0] label;
  wire label_done;
  wire [27:0] group_index = {id_index[27:5], 5'd0};
  wire [27:0] entries_index = id_index << ENTRY_BITS;
  wire [3:0] entries_level = id_level - 1'b1;
  wire [3:0] top_level = RECURSION[3:0] - 1'b1;
  wire [27:0] fill_index = {{(27 - FILL_BITS) {1'b0}}, filled} << ENTRY_BITS;
  wire labels = state == FILL && GROUP || state == LABEL || state == NEXT_LABEL || state == FIRST_COUNT
      || state == FIRST_ENTRIES || state == OLD_LABEL || state == IDLE_LABEL;
  always @* begin
    label_address = id;
    label_count   = old_count;
    case (state)
      FILL: {label_address, label_count} = {1'b1, 3'd0, top_level, 28'd0, fill_index, 64'd0};
      NEXT_LABEL: label_count = new_count;
      FIRST_COUNT: {label_address, label_count} = {1'b1, 3'd0, id_level, 28'd0, group_index, 64'd0};
      FIRST_ENTRIES:
      {label_address, label_count} = {1'b1, 3'd0, entries_level, 28'd0, entries_index, 64'd0};
      OLD_LABEL: {label_address, label_count} = {append_id, append_count};
      IDLE_LABEL: {label_address, label_count} = {2'b01, 62'd0, idle_count};
      default: ;
    endcase
  end
  prf prf (
      .clk(clk),
      .reset(reset),
      .start(labels && !asked),
      .key(label_key),
      .address(label_address),
      .count(label_count),
      .done(label_done),
      .label(label)
  );

  // MACs.
  wire macs = state == CHECK || state == REMAC || state == OLD_MAC;
  wire mac_done;
  generate
    if (MACS) begin : checked
      pmmac pmmac (
          .clk(clk),
          .reset(reset),
          .start(macs && !asked),
          .key(mac_key),
          .count(state == OLD_MAC ? append_count : state == CHECK ? old_count : new_count),
          .address(state == OLD_MAC ? append_id : id),
          .data(block),
          .done(mac_done),
          .mac(mac)
      );
    end else begin : unchecked
      assign mac_done = macs && asked;
      assign mac = 128'd0;
    end
  endgenerate

  // The map on-chip, the PLB, and the counters of the block that leads to the one in work.
  wire [511:0] map_row, plb_row, new_row;
  wire plb_valid;
  wire [3:0] plb_level;
  wire [27:0] plb_index;
  wire [63:0] plb_count, counted_old, counted_new;
  wire rolls_over;
  wire [511:0] row = on_chip ? map_row : bypass ? block : plb_row;
  wire waits;
  wire counts = state == COUNT && !waits;
  wire [511:0] first_row;
  generate
    if (GROUP) begin : grouped
      assign first_row = {{32{state == FILL ? label_first : first_entries}}, 64'd0};
    end else begin : single
      assign first_row = 512'd0;
    end
  endgenerate
  wire [13:0] label_first = {{(14 - BITS) {1'b0}}, label[BITS-1:0]};
  wire fills = state == FILL && (label_done || !GROUP);

  posmap #(
      .ROWS(MAP_ROWS)
  ) posmap (
      .clk(clk),
      .write(fills && filled < MAP_ROWS || counts && on_chip),
      .write_at(state == FILL ? filled[ROW_BITS-1:0] : index_above[ROW_BITS-1:0]),
      .in(state == FILL ? first_row : new_row),
      .read_at(index_above[ROW_BITS-1:0]),
      .out(map_row)
  );

  wire [27:0] sibling_index = {id_index[27:5], sibling[4:0]};
  wire is_sibling = plb_valid && plb_level == id_level && plb_index == sibling_index;
  wire sibling_there = state == SIBLINGS && is_sibling && sibling_index != id_index;
  wire inserts = state == PLACED && !used_by_walk;
  wire used_by_walk = plb_valid && plb_level > level && plb_level <= first
      && plb_index == on_walk[28*plb_level+:28];
  plb #(
      .ROWS(PLB_ROWS)
  ) plb (
      .clk(clk),
      .read_level(state == SIBLING || state == PLACE ? id_level : state == LOOK ? level : level_above),
      .read_index(state == SIBLING ? sibling_index : state == PLACE ? id_index
          : state == LOOK ? index : index_above),
      .valid(plb_valid),
      .level(plb_level),
      .index(plb_index),
      .count(plb_count),
      .content(plb_row),
      .tag_write(inserts || sibling_there),
      .content_write(inserts || counts && !on_chip && !bypass),
      .clear(fills && filled < PLB_ROWS),
      .in_level(inserts || sibling_there ? id_level : level_above),
      .in_index(fills ? {{(27 - FILL_BITS) {1'b0}}, filled} : inserts ? id_index
          : sibling_there ? sibling_index : index_above),
      .in_count(new_count),
      .in_content(inserts ? block : new_row)
  );

  counters #(
      .GROUP(GROUP),
      .BITS(BITS)
  ) counters (
      .row(row),
      .index(id_index[ENTRY_BITS-1:0]),
      .old_count(counted_old),
      .new_count(counted_new),
      .new_row(new_row),
      .rolls_over(rolls_over)
  );

  wire picked, pick_found, crowded;
  wire [3:0] pick_level;
  wire [27:0] pick_index;
  wire [63:0] waiting_old, waiting_new;
  generate
    if (GROUP) begin : groups
      wire [$clog2(BACKLOG):0] used;
      assign crowded = {{(31 - $clog2(BACKLOG)) {1'b0}}, used} > BACKLOG - RECURSION;
      backlog #(
          .ENTRIES(BACKLOG),
          .BITS(BITS)
      ) backlog (
          .clk(clk),
          .reset(reset),
          .level(state == ASK || state == COUNT ? id_level : pick_level),
          .index(state == ASK || state == COUNT ? id_index : pick_index),
          .waits(waits),
          .take(state == COUNT || state == MOVE),
          .old_count(waiting_old),
          .new_count(waiting_new),
          .keep(counts && rolls_over),
          .kept(row),
          .roll(state == SIBLING && sibling == 32),
          .roll_group({id_level, id_index[27:5]}),
          .elsewhere(elsewhere),
          .used(used),
          .pick(state == PICK),
          .picked(picked),
          .pick_found(pick_found),
          .pick_level(pick_level),
          .pick_index(pick_index)
      );
    end else begin : alone
      assign {waits, picked, pick_found, crowded} = 4'd0;
      assign {pick_level, pick_index, waiting_old, waiting_new} = 160'd0;
    end
  endgenerate

  wire now, late;
  pace #(
      .INTERVAL(INTERVAL),
      .PREPARATION(PREPARATION)
  ) pace (
      .clk(clk),
      .reset(reset),
      .now(now),
      .late(late)
  );

  // The back end's side.
  assign operation_valid = state == ISSUE && now || state == APPEND;
  assign append = state == APPEND || state == APPENDS;
  assign address = append ? {append_level, append_index} : purpose == NOTHING ? 32'hffff_ffff : short_id;
  assign resume = state == RESUMES && since >= RESUME[6:0];
  assign keep = purpose == DATA || purpose == MOVES;
  // The cache's side.
  assign request_ready = state == READY && !late;
  assign word_out_valid = state == WORDS && !write;
  assign word_out = block[63:0];
  assign word_in_ready = state == WORDS && write;
  wire word_moves = word_out_valid && word_out_ready || word_in_ready && word_in_valid;
  assign failed = state == DEAD;

  wire is_first = old_count == {50'd0, first_count};
  wire accepts = found ? !MACS || mac == found_mac : !MACS || is_first;
  wire [BITS:0] owed = {1'b0, due} + 64;

  always @(posedge clk) begin
    asked <= (labels || macs) && !(label_done || mac_done);
    if (delivered) begin
      has_block <= 1;
      found <= got_found;
    end
    since <= delivered ? 0 : since == RESUME[6:0] ? since : since + 1'b1;
    if (got_valid && got_part == 0) found_mac <= got_mac;
    if (got_valid) block[128*LANES*got_part+:128*LANES] <= got_data;

    case (state)
      // The map on-chip gets its first counts, and the PLB is emptied.
      FILL:
      if (fills) begin
        filled <= filled + 1'b1;
        if (filled == FILL_ROWS - 1) state <= READY;
      end
      READY: begin
        write <= request_write;
        wanted <= request_block;
        level <= 1;
        purpose <= NOTHING;
        if (late) state <= IDLE_LABEL;
        else if (request_valid) state <= LOOK;
      end
      // Which map block of the walk is in the PLB?
      LOOK: begin
        state <= LOOKED;
        if (level == RECURSION[3:0]) begin
          first <= RECURSION[3:0];
          level <= RECURSION[3:0] - 1'b1;
          state <= ENTRY;
        end
      end
      LOOKED: begin
        state <= LOOK;
        level <= level + 1'b1;
        if (plb_valid && plb_level == level && plb_index == index) begin
          first <= level;
          level <= level - 1'b1;
          state <= ENTRY;
        end
      end
      // The counts of the block at `level`, from the map block above it.
      ENTRY: begin
        {id_level, id_index} <= {level, index};
        purpose <= level == 0 ? DATA : FETCH;
        state <= ASK;
      end
      ASK: begin
        on_chip <= level_above == RECURSION[3:0];
        state   <= COUNT;
      end
      COUNT: begin
        old_count <= waits ? waiting_old : counted_old;
        new_count <= waits ? waiting_new : counted_new;
        if (counts && bypass) block <= new_row;
        sibling <= 0;
        elsewhere <= 32'd1 << id_index[4:0];
        rolled <= counts && rolls_over;
        state <= bypass ? OLD_LABEL : LABEL;
      end
      LABEL, IDLE_LABEL:
      if (label_done) begin
        leaf <= label[63-:DEPTH];
        if (state == IDLE_LABEL) idle_count <= idle_count + 1'b1;
        state <= ISSUE;
      end
      ISSUE: begin
        has_block <= 0;
        if (operation_ready && now) state <= NEXT_LABEL;
      end
      // While the path is read: the next leaf, and what an untouched block would be.
      NEXT_LABEL:
      if (label_done) begin
        new_leaf <= label[63-:DEPTH];
        first_count <= 0;
        state <= GROUP ? FIRST_COUNT : GOT;
      end
      FIRST_COUNT:
      if (label_done) begin
        first_count <= label_first;
        state <= FIRST_ENTRIES;
      end
      FIRST_ENTRIES:
      if (label_done) begin
        first_entries <= label_first;
        state <= rolled ? SIBLING : GOT;
      end
      // After a roll-over: which blocks of the group are in the PLB? They lie in no bucket.
      SIBLING: state <= sibling == 32 ? GOT : SIBLINGS;
      SIBLINGS: begin
        if (is_sibling) elsewhere[sibling[4:0]] <= 1;
        sibling <= sibling + 1'b1;
        state   <= SIBLING;
      end
      GOT: if (has_block) state <= overflow ? DEAD : purpose == NOTHING ? RESUMES : CHECK;
      CHECK: if (mac_done) state <= CHECKED;
      CHECKED: begin
        if (!found) block <= id_level == 0 ? 512'd0 : first_row;
        word <= 0;
        state <= !accepts ? DEAD : purpose == DATA ? WORDS : purpose == MOVES ? REMAC : RESUMES;
      end
      WORDS:
      if (word_moves) begin
        block <= {write ? word_in : block[63:0], block[511:64]};
        word  <= word + 1'b1;
        if (word == 7) state <= REMAC;
      end
      REMAC: if (mac_done) state <= RESUMES;
      RESUMES: if (resume) state <= purpose == FETCH ? PLACE : OWES;
      // A map block goes to the PLB; what it displaces, to the stash.
      PLACE: state <= PLACED;
      PLACED: begin
        bypass <= used_by_walk;
        {append_level, append_index, append_count} <= used_by_walk ? {id_level, id_index, new_count}
            : {plb_level, plb_index, plb_count};
        if (inserts) block <= plb_row;
        level <= level - 1'b1;
        state <= plb_valid && !used_by_walk ? OLD_LABEL : ENTRY;
      end
      OLD_LABEL:
      if (label_done) begin
        leaf  <= label[63-:DEPTH];
        state <= OLD_MAC;
      end
      OLD_MAC: if (mac_done) state <= APPEND;
      APPEND: if (operation_ready) state <= APPENDS;
      APPENDS:
      if (operation_ready) begin
        bypass <= 0;
        state  <= bypass ? LABEL : ENTRY;
      end
      // Moves that are due, whether or not a block waits (section 5.2.2).
      OWES: begin
        state <= READY;
        if (GROUP && purpose == DATA) begin
          due <= owed[BITS-1:0];
          if (owed[BITS]) state <= PICK;
        end
        if (crowded) state <= PICK;
      end
      PICK: state <= PICKED;
      PICKED:
      if (picked) begin
        purpose <= pick_found ? MOVES : NOTHING;
        state   <= pick_found ? MOVE : IDLE_LABEL;
      end
      MOVE: begin
        {id_level, id_index} <= {pick_level, pick_index};
        old_count <= waiting_old;
        new_count <= waiting_new;
        rolled <= 0;
        state <= LABEL;
      end
      default: state <= DEAD;
    endcase

    if (overflow) state <= DEAD;
    if (reset) begin
      state <= FILL;
      filled <= 0;
      asked <= 0;
      bypass <= 0;
      due <= 0;
      idle_count <= 0;
      has_block <= 0;
    end
  end
endmodule
