//! The choices of a caller who opens or makes a volume.

use crate::passphrase::Passphrase;
use oblivio_crypto::KdfParams;
use oblivio_volume::LaneParameters;
use oblivio_volume::{SeenBy, Which};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a volume is opened. The default protects against rollback, hides what SECURITY.md says, and
/// takes 448 MiB of memory.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    pub(crate) memory: usize,
    pub(crate) knowledge: Knowledge,
    pub(crate) accept_rollback: bool,
    pub(crate) accept_other_volume: bool,
    pub(crate) pad: bool,
    pub(crate) strict: bool,
    pub(crate) cache: Option<u64>,
    pub(crate) history: Which,
    pub(crate) incomplete: bool,
    pub(crate) wait: Option<Duration>,
    /// Only a build with the feature `share` reads it.
    pub(crate) token_file: Option<PathBuf>,
}

/// Where this computer keeps what it knows of volumes.
#[derive(Clone, Debug, Default)]
pub(crate) enum Knowledge {
    /// In the user's state folder, together with the `oblivio` command.
    #[default]
    OfUser,
    In(PathBuf),
    Nowhere,
}

impl OpenOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The memory that the volume may use, in bytes. More memory makes fewer and shorter accesses.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Rounds the accesses of each operation up to a power of two, so that their number tells less.
    /// It is about reads, and does nothing on volumes made against snapshots.
    #[must_use]
    pub fn pad(mut self, pad: bool) -> Self {
        self.pad = pad;
        self
    }

    /// Syncs the record of each access before its reads. By default at most 256 accesses, all
    /// within 50 ms, are ahead of their records: after a power cut they may be shown once more, and
    /// then the storage learns which of them were for one block. A killed process shows nothing
    /// again in either way. It is about volumes that hide reads, in a folder or file.
    ///
    /// When: others may cut the power of this computer, as they can that of a rented virtual
    /// machine, or syncs cost nothing.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// The most that the disk cache of a volume in an online store may take, in bytes; 0 for none.
    /// By default it takes a quarter of the free space, at most 10 GiB, below
    /// `$XDG_CACHE_HOME/oblivio` or `~/.cache/oblivio`. What it holds is sealed. Other volumes have
    /// none.
    #[must_use]
    pub fn disk_cache(mut self, bytes: u64) -> Self {
        self.cache = Some(bytes);
        self
    }

    /// The file with the token by which the server of a shared volume admits this computer: its
    /// administrator makes one. It is kept with what this computer knows, so that the next time
    /// needs none.
    #[must_use]
    pub fn token_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.token_file = Some(file.into());
        self
    }

    /// Takes a volume in an online store from the computer that has it, without asking: what that
    /// one has not synced is lost. By default it is asked, and [`wait_for`](Self::wait_for) says
    /// for how long; one that does not answer for 90 seconds has lost the volume.
    #[must_use]
    pub fn take_over(self) -> Self {
        self.wait_for(Duration::ZERO)
    }

    /// For how long to wait for a computer that has a volume in an online store and goes on with
    /// its work: three minutes by default. Then opening fails with [`Error::Held`].
    ///
    /// [`Error::Held`]: crate::Error::Held
    #[must_use]
    pub fn wait_for(mut self, time: Duration) -> Self {
        self.wait = Some(time);
        self
    }

    /// Opens the volume although it is older than what this computer saw: a backup was restored.
    /// From then on the restored state is the newest.
    #[must_use]
    pub fn accept_rollback(mut self) -> Self {
        self.accept_rollback = true;
        self
    }

    /// Opens the volume although another one was at this place: the user put it there.
    #[must_use]
    pub fn accept_other_volume(mut self) -> Self {
        self.accept_other_volume = true;
        self
    }

    /// Opens a volume in a folder that a sync client copies although something newer is on its way:
    /// the newest of which all is there. If something is written, there will be two histories.
    ///
    /// When: the client will not finish, because the other computer is off or gone, and you cannot
    /// wait. After an [`Error::StillToCome`](crate::Error::StillToCome), not before.
    #[must_use]
    pub fn accept_older(mut self) -> Self {
        self.history = Which::Older;
        self
    }

    /// Looks at one history of such a volume, by its name. Nothing can be changed in it.
    ///
    /// When: after an [`Error::Parted`](crate::Error::Parted), whose text names the histories, to
    /// see which one to keep and what to copy from the other.
    #[must_use]
    pub fn view_history(mut self, name: impl Into<String>) -> Self {
        self.history = Which::View(name.into());
        self
    }

    /// Looks at such a volume although files of it are missing or damaged. Nothing can be changed
    /// in it, and what is in those files is lost: reading it fails. All else can be read.
    ///
    /// When: the files will never come, because no computer has them any more. After an
    /// [`Error::StillToCome`](crate::Error::StillToCome), not before.
    #[must_use]
    pub fn view_incomplete(mut self) -> Self {
        self.incomplete = true;
        self
    }

    /// Keeps what this computer knows of volumes in this folder. The default is that of the
    /// `oblivio` command: `$XDG_STATE_HOME/oblivio`, or `~/.local/state/oblivio`.
    ///
    /// The folder must not lie with the volume: who can roll back the one must not be able to roll
    /// back the other.
    ///
    /// When: the program runs without a home directory, as a service or in a container, or wants
    /// nothing in common with the user's `oblivio` command. Then put it on storage that stays.
    #[must_use]
    pub fn remember_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.knowledge = Knowledge::In(folder.into());
        self
    }

    /// Turns the protection against rollback off: **any past state of the volume then passes for
    /// the newest**. For computers that keep nothing between two runs.
    #[must_use]
    pub fn without_rollback_protection(mut self) -> Self {
        self.knowledge = Knowledge::Nowhere;
        self
    }
}

