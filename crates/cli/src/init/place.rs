//! Where a volume is made: a folder, a file, or a partition.

use super::plan::{Engine, Plan};
use crate::args::{InitArgs, SeenBy};
use crate::exit::{Code, fault};
use anyhow::{Context, Result};
use oblivio_store::partition::{Existing, Place};
use oblivio_store::{LocalStore, PartitionStore, Store};
use oblivio_volume::{HEADER_BYTES, HEADER_OBJECT, read_header};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;

/// Refuses an occupied place, before any question.
pub fn refuse_what_is_there(args: &InitArgs) -> Result<()> {
    let shown = args.volume.display();
    let Ok(found) = args.volume.metadata() else { return Ok(()) };
    if !found.is_dir() {
        // The store checks the content of a file or partition when it is made.
        if found.is_file() || found.file_type().is_block_device() {
            return Ok(());
        }
        return Err(no_folder(args));
    }
    if LocalStore::open(&args.volume).is_ok_and(|store| read_header(&store).is_ok()) {
        let what = format!("there is a volume in {shown} already");
        return Err(fault(Code::Path, what, "Choose another folder; this one was left as it is."));
    }
    let mut entries = args.volume.read_dir().with_context(|| shown.to_string())?;
    if entries.next().is_some() {
        let what = format!("the folder {shown} is not empty");
        return Err(fault(Code::Path, what, "Choose a new or an empty folder."));
    }
    Ok(())
}

/// Refuses a file or partition for a volume that grows with its content.
pub fn refuse_file(args: &InitArgs, seen_by: SeenBy) -> Result<()> {
    match args.volume.metadata() {
        Ok(found) if seen_by == SeenBy::Storage && !found.is_dir() => Err(no_folder(args)),
        _ => Ok(()),
    }
}

fn no_folder(args: &InitArgs) -> anyhow::Error {
    let what = format!("{} is there already and not a folder", args.volume.display());
    fault(Code::Path, what, "Choose a new or an empty folder.")
}

/// A store made for a volume.
pub struct Made {
    pub store: Arc<dyn Store>,
    /// Whether its folder or file is new.
    new: bool,
}

impl Made {
    /// Makes the planned store.
    pub fn new(args: &InitArgs, plan: &Plan) -> Result<Self> {
        let new = !args.volume.exists();
        let in_one = args.one_file || (!new && !args.volume.is_dir());
        let store: Arc<dyn Store> = match (&plan.engine, in_one) {
            (Engine::Sequential(create), true) => {
                let objects = create.objects()?;
                let fixed = objects.iter().map(|(name, bytes)| Place::fixed(name, *bytes));
                let header = Place::new(HEADER_OBJECT, HEADER_BYTES as u64);
                let places: Vec<_> = [header].into_iter().chain(fixed).collect();
                let existing = if args.overwrite { Existing::Overwrite } else { Existing::Refuse };
                Arc::new(PartitionStore::create(&args.volume, &places, existing)?)
            }
            _ => Arc::new(LocalStore::create(&args.volume)?),
        };
        Ok(Self { store, new })
    }

    /// Removes an incomplete volume.
    pub fn undo(self, args: &InitArgs) {
        if self.new {
            // It holds only parts of this volume.
            let _ = match args.volume.is_dir() {
                true => std::fs::remove_dir_all(&args.volume),
                false => std::fs::remove_file(&args.volume),
            };
        } else if let Ok(objects) = self.store.list() {
            let names: Vec<&str> = objects.iter().map(|(name, _)| name.as_str()).collect();
            let _ = self.store.delete(&names);
        }
    }
}
