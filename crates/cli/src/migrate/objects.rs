//! The sealed objects of a volume, between two online stores.

use super::places::{accepting, opened, tell};
use super::requests::Counted;
use crate::args::MigrateArgs;
use crate::human::{count, size};
use crate::progress::Progress;
use anyhow::Result;
use oblivio_app::moving::{Moved, ObjectCopy};
use oblivio_crypto::Passphrase;
use oblivio_volume::{BlockSpace, Error};

/// Copies them while this computer has the volume, and again what its session left at its end.
pub fn run(
    args: &MigrateArgs,
    passphrase: &Passphrase,
    from: &Counted,
    to: &Counted,
) -> Result<()> {
    let mut objects = ObjectCopy::begin(&from.store, &to.store)?;
    let mut volume = opened(from, &args.from, &args.open, passphrase)?;
    let mut progress = Progress::bytes(args.open.quiet, Some(0));
    let hear = &mut |moved: Moved| progress.at(moved.bytes, moved.total.unwrap_or(0));
    let copied = objects.copy(hear);
    // Whether or not all of it was copied, the session ends in order.
    let ended = volume.finish();
    drop(volume);
    let before = copied?;
    ended?;
    // A later session may have written what is not copied.
    if objects.copy(hear)? != before {
        return Err(Error::Overtaken.into());
    }
    let done = objects.finish()?;
    drop(progress);
    // It must open there, on this computer too, which remembers its newest state.
    opened(to, &args.to, &accepting(args), passphrase)?.finish()?;
    let mut what = format!("Copied {}, {}", count(done.copied, "object"), size(done.bytes));
    if done.kept > 0 {
        what += &format!(" ({} of an earlier try were there)", done.kept);
    }
    tell(args, &what, (from, true), to)
}
