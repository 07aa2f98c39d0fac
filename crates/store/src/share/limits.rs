//! The most that a server takes at once, whatever a client says: what clients must know.

/// Bytes of a volume's header.
pub const MOST_HEADER_BYTES: usize = 64 << 10;
/// Bytes of an ask, and of an answer.
pub const MOST_ASK_BYTES: usize = 256 << 10;
/// Bytes of a slot.
pub const MOST_SLOT_BYTES: u32 = 256 << 10;
/// Asks that a batch may show.
pub const MOST_FETCHES: usize = 1024;
/// Slots that one ask may show, and tables that one switch may replace.
pub const MOST_SPOTS: usize = 64;
/// Answers that one call returns.
pub const MOST_ANSWERS: usize = 256;
/// Bytes of a record of the history, with its asks or answers.
pub const MOST_ENTRY_BYTES: usize = 16 << 20;
/// Bytes of an entry's numbers: what is parsed, and not only kept.
pub const MOST_HEAD_BYTES: usize = 1 << 20;
/// Bytes of a piece of a table or checkpoint.
pub const MOST_PIECE_BYTES: usize = 4 << 20;
/// Bytes that one call reads from tables, the history or a checkpoint.
pub const MOST_READ_BYTES: usize = 8 << 20;
/// Asks that wait for their batch.
pub const MOST_PENDING: usize = 32_768;
/// Those of one session.
pub const MOST_OF_SESSION: usize = 1024;
