//! Storage that does not learn what you touch.
//!
//! Encryption hides what you store. It does not hide *which* part you read or write. This library
//! hides that too, with oblivious RAM. The storage sees that something is accessed. It does not see
//! which file, whether it is the same as before, or whether it is read or written.
//!
//! A volume is a folder of sealed blocks, wherever your program can write files. It holds files
//! ([`Volume`]) or one disk ([`Disk`]). The `oblivio` command opens the same volumes.
//!
//! ```no_run
//! use oblivio::{Error, Volume};
//!
//! # fn main() -> Result<(), Error> {
//! let volume = Volume::create("vault", "correct horse battery staple")?;
//! volume.create_dir("/letters")?;
//! volume.write("/letters/alice.txt", b"See you on Sunday.")?;
//! volume.close()?;
//!
//! let volume = match Volume::open("vault", "correct horse battery staple") {
//!     Err(Error::WrongPassphrase) => return Ok(()), // ask again
//!     Err(Error::RolledBack(why)) => panic!("an old copy was put in place: {why}"),
//!     opened => opened?,
//! };
//! assert_eq!(volume.read("/letters/alice.txt")?, b"See you on Sunday.");
//! # Ok(())
//! # }
//! ```
//!
//! # What it protects against
//!
//! | who | what is hidden |
//! |---|---|
//! | the storage, which sees every read and write | contents, names, what is accessed and how |
//! | somebody with snapshots, who sees no reads | contents, names, what was written |
//!
//! The first is the default. [`SeenBy::Snapshots`] is the second, which is much faster and takes
//! all of its space at once.
//!
//! Whatever the storage returns is checked. A changed byte is [`Error::Tampered`]. An older state
//! is [`Error::RolledBack`], because this computer remembers the newest state of each volume:
//! **this is on by default**, and [`OpenOptions::without_rollback_protection`] is the only way to
//! turn it off. A crash loses what was not synced, and nothing else.
//!
//! It does not hide how many accesses there are, or when ([`OpenOptions::pad`] rounds their
//! number). It does not hide the size class of a volume, or how much a sync writes. It does not
//! protect against your own computer: keys and plaintext are in its memory. SECURITY.md in the
//! repository is the exact contract. Nobody independent has reviewed it yet.
//!
//! # When not to use it
//!
//! - If you only need encryption: others are faster. Each access here moves a path of blocks.
//! - If several programs write at once: one handle at a time has a volume, and others get
//!   [`Error::Busy`]. Only a volume at a server of shares (feature `share`) is for several at once.
//! - On Windows: places and paths are those of Unix.
//!
//! # How to use it well
//!
//! - Read and write long pieces. The cost of an access hardly depends on its length.
//! - Call [`Volume::sync`] where something must not be lost, and [`Volume::close`] at the end.
//! - Give it memory ([`OpenOptions::memory`]). Each doubling saves a level of each access.
//! - [`Volume`], [`File`] and [`Disk`] are `Send` and `Sync`: share one handle among threads. Calls
//!   on one volume are served one at a time.
//!
//! `examples/` has four programs: notes in a folder, a backup to any place, a disk image, and a log
//! of several computers.
//!
//! # Places and features
//!
//! | place | what it is | feature |
//! |---|---|---|
//! | `/path`, `path` | a folder, a file or a partition; also a folder that a sync client copies | |
//! | `s3://`, `r2://`, `b2://` | a bucket of S3 and of what speaks like it | `online` |
//! | `webdav://`, `webdavs://` | a folder at a WebDAV server | `online` |
//! | `dropbox:/`, `gdrive:/`, `onedrive:/` | a folder of an account | `online` |
//! | `gs://`, `az://`, `sftp://` | Google's, Azure's, a server with SSH | `gcs`, `azure`, `sftp` |
//! | `name:path` | a remote that `oblivio remote add` keeps | that of its place |
//! | `share://host:port/name` | a volume that computers use at once, at a server | `share` |
//!
//! docs/library.md in the repository says what each of them can do. Without any of these features
//! there is no network, no TLS and no async runtime in the dependencies. Mounts and servers of
//! disks are the crate `oblivio-serve`, and its features.
//!
//! # The ten types
//!
//! | type | what it is |
//! |---|---|
//! | [`Volume`], [`File`] | files by their paths, and one that is open |
//! | [`Disk`] | bytes by their offset |
//! | [`OpenOptions`], [`CreateOptions`] | how a volume is opened, and how it is made |
//! | [`Passphrase`] | what opens it |
//! | [`Entries`], [`Metadata`] | what is in a directory, and what is known of a file |
//! | [`Usage`] | how much a volume holds |
//! | [`Error`] | what a program can do about a failure |
//!
//! # What is promised
//!
//! Everything that is public here is meant to be used, and nothing is hidden. [`Error`] and
//! [`Usage`] are `#[non_exhaustive]`, and options are builders: a later version may have more of
//! each. [`FileKind`] and [`SeenBy`] are complete. The crate must not know terminals, mounts or
//! servers, and shows no type of the crates below it but these two and [`BadPath`].

mod disk;
mod entries;
mod error;
mod file;
mod files;
mod lanes;
mod metadata;
mod open;
mod options;
mod passphrase;
mod session;
#[cfg(feature = "share")]
mod shared;
mod volume;

pub use disk::Disk;
pub use entries::Entries;
pub use error::{Error, Result};
pub use file::File;
pub use metadata::{DirEntry, Metadata, Usage};
pub use oblivio_app::BadPath;
pub use oblivio_volume::fs::FileKind;
pub use oblivio_volume::{LaneParameters, LaneStatus};
pub use oblivio_volume::{LostBytes, SeenBy};
pub use options::{CreateOptions, OpenOptions};
pub use passphrase::Passphrase;
pub use volume::Volume;
