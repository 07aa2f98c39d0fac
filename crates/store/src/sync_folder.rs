//! [`SyncFolder`]: a folder that a sync client copies. Each file is made once and never changes.
//!
//! A client that sees a file change sends it again, and keeps both if somebody else changed it too.
//! So a file appears whole and with its name, and never again: it is made outside of the folder, on
//! the same file system, and then gets its name in it. All files have one modification time, by
//! which a client that knows two of the same bytes takes them for the same.
//!
//! A damaged file alone is replaced, by the bytes that it was made with: two computers that do so
//! at once leave the same file. It gets another time than the damaged one had. Otherwise a client
//! that compares times and lengths would not see that it changed.
//!
//! The header and its second copy, which are replaced, are a new file each time, under the next
//! number.

mod online_only;

use crate::medium::sync_directory;
use crate::ports::{Held, Hint, Objects, PutMode};
use crate::{
    Capabilities, LocalStore, ReadAt, Result, StoreAnswer, StoreCall, StoreError, check_name,
};
use std::fs::{self, DirBuilder, File, FileTimes};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The objects that are replaced.
const HEADERS: [&str; 2] = ["header", "header-2"];
/// How files begin that are still being made, if they must be made in the folder. Dropbox,
/// Nextcloud and Syncthing ignore such names, and so does this store.
const MAKING: &str = "~syncthing~oblivio-";
/// The modification time of all files, in seconds since 1970: the beginning of 2020.
const MADE: u64 = 1_577_836_800;
/// That of a restored file, if the damaged one had the usual one.
const RESTORED: u64 = MADE + 60;

/// Files in a folder that a sync client copies: whole, new objects. It has no lock: one in the
/// folder would be copied, and say nothing on the other computer.
#[derive(Debug)]
pub struct SyncFolder {
    files: LocalStore,
    folder: PathBuf,
    /// Where files are made: outside of the folder, on the same file system.
    outside: Option<PathBuf>,
}

impl SyncFolder {
    /// The store in an existing folder. Files are made in `outside`, if that is on the same file
    /// system; if not, in the folder under a name that sync clients ignore.
    ///
    /// # Errors
    /// When the folder is missing or may not be opened.
    pub fn open(folder: impl AsRef<Path>, outside: Option<&Path>) -> Result<Self> {
        let folder = folder.as_ref();
        let files = LocalStore::open(folder)?;
        // An absolute path: the process may go elsewhere.
        let folder = folder.canonicalize().map_err(|error| named(folder, error))?;
        let outside = outside.filter(|outside| ready(outside, &folder)).map(Path::to_owned);
        Ok(Self { files, folder, outside })
    }

    /// Creates the folder, or takes an empty one, and opens the store in it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the folder holds anything; otherwise the system's error.
    pub fn create(folder: impl AsRef<Path>, outside: Option<&Path>) -> Result<Self> {
        drop(LocalStore::create(&folder)?);
        Self::open(folder, outside)
    }

    /// Whether such a volume is in a folder: it has numbered headers.
    pub fn is_one(folder: &Path) -> bool {
        let Ok(mut entries) = folder.read_dir() else { return false };
        entries.any(|entry| {
            entry.is_ok_and(|it| it.file_name().to_str().and_then(header_of).is_some())
        })
    }

    /// Whether files are made outside of the folder.
    pub fn makes_outside(&self) -> bool {
        self.outside.is_some()
    }

    /// The files of a header, by number; those of a length that another one exceeds have not
    /// arrived as a whole.
    fn headers(&self, header: &str) -> Result<Vec<(u64, String, u64)>> {
        let all = self.files.list()?.into_iter();
        let of = |(name, len): (String, u64)| {
            let (object, number) = header_of(&name)?;
            (object == header).then_some((number, name, len))
        };
        let mut found: Vec<_> = all.filter_map(of).collect();
        let longest = found.iter().map(|header| header.2).max().unwrap_or(0);
        found.retain(|header| header.2 == longest);
        found.sort();
        Ok(found)
    }

