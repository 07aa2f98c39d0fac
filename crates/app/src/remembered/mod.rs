//! This computer's memory of the volumes it has used: one small file for each volume, and one for
//! each place where a volume was.
//!
//! It distinguishes the last state of a volume from an older one, and from another volume. So an
//! unreadable file is an error, not a first use. Only one session at a time has a volume, whatever
//! happened to the lock in the volume's own folder.

mod lines;
mod record;
mod scrubbed;

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_crypto::{Entropy, OsEntropy, VolumeId, digest, hex, unhex};
use oblivio_volume::notes::{PlaceNote, TwoNotes, lock, make_folder, unkept};
use oblivio_volume::{ComputerId, Error, Keep, Keeper, Known, NoteSyncer, Result};
use record::Lines;
pub use scrubbed::ScrubNote;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The first line of the note on a place; the number is the format's version.
const PLACE_HEAD: &str = "oblivio-place 1\n";

/// The memory of the volume at one place, for one session.
pub struct Remembered {
    folder: PathBuf,
    place: PlaceNote,
    /// A different volume than before may be at this place.
    any_volume: bool,
    /// Nothing is noted.
    unchanged: bool,
    taken: Option<Taken>,
}

/// The user's state folder for volumes.
///
/// # Errors
/// `Forgotten` when there is no home directory.
pub fn state_folder() -> Result<PathBuf> {
    let xdg = Xdg::new().map_err(|_| {
        let why = "has no place: there is no home directory. Set HOME or XDG_STATE_HOME";
        Error::Forgotten(why.into())
    })?;
    let state = xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state"));
    Ok(state.join("oblivio"))
}

/// The volume of this session.
struct Taken {
    record: TwoNotes<Lines>,
    /// Locked while open.
    _lock: Option<File>,
    machine: Option<ComputerId>,
}

impl Remembered {
    /// The memory of the volume at `place`, an existing folder, file or partition. With
    /// `any_volume` it may be a different one than before.
    ///
    /// # Errors
    /// `Forgotten` when there is no home directory.
    pub fn at(place: &Path, any_volume: bool) -> Result<Self> {
        Ok(Self::in_folder(state_folder()?, place, any_volume))
    }

    /// The same with the memory in a folder of the caller's.
    pub fn in_folder(folder: PathBuf, place: &Path, any_volume: bool) -> Self {
        // One place has one name, however links lead there.
        let place = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let place = PlaceNote::new(&folder, place.as_os_str(), "", PLACE_HEAD);
        Self { folder, place, any_volume, unchanged: false, taken: None }
    }

    /// The same for a session that leaves no trace in the volume: it is not remembered, and keeps
    /// no other session out.
    #[must_use]
    pub fn unchanged(self) -> Self {
        Self { unchanged: true, ..self }
    }

    /// Locks a volume for this session. Its file says what all sessions of this computer are
    /// called.
    fn lock(&self, volume: VolumeId) -> Result<(File, ComputerId)> {
        let path = self.folder.join(format!("{volume}.lock"));
        let mut file = lock(&path)?;
        let machine = machine_in(&mut file).map_err(|error| unkept(&path, &error))?;
        Ok((file, machine))
    }
}

/// The name by the secret in a lock file, which is drawn the first time. One that was torn is drawn
/// anew: it only spares waiting. On another host a copy of the file makes another name.
fn machine_in(file: &mut File) -> io::Result<ComputerId> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text)?;
    let mut drawn: [u8; 16] = unhex(text.trim_end()).unwrap_or_default();
    if drawn == [0; 16] {
        OsEntropy.fill(&mut drawn);
        file.set_len(0)?;
        writeln!(file, "{}", hex(&drawn))?;
    }
    let name = digest(&[&drawn[..], crate::others::host().as_bytes()].concat());
    Ok(ComputerId(*name.first_chunk().unwrap_or(&drawn)))
}

