//! How the command ends: one exit code, one line that says what happened, one that says what to do.
//!
//! Scripts rely on the codes: none ever gets a second meaning.

mod code;
#[cfg(feature = "online")]
mod remotes;
mod servers;
mod share;

pub use code::Code;

use anyhow::Error;
use oblivio_store::StoreError;
use oblivio_volume::Error as VolumeError;
use std::fmt;
use std::io;

/// A failure of the command itself, with its code and advice.
#[derive(Debug)]
pub struct CommandFault {
    pub code: Code,
    pub what: String,
    pub hint: String,
}

impl fmt::Display for CommandFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for CommandFault {}

/// A failure with its advice; `hint` may be empty.
pub fn fault(code: Code, what: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(CommandFault { code, what: what.into(), hint: hint.into() })
}

/// A command line that makes no sense.
pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Error {
    fault(Code::Usage, what, hint)
}

/// The code and the advice for an error.
pub fn judge(error: &Error) -> (Code, String) {
    for cause in error.chain() {
        if let Some(fault) = cause.downcast_ref::<CommandFault>() {
            return (fault.code, fault.hint.clone());
        }
        if let Some(judged) = cause.downcast_ref().and_then(servers::judge) {
            return judged;
        }
        if let Some(judged) = cause.downcast_ref().and_then(share::judge) {
            return judged;
        }
        #[cfg(feature = "online")]
        if let Some(error) = cause.downcast_ref() {
            let (code, hint) = remotes::judge(error);
            return (code, hint.into());
        }
        if let Some(error) = cause.downcast_ref::<VolumeError>() {
            let (code, hint) = of_volume(error);
            return (code, hint.into());
        }
        if let Some(error) = cause.downcast_ref::<StoreError>() {
            let (code, hint) = of_store(error);
            return (code, hint.into());
        }
        if let Some(error) = cause.downcast_ref::<io::Error>() {
            let (code, hint) = of_io(error.kind());
            return (code, hint.into());
        }
    }
    (Code::General, String::new())
}

fn of_volume(error: &VolumeError) -> (Code, &'static str) {
    use VolumeError as E;
    match error {
        E::Lost(_) => (Code::Lost, "`oblivio check` tells more. All else can be read."),
        E::NotFound(_) => (Code::Path, "`oblivio ls VOLUME /` shows what is there."),
        E::Exists(_) => (Code::Path, "Choose another name, or remove what is there first."),
        E::NotADirectory(_) => (Code::Path, "Name a directory, or leave out the last part."),
        E::IsADirectory(_) => (Code::Path, "Add -r to work on a whole directory."),
        E::NotEmpty(_) => (Code::Path, "Remove what is in it first, or use `oblivio rm -r`."),
        E::Invalid(_) | E::NameTooLong(_) | E::TooLarge(_) | E::TooManyLinks(_) => {
            (Code::General, "")
        }
        E::WrongPassphrase => (
            Code::Passphrase,
            "Try again; capitals, spaces and accents count. Nothing was changed.",
        ),
        E::Unsupported(_) => (
            Code::NotAVolume,
            "Check the folder's name, or update oblivio if a newer version made the volume.",
        ),
        E::HoldsDisk => (
            Code::NotAVolume,
            "Serve it and use it like any disk: oblivio nbd VOLUME --socket PATH",
        ),
        E::HoldsFiles => (
            Code::NotAVolume,
            "Mount it: oblivio mount VOLUME DIR. A disk is made by `oblivio init --disk SIZE`.",
        ),
        E::Tampered(_) => (
            Code::Tampered,
            "Nothing wrong was handed out. `oblivio check VOLUME` tells more; restore a backup if \
             it is not clean.",
        ),
        E::RolledBack(_) => (
            Code::RolledBack,
            "If you restored a backup yourself, say so with --accept-rollback. If not, somebody \
             put an old copy in place.",
        ),
        E::OtherVolume(_) => (
            Code::OtherVolume,
            "If you put it there yourself, say so with --accept-other-volume. If not, somebody put \
             one volume in the place of another.",
        ),
        E::Forgotten(_) => (
            Code::General,
            "If you delete the file, the volume opens as if for the first time, and a rollback \
             before that goes unnoticed.",
        ),
        // The error itself says what is full, and what helps.
        E::Full(_) => {
            (Code::Full, "What was stored before is intact, and nothing half done was left.")
        }
        E::Busy => (Code::Busy, "Wait until the other oblivio is done, or unmount it."),
        E::Held(_) => (
            Code::Busy,
            "That computer was asked, and goes on with its work. End it there, or take the volume \
             with --take-over: what that one has not synced is lost then.",
        ),
        E::Overtaken => (
            Code::Overtaken,
            "What was synced before is safe. Open the volume again to go on from what the other \
             computer made.",
        ),
        E::StillToCome(_) | E::Parted(_) => of_synced_folder(error),
        E::Closed(_) => (Code::General, "Run the command again."),
        E::Store(error) => of_store(error),
    }
}

