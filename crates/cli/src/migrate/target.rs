//! The new place: what can be done there.

use super::requests::Counted;
use crate::args::MigrateArgs;
use crate::exit::{Code, fault, usage};
use crate::human::say;
use crate::open;
use anyhow::Result;
use oblivio_app::moving::{ClaimForm, ObjectCopy};
use oblivio_app::online::{Begin, Effort, ProbeVerdict, shape, try_out};
use oblivio_app::place;
use oblivio_store::{AnyStore, Held};
use oblivio_volume::{NewVolume, PublicHeader, SeenBy, has_header};
use std::path::Path;

/// Advice when a volume is at the new place.
pub const AT_ITS_END: &str = "If an earlier run was cut off at its very end, the copy is whole: \
     look with `oblivio check` and `oblivio ls -l`. Otherwise choose another place.";

/// What a volume becomes at the new place.
pub enum NewHome {
    /// Objects, as they are.
    Objects(AnyStore),
    /// Files.
    Files(FilesTo),
}

/// The volume that files get into.
pub enum FilesTo {
    /// One that is there.
    There(AnyStore),
    /// A new one.
    New(NewVolume),
}

impl NewHome {
    /// Looks at the new place, and tries it out if it is at a URL.
    pub fn find(args: &MigrateArgs, header: &PublicHeader, from: &Counted) -> Result<Self> {
        if !place::is_online(&args.to) {
            return folder(args, header);
        }
        let store = open::store(&args.to)?;
        if has_header(&store)? {
            if ObjectCopy::is_copy(&from.store, &store)? {
                let what = "there is a copy of this volume at the new place already";
                return Err(fault(Code::Path, what, AT_ITS_END));
            }
            return Ok(Self::Files(FilesTo::There(store)));
        }
        let verdict = probed(args)?;
        // Objects that are written once are alike in all stores of whole objects.
        if !from.store.capabilities().writes_over {
            match ObjectCopy::claims(&from.store)? {
                Some(claims) if fits(claims, &verdict) => return Ok(Self::Objects(store)),
                _ if args.open.quiet => {}
                _ => say(
                    "Sessions begin in another way at the new place: the files are copied, into a \
                     new volume.",
                )?,
            }
        }
        let shape = shape(&args.to.to_string_lossy())?;
        let exclusive = verdict.begin == Begin::Exclusive;
        let (size, kdf) = (header.capacity_bytes, args.kdf.params()?);
        let new = NewVolume::on_windows(shape.block_bytes, size, exclusive, kdf)
            .with_objects_of(shape.object_bytes);
        Ok(Self::Files(FilesTo::New(new)))
    }
}

fn folder(args: &MigrateArgs, header: &PublicHeader) -> Result<NewHome> {
    if holds_something(&args.to) {
        return Ok(NewHome::Files(FilesTo::There(open::store(&args.to)?)));
    }
    let (size, kdf) = (header.capacity_bytes, args.kdf.params()?);
    let new = NewVolume::new(SeenBy::Storage, SeenBy::Storage.block_bytes(), size, kdf);
    Ok(NewHome::Files(FilesTo::New(new)))
}

fn holds_something(to: &Path) -> bool {
    match to.read_dir() {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => to.exists(),
    }
}

fn probed(args: &MigrateArgs) -> Result<ProbeVerdict> {
    if !args.open.quiet {
        say("Trying out what the new store does: races, lists and speed. It takes a moment ...")?;
    }
    let effort = Effort::of(args.small_probe);
    let verdict = try_out(&args.to.to_string_lossy(), effort)?;
    if !args.open.quiet {
        verdict.lines().iter().try_for_each(|line| say(format!("  {line}")))?;
    }
    match &verdict.begin {
        Begin::Refused(why) => {
            let what = format!("the new store cannot hold a volume: {why}");
            Err(fault(Code::Refused, what, "Choose another service; nothing was copied."))
        }
        _ => Ok(verdict),
    }
}

/// Whether sessions that begin so can begin there.
fn fits(claims: ClaimForm, verdict: &ProbeVerdict) -> bool {
    match claims {
        ClaimForm::Created => verdict.begin == Begin::Exclusive,
        ClaimForm::Listed => verdict.listed.lost == 0 && verdict.alone.several_won == 0,
    }
}

/// Refuses a disk, whose bytes are no files.
pub fn refuse_disk() -> anyhow::Error {
    usage(
        "the volume holds a disk, and sealed objects cannot be copied between these places",
        "Make a disk of its size at the new place, serve both with `oblivio nbd`, and copy one to \
         the other with any program.",
    )
}
