//! Damaged volumes of files are repaired, through crashes of the repair itself: what is left
//! mounts, a check calls it clean, and all that was not lost is there. An older state stays
//! refused.

use super::harmed::{DEEDS, Harm, Place};
use super::homes::{Files, HOMES, Home, Rest, Size};
use super::trial::{Found, Lost, look, named, read, zero};
use oblivio_store::Held;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::fs::{self, FileKind, FileSystem, Ino, ROOT_INO, Salvage, Salvaged, Timestamp};
use oblivio_volume::{BlockSpace, Error, Result, Volume};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// So small that a volume takes milliseconds.
const SIZE: Size = Size { files: 8, longest: 6_000 };

/// What a campaign saw.
#[derive(Debug, Default)]
struct Counts {
    volumes: u64,
    /// That do not open: both copies of something small are damaged, or a whole slab is gone.
    refused: u64,
    /// Whose metadata is lost, and those of them of which the rest is whole again.
    metadata: u64,
    salvaged: u64,
    repaired: u64,
    with_lost_files: u64,
    zeroed: u64,
    crashes: u64,
    older_refused: u64,
}

/// Places of one sector, in objects with blocks.
fn sectors(rest: &Rest, dice: &mut Dice) -> Vec<Place> {
    let mut all = rest.objects.list().expect("memory");
    all.retain(|(name, len)| rest.home.has_blocks(name) && *len > 0);
    let mut any = || {
        let (object, len) = all[dice.index(all.len())].clone();
        let start = dice.below(len) / 512 * 512;
        Place { object, bytes: start..(start + 512).min(len) }
    };
    let first = any();
    let more: Vec<Place> = (0..first.bytes.start % 3).map(|_| any()).collect();
    [vec![first], more].concat()
}

fn any_harm(rest: &Rest, dice: &mut Dice) -> Harm {
    match dice.below(9) {
        0..=2 => Harm::FlipsOfBlocks(1 + dice.below(6)),
        3 => Harm::Flips(1 + dice.below(3)),
        4..=6 => Harm::Noise(sectors(rest, dice)),
        // So many that both copies of something are among them.
        7 => Harm::FlipsOfBlocks(20 + dice.below(60)),
        _ => {
            let names = rest.names();
            Harm::To(names[dice.index(names.len())].clone(), DEEDS[dice.index(3)])
        }
    }
}

/// Repairs as the command does; gives what was lost with metadata.
fn repair(mut volume: Volume, zeros: bool) -> Result<Option<Salvaged>> {
    volume.inspect(&mut |_, _| {}, &mut |_| {})?;
    let mut salvage = Salvage::of(Box::new(volume))?;
    let (blocks, report) = match salvage.is_needed() {
        true => {
            let plan = salvage.plan(Timestamp::default())?;
            let report = plan.report().clone();
            (salvage.carry_out(plan)?, Some(report))
        }
        false => (salvage.into_blocks()?, None),
    };
    let fs = FileSystem::open(blocks)?;
    fs.check_with(true, &mut |_, _| {})?;
    fs::repair(&fs, zeros, &mut |_, _| {})?;
    let mut volume = Volume::in_blocks(fs.into_blocks()?).expect("a volume");
    volume.repair(&mut |_, _| {})?;
    volume.finish()?;
    Ok(report)
}

/// How many files there are below a directory.
fn files_below(fs: &FileSystem, folder: Ino) -> Result<u64> {
    let mut files = 0;
    for entry in fs.read_dir(folder, None, usize::MAX)? {
        files += match entry.kind {
            FileKind::Directory => files_below(fs, entry.ino)?,
            _ => 1,
        };
    }
    Ok(files)
}

