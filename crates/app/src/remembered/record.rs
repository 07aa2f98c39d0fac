//! The file for one volume: two notes that take turns. A note torn by a power failure leaves the
//! previous one.
//!
//! Each is a few lines of text with a checksum, in 512 bytes. A note is one small write into an
//! existing file, because a sync waits for it.

use super::note::{hex, identity, unhex, unkept, unreadable};
use oblivio_crypto::{Tag, VolumeId, digest};
use oblivio_store::replace_file;
use oblivio_volume::{Act, ComputerId, Keep, Known, LogMark, LogSeen, Result};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The first line of a note; the number is the format's version.
const MAGIC: &str = "oblivio-known 2";
/// The first line of the file in versions before 2.
const MAGIC_1: &str = "oblivio-seen 1";
/// Bytes of a note.
const NOTE: usize = 512;

/// The parsed value, or why it is invalid.
type Parsed<T> = std::result::Result<T, &'static str>;

/// The file for one volume.
pub(super) struct Record {
    path: PathBuf,
    volume: VolumeId,
    /// `None` until the first note, if there is no file yet or one of an older version.
    file: Option<File>,
    /// Notes so far; the number modulo two gives a note's place.
    count: u64,
}

impl Record {
    /// Opens the record of a volume.
    pub(super) fn open(folder: &Path, volume: VolumeId) -> Result<(Self, Option<Known>)> {
        let path = folder.join(volume.to_string());
        let mut record = Self { path, volume, file: None, count: 0 };
        let bytes = match File::options().read(true).write(true).open(&record.path) {
            Ok(file) => {
                let bytes = record.read(&file)?;
                record.file = Some(file);
                bytes
            }
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((record, None)),
            Err(error) => return Err(unreadable(&record.path, &error.to_string())),
        };
        if bytes.starts_with(MAGIC_1.as_bytes()) {
            let known = record.version_1(&bytes)?;
            record.file = None;
            return Ok((record, Some(known)));
        }
        let (count, known) = newest(&bytes, volume).map_err(|why| record.unreadable(why))?;
        record.count = count;
        Ok((record, Some(known)))
    }

    /// Writes a note.
    pub(super) fn write(&mut self, known: &Known, keep: Keep) -> Result<()> {
        let note = print(known, self.count + 1);
        let at = (self.count + 1) % 2 * NOTE as u64;
        let written = match &self.file {
            Some(file) => file.write_all_at(&note, at).and_then(|()| match keep {
                Keep::Soon => Ok(()),
                Keep::Durable => file.sync_data(),
            }),
            // Both places exist from the beginning; the other one is still empty.
            None => {
                let mut both = vec![b'\n'; 2 * NOTE];
                both[at as usize..at as usize + NOTE].copy_from_slice(&note);
                replace_file(&self.path, &both).map(|file| self.file = Some(file))
            }
        };
        written.map_err(|error| unkept(&self.path, &error))?;
        self.count += 1;
        Ok(())
    }

    /// Whether the newest note is this one.
    pub(super) fn holds(&self, known: &Known) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let (count, kept) =
            newest(&self.read(file)?, self.volume).map_err(|why| self.unreadable(why))?;
        Ok(count == self.count && kept == *known)
    }

    fn read(&self, file: &File) -> Result<Vec<u8>> {
        let mut bytes = vec![0; 2 * NOTE];
        let mut held = 0;
        while held < bytes.len() {
            match file.read_at(&mut bytes[held..], held as u64) {
                Ok(0) => break,
                Ok(read) => held += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.unreadable(&error.to_string())),
            }
        }
        bytes.truncate(held);
        Ok(bytes)
    }

    /// The note of a version before 2: a commit, and separately the number of syncs on it.
    fn version_1(&self, bytes: &[u8]) -> Result<Known> {
        let text = std::str::from_utf8(bytes).map_err(|_| self.unreadable("it is no text"))?;
        let known = parse_1(text, self.volume).map_err(|why| self.unreadable(why))?;
        let mut line = String::new();
        // A torn note of syncs says nothing.
        if let Ok(file) = File::open(self.path.with_extension("syncs")) {
            let _ = file.take(NOTE as u64).read_to_string(&mut line);
        }
        let syncs = line.trim_end().rsplit(' ').next().and_then(|count| count.parse().ok());
        let noted = syncs.filter(|syncs| syncs_line(&known, *syncs) == line).unwrap_or(0);
        Ok(Known { log: LogSeen::Syncs(noted), ..known })
    }

    fn unreadable(&self, why: &str) -> oblivio_volume::Error {
        unreadable(&self.path, why)
    }
}

