//! What a note on a volume says, as lines of text.

use super::lines::{WRONG_LINE, framed, unframed};
use oblivio_crypto::{Tag, VolumeId, hex, unhex};
use oblivio_volume::notes::{NOTE_BYTES, NoteFormat, Parsed};
use oblivio_volume::{Act, ComputerId, Known, LogMark, LogSeen, SessionHint};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The first line of a note; the number is the format's version.
const MAGIC: &str = "oblivio-known 2";
/// The first line of the file in versions before 2.
const MAGIC_1: &str = "oblivio-seen 1";

/// The form of the notes on one volume.
pub(super) struct Lines(pub VolumeId);

impl NoteFormat for Lines {
    type Note = Known;

    fn encode(&self, number: u64, known: &Known) -> [u8; NOTE_BYTES] {
        framed(MAGIC, (self.0, number), &print(known))
    }

    fn decode(&self, bytes: &[u8]) -> Parsed<Option<(u64, Known)>> {
        parse(bytes, self.0)
    }

    /// Version 1: a commit, and in a file beside it the number of syncs on it.
    fn decode_earlier(&self, path: &Path, bytes: &[u8]) -> Option<Parsed<Known>> {
        let is_one = bytes.starts_with(MAGIC_1.as_bytes());
        is_one.then(|| {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
            let known = parse_1(text, self.0)?;
            let mut line = String::new();
            // A torn note of syncs says nothing.
            if let Ok(file) = File::open(path.with_extension("syncs")) {
                let _ = file.take(NOTE_BYTES as u64).read_to_string(&mut line);
            }
            let syncs = line.trim_end().rsplit(' ').next().and_then(|count| count.parse().ok());
            let noted = syncs.filter(|syncs| syncs_line(&known, *syncs) == line).unwrap_or(0);
            Ok(Known { log: LogSeen::Syncs(noted), ..known })
        })
    }
}

fn print(known: &Known) -> String {
    let log = match known.log {
        LogSeen::Mark(LogMark { end, tag }) => format!("mark {end} {}", hex(&tag.0)),
        LogSeen::Syncs(count) => format!("syncs {count}"),
    };
    let newest = match known.newest {
        Some(Act { computer, number }) => format!("{} {number}", hex(&computer.0)),
        None => "none".into(),
    };
    let session = known.session.map(|it| {
        let SessionHint { number, random, pointer, entry, last } = it;
        format!("session {number} {random:016x} {pointer} {entry} {last}\n")
    });
    format!(
        "commit {} {}\nlog {log}\nnewest {newest}\ncomputer {}\nended {}\n{}",
        known.epoch,
        hex(&known.digest),
        hex(&known.computer.0),
        if known.ended { "yes" } else { "no" },
        session.unwrap_or_default(),
    )
}

/// Parses a note; `None` for a torn one.
fn parse(note: &[u8], volume: VolumeId) -> Parsed<Option<(u64, Known)>> {
    let Some((count, mut lines)) = unframed(MAGIC, volume, note)? else { return Ok(None) };
    let mut rest = || {
        let (epoch, digest) = lines.field("commit")?.split_once(' ')?;
        let (epoch, digest) = (epoch.parse().ok()?, unhex(digest)?);
        let log = log(lines.field("log")?)?;
        let newest = match lines.field("newest")? {
            "none" => None,
            act => Some(act_of(act)?),
        };
        let computer = ComputerId(unhex(lines.field("computer")?)?);
        let ended = lines.field("ended")? == "yes";
        // Of an earlier version, and of other volumes, there is none.
        let session = lines.field("session").and_then(session);
        Some((count, Known { volume, epoch, digest, log, newest, computer, ended, session }))
    };
    rest().map(Some).ok_or(WRONG_LINE)
}

fn session(text: &str) -> Option<SessionHint> {
    let mut words = text.split(' ');
    let number = words.next()?.parse().ok()?;
    let random = u64::from_str_radix(words.next()?, 16).ok()?;
    let mut next = || words.next()?.parse().ok();
    Some(SessionHint { number, random, pointer: next()?, entry: next()?, last: next()? })
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
    let (newest, ended, session) = (None, false, None);
    Ok(Known { volume, epoch, digest, log, newest, computer, ended, session })
}

