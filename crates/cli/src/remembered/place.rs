//! The volume that was at a place when this computer used it last.

use super::{unkept, unreadable};
use oblivio_crypto::{VolumeId, digest};
use oblivio_volume::Result;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The first line of the file; the number is the format's version.
const MAGIC: &str = "oblivio-place 1";

/// The file for one place. Its name is a digest of the place's path.
pub(super) struct PlaceNote {
    place: PathBuf,
    path: PathBuf,
    /// Its content, once written.
    kept: Option<VolumeId>,
}

impl PlaceNote {
    /// The note for a place, with links resolved.
    pub(super) fn of(folder: &Path, place: &Path) -> Self {
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let name = hex(&digest(place.as_os_str().as_bytes())[..16]);
        Self { place, path: folder.join("places").join(name), kept: None }
    }

    /// The place, for people.
    pub(super) fn shown(&self) -> String {
        crate::human::plain(&self.place.display().to_string())
    }

    /// The volume noted for the place, `None` when none is known.
    pub(super) fn volume(&self) -> Result<Option<VolumeId>> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(&self.path, &error.to_string())),
        };
        let mut lines = text.lines();
        let magic = lines.next() == Some(MAGIC);
        let volume = lines.next().and_then(|line| line.strip_prefix("volume ")).and_then(identity);
        match volume.filter(|_| magic) {
            Some(volume) => Ok(Some(volume)),
            None => Err(unreadable(&self.path, "it does not say which volume was there")),
        }
    }

    /// Notes that this volume is there, durably, unless that is noted already.
    pub(super) fn keep(&mut self, volume: VolumeId) -> Result<()> {
        if self.kept == Some(volume) {
            return Ok(());
        }
        if self.volume()? != Some(volume) {
            self.write(volume).map_err(|error| unkept(&self.path, &error))?;
        }
        self.kept = Some(volume);
        Ok(())
    }

    fn write(&self, volume: VolumeId) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut text = format!("{MAGIC}\nvolume {volume}\nplace ").into_bytes();
        // For people who look; nothing reads it.
        text.extend(self.place.as_os_str().as_bytes().iter().filter(|byte| **byte != b'\n'));
        text.push(b'\n');
        replace(&self.path, &text).map(drop)
    }
}

/// Replaces a file by a new one, durably.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(OsStr::new(".new-")).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let file = file.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()?;
    Ok(file)
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from twice as many hexadecimal digits.
pub(super) fn unhex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if hex.len() != 2 * N || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// A volume's identity from its text form.
pub(super) fn identity(text: &str) -> Option<VolumeId> {
    unhex(text).map(VolumeId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_volume::Error;

    #[test]
    fn what_is_not_a_note_is_no_first_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut note = PlaceNote::of(dir.path(), dir.path());
        assert_eq!(note.volume().expect("none yet"), None);
        note.keep(VolumeId([7; 16])).expect("kept");
        assert_eq!(note.volume().expect("whole"), Some(VolumeId([7; 16])));
        for text in ["", "oblivio-place 2\nvolume 07070707070707070707070707070707\n"] {
            fs::write(&note.path, text).expect("written");
            assert!(matches!(note.volume(), Err(Error::Forgotten(_))), "{text:?}");
        }
    }
}
