//! Memory that stays with this computer while an experiment runs.
//!
//! The host of a virtual machine may take back its free memory, in pieces of 2 MiB (free page
//! reporting). Meanwhile it takes processors away, and later has to find the memory again, which is
//! several times slower than writing to it. A folder in memory, or the system's cache of a disk, is
//! made of such memory.

use anyhow::Result;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4 << 10;
/// One page in this many bytes is kept: hardly a free piece in between is then long enough to be
/// taken.
const APART: u64 = 512 << 10;
/// Left to others: the memory found is given back only when all of it is found.
const LEFT: u64 = 768 << 20;
/// Bytes between two checks of the available memory.
const LOOK_EVERY: u64 = 32 << 20;

#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// GiB of memory to find before it begins and to keep from the host, which takes back free
    /// memory; at most all but 768 MiB of what is available
    #[arg(long, value_name = "GIB", default_value_t = 0)]
    hold_memory: u64,
}

impl Args {
    /// Holds the memory until the file is dropped.
    ///
    /// # Errors
    /// Those of the system.
    pub fn hold(self) -> Result<File> {
        if self.hold_memory > 0 {
            eprintln!("finding {} GiB of memory", self.hold_memory);
        }
        hold(self.hold_memory << 30)
    }

    /// The sentence about it on a page.
    pub fn told(self) -> &'static str {
        match self.hold_memory {
            0 => "",
            _ => {
                " The memory of this virtual machine was written to before, and a page of each \
                 512 KiB was kept. So its host finds less to take back (`--hold-memory`)."
            }
        }
    }
}

/// Writes to `bytes` of memory, or as much as there is, and gives most of it back to the system.
fn hold(bytes: u64) -> Result<File> {
    let file = File::from(memfd_create("held", MemfdFlags::CLOEXEC)?);
    let piece = vec![1; APART as usize];
    let mut found = 0;
    while found < bytes && (found % LOOK_EVERY != 0 || available() > LEFT) {
        file.write_all_at(&piece, found)?;
        found += APART;
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for at in (0..found).step_by(piece.len()) {
        fallocate(&file, hole, at + PAGE, APART - PAGE)?;
    }
    Ok(file)
}

/// Bytes of memory that programs can still get, as the system reports.
fn available() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_page_is_kept_of_each_piece() {
        let held = hold(8 * APART).expect("4 MiB");
        assert_eq!(held.metadata().expect("open").blocks() * 512, 8 * PAGE);
        assert_eq!(hold(0).expect("none").metadata().expect("open").len(), 0);
    }
}
