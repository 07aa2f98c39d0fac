//! What the programs of Oblivio share: the command, and the library `oblivio`, do with it the same
//! to the same volumes.
//!
//! It is for places (a folder, a file, a partition, a URL, a shared volume), for the way from a
//! path to a file of any volume, for what this computer remembers of volumes, and for moving one to
//! another place. It must not know terminals, options of a command, or how something is shown. It
//! promises nothing to others: programs use the library `oblivio`.
//!
//! The ten that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | [`place::Made`], [`place::PlaceError`] | a store made for a volume, and why a place has none |
//! | [`VolumePath`] | a path inside a volume |
//! | [`walk::ReadFiles`], [`walk::WriteFiles`] | the files of a volume of any kind |
//! | [`Remembered`] | what this computer knows of a volume, so that an older one is refused |
//! | [`BesideFolder`] | its own files of a volume in a folder that a sync client copies |
//! | [`moving::FilesCopy`], [`moving::ObjectCopy`] | a volume that moves, by either |
//! | `shared::SharedFiles` | the files of a shared volume, as those of any other |
//! | `remotes::RemoteError` | why something about the user's remotes could not be done |
//!
//! # Features
//!
//! `online`, `gcs`, `azure` and `sftp`: stores on a network. `share`: volumes that computers share.

mod beside;
pub mod cache;
pub mod moving;
#[cfg(feature = "online")]
pub mod online;
pub mod others;
mod passphrase;
mod path;
pub mod place;
mod remembered;
#[cfg(feature = "online")]
pub mod remotes;
#[cfg(feature = "share")]
pub mod shared;
pub mod silence;
mod url;
pub mod walk;

pub use beside::BesideFolder;
pub use passphrase::normal;
pub use path::{BadPath, VolumePath};
pub use remembered::{Remembered, ScrubNote, state_folder};
