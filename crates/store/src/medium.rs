//! The target of stores: a file or a partition, and a stand-in in tests.
//!
//! It has the system calls that the folder and the partition store share.

use crate::system;
use rustix::fs::{Advice, FallocateFlags, FlockOperation};
use rustix::io::{Errno, retry_on_intr};
use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

/// Bytes by their offset, durable after a sync.
pub(crate) trait Medium: Send + Sync + 'static {
    /// Fills all buffers, each from its offset.
    fn read_at(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()>;
    /// Writes a whole range, and `zeros` zeros after it.
    fn write_at(&self, data: &[u8], zeros: usize, offset: u64) -> io::Result<()>;
    /// Starts the system's write-out of a range.
    fn write_out(&self, _offset: u64, _len: usize) {}
    /// Prefetches a likely read.
    fn expect(&self, _offset: u64, _len: usize) {}
    /// Makes all writes durable.
    fn sync(&self) -> io::Result<()>;
    /// Punches a range, if possible. It then reads as zeros or as before.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
}

impl Medium for File {
    fn read_at(&self, reads: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let mut reads: Vec<_> =
            reads.iter_mut().map(|(offset, buf)| (self, *offset, &mut **buf)).collect();
        read_files(&mut reads).map_err(|(_, error)| error)
    }

    fn write_at(&self, data: &[u8], zeros: usize, offset: u64) -> io::Result<()> {
        if zeros == 0 {
            return self.write_all_at(data, offset);
        }
        // In one call, so that no page of it is written in part.
        let zeros = vec![0; zeros];
        let parts = [data, &zeros].map(io::IoSlice::new);
        let done = retry_on_intr(|| rustix::io::pwritev(self, &parts, offset))?;
        // Mostly nothing is left.
        let (left, tail) = (&data[done.min(data.len())..], done.saturating_sub(data.len()));
        self.write_all_at(left, offset + done as u64)?;
        self.write_all_at(&zeros[tail..], offset + (done + left.len()) as u64)
    }

    fn write_out(&self, offset: u64, len: usize) {
        system::begin_to_write_out(self, offset, len as u64);
    }

    fn expect(&self, offset: u64, len: usize) {
        announce(self, offset, len);
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fdatasync(self))?)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match retry_on_intr(|| rustix::fs::fallocate(self, flags, offset, len)) {
            // A file system without holes: the space stays taken.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads parts of files, each from its offset. The disk fetches all of them at the same time that
/// the system does not have in memory.
///
/// # Errors
/// Which part cannot be read, and why.
pub fn read_files<F: Borrow<File>>(
    reads: &mut [(F, u64, &mut [u8])],
) -> Result<(), (usize, io::Error)> {
    if let [(file, offset, buf)] = reads {
        return (*file).borrow().read_exact_at(buf, *offset).map_err(|error| (0, error));
    }
    let mut cold = Vec::new();
    for (index, (file, offset, buf)) in reads.iter_mut().enumerate() {
        let file = (*file).borrow();
        if !read_cached(file, buf, *offset) {
            announce(file, *offset, buf.len());
            cold.push(index);
        }
    }
    for index in cold {
        let (file, offset, buf) = &mut reads[index];
        (*file).borrow().read_exact_at(buf, *offset).map_err(|error| (index, error))?;
    }
    Ok(())
}

/// Reads only what the system has in memory. False unless that was everything.
pub(crate) fn read_cached(file: &File, buf: &mut [u8], offset: u64) -> bool {
    let want = buf.len();
    read_scattered(file, &mut [io::IoSliceMut::new(buf)], offset, false) == Some(want)
}

/// Fills buffers, one after the other, from an offset on. Unless it may `wait`, it reads only what
/// needs no wait for the disk. Returns the number of bytes, or `None` for any error: a repeated
/// read reports it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn read_scattered(
    file: &File,
    bufs: &mut [io::IoSliceMut<'_>],
    offset: u64,
    wait: bool,
) -> Option<usize> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let flags = if wait { ReadWriteFlags::empty() } else { ReadWriteFlags::NOWAIT };
    preadv2(file, bufs, offset, flags).ok()
}

/// Other systems cannot.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn read_scattered(
    _file: &File,
    _bufs: &mut [io::IoSliceMut<'_>],
    _offset: u64,
    _wait: bool,
) -> Option<usize> {
    None
}

/// Linux fetches at least this much of one request, whatever the disk; of a larger one, perhaps no
/// more.
const ANNOUNCED: usize = 1 << 20;

/// Starts the disk on a later read: a batch of 20 cold reads of 16 KiB takes a third of the time.
pub(crate) fn announce(file: &File, offset: u64, len: usize) {
    for at in (0..len).step_by(ANNOUNCED) {
        // The read itself reports an error.
        let len = NonZeroU64::new((len - at).min(ANNOUNCED) as u64);
        let _ = rustix::fs::fadvise(file, offset + at as u64, len, Advice::WillNeed);
    }
}

/// Reads are frequent and at random places: read-ahead costs the disk and saves nothing.
pub(crate) fn expect_random_reads(file: &File) {
    // A system that does not know the advice ignores it.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    note_no_reads(file);
}

/// Turns off access times for the file: readers need not change it, and there is less to write.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn note_no_reads(file: &File) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    // Only its owner may; without, it is only slower.
    let _ = fcntl_getfl(file).and_then(|flags| fcntl_setfl(file, flags | OFlags::NOATIME));
}

/// Other systems cannot.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn note_no_reads(_file: &File) {}

/// Makes a file at least `len` bytes long, with zeros, and reserves the space for all of it.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    if len == 0 {
        // The system refuses zero bytes.
        return Ok(());
    }
    let held = file.metadata()?.len();
    match retry_on_intr(|| rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len)) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(file, held, len),
        result => Ok(result?),
    }
}

/// For file systems that cannot reserve: slow, but then the space is taken.
fn write_zeros(file: &File, from: u64, to: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut at = from;
    while at < to {
        let len = zeros.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
        file.write_all_at(&zeros[..len], at)?;
        at += len as u64;
    }
    Ok(())
}

/// An exclusive lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Takes the lock on a file; `None` when another holds it.
    pub(crate) fn take(file: File) -> io::Result<Option<Self>> {
        Ok(try_lock(&file)?.then_some(Self(file)))
    }

    /// A file whose open descriptor is the lock.
    pub(crate) fn open(file: File) -> Self {
        Self(file)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread is starting has a copy of the file,
        // and would hold the lock until it runs its program.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the exclusive lock on a file. False when another holds it.
pub(crate) fn try_lock(file: &File) -> io::Result<bool> {
    match retry_on_intr(|| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Makes the entries of an open directory durable.
///
/// # Errors
/// Those of the system.
pub fn sync_directory(directory: &File) -> io::Result<()> {
    match retry_on_intr(|| rustix::fs::fsync(directory)) {
        // Some network and user-space file systems cannot sync a directory; there is no remedy.
        Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
