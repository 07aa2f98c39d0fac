//! Is a volume older than what this computer has seen of it?

use crate::options::{OpenOptions, Seen};
use crate::{Error, Result};

/// Refuses a commit that is older than, or another one than, the one that was seen last.
///
/// # Errors
/// `RolledBack`, unless the user says that a backup was restored.
pub fn refuse_older(options: &OpenOptions, now: &Seen) -> Result<()> {
    let Some(seen) = expected(options, now) else { return Ok(()) };
    if now.epoch < seen.epoch {
        return Err(Error::RolledBack(format!(
            "the volume is at commit {}, but this computer saw commit {}",
            now.epoch, seen.epoch
        )));
    }
    if now.epoch == seen.epoch && now.digest != seen.digest {
        return Err(Error::RolledBack(format!(
            "commit {} is another one than the one this computer saw",
            now.epoch
        )));
    }
    Ok(())
}

/// Refuses a commit on which fewer syncs stand than were seen on it.
///
/// # Errors
/// As [`refuse_older`].
pub fn refuse_lost_syncs(options: &OpenOptions, now: &Seen) -> Result<()> {
    let Some(seen) = expected(options, now) else { return Ok(()) };
    let same = (seen.epoch, seen.digest) == (now.epoch, now.digest);
    if same && now.syncs < seen.syncs {
        return Err(Error::RolledBack(format!(
            "the end of what was synced is missing: {} of {} syncs that this computer saw",
            seen.syncs - now.syncs,
            seen.syncs
        )));
    }
    Ok(())
}

/// What was seen of this volume, if that must still hold.
fn expected<'o>(options: &'o OpenOptions, now: &Seen) -> Option<&'o Seen> {
    let seen = options.last_seen.as_ref()?;
    (seen.volume == now.volume && !options.accept_rollback).then_some(seen)
}