    /// The file of an object: for the header the newest one.
    fn file(&self, object: &str) -> Result<String> {
        if !HEADERS.contains(&object) {
            return Ok(object.to_owned());
        }
        let newest = self.headers(object)?.pop();
        newest.map(|it| it.1).ok_or_else(|| StoreError::missing(object))
    }

    /// Replaces the header by a new file, and deletes the older ones.
    fn put_header(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        let before = self.headers(object)?;
        if mode == PutMode::IfAbsent && !before.is_empty() {
            return Err(StoreError::Exists { object: object.into() });
        }
        // Two computers that replace it at once make two files, one of which all take.
        let mut random = [0; 8];
        random.copy_from_slice(&blake3::hash(data).as_bytes()[..8]);
        let number = before.last().map_or(0, |it| it.0) + 1;
        let name = format!("{object}-{number:08x}-{:016x}", u64::from_le_bytes(random));
        match self.make(&name, data) {
            Err(StoreError::Exists { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        let old: Vec<&str> =
            before.iter().filter(|it| it.1 != name).map(|it| it.1.as_str()).collect();
        if old.is_empty() { Ok(()) } else { self.files.delete(&old) }
    }

    /// Whether a file has these bytes.
    fn holds(&self, name: &str, data: &[u8]) -> Result<bool> {
        if self.files.len(name)? != Some(data.len() as u64) {
            return Ok(false);
        }
        let mut found = vec![0; data.len()];
        self.files.read(&mut [ReadAt { object: name, offset: 0, buf: &mut found }])?;
        Ok(found == data)
    }

    /// Makes a new file, durably.
    fn make(&self, name: &str, data: &[u8]) -> Result<()> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => StoreError::Exists { object: name.to_owned() },
            _ => StoreError::io(name, error),
        };
        let to = self.folder.join(name);
        if to.symlink_metadata().is_ok() {
            return Err(StoreError::Exists { object: name.to_owned() });
        }
        let made = self.in_a_place(|place| Making::new(place, data, MADE)?.name(&to));
        made.and_then(|()| self.sync_names()).map_err(failed)
    }

    /// Replaces a damaged file by the bytes that it was made with, durably.
    fn restore(&self, name: &str, data: &[u8]) -> Result<()> {
        let to = self.folder.join(name);
        let damaged = to.symlink_metadata().map_or(0, |found| found.mtime());
        let time = if damaged == MADE as i64 { RESTORED } else { MADE };
        let made = self.in_a_place(|place| Making::new(place, data, time)?.replace(&to));
        self.files.forget(name);
        made.and_then(|()| self.sync_names()).map_err(|error| StoreError::io(name, error))
    }

    /// Makes a file outside of the folder, if that can be; in it, if not.
    fn in_a_place(&self, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
        match self.outside.as_deref().map(&make) {
            // Two file systems that look like one.
            Some(Err(error)) if error.kind() == ErrorKind::CrossesDevices => make(&self.folder),
            Some(done) => done,
            None => make(&self.folder),
        }
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.folder).and_then(|folder| sync_directory(&folder))
    }
}

fn named(path: &Path, error: io::Error) -> StoreError {
    StoreError::io(&path.to_string_lossy(), error)
}

/// Whether files can be made in a place for a folder. Makes the place.
fn ready(outside: &Path, folder: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(outside);
    let device = |path: &Path| path.metadata().map(|found| found.dev());
    made.is_ok()
        && matches!((device(outside), device(folder)), (Ok(one), Ok(other)) if one == other)
}

/// The object of a header's file, and its number.
fn header_of(name: &str) -> Option<(&'static str, u64)> {
    HEADERS.into_iter().find_map(|object| Some((object, number_of(name.strip_prefix(object)?)?)))
}

/// The number in the rest of such a name.
fn number_of(rest: &str) -> Option<u64> {
    let (number, random) = rest.strip_prefix('-')?.split_once('-')?;
    let plain =
        |text: &str| text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
    let fits = number.len() == 8 && random.len() == 16 && plain(number) && plain(random);
    fits.then(|| u64::from_str_radix(number, 16).ok()).flatten()
}

