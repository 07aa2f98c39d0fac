//! Memory that stays with this computer while an experiment runs.
//!
//! The host of a virtual machine may take back what is free in it, in pieces of 2 MiB (free page reporting):
//! it takes processors away meanwhile, and has to find the memory again for whoever wants it next, which
//! is several times slower than to write to it. A folder in memory, or the system's cache of a disk, is made of
//! such memory.

use anyhow::Result;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4 << 10;
/// One page is kept of so many bytes, so that none of the free pieces in between is long enough to be taken.
const APART: u64 = 512 << 10;

#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// GiB of memory to find before it begins and to keep from a host that takes back what is free.
    #[arg(long, value_name = "GIB", default_value_t = 0)]
    hold_memory: u64,
}

impl Args {
    /// Holds it until this is dropped.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn hold(self) -> Result<File> {
        if self.hold_memory > 0 {
            eprintln!("finding {} GiB of memory", self.hold_memory);
        }
        hold(self.hold_memory << 30)
    }

    /// What a page says of it.
    pub fn told(self) -> &'static str {
        match self.hold_memory {
            0 => "",
            _ => {
                " The memory of this virtual machine was written to before, and its host was kept from \
                 taking back what is free (`--hold-memory`)."
            }
        }
    }
}

/// Writes to so many bytes of memory and gives most of them back to the system.
fn hold(bytes: u64) -> Result<File> {
    let file = File::from(memfd_create("held", MemfdFlags::CLOEXEC)?);
    let piece = vec![1; APART as usize];
    for at in (0..bytes).step_by(piece.len()) {
        file.write_all_at(&piece, at)?;
    }
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for at in (0..bytes).step_by(piece.len()) {
        fallocate(&file, hole, at + PAGE, APART - PAGE)?;
    }
    Ok(file)
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