/// For a folder that a sync client copies.
fn of_synced_folder(error: &VolumeError) -> (Code, &'static str) {
    match error {
        VolumeError::Parted(_) => (
            Code::Parted,
            "Look at one with --history NAME, which changes nothing; then choose: oblivio pick \
             VOLUME NAME. The other one is kept until you drop it.",
        ),
        _ => (
            Code::StillToCome,
            "Wait until your sync client is done; a computer that holds the files puts them back when \
             it opens the volume. To go on from an older epoch that is whole, say --older; if \
             something is written then, there will be two histories. To read what is there, say \
             --incomplete.",
        ),
    }
}

/// For a volume on a place that cannot be written.
const READ_ONLY: &str = "Nothing can be written there, and reading a volume writes to it: that hides what is \
                         read. Copy it to a disk; or, if nobody sees what is read there, say --unobserved.";

fn of_store(error: &StoreError) -> (Code, &'static str) {
    match error {
        StoreError::Full => (Code::Full, "Free some space where the volume is and try again."),
        StoreError::Busy => (Code::Busy, "Wait until the other oblivio is done, or unmount it."),
        StoreError::Exists { .. } => (Code::Path, "Choose an empty or a new folder."),
        StoreError::Occupied { .. } => {
            (Code::Path, "Choose another place, or say --overwrite if what is there may be lost.")
        }
        StoreError::Missing { .. } | StoreError::Short { .. } => {
            (Code::Tampered, "A part of the volume is gone. Restore it from a backup.")
        }
        StoreError::Io { source, .. } if source.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            (Code::General, READ_ONLY)
        }
        error if error.is_offline() => (
            Code::Offline,
            "Check the network, and whether the service is up; then try again. What was \
             acknowledged is safe.",
        ),
        StoreError::Io { source, .. }
            if error.is_refused() && source.kind() == io::ErrorKind::InvalidData =>
        {
            (
                Code::Refused,
                "Nothing was sent. Check the URL; a certificate or a host key of your own has to be known to \
                 this computer: see docs/online.md.",
            )
        }
        error if error.is_refused() => (
            Code::Refused,
            "Check the credentials, what they permit, and the URL: see docs/online.md.",
        ),
        StoreError::Io { source, .. } => match of_io(source.kind()) {
            (code, "") => (code, "Check the disk or the connection and try again."),
            known => known,
        },
    }
}

fn of_io(kind: io::ErrorKind) -> (Code, &'static str) {
    use io::ErrorKind as K;
    match kind {
        K::NotFound => (Code::Path, "Check the path."),
        K::AlreadyExists => (Code::Path, "Choose another name, or remove what is there first."),
        K::PermissionDenied => (Code::General, "Check who may read and write there."),
        K::StorageFull | K::QuotaExceeded => (Code::Full, "Free some space and try again."),
        K::BrokenPipe => (Code::Pipe, ""),
        _ => (Code::General, ""),
    }
}

