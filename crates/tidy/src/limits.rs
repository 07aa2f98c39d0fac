//! The numbers. Those marked "today" are where the house stands: they only go down.

/// Lines of a file of production code, its tests left out.
pub const FILE_LINES: usize = 450;
/// Lines of a function. The lab's, which print tables, are left out.
pub const FUNCTION_LINES: usize = 70;
/// Fields of a struct that other files touch, if it keeps others to itself.
pub const TOUCHED_FIELDS: usize = 12;
/// Columns of a line of comment.
pub const COMMENT_COLUMNS: usize = 100;
/// Columns of a line of a document, tables and code left out.
pub const DOCUMENT_COLUMNS: usize = 130;
/// Characters of a cell of a table.
pub const CELL_CHARACTERS: usize = 300;
/// Words of a long sentence.
pub const LONG_SENTENCE: usize = 40;
/// Of a hundred sentences of a document, at most this many are long.
pub const LONG_SENTENCES_PERCENT: usize = 5;
/// Words of a document's median sentence.
pub const MEDIAN_SENTENCE: usize = 18;
/// Words that stand for a clearer one, and how often all comments together may use them.
pub const SHUNNED: [&str; 4] = ["whoever", "so many", "so much", "told"];
/// See [`SHUNNED`].
pub const SHUNNED_AT_MOST: usize = 30;
/// Files of production code that are longer than [`FILE_LINES`] today.
pub const LONG_FILES: [&str; 1] = ["crates/volume/src/fs/api.rs"];
/// Methods of a type, over all files of its crate.
pub const METHODS: usize = 40;
/// Types with more of them today, and how many.
pub const MANY_METHODS: [(&str, usize); 8] = [
    ("engine::Backend", 43),
    ("engine::PyramidOram", 86),
    ("engine::TreeOram", 118),
    ("privatefs::PrivateFs", 84),
    ("volume::EpochLine", 41),
    ("volume::FileSystem", 49),
    ("volume::State", 178),
    ("volume::TreeVolume", 75),
];
/// Names that stand for several public types: those that Rust's own libraries use alike, those that
/// the library and Python show under the name of the crate below them, and one more.
pub const SHARED_NAMES: [&str; 11] = [
    "Error",
    "Result",
    // The library, and Python over it.
    "CreateOptions",
    "DirEntry",
    "Disk",
    "File",
    "OpenOptions",
    "Passphrase",
    "Usage",
    "Volume",
    // Who sees the storage: the words of the command, with their help.
    "SeenBy",
];
/// See [`SHARED_NAMES`].
pub const SHARED_NAMES_AT_MOST: usize = 20;
/// Types that stand for a duty of the house: each is once, in all that ships.
pub const DUTIES: [(&str, &str); 7] = [
    ("Latch", "the rule that a failure closes a handle"),
    ("Commits", "when a commit is due"),
    ("Deferred", "what waits to be carried out"),
    ("Unacknowledged", "what is sent again"),
    ("TwoNotes", "what this computer saw"),
    ("Decoder", "what decodes the kernel's requests"),
    ("WriteBehind", "what waits until a file is durable"),
];