/// The line about syncs that version 1 kept beside it.
fn syncs_line(known: &Known, syncs: u64) -> String {
    let digest = hex(&known.digest[..8]);
    format!("epoch {:020} digest {digest} syncs {syncs:020}\n", known.epoch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::digest;
    use oblivio_volume::notes::TwoNotes;
    use oblivio_volume::{Error, Keep, Result};
    use std::fs;
    use std::path::PathBuf;

    fn known() -> Known {
        let log = LogSeen::Mark(LogMark { end: u64::MAX, tag: Tag([9; 16]) });
        let newest = Some(Act { computer: ComputerId([3; 16]), number: u64::MAX });
        let (volume, digest) = (VolumeId([7; 16]), [0xa5; 32]);
        let computer = ComputerId([1; 16]);
        let (epoch, ended, session) = (u64::MAX, true, None);
        Known { volume, epoch, digest, log, newest, computer, ended, session }
    }

    fn open(path: &Path) -> Result<(TwoNotes<Lines>, Option<Known>)> {
        TwoNotes::open(path.to_owned(), Lines(known().volume))
    }

    fn place(dir: &tempfile::TempDir) -> PathBuf {
        dir.path().join(known().volume.to_string())
    }

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = place(&dir);
        let (mut record, none) = open(&path)?;
        assert_eq!(none, None);
        for at in 0..5 {
            let now = Known { epoch: at, ended: at % 2 == 0, newest: None, ..known() };
            record.write(&now, if at == 2 { Keep::Durable } else { Keep::Soon })?;
            assert!(record.holds(&now)?);
            assert_eq!(open(&path)?.1, Some(now));
        }
        record.write(&known(), Keep::Soon)?;
        assert_eq!(open(&path)?.1, Some(known()));
        let [pointer, entry, last] = [u32::MAX, u32::MAX - 1, u32::MAX - 2].map(u64::from);
        let number = (1 << 48) - 1;
        let session = SessionHint { number, random: u64::MAX, pointer, entry, last };
        let of_session = Known { session: Some(session), ..known() };
        record.write(&of_session, Keep::Soon)?;
        assert_eq!(open(&path)?.1, Some(of_session));
        assert_eq!(fs::metadata(&path).expect("there").len(), 2 * NOTE_BYTES as u64);
        Ok(())
    }

    #[test]
    fn a_torn_note_leaves_the_one_before_it() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = place(&dir);
        let (mut record, _) = open(&path)?;
        let before = Known { epoch: 1, ..known() };
        record.write(&before, Keep::Soon)?;
        record.write(&known(), Keep::Soon)?;
        let whole = fs::read(&path).expect("there");
        // The second note is in the first place.
        let length = whole[..NOTE_BYTES].iter().rposition(|&b| b != b'\n').expect("text");
        for at in 0..=length {
            let mut torn = whole.clone();
            torn[at..NOTE_BYTES].fill(0);
            fs::write(&path, &torn).expect("written");
            assert_eq!(open(&path)?.1, Some(before), "{at}");
        }
        Ok(())
    }

    #[test]
    fn anything_else_is_no_first_time() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = place(&dir);
        let (text, volume) = (print(&known()), known().volume);
        let other = framed(MAGIC, (VolumeId([8; 16]), 1), &text).to_vec();
        let newer = framed("oblivio-known 3", (volume, 1), &text).to_vec();
        let old = b"oblivio-seen 1\nvolume".to_vec();
        for bytes in [vec![], vec![0; 2 * NOTE_BYTES], old, other, newer] {
            fs::write(&path, &bytes).expect("written");
            assert!(matches!(open(&path), Err(Error::Forgotten(_))));
        }
    }

    #[test]
    fn what_version_1_noted_is_read_and_replaced() -> Result<()> {
        let dir = tempfile::tempdir().expect("a folder");
        let path = place(&dir);
        let old = Known { epoch: 12, log: LogSeen::Syncs(0), newest: None, ..known() };
        let old = Known { computer: ComputerId::default(), ended: false, ..old };
        let digest = hex(&old.digest);
        let text = format!("{MAGIC_1}\nvolume {}\nepoch 12\ndigest {digest}\n", old.volume);
        fs::write(&path, &text).expect("written");
        assert_eq!(open(&path)?.1, Some(old));
        fs::write(path.with_extension("syncs"), syncs_line(&old, 7)).expect("written");
        let (mut record, read) = open(&path)?;
        assert_eq!(read, Some(Known { log: LogSeen::Syncs(7), ..old }));
        record.write(&known(), Keep::Soon)?;
        assert_eq!(open(&path)?.1, Some(known()));
        Ok(())
    }

    /// The bytes are those of docs/format.md, whatever wrote them.
    #[test]
    fn a_note_is_what_it_always_was() {
        let text = format!(
            "oblivio-known 2\nvolume {v}\nnote 3\ncommit {m} {a}\nlog mark {m} {n}\n\
             newest {t} {m}\ncomputer {o}\nended yes\n",
            m = u64::MAX,
            v = "07".repeat(16),
            a = "a5".repeat(32),
            n = "09".repeat(16),
            t = "03".repeat(16),
            o = "01".repeat(16),
        );
        let sum = hex(&digest(text.as_bytes())[..16]);
        let mut stored = format!("{text}sum {sum}\n").into_bytes();
        stored.resize(NOTE_BYTES, b'\n');
        assert_eq!(Lines(known().volume).encode(3, &known()).to_vec(), stored);
    }
}