/// A file that has no name in the folder yet. Removed on drop. No `replace_file`: a file is made
/// outside of the folder, with a time that tells nothing, and replaces a damaged one only.
struct Making(PathBuf);

impl Making {
    /// With these bytes and this time, in seconds since 1970.
    fn new(place: &Path, data: &[u8], time: u64) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = place.join(format!("{MAKING}{}-{number}.tmp", std::process::id()));
            let file = File::options().write(true).create_new(true).mode(0o600).open(&path);
            let mut file = match file {
                // Of a process that had the same number, and crashed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            let making = Self(path);
            file.write_all(data)?;
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(time);
            file.set_times(FileTimes::new().set_modified(time))?;
            file.sync_all()?;
            return Ok(making);
        }
    }

    /// Gives it its name, which must be free.
    fn name(self, to: &Path) -> io::Result<()> {
        match fs::hard_link(&self.0, to) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::CrossesDevices
                ) =>
            {
                // FAT and some network file systems have no hard links.
                rename_new(&self.0, to).map_err(|second| match second.kind() {
                    ErrorKind::AlreadyExists => second,
                    _ => error,
                })
            }
            done => done,
        }
    }

    /// Gives it the name of another file, which loses that one.
    fn replace(self, to: &Path) -> io::Result<()> {
        fs::rename(&self.0, to)
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

impl Drop for Making {
    fn drop(&mut self) {
        // It may have become the file itself.
        let _ = fs::remove_file(&self.0);
    }
}

impl Held for SyncFolder {
    fn capabilities(&self) -> Capabilities {
        Capabilities { creates_exclusively: true, writes_over: false }
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        if !reads.iter().any(|read| HEADERS.contains(&read.object)) {
            return self.files.read(reads);
        }
        let files: Vec<String> =
            reads.iter().map(|read| self.file(read.object)).collect::<Result<_>>()?;
        let mut named: Vec<ReadAt<'_>> = reads
            .iter_mut()
            .zip(&files)
            .map(|(read, file)| ReadAt { object: file, offset: read.offset, buf: read.buf })
            .collect();
        self.files.read(&mut named)
    }

    /// What is read after this is the file that has the name now: a sync client replaces files, and
    /// an open one may live on under a second name outside of the folder.
    fn len(&self, object: &str) -> Result<Option<u64>> {
        match self.file(object) {
            Ok(file) => {
                self.files.forget(&file);
                self.files.len(&file)
            }
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A header is listed once, whatever its file.
    fn list(&self) -> Result<Vec<(String, u64)>> {
        let mut all = self.files.list()?;
        all.retain(|(name, _)| header_of(name).is_none() && !HEADERS.contains(&name.as_str()));
        for object in HEADERS {
            let newest = self.headers(object)?.pop();
            all.extend(newest.map(|(_, _, len)| (object.to_owned(), len)));
        }
        all.sort();
        Ok(all)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.files.free_bytes()
    }

    fn hint(&self, hint: Hint<'_>) {
        if matches!(hint, Hint::Reads(_)) {
            self.files.hint(hint);
        }
    }
}

impl Objects for SyncFolder {
    /// Each file but a header is new: the bytes under a name never change.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        check_name(object)?;
        match object {
            header if HEADERS.contains(&header) => self.put_header(header, data, mode),
            _ if mode == PutMode::Restore => self.restore(object, data),
            _ => match self.make(object, data) {
                Err(StoreError::Exists { .. })
                    if mode == PutMode::Replace && self.holds(object, data)? =>
                {
                    Ok(())
                }
                made => made,
            },
        }
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        let mut files = Vec::new();
        for object in objects {
            match *object {
                header if HEADERS.contains(&header) => {
                    files.extend(self.headers(header)?.into_iter().map(|it| it.1));
                }
                other => files.push(other.to_owned()),
            }
        }
        self.files.delete(&files.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_objects(self)
    }
}

#[cfg(test)]
#[path = "sync_folder/tests.rs"]
mod tests;