/// How a volume is made. The default is a folder that grows up to 256 GiB and hides reads and
/// writes from the storage.
#[derive(Clone, Debug)]
pub struct CreateOptions {
    pub(crate) seen_by: SeenBy,
    pub(crate) size: Option<u64>,
    pub(crate) block_size: Option<usize>,
    pub(crate) one_file: bool,
    pub(crate) lanes: Option<LaneParameters>,
    pub(crate) lane_passphrases: Vec<Arc<Passphrase>>,
    pub(crate) sync_folder: bool,
    pub(crate) guessing: KdfParams,
    pub(crate) open: OpenOptions,
}

impl Default for CreateOptions {
    fn default() -> Self {
        Self {
            seen_by: SeenBy::default(),
            size: None,
            block_size: None,
            one_file: false,
            lanes: Some(LaneParameters::default()),
            lane_passphrases: Vec::new(),
            sync_folder: false,
            guessing: KdfParams::default(),
            open: OpenOptions::default(),
        }
    }
}

impl CreateOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Who can see the storage.
    #[must_use]
    pub fn seen_by(mut self, seen_by: SeenBy) -> Self {
        self.seen_by = seen_by;
        self
    }

    /// The most bytes that the volume may hold. Against snapshots it has no default, and more than
    /// three times as much is taken from the store at once.
    #[must_use]
    pub fn size(mut self, bytes: u64) -> Self {
        self.size = Some(bytes);
        self
    }

    /// Bytes in a block, a power of two from 1 KiB to 1 MiB: 16 KiB by default, 4 KiB against
    /// snapshots.
    #[must_use]
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// For a folder that a sync client copies, as those of Dropbox, Nextcloud and Syncthing: files
    /// are made once and never change, so no client ever has two versions of one. It implies
    /// [`SeenBy::Snapshots`].
    #[must_use]
    pub fn sync_folder(mut self) -> Self {
        (self.sync_folder, self.seen_by) = (true, SeenBy::Snapshots);
        self
    }

    /// Makes one file instead of a folder, or uses a partition; against snapshots only.
    #[must_use]
    pub fn one_file(mut self) -> Self {
        self.one_file = true;
        self
    }

    /// The lanes that are written beside a volume in one file, used or not; `None` leaves them out.
    /// The default is one of an eighth, so that a lane does not show that its owner asked for it.
    #[must_use]
    pub fn lanes(mut self, lanes: Option<LaneParameters>) -> Self {
        self.lanes = lanes;
        self
    }

    /// The passphrase of the next lane: of the first one, then of the second. It opens the volume
    /// and the lane ([`Volume::lane`](crate::Volume::lane)). A lane without one is never open.
    #[must_use]
    pub fn lane_passphrase(mut self, passphrase: impl Into<Passphrase>) -> Self {
        self.lane_passphrases.push(Arc::new(passphrase.into()));
        self
    }

    /// What each guess of the passphrase costs, in memory and passes over it: 64 MiB and 3 by
    /// default. Take less only for a passphrase that nobody can guess, such as 32 random bytes.
    #[must_use]
    pub fn guessing_cost(mut self, memory_bytes: u64, passes: u32) -> Self {
        self.guessing.memory_kib = u32::try_from(memory_bytes >> 10).unwrap_or(u32::MAX);
        self.guessing.passes = passes;
        self
    }

    /// How the new volume is opened.
    #[must_use]
    pub fn opened(mut self, open: OpenOptions) -> Self {
        self.open = open;
        self
    }
}
