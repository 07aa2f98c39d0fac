//! Files and directories over oblivious blocks.
//!
//! Metadata lives in an embedded database (`tables`) inside a virtual byte file that is made of
//! oblivious blocks (`metadata_file`). File data is cut in segments of a block each; tails and
//! small files share blocks (`packing`). A commit of the [`BlockSpace`](crate::BlockSpace) below
//! makes all of it durable at once.

mod api;
mod types;

pub use api::FileSystem;
pub use types::{
    Attr, CheckReport, DirEntry, FileKind, Handle, Ino, LINK_BYTES, NAME_BYTES, NewNode, ROOT_INO,
    RenameMode, SetAttr, Timestamp, Usage,
};
