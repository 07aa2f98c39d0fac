//! The files of a volume, into a new one.

use super::places::{accepting, opened, tell};
use super::requests::Counted;
use super::target::{AT_ITS_END, FilesTo, refuse_disk};
use crate::args::MigrateArgs;
use crate::exit::{Code, fault};
use crate::human::{count, size};
use crate::lost::DamagedFiles;
use crate::open;
use crate::progress::Progress;
use anyhow::Result;
use oblivio_app::moving::{FilesCopy, Moved};
use oblivio_app::place::{self, Made};
use oblivio_crypto::Passphrase;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{BlockSpace, Error, NewVolume, Volume, disk};

/// Copies them into the volume at the new place, and ends both sessions.
pub fn run(
    args: &MigrateArgs,
    passphrase: &Passphrase,
    from: &Counted,
    into: FilesTo,
) -> Result<()> {
    let old = opened(from, &args.from, &args.open, passphrase)?;
    let volume = old.known().volume;
    let old = files(old)?;
    let to = match into {
        FilesTo::There(store) => Counted::over(store),
        FilesTo::New(new) => make(args, passphrase, new)?,
    };
    let new = opened(&to, &args.to, &accepting(args), passphrase)?;
    let new = if has_nothing(&new)? { FileSystem::format(Box::new(new))? } else { files(new)? };
    [&old, &new].into_iter().for_each(|fs| fs.set_clock(Box::new(open::now)));
    let mut progress = Progress::bytes(args.open.quiet, Some(0));
    let mut hear = |moved: Moved| progress.at(moved.bytes, moved.total.unwrap_or(0));
    let begun = FilesCopy::begin(&old, volume, &new, &mut hear).map_err(|error| match error {
        Error::Exists(what) => fault(Code::Path, format!("{what}: already exists"), AT_ITS_END),
        error => error.into(),
    });
    let done = begun?.run()?;
    drop(progress);
    new.into_blocks()?;
    old.into_blocks()?;
    let mut what = format!(
        "Copied {} and {}, {}",
        count(done.copied, "file"),
        count(done.directories, "directory"),
        size(done.bytes)
    );
    if done.kept > 0 {
        what += &format!(" ({} of an earlier try were there)", done.kept);
    }
    tell(args, &what, (from, done.lost.is_empty()), &to)?;
    let mut lost = DamagedFiles::default();
    for damaged in done.lost {
        lost.take(damaged.what.clone(), Error::Lost(damaged).into())?;
    }
    lost.finish(done.copied + done.kept, "were copied")
}

/// Makes a volume without files at the new place.
fn make(args: &MigrateArgs, passphrase: &Passphrase, new: NewVolume) -> Result<Counted> {
    let made = match place::is_online(&args.to) {
        true => Made::at_url(&args.to)?,
        false => Made::in_folder(&args.to)?,
    };
    let counted = Counted::over(made.store());
    let options = open::options(&args.to, &accepting(args), None)?;
    let volume = new.create(counted.store.clone(), passphrase, options, &mut |_, _| {});
    let formatted = volume.and_then(|it| FileSystem::format(Box::new(it))?.into_blocks());
    if let Err(error) = formatted {
        made.undo();
        return Err(error.into());
    }
    Ok(counted)
}

/// Whether an earlier run made this volume, and was cut off before it had a file system.
fn has_nothing(volume: &Volume) -> Result<bool> {
    Ok(volume.root().is_empty() && volume.info()?.live_blocks == Some(0))
}

fn files(volume: Volume) -> Result<FileSystem> {
    if disk::size_in(volume.root())?.is_some() {
        return Err(refuse_disk());
    }
    Ok(FileSystem::open(Box::new(volume))?)
}