impl Keeper for Remembered {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        make_folder(&self.folder).map_err(|error| unkept(&self.folder, &error))?;
        let lock = if self.unchanged { None } else { Some(self.lock(volume)?) };
        let (lock, machine) = lock.unzip();
        self.place.check(volume, self.any_volume)?;
        let path = self.folder.join(volume.to_string());
        let (record, known) = TwoNotes::open(path, Lines(volume))?;
        self.taken = Some(Taken { record, _lock: lock, machine });
        Ok(known)
    }

    fn note(&mut self, known: &Known, keep: Keep) -> Result<()> {
        let Some(taken) = self.taken.as_mut().filter(|_| !self.unchanged) else { return Ok(()) };
        taken.record.write(known, keep)?;
        self.place.keep(known.volume)
    }

    fn machine(&self) -> Option<ComputerId> {
        self.taken.as_ref().and_then(|taken| taken.machine)
    }

    fn syncer(&self) -> Option<NoteSyncer> {
        let taken = self.taken.as_ref().filter(|_| !self.unchanged);
        taken.and_then(|taken| taken.record.syncer())
    }

    fn holds(&mut self, known: &Known) -> Result<bool> {
        match &self.taken {
            Some(taken) if !self.unchanged => taken.record.holds(known),
            _ => Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_volume::{LogMark, LogSeen};

    fn known(volume: u8) -> Known {
        Known {
            volume: VolumeId([volume; 16]),
            epoch: 12,
            digest: [0xa5; 32],
            log: LogSeen::Mark(LogMark::default()),
            newest: None,
            computer: ComputerId([1; 16]),
            ended: false,
            session: None,
        }
    }

    #[test]
    fn one_session_at_a_time_has_a_volume_and_the_next_knows_what_it_noted() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |any| Remembered::in_folder(dir.path().join("state"), dir.path(), any);
        let mut first = at(false);
        assert_eq!(first.take(known(7).volume)?, None);
        first.note(&known(7), Keep::Durable)?;
        assert!(first.holds(&known(7))?);
        assert!(matches!(at(false).take(known(7).volume), Err(Error::Busy)));
        drop(first);
        assert_eq!(at(false).take(known(7).volume)?, Some(known(7)));
        Ok(())
    }

    #[test]
    fn all_sessions_of_a_computer_have_one_name_whatever_was_noted() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let machine = |state: &str, volume: u8| {
            let mut it = Remembered::in_folder(dir.path().join(state), dir.path(), true);
            it.take(VolumeId([volume; 16]))?;
            Ok::<_, Error>(it.machine().expect("a name"))
        };
        let name = machine("one", 7)?;
        assert_eq!(machine("one", 7)?, name, "nothing was noted");
        assert_ne!(machine("one", 8)?, name);
        assert_ne!(machine("two", 7)?, name);
        // A lock of an earlier version is empty, and one may be torn.
        let lock = dir.path().join("one").join(format!("{}.lock", VolumeId([7; 16])));
        for bytes in ["", "0123", "0123456789abcdef0123456789abcdeg"] {
            std::fs::write(&lock, bytes).expect("written");
            let drawn = machine("one", 7)?;
            assert_eq!(machine("one", 7)?, drawn);
        }
        Ok(())
    }

    #[test]
    fn another_volume_at_a_known_place_is_refused_and_both_are_named() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |any| Remembered::in_folder(dir.path().join("state"), dir.path(), any);
        let (mine, other) = (known(7), known(8));
        let mut session = at(false);
        session.take(mine.volume)?;
        session.note(&mine, Keep::Soon)?;
        drop(session);
        let Err(Error::OtherVolume(what)) = at(false).take(other.volume) else {
            panic!("it is refused");
        };
        assert!(what.contains(&mine.volume.to_string()), "{what}");
        assert!(what.contains(&other.volume.to_string()), "{what}");
        // The user means it: from now on this volume belongs here.
        let mut session = at(true);
        session.take(other.volume)?;
        session.note(&other, Keep::Soon)?;
        drop(session);
        at(false).take(other.volume)?;
        assert!(matches!(at(false).take(mine.volume), Err(Error::OtherVolume(_))));
        Ok(())
    }
}