/// A volume that lost metadata is repaired: what is left of the files is right, and `report` has
/// the rest. After a crash the repair before may have had that.
fn rescued(mut volume: Volume, files: &Files, report: Option<&Salvaged>) -> Result<()> {
    let found = volume.inspect(&mut |_, _| {}, &mut |_| {})?;
    assert_eq!(found.damaged, 0);
    let fs = FileSystem::open(Box::new(volume))?;
    let check = fs.check_with(true, &mut |_, _| {})?;
    assert!(check.is_clean(), "{check:?}");
    let mut here = files.clone();
    here.retain(|path, _| !matches!(fs.resolve(path), Err(Error::NotFound(_))));
    let lost = read(&fs, &here)?;
    let holes = named(&check.holes);
    assert!(lost.iter().all(|(path, ranges)| holes.get(path) == Some(ranges)), "{lost:?}");
    if let Some(report) = report {
        let named = report.removed.len() as u64 + report.unnamed.unwrap_or(u64::MAX / 2);
        let left = files_below(&fs, ROOT_INO)?;
        assert!(left + named >= files.len() as u64, "{left} are left: {report:?}");
    }
    drop(fs.into_blocks()?);
    Ok(())
}

/// The volume is whole, but for what was lost.
fn whole(mut volume: Volume, files: &Files, lost: &Lost) -> Result<()> {
    assert_eq!(volume.damaged(), []);
    let mut places = Vec::new();
    let found = volume.inspect(&mut |_, _| {}, &mut |place| places.push(place))?;
    assert_eq!((found.damaged, places), (0, Vec::new()));
    let fs = FileSystem::open(Box::new(volume))?;
    let report = fs.check_with(true, &mut |_, _| {})?;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(named(&report.holes), *lost, "a check names the holes");
    assert_eq!(read(&fs, files)?, *lost);
    // It can be written.
    let path = files.keys().next().expect("some");
    let handle = fs.open_file(fs.resolve(path)?.ino)?;
    fs.write(handle, 0, &files[path])?;
    fs.close(handle)?;
    drop(fs.into_blocks()?);
    Ok(())
}

/// The files with zeros in place of what was lost.
fn zeroed(files: &Files, lost: &Lost) -> Files {
    let mut files = files.clone();
    for (path, ranges) in lost {
        zero(files.get_mut(path).expect("a file"), ranges);
    }
    files
}

/// One damaged volume. A crash comes within this number of operations.
fn one(
    rest: &Rest,
    steps: u64,
    dice: &mut Dice,
    counts: &mut Counts,
) -> std::result::Result<(), String> {
    let harm = any_harm(rest, dice);
    let failed = |what: &str| {
        let what = format!("{harm:?}, {what}");
        move |error: Error| format!("{what}: {error}")
    };
    let Some(harmed) = rest.harmed(&harm, dice) else { return Ok(()) };
    counts.volumes += 1;
    let before = look(rest, &harmed.twin(), dice);
    if before.refused.is_some() {
        counts.refused += 1;
        return Ok(());
    }
    let mut store = Arc::new(harmed.objects().expect("in memory").snapshot());
    let mut computer = rest.computer();
    counts.metadata += u64::from(before.metadata);
    let Found { lost, metadata, .. } = before;
    let zeros = !metadata && dice.below(4) == 0;
    let mut crashed = false;
    for _ in 0..dice.below(3) {
        let disk = Arc::new(CrashStore::holding(&store));
        disk.crash_after(dice.below(steps));
        let opened = rest.open_by(Arc::clone(&disk), &mut computer);
        let done = opened.and_then(|volume| repair(volume, zeros));
        match done {
            Err(Error::Lost(_)) if metadata && !disk.crashed() => return Ok(()),
            Err(error) if !disk.crashed() => return Err(failed("the repair before")(error)),
            _ => {}
        }
        crashed = true;
        counts.crashes += u64::from(disk.crashed());
        store = Arc::new(disk.survivors(dice.next_u64()));
    }
    let opened = rest.open_by(Arc::clone(&store), &mut computer).map_err(failed("to repair"))?;
    let report = match repair(opened, zeros) {
        // It is the block that says where files begin.
        Err(Error::Lost(_)) if metadata => return Ok(()),
        done => done.map_err(failed("the repair"))?,
    };
    assert!(report.is_none() || metadata, "nothing was lost of it: {report:?}");
    let opened = rest.open_by(Arc::clone(&store), &mut computer).map_err(failed("repaired"))?;
    counts.repaired += 1;
    if metadata {
        let report = report.filter(|_| !crashed);
        rescued(opened, &rest.files, report.as_ref()).map_err(failed("what is salvaged"))?;
        counts.salvaged += 1;
    } else {
        let (files, left) = match zeros {
            true => (zeroed(&rest.files, &lost), Lost::new()),
            false => (rest.files.clone(), lost.clone()),
        };
        whole(opened, &files, &left).map_err(failed("what is repaired"))?;
        counts.with_lost_files += u64::from(!lost.is_empty());
        counts.zeroed += u64::from(zeros && !lost.is_empty());
    }
    // What was stored before is older, damaged or not.
    let old = rest.open_by(harmed.store().expect("memory"), &mut computer).map(drop);
    assert!(matches!(old, Err(Error::RolledBack(_))), "{old:?}");
    counts.older_refused += 1;
    Ok(())
}

