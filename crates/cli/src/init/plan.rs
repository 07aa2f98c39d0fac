//! The plan for a new volume, as far as the command line gives it.

use super::online::FoundStore;
use crate::args::{InitArgs, SeenBy};
use crate::exit::usage;
use anyhow::Result;
use oblivio_volume::disk::SECTOR;
use oblivio_volume::{CreateOptions, LaneParameters, NewVolume};

/// Refuses what a store at a URL does not have.
pub fn refuse_misfits(args: &InitArgs, seen_by: SeenBy, online: bool) -> Result<()> {
    if args.sync_folder && (seen_by == SeenBy::Storage || online) {
        let what = "--sync-folder is for a folder of this computer, whose copies others see";
        return Err(usage(what, "Leave out --seen-by storage, or --sync-folder."));
    }
    if !online {
        return Ok(());
    }
    if seen_by == SeenBy::Snapshots {
        let what = "who keeps an online store sees what is read in it";
        return Err(usage(what, "Leave out --seen-by snapshots."));
    }
    Ok(())
}

/// The volume to make.
pub struct Plan {
    pub new: NewVolume,
    /// Limit of the volume, or size of the disk, in bytes.
    pub size: u64,
    pub block_bytes: usize,
    /// Whether it holds a disk, not files.
    pub disk: bool,
    /// Bytes of an object, if it is in an online store.
    pub object_bytes: Option<usize>,
    /// The lanes beside it.
    pub lanes: Option<LaneParameters>,
    /// Whether it is made for a folder that a sync client copies.
    pub synced: bool,
}

impl Plan {
    /// Makes the plan; refuses invalid combinations. `online` is what was found out of a store at a
    /// URL.
    pub fn new(
        args: &InitArgs,
        seen_by: SeenBy,
        seeks: bool,
        online: Option<FoundStore>,
    ) -> Result<Self> {
        let kdf = args.kdf.params()?;
        let size = size(args, seen_by)?;
        let disk = args.disk.is_some()
            || (seen_by == SeenBy::Snapshots && !args.files && !args.sync_folder);
        if size == 0 || (disk && !size.is_multiple_of(SECTOR)) {
            let what = match disk {
                true => "a disk's size is a multiple of 512 bytes, and not zero",
                false => "a volume of no size holds nothing",
            };
            return Err(usage(what, "Try 10G."));
        }
        if args.open.pad || args.open.pace.is_some() {
            let what = "--pad and --pace are for a volume that is opened";
            return Err(usage(what, "Leave them out here; nothing of them is kept."));
        }
        let needs_space = args.fill || args.map_on_disk || args.one_file || args.overwrite;
        if (needs_space || args.seeks.is_some()) && seen_by == SeenBy::Storage {
            let what = "--fill, --map-on-disk, --one-file, --overwrite and --seeks go with \
                        --seen-by snapshots";
            return Err(usage(what, "Leave them out: this volume grows with its content."));
        }
        let lanes = lanes(args, seen_by)?;
        let seen_by = match seen_by {
            SeenBy::Storage => oblivio_volume::SeenBy::Storage,
            SeenBy::Snapshots => oblivio_volume::SeenBy::Snapshots,
        };
        let default = online.map_or(seen_by.block_bytes(), |found| found.block_bytes);
        let block_bytes = block_bytes(args, default as u64)?;
        let new = match online {
            Some(found) => NewVolume::on_windows(block_bytes, size, found.exclusive, kdf)
                .with_objects_of(found.object_bytes),
            None if args.sync_folder => {
                NewVolume::in_extents(block_bytes, size, kdf).filled(args.fill)
            }
            None => {
                let new = NewVolume::new(seen_by, block_bytes, size, kdf).filled(args.fill);
                new.with_seeks(seeks).with_lanes(lanes)
            }
        };
        let new = if args.map_on_disk { new.map_on_disk() } else { new };
        Ok(Self {
            new,
            size,
            block_bytes,
            disk,
            lanes,
            synced: args.sync_folder,
            object_bytes: online.map(|found| found.object_bytes),
        })
    }
}

/// The lanes of the volume. In one file there is one of an eighth by default: a lane then does not
/// show that its owner asked for it.
fn lanes(args: &InitArgs, seen_by: SeenBy) -> Result<Option<LaneParameters>> {
    let asked = args.lanes.is_some() || args.grace.is_some();
    let in_one = seen_by == SeenBy::Snapshots && !args.sync_folder && args.is_in_one();
    if !in_one && asked {
        let what = "--lanes and --grace are for a volume against snapshots in one file or on a \
                    partition";
        return Err(usage(what, "Leave them out, or add --one-file."));
    }
    let mut lanes = args.lanes.unwrap_or_default();
    if lanes.count == 0 && args.grace.is_some() {
        return Err(usage(
            "without lanes there is no grace",
            "Leave out --grace, or --lanes none.",
        ));
    }
    if !in_one || lanes.count == 0 {
        return Ok(None);
    }
    lanes.grace = args.grace.unwrap_or(lanes.grace);
    let refused = |error: oblivio_volume::Error| usage(error.to_string(), "Try --lanes 1/8.");
    lanes.check().map_err(refused)?;
    Ok(Some(lanes))
}

fn size(args: &InitArgs, seen_by: SeenBy) -> Result<u64> {
    match (args.disk.or(args.size), seen_by) {
        (Some(size), _) => Ok(size),
        (None, SeenBy::Storage) => Ok(CreateOptions::default().capacity_bytes),
        (None, SeenBy::Snapshots) => {
            let hint = "All of it is taken at once, and more than three times as much in the \
                        store. Try --size 10G.";
            Err(usage("how large is it to be?", hint))
        }
    }
}

fn block_bytes(args: &InitArgs, default: u64) -> Result<usize> {
    let block_bytes = args.block_size.unwrap_or(default);
    if !block_bytes.is_power_of_two() || !(1 << 10..=1 << 20).contains(&block_bytes) {
        let hint =
            format!("Use 1K, 2K, 4K and so on up to 1M; {}K is a good choice.", default >> 10);
        return Err(usage("the block size must be a power of two from 1K to 1M", hint));
    }
    Ok(block_bytes as usize)
}
