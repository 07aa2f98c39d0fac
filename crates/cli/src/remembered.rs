//! What this computer remembers of the volumes it has seen.
//!
//! One small text file for each volume holds the number and digest of the last commit. It is
//! what tells a volume that somebody set back to an older state from the one that was left; so
//! an unreadable file is an error and not a first time.

use crate::exit::{Code, fault};
use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_crypto::VolumeId;
use oblivio_volume::Seen;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first line of the file; the number is the format's version.
const MAGIC: &str = "oblivio-seen 1";
/// The file is about 130 bytes; what is longer is something else.
const MAX_LEN: u64 = 4096;

/// The file of one volume.
#[derive(Clone, Debug)]
pub struct Remembered {
    path: PathBuf,
    volume: VolumeId,
}

impl Remembered {
    /// The file of this volume, which need not exist.
    pub fn of(volume: VolumeId) -> Result<Self> {
        let xdg = Xdg::new().map_err(|_| {
            let hint = "Set HOME or XDG_STATE_HOME.";
            fault(Code::General, "there is no home directory to remember the volume in", hint)
        })?;
        let state = xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state"));
        Ok(Self { path: state.join("oblivio").join(volume.to_string()), volume })
    }

    /// What was seen last, `None` the first time.
    pub fn load(&self) -> Result<Option<Seen>> {
        let text = match read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.unreadable(&error.to_string())),
        };
        match parse(&text, self.volume) {
            Ok(seen) => Ok(Some(Seen { syncs: self.syncs_since(&seen), ..seen })),
            Err(why) => Err(self.unreadable(why)),
        }
    }

    /// Remembers a commit; after a crash it is this one or the one before. Syncs between commits
    /// are noted in a file beside it, by one small write: a sync must be quick, and it is enough
    /// that the note survives the process.
    pub fn store(&self, seen: &Seen) -> std::io::Result<()> {
        if seen.syncs > 0 {
            let mut options = File::options();
            let file =
                options.write(true).create(true).truncate(false).mode(0o600).open(self.syncs())?;
            return file.write_all_at(syncs_line(seen).as_bytes(), 0);
        }
        let dir = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let mut file = tempfile::Builder::new().prefix(".seen-").tempfile_in(dir)?;
        file.write_all(print(seen).as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        File::open(dir)?.sync_all()
    }

    fn syncs(&self) -> PathBuf {
        self.path.with_extension("syncs")
    }

    /// Syncs that were noted since this commit. A note that is not whole tells nothing.
    fn syncs_since(&self, seen: &Seen) -> u64 {
        let text = read(&self.syncs()).unwrap_or_default();
        let syncs = text.trim_end().rsplit(' ').next().and_then(|syncs| syncs.parse().ok());
        let noted = syncs.map(|syncs| Seen { syncs, ..*seen });
        noted.filter(|noted| syncs_line(noted) == text).map_or(0, |noted| noted.syncs)
    }

    fn unreadable(&self, why: &str) -> anyhow::Error {
        let path = self.path.display();
        let hint = format!(
            "If you delete {path}, the volume opens as if for the first time, and a rollback \
             before that goes unnoticed."
        );
        fault(Code::General, format!("what was last seen of the volume is unreadable: {why}"), hint)
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    if fs::metadata(path)?.len() > MAX_LEN {
        return Err(std::io::Error::new(ErrorKind::InvalidData, "the file is too long"));
    }
    fs::read_to_string(path)
}

fn print(seen: &Seen) -> String {
    let digest: String = seen.digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{MAGIC}\nvolume {}\nepoch {}\ndigest {digest}\n", seen.volume, seen.epoch)
}

/// The note of syncs, of the same length each time: it is written over in place.
fn syncs_line(seen: &Seen) -> String {
    let digest: String = seen.digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("epoch {:020} digest {digest} syncs {:020}\n", seen.epoch, seen.syncs)
}

fn parse(text: &str, volume: VolumeId) -> Result<Seen, &'static str> {
    let mut lines = text.lines();
    match lines.next() {
        Some(MAGIC) => {}
        Some(line) if line.starts_with("oblivio-seen ") => return Err("it is of a newer version"),
        _ => return Err("it does not begin as it should"),
    }
    let mut field = |name: &str| {
        let line = lines.next().ok_or("it is cut short")?;
        let value = line.strip_prefix(name).and_then(|rest| rest.strip_prefix(' '));
        value.ok_or("a line is not what it should be")
    };
    if field("volume")? != volume.to_string() {
        return Err("it is about another volume");
    }
    let epoch = field("epoch")?.parse().map_err(|_| "its epoch is no number")?;
    let digest = digest(field("digest")?).ok_or("its digest is no digest")?;
    Ok(Seen { volume, epoch, digest, syncs: 0 })
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// What the volume calls after each commit. Its errors know no files but the store's.
pub fn callback() -> oblivio_volume::OnCommit {
    Box::new(|seen| {
        note(seen).map_err(|error| {
            let what = format!("this computer cannot remember the volume: {error:#}");
            oblivio_volume::Error::Invalid(what)
        })
    })
}

/// Remembers a commit of any volume.
pub fn note(seen: &Seen) -> Result<()> {
    let remembered = Remembered::of(seen.volume)?;
    remembered.store(seen).with_context(|| format!("writing {}", remembered.path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Seen {
        Seen { volume: VolumeId([7; 16]), epoch: 12, digest: [0xa5; 32], syncs: 0 }
    }

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("deep").join("file");
        let remembered = Remembered { path, volume: seen().volume };
        assert_eq!(remembered.load()?, None);
        remembered.store(&seen())?;
        assert_eq!(remembered.load()?, Some(seen()));
        let synced = Seen { syncs: 7, ..seen() };
        remembered.store(&synced)?;
        assert_eq!(remembered.load()?, Some(synced));
        let later = Seen { epoch: 13, ..seen() };
        remembered.store(&later)?;
        assert_eq!(remembered.load()?, Some(later));
        assert_eq!(fs::read_dir(dir.path().join("deep"))?.count(), 2);
        Ok(())
    }

    #[test]
    fn anything_else_is_refused() {
        let good = print(&seen());
        assert_eq!(parse(&good, seen().volume), Ok(seen()));
        for cut in 0..good.len() - 1 {
            assert!(parse(&good[..cut], seen().volume).is_err(), "{cut}");
        }
        assert!(parse(&good.replace("seen 1", "seen 2"), seen().volume).is_err());
        assert!(parse(&good.replace("12", "-1"), seen().volume).is_err());
        assert!(parse(&good, VolumeId([8; 16])).is_err());
    }
}