fn campaign(home: &'static Home, first: u64, tries: u64) -> Counts {
    let mut counts = Counts::default();
    let rests: Vec<Rest> = (0..3).map(|which| home.rest(SIZE, which)).collect();
    let steps: Vec<u64> = rests.iter().map(operations).collect();
    let number = HOMES.iter().position(|it| it.name == home.name).unwrap_or(0) as u64;
    for seed in first..first + tries {
        let mut dice = Dice::new(seed ^ number << 32);
        let which = dice.index(rests.len());
        let what = format!("{}, seed {seed}", home.name);
        let work = || one(&rests[which], steps[which], &mut dice, &mut counts);
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => done.unwrap_or_else(|error| panic!("{what}: {error}")),
            Err(panic) => {
                println!("{what}");
                resume_unwind(panic)
            }
        }
    }
    counts
}

/// How many operations a repair makes where nothing is damaged.
fn operations(rest: &Rest) -> u64 {
    let disk = Arc::new(CrashStore::holding(&rest.objects));
    let volume = rest.open(Arc::clone(&disk)).expect("whole");
    repair(volume, false).expect("whole");
    disk.operations()
}

#[test]
fn a_repaired_volume_is_clean_and_has_all_that_was_not_lost() {
    let tries = scaled(6);
    let mut salvaged = 0;
    for home in HOMES.iter().filter(|home| home.repairs) {
        let counts = campaign(home, seed(1), tries);
        println!("{}: {counts:?}", home.name);
        assert!(counts.repaired * 2 > counts.volumes, "{}: {counts:?}", home.name);
        salvaged += counts.salvaged;
    }
    assert!(salvaged > 0, "metadata is lost as well");
}

/// An engine that takes no blocks of an older copy makes the volume whole all the same.
#[test]
fn a_repair_with_a_copy_is_a_repair() {
    let mut done = 0;
    for home in HOMES {
        let rest = home.rest(SIZE, 1);
        let mut dice = Dice::new(3);
        let harm = Harm::FlipsOfBlocks(8);
        let Some(harmed) = rest.harmed(&harm, &mut dice) else { continue };
        let store = harmed.store().expect("memory");
        let mut computer = rest.computer();
        let Ok(mut volume) = rest.open_by(store.clone(), &mut computer) else { continue };
        if !volume.info().expect("memory").engine.repairs {
            continue;
        }
        let mut copy = rest.open(Arc::new(rest.objects.snapshot())).expect("whole");
        volume.restore_from(&mut copy, &[], &mut |_, _| {}).expect("it is repaired");
        volume.finish().expect("it commits");
        drop(volume);
        let mut volume = rest.open_by(store, &mut computer).expect("whole");
        let mut places = Vec::new();
        volume.inspect(&mut |_, _| {}, &mut |place| places.push(place)).expect("it is read");
        assert_eq!(places, [], "{}", home.name);
        done += 1;
    }
    assert!(done > 3, "{done} homes");
}
