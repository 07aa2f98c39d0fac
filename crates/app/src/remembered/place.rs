//! The volume that was at a place when this computer used it last.

use super::note::{hex, identity, unkept, unreadable};
use oblivio_crypto::{VolumeId, digest};
use oblivio_store::replace_file;
use oblivio_volume::Result;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
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
        self.place.display().to_string()
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
        replace_file(&self.path, &text).map(drop)
    }
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
