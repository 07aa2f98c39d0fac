//! Reading and writing files through mapped memory.
#![allow(unsafe_code, reason = "mapping a file is unsafe wherever it is done")]

use anyhow::{Result, ensure};
use memmap2::{Mmap, MmapMut, MmapOptions};
use std::fs::File;

/// Copies a range out. It must lie in the file, which nobody may truncate meanwhile.
///
/// # Errors
/// It cannot be mapped, or the page has bytes behind the end of the file.
pub fn read(file: &File, offset: u64, len: usize) -> Result<Vec<u8>> {
    // SAFETY: the file is the exerciser's own, and it does one thing at a time.
    let map: Mmap = unsafe { MmapOptions::new().offset(offset).len(len).map(file)? };
    Ok(map.to_vec())
}

/// Writes a range that lies in the file, which nobody may truncate meanwhile.
///
/// # Errors
/// It cannot be mapped or flushed.
pub fn write(file: &File, offset: u64, data: &[u8], flush: bool) -> Result<()> {
    ensure!(!data.is_empty(), "nothing to write");
    // SAFETY: as above.
    let mut map: MmapMut =
        unsafe { MmapOptions::new().offset(offset).len(data.len()).map_mut(file)? };
    map.copy_from_slice(data);
    if flush {
        map.flush()?;
    }
    Ok(())
}
