//! Opening and making volumes.

use crate::disk::Disk;
use crate::error::outside;
use crate::volume::Volume;
use oblivio::{CreateOptions, LaneParameters, OpenOptions, Passphrase, SeenBy};
use pyo3::prelude::*;
use std::path::PathBuf;

/// How a volume is opened, as the package passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct How {
    state: Option<PathBuf>,
    memory: Option<usize>,
    pad: bool,
    accept_rollback: bool,
    accept_other_volume: bool,
    rollback_protection: bool,
    token_file: Option<PathBuf>,
    take_over: bool,
    older: bool,
    history: Option<String>,
}

impl How {
    fn options(self) -> OpenOptions {
        let mut options = OpenOptions::new().pad(self.pad);
        if let Some(bytes) = self.memory {
            options = options.memory(bytes);
        }
        if self.accept_rollback {
            options = options.accept_rollback();
        }
        if self.accept_other_volume {
            options = options.accept_other_volume();
        }
        if let Some(file) = self.token_file {
            options = options.token_file(file);
        }
        if self.take_over {
            options = options.take_over();
        }
        if self.older {
            options = options.accept_older();
        }
        if let Some(name) = self.history {
            options = options.view_history(name);
        }
        match self.state {
            _ if !self.rollback_protection => options.without_rollback_protection(),
            Some(folder) => options.remember_in(folder),
            None => options,
        }
    }
}

/// What a volume is made as, as the package passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct What {
    snapshots: bool,
    size: Option<u64>,
    block_size: Option<usize>,
    one_file: bool,
    lanes: Option<(u8, u8)>,
    sync_folder: bool,
    guessing_cost: Option<(u64, u32)>,
}

impl What {
    fn options(self, hidden: Vec<Vec<u8>>, open: OpenOptions) -> CreateOptions {
        let seen_by = if self.snapshots { SeenBy::Snapshots } else { SeenBy::default() };
        let mut options = CreateOptions::new().seen_by(seen_by).opened(open);
        if let Some(bytes) = self.size {
            options = options.size(bytes);
        }
        if let Some(bytes) = self.block_size {
            options = options.block_size(bytes);
        }
        if self.one_file {
            options = options.one_file();
        }
        if self.sync_folder {
            options = options.sync_folder();
        }
        if let Some((memory, passes)) = self.guessing_cost {
            options = options.guessing_cost(memory, passes);
        }
        let usual = LaneParameters::default();
        let lanes = self.lanes.map(|(count, share)| LaneParameters { count, share, ..usual });
        let passphrases = hidden.into_iter().map(Passphrase::new);
        passphrases.fold(options.lanes(lanes), CreateOptions::lane_passphrase)
    }
}

/// Opens a volume that holds files.
#[pyfunction]
pub fn open(py: Python<'_>, place: PathBuf, passphrase: &[u8], how: How) -> PyResult<Volume> {
    let passphrase = Passphrase::new(passphrase.to_vec());
    outside(py, || how.options().open(place, passphrase)).map(Volume::of)
}

/// Makes a volume that holds files, and opens it.
#[pyfunction]
pub fn create(
    py: Python<'_>,
    place: PathBuf,
    passphrase: &[u8],
    lane_passphrases: Vec<Vec<u8>>,
    what: What,
    how: How,
) -> PyResult<Volume> {
    let passphrase = Passphrase::new(passphrase.to_vec());
    outside(py, || what.options(lane_passphrases, how.options()).create(place, passphrase))
        .map(Volume::of)
}

/// Opens the disk that a volume holds.
#[pyfunction]
pub fn open_disk(py: Python<'_>, place: PathBuf, passphrase: &[u8], how: How) -> PyResult<Disk> {
    let passphrase = Passphrase::new(passphrase.to_vec());
    outside(py, || how.options().open_disk(place, passphrase)).map(Disk::of)
}

/// Makes a volume that holds a disk of this size, and opens it.
#[pyfunction]
pub fn create_disk(
    py: Python<'_>,
    place: PathBuf,
    passphrase: &[u8],
    lane_passphrases: Vec<Vec<u8>>,
    size: u64,
    what: What,
    how: How,
) -> PyResult<Disk> {
    let passphrase = Passphrase::new(passphrase.to_vec());
    let create =
        || what.options(lane_passphrases, how.options()).create_disk(place, passphrase, size);
    outside(py, create).map(Disk::of)
}