/// What happened, on one line: the causes from the outermost in, without repetition.
pub fn line(error: &Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            // The name of a remote ends so.
            text = format!("{}: {cause}", text.trim_end_matches(':'));
        }
    }
    crate::human::plain(&text)
}

/// Whether the error ends the whole command, not only this file.
pub fn fatal(error: &Error) -> bool {
    matches!(judge(error).0, Code::Pipe | Code::Full) || volume_failed(error)
}

/// Whether the volume itself has failed and its session cannot end in order. A full volume has not:
/// earlier content stays, and only what did not fit is gone.
pub fn volume_failed(error: &Error) -> bool {
    error.chain().any(|cause| match cause.downcast_ref::<VolumeError>() {
        Some(error) => matches!(
            error,
            VolumeError::Closed(_)
                | VolumeError::Tampered(_)
                | VolumeError::RolledBack(_)
                | VolumeError::OtherVolume(_)
                | VolumeError::Forgotten(_)
                | VolumeError::Busy
                | VolumeError::Held(_)
                | VolumeError::Overtaken
                | VolumeError::StillToCome(_)
                | VolumeError::Parted(_)
                | VolumeError::Store(_)
        ),
        None => false,
    })
}

/// Whether the store did not answer as it should: nothing more is asked of it.
pub fn store_failed(error: &Error) -> bool {
    error
        .chain()
        .any(|cause| matches!(cause.downcast_ref::<VolumeError>(), Some(VolumeError::Store(_))))
}

/// Counts failures while the rest goes on.
#[derive(Debug, Default)]
pub struct Failures {
    count: u64,
    only: Option<Error>,
}

impl Failures {
    /// Reports a failure and keeps it, or hands it back if it is fatal.
    pub fn note(&mut self, error: Error) -> anyhow::Result<()> {
        if fatal(&error) {
            return Err(error);
        }
        self.count += 1;
        // The first waits: if it is the only request, main reports it.
        match self.only.take() {
            None if self.count == 1 => self.only = Some(error),
            earlier => {
                earlier.iter().chain([&error]).for_each(tell);
            }
        }
        Ok(())
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends after `done` successes: all succeeded, all failed, or some failed.
    pub fn finish(self, done: u64) -> anyhow::Result<()> {
        match (self.count, self.only) {
            (0, _) => Ok(()),
            (1, Some(error)) if done == 0 => Err(error),
            (count, only) => {
                only.iter().for_each(tell);
                let what = format!("{count} could not be dealt with, {done} went well");
                Err(fault(Code::Partial, what, "The lines above name each of them."))
            }
        }
    }
}

fn tell(error: &Error) {
    eprintln!("oblivio: {}", line(error));
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn context_does_not_hide_the_code() {
        let error = Error::new(VolumeError::WrongPassphrase).context("opening");
        assert_eq!(judge(&error).0, Code::Passphrase);
        assert_eq!(line(&error), "opening: wrong passphrase");
        let of_remote = Error::new(VolumeError::WrongPassphrase).context("cloud:");
        assert_eq!(line(&of_remote), "cloud: wrong passphrase");
        let full = Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("a.txt");
        assert_eq!(judge(&full.expect_err("an error")).0, Code::Full);
    }

    #[test]
    fn causes_are_said_once() {
        let source = io::Error::other("cable unplugged");
        let error = VolumeError::Store(StoreError::Io { object: "slab".into(), source });
        assert_eq!(line(&Error::new(error)).matches("cable").count(), 1);
    }

    #[test]
    fn one_failure_alone_keeps_its_code() -> anyhow::Result<()> {
        let missing = || Error::new(VolumeError::NotFound("/a".into()));
        let mut failures = Failures::default();
        failures.note(missing())?;
        let alone = failures.finish(0).expect_err("a failure");
        assert_eq!(judge(&alone).0, Code::Path);
        let mut failures = Failures::default();
        failures.note(missing())?;
        assert_eq!(judge(&failures.finish(3).expect_err("a failure")).0, Code::Partial);
        assert!(Failures::default().note(VolumeError::Busy.into()).is_err());
        Ok(())
    }
}
