//! The file or partition of a store: how to open it, and how to recognize its previous content.

use super::place::Existing;
use super::table;
use crate::medium::{Lock, Medium, expect_random_reads, reserve, sync_directory};
use crate::{Result, StoreError};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The start of a partition, which is checked before a store is made there, and wiped. A system
/// recognizes everything by this part.
const BEGINNING: u64 = 1 << 20;

/// The longest time that a free partition may seem to be in use.
const LINGERING: Duration = Duration::from_millis(300);

/// Signatures of programs on a partition: the offset in bytes, the bytes, and their meaning.
const SIGNS: [(usize, &[u8], &str); 18] = [
    (0, b"OBLPART\n", "an Oblivio volume"),
    (4096, b"OBLPART\n", "an Oblivio volume, damaged"),
    (0, b"LUKS\xba\xbe", "a LUKS volume"),
    (0, b"XFSB", "an XFS file system"),
    (0x438, b"\x53\xef", "an ext2, ext3 or ext4 file system"),
    (0x10040, b"_BHRfS_M", "a btrfs file system"),
    (0x400, b"\x10\x20\xf5\xf2", "an F2FS file system"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (82, b"FAT32   ", "a FAT file system"),
    (54, b"FAT", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0, b"hsqs", "a squashfs file system"),
    (4086, b"SWAPSPACE2", "swap space"),
    (512, b"LABELONE", "an LVM physical volume"),
    (4096, b"\xfc\x4e\x2b\xa9", "a member of a Linux RAID"),
    (512, b"EFI PART", "a partition table"),
    (510, b"\x55\xaa", "a partition table or boot sector"),
];

/// The kind of thing a store lives in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// A block device, not a file.
    pub(super) device: bool,
    /// The system's reason for refusing to open it for writing.
    pub(super) refused: Option<ErrorKind>,
    /// The file is newly created.
    new: bool,
}

/// A target ready for a new store.
pub(super) struct Made {
    pub(super) file: File,
    pub(super) target: Target,
    pub(super) lock: Lock,
}

impl Target {
    /// Opens an existing target.
    pub(super) fn open(path: &Path) -> Result<(File, Self)> {
        let (file, refused) = match open(path, OFlags::RDWR) {
            Err(error) => match error.kind() {
                kind @ (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) => {
                    (open(path, OFlags::RDONLY), Some(kind))
                }
                _ => (Err(error), None),
            },
            opened => (opened, None),
        };
        let file = file.map_err(|error| about(path, error))?;
        let device = is_device(&file).map_err(|error| about(path, error))?;
        expect_random_reads(&file);
        Ok((file, Self { device, refused, new: false }))
    }

    /// Opens a file or partition for a new store of `size` bytes, and makes room for it.
    pub(super) fn create(path: &Path, size: u64, existing: Existing) -> Result<Made> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let (file, new) = match open(path, flags) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                (open(path, OFlags::RDWR), false)
            }
            opened => (opened, true),
        };
        let file = file.map_err(|error| about(path, error))?;
        let device = is_device(&file).map_err(|error| about(path, error))?;
        let target = Self { device, refused: None, new };
        // From here on no other process makes one or mounts it.
        let lock = target.lock(path)?;
        let ready = if device {
            prepare_device(path, &file, size, existing)
        } else {
            prepare_file(path, &file, size, existing)
        };
        if ready.is_err() && new {
            // It was empty: leave nothing behind.
            let _ = std::fs::remove_file(path);
        }
        ready?;
        expect_random_reads(&file);
        Ok(Made { file, target, lock })
    }

    /// Takes the exclusive right to write: a lock on a file; on a partition, the right that a mount
    /// takes.
    #[expect(clippy::disallowed_methods, reason = "others have it for moments")]
    pub(super) fn lock(self, path: &Path) -> Result<Lock> {
        let flags = if self.device { OFlags::RDWR | OFlags::EXCL } else { OFlags::RDWR };
        let since = Instant::now();
        let file = loop {
            match open(path, flags) {
                // The holder may be gone, but a newly started child may still have a copy of the
                // open file, until it runs its program.
                Err(error)
                    if error.kind() == ErrorKind::ResourceBusy && since.elapsed() < LINGERING =>
                {
                    thread::sleep(Duration::from_millis(20));
                }
                file => break file.map_err(|error| about(path, error))?,
            }
        };
        // A watcher for new disks locks them briefly, so a lock there proves nothing.
        let taken = if self.device { Ok(Some(Lock::open(file))) } else { Lock::take(file) };
        taken.map_err(|error| about(path, error))?.ok_or(StoreError::Busy)
    }

    /// Bytes of the file or partition.
    pub(super) fn len(self, file: &File) -> io::Result<u64> {
        if self.device { (&mut &*file).seek(SeekFrom::End(0)) } else { Ok(file.metadata()?.len()) }
    }

    /// Makes the name of a new file durable.
    pub(super) fn sync_name(self, path: &Path) -> io::Result<()> {
        if !self.new {
            return Ok(());
        }
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_directory(&File::open(parent)?),
            _ => sync_directory(&File::open(".")?),
        }
    }
}

