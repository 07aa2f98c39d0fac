//! Files and directories over oblivious blocks.
//!
//! Metadata lives in an embedded database (`tables`) inside a virtual byte file made of oblivious
//! blocks (`metadata_file`, `chunk_map`), each with a second copy (`twins`). File data is cut into
//! segments of a block each (`data`, `segments`), with holes and space set aside among them
//! (`punch`, `preallocate`). Tails and small files share blocks (`packing`). A commit of the
//! [`BlockSpace`](crate::BlockSpace) below makes all of it durable at once. `allocator`,
//! `metadata_file` and `packing` deal with changes to blocks between commits.

mod allocator;
mod api;
mod around;
mod backend;
mod cache;
mod check;
mod check_lost;
mod chunk_map;
mod data;
mod directory;
mod handles;
mod holes;
mod inode;
mod merging;
mod metadata_file;
mod metadata_io;
mod ops;
mod packing;
mod padding;
mod padding_account;
mod place_tails;
mod pool;
mod preallocate;
mod punch;
mod read;
mod reclaim;
mod rename;
mod room;
mod salvage;
mod seek;
mod segments;
mod state;
mod tables;
mod tails;
mod twin_io;
mod twin_times;
mod twins;
mod types;
mod xattr;

pub use api::FileSystem;
pub use around::ReadAround;
pub use holes::repair;
pub(crate) use metadata_file::is_root;
pub use salvage::{FoundFile, Salvage, SalvagePlan, Salvaged};
pub use types::{
    Attr, CheckReport, DirEntry, FileKind, Handle, Ino, LINK_BYTES, MAX_FILE, NAME_BYTES, NewNode,
    ROOT_INO, RenameMode, SeekWhence, SetAttr, Timestamp, Usage, XATTR_NAME_BYTES,
    XATTR_VALUE_BYTES, XattrMode,
};