/// The newest valid note of the two, and its number.
fn newest(bytes: &[u8], volume: VolumeId) -> Parsed<(u64, Known)> {
    let notes = bytes.chunks(NOTE).map(|note| parse(note, volume));
    let mut best = Err("neither of its two notes is whole");
    for note in notes {
        match note {
            Ok((count, known)) => {
                if best.as_ref().is_ok_and(|(before, _)| *before > count) {
                    continue;
                }
                best = Ok((count, known));
            }
            // A whole note that is unusable is an error, never skipped.
            Err(Some(why)) => return Err(why),
            Err(None) => {}
        }
    }
    best
}

fn print(known: &Known, count: u64) -> Vec<u8> {
    let log = match known.log {
        LogSeen::Mark(LogMark { end, tag }) => format!("mark {end} {}", hex(&tag.0)),
        LogSeen::Syncs(count) => format!("syncs {count}"),
    };
    let newest = match known.newest {
        Some(Act { computer, number }) => format!("{} {number}", hex(&computer.0)),
        None => "none".into(),
    };
    let mut note = format!(
        "{MAGIC}\nvolume {}\nnote {count}\ncommit {} {}\nlog {log}\nnewest {newest}\n\
         computer {}\nended {}\n",
        known.volume,
        known.epoch,
        hex(&known.digest),
        hex(&known.computer.0),
        if known.ended { "yes" } else { "no" },
    );
    let sum = hex(&digest(note.as_bytes())[..16]);
    note.push_str(&format!("sum {sum}\n"));
    let mut note = note.into_bytes();
    debug_assert!(note.len() <= NOTE, "every field has a bound");
    note.resize(NOTE, b'\n');
    note
}

/// Parses a note; `Err(None)` for a torn one.
fn parse(note: &[u8], volume: VolumeId) -> std::result::Result<(u64, Known), Option<&'static str>> {
    let text = std::str::from_utf8(note).map_err(|_| None)?;
    let (body, sum) = text.rsplit_once("sum ").ok_or(None)?;
    if sum.trim_end() != hex(&digest(body.as_bytes())[..16]) {
        return Err(None);
    }
    let mut lines = body.lines();
    if lines.next() != Some(MAGIC) {
        return Err(Some("it is of a newer version"));
    }
    let mut field = |name: &str| {
        let line = lines.next()?;
        line.strip_prefix(name)?.strip_prefix(' ')
    };
    let of = field("volume").and_then(identity).ok_or(Some("it names no volume"))?;
    if of != volume {
        return Err(Some("it is about another volume"));
    }
    let mut rest = || {
        let count = field("note")?.parse().ok()?;
        let (epoch, digest) = field("commit")?.split_once(' ')?;
        let (epoch, digest) = (epoch.parse().ok()?, unhex(digest)?);
        let log = log(field("log")?)?;
        let newest = match field("newest")? {
            "none" => None,
            act => Some(act_of(act)?),
        };
        let computer = ComputerId(unhex(field("computer")?)?);
        let ended = field("ended")? == "yes";
        Some((count, Known { volume, epoch, digest, log, newest, computer, ended }))
    };
    rest().ok_or(Some("a line is not what it should be"))
}

fn log(text: &str) -> Option<LogSeen> {
    match text.split_once(' ')? {
        ("mark", mark) => {
            let (end, tag) = mark.split_once(' ')?;
            Some(LogSeen::Mark(LogMark { end: end.parse().ok()?, tag: Tag(unhex(tag)?) }))
        }
        ("syncs", count) => Some(LogSeen::Syncs(count.parse().ok()?)),
        _ => None,
    }
}

fn act_of(text: &str) -> Option<Act> {
    let (computer, number) = text.split_once(' ')?;
    Some(Act { computer: ComputerId(unhex(computer)?), number: number.parse().ok()? })
}