/// Reserves all of a file's space.
fn prepare_file(path: &Path, file: &File, size: u64, existing: Existing) -> Result<()> {
    let named = |error| about(path, error);
    if file.metadata().map_err(named)?.len() > 0 {
        let what = what_it_holds(file, false).map_err(named)?;
        if existing == Existing::Refuse {
            let object = path.to_string_lossy().into_owned();
            return Err(StoreError::Occupied { object, what: what.unwrap_or("zeros") });
        }
    }
    file.set_len(0).map_err(named)?;
    let reserved = reserve(file, size);
    if reserved.is_err() {
        // Frees the space at once. The error counts, not the result of this.
        let _ = file.set_len(0);
    }
    reserved.map_err(named)
}

/// Wipes the start of a partition, by which the system would mistake it for something else.
fn prepare_device(path: &Path, file: &File, size: u64, existing: Existing) -> Result<()> {
    let named = |error| about(path, error);
    let held = (&mut &*file).seek(SeekFrom::End(0)).map_err(named)?;
    if held < size {
        let text = format!("the volume takes {size} bytes and the partition has {held}");
        let source = io::Error::new(ErrorKind::InvalidInput, text);
        return Err(StoreError::Io { object: path.to_string_lossy().into_owned(), source });
    }
    let what = what_it_holds(file, true).map_err(named)?;
    match what {
        Some(what) if existing == Existing::Refuse => {
            let object = path.to_string_lossy().into_owned();
            Err(StoreError::Occupied { object, what })
        }
        Some(_) => {
            let zeros = vec![0; BEGINNING.min(held) as usize];
            file.write_all_at(&zeros, 0).and_then(|()| file.sync()).map_err(named)
        }
        None => Ok(()),
    }
}

/// The content at the start of a file or partition; `None` for zeros only.
fn what_it_holds(file: &File, device: bool) -> io::Result<Option<&'static str>> {
    let mut start = Vec::new();
    (&mut &*file).seek(SeekFrom::Start(0))?;
    (&mut &*file).take(BEGINNING).read_to_end(&mut start)?;
    if start.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let sign = SIGNS.iter().find(|(at, sign, _)| start.get(*at..at + sign.len()) == Some(*sign));
    let unknown = if device { "data of a kind unknown to Oblivio" } else { "data" };
    Ok(Some(sign.map_or(unknown, |sign| sign.2)))
}

/// Whether `is` accepts one of the first two blocks of a file or partition.
pub(super) fn begins(path: &Path, is: impl Fn(&[u8]) -> bool, block: u64) -> io::Result<bool> {
    let file = match open(path, OFlags::RDONLY) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    if !fits(&file.metadata()?) {
        return Ok(false);
    }
    // One by one: the disk may be able to read only one.
    let mut failed = None;
    for at in (0..table::FRONT).step_by(block as usize) {
        let mut start = Vec::new();
        let found = (&file).seek(SeekFrom::Start(at));
        match found.and_then(|_| (&file).take(block).read_to_end(&mut start)) {
            Ok(_) if is(&start) => return Ok(true),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(false), Err)
}

/// Never waits on a pipe. Follows links, because the system's names for partitions are links.
fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(File::from(retry_on_intr(|| rustix::fs::open(path, flags, mode))?))
}

fn fits(found: &Metadata) -> bool {
    found.is_file() || found.file_type().is_block_device()
}

/// Whether it is a device. Anything but a device or file is an error.
fn is_device(file: &File) -> io::Result<bool> {
    let found = file.metadata()?;
    if !fits(&found) {
        let mode = found.mode();
        let text = format!("neither a file nor a partition (its mode is {mode:o})");
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    Ok(found.file_type().is_block_device())
}

/// An error about the file or partition as a whole.
pub(super) fn about(path: &Path, error: io::Error) -> StoreError {
    if error.kind() == ErrorKind::ResourceBusy {
        return StoreError::Busy;
    }
    StoreError::io(&path.to_string_lossy(), error)
}