/// Parses the file of version 1.
fn parse_1(text: &str, volume: VolumeId) -> Parsed<Known> {
    let mut lines = text.lines().skip(1);
    let mut field = |name: &str| {
        let line = lines.next().ok_or("it is cut short")?;
        let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        value.ok_or("a line is not what it should be")
    };
    if field("volume")? != volume.to_string() {
        return Err("it is about another volume");
    }
    let epoch = field("epoch")?.parse().map_err(|_| "its epoch is no number")?;
    let digest = unhex(field("digest")?).ok_or("its digest is no digest")?;
    let (log, computer) = (LogSeen::Syncs(0), ComputerId::default());
    Ok(Known { volume, epoch, digest, log, newest: None, computer, ended: false })
}

/// The line about syncs that version 1 kept beside it.
fn syncs_line(known: &Known, syncs: u64) -> String {
    let digest = hex(&known.digest[..8]);
    format!("epoch {:020} digest {digest} syncs {syncs:020}\n", known.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn known() -> Known {
        let log = LogSeen::Mark(LogMark { end: u64::MAX, tag: Tag([9; 16]) });
        let newest = Some(Act { computer: ComputerId([3; 16]), number: u64::MAX });
        let (volume, digest) = (VolumeId([7; 16]), [0xa5; 32]);
        let computer = ComputerId([1; 16]);
        Known { volume, epoch: u64::MAX, digest, log, newest, computer, ended: true }
    }

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let (mut record, none) = Record::open(dir.path(), known().volume)?;
        assert_eq!(none, None);
        for at in 0..5 {
            let now = Known { epoch: at, ended: at % 2 == 0, newest: None, ..known() };
            record.write(&now, if at == 2 { Keep::Durable } else { Keep::Soon })?;
            assert!(record.holds(&now)?);
            assert_eq!(Record::open(dir.path(), known().volume)?.1, Some(now));
        }
        record.write(&known(), Keep::Soon)?;
        assert_eq!(Record::open(dir.path(), known().volume)?.1, Some(known()));
        assert_eq!(fs::metadata(&record.path).expect("there").len(), 2 * NOTE as u64);
        Ok(())
    }

    #[test]
    fn a_torn_note_leaves_the_one_before_it() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let (mut record, _) = Record::open(dir.path(), known().volume)?;
        let before = Known { epoch: 1, ..known() };
        record.write(&before, Keep::Soon)?;
        record.write(&known(), Keep::Soon)?;
        let whole = fs::read(&record.path).expect("there");
        let place = record.count as usize % 2 * NOTE;
        let length = whole[place..place + NOTE].iter().rposition(|&b| b != b'\n').expect("text");
        for at in 0..=length {
            let mut torn = whole.clone();
            torn[place + at..place + NOTE].fill(0);
            fs::write(&record.path, &torn).expect("written");
            assert_eq!(Record::open(dir.path(), known().volume)?.1, Some(before), "{at}");
        }
        Ok(())
    }

    #[test]
    fn anything_else_is_no_first_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(known().volume.to_string());
        let other = print(&Known { volume: VolumeId([8; 16]), ..known() }, 1);
        let newer =
            String::from_utf8(print(&known(), 1)).expect("text").replace("known 2", "known 3");
        let (body, _) = newer.rsplit_once("sum ").expect("a sum");
        let newer = format!("{body}sum {}\n", hex(&digest(body.as_bytes())[..16])).into_bytes();
        for bytes in [vec![], vec![0; 2 * NOTE], b"oblivio-seen 1\nvolume".to_vec(), other, newer] {
            fs::write(&path, &bytes).expect("written");
            let opened = Record::open(dir.path(), known().volume);
            assert!(matches!(opened, Err(oblivio_volume::Error::Forgotten(_))));
        }
    }

    #[test]
    fn what_version_1_noted_is_read_and_replaced() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join(known().volume.to_string());
        let old = Known { epoch: 12, log: LogSeen::Syncs(0), newest: None, ..known() };
        let old = Known { computer: ComputerId::default(), ended: false, ..old };
        let digest = hex(&old.digest);
        let text = format!("{MAGIC_1}\nvolume {}\nepoch 12\ndigest {digest}\n", old.volume);
        fs::write(&path, &text).expect("written");
        assert_eq!(Record::open(dir.path(), old.volume)?.1, Some(old));
        fs::write(path.with_extension("syncs"), syncs_line(&old, 7)).expect("written");
        let (mut record, read) = Record::open(dir.path(), old.volume)?;
        assert_eq!(read, Some(Known { log: LogSeen::Syncs(7), ..old }));
        record.write(&known(), Keep::Soon)?;
        assert_eq!(Record::open(dir.path(), old.volume)?.1, Some(known()));
        Ok(())
    }
}
