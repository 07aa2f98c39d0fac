//! A whole disk, byte by byte. A block whose read touches a changed byte is lost. A changed byte
//! that no read touches does no harm when flushes overwrite it. Older bytes are refused too.
//!
//! `cargo test` takes a disk of 20 KiB. In `just sequential-damage` it has 4 MiB of data in blocks
//! of 4 KiB.

use crate::sequential_run::Run;
use oblivio_engine::sequential::{Flush, SequentialConfig};
use oblivio_engine::{BlockId, BlockOutcome, Carrier, Extent, Job, Lost, Result, Step};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::at_least;
use std::collections::BTreeSet;

/// Without caches: every read goes to the disk.
fn options() -> SequentialConfig {
    let full = at_least(100.0);
    let (block_bytes, blocks, sector_bytes) = if full { (4096, 1024, 4096) } else { (32, 90, 256) };
    SequentialConfig {
        bucket_blocks: if full { 16 } else { 4 },
        queue_buckets: 2,
        fan_out: 4,
        sector_bytes,
        cached_nodes: 0,
        cached_leaves: 0,
        ..SequentialConfig::new(block_bytes, blocks)
    }
}

/// Writes the whole disk `rounds` times.
fn age(run: &mut Run, dice: &mut Dice, rounds: u64) {
    for _ in 0..rounds * run.engine.config().blocks {
        let write = run.any_write(dice);
        run.apply(write);
    }
}

/// The same disk in each test, so that together they change every byte of it.
fn aged() -> Run {
    let mut run = Run::new(options());
    age(&mut run, &mut Dice::new(2), 6);
    run
}

/// Reads a block and records the extents read.
fn read(run: &mut Run, block: BlockId, seen: &mut Vec<Extent>) -> Result<BlockOutcome> {
    let mut batch = run.engine.begin_read(vec![block])?;
    loop {
        let step = batch.step(&mut run.engine)?;
        if let Step::Read(read) = &step {
            seen.extend_from_slice(read.extents);
        }
        if !run.disk.carry(step)? {
            return Ok(batch.into_answers().remove(0));
        }
    }
}

/// Every read is right or refused. Returns the number of refused ones.
fn never_wrong(run: &mut Run) -> u64 {
    let mut refused = 0;
    for block in run.blocks() {
        match read(run, block, &mut Vec::new()) {
            Ok(Err(Lost)) => refused += 1,
            found => {
                let newest = run.newest.get(&block).cloned();
                assert_eq!(found.ok(), Some(Ok(newest)), "{block:?} is wrong");
            }
        }
    }
    refused
}

/// For each byte of the disk, a block whose read touches it.
fn touched(run: &mut Run) -> Vec<Option<u32>> {
    let mut touched = vec![None; run.disk.bytes.len()];
    for block in run.blocks() {
        let mut seen = Vec::new();
        let found = read(run, block, &mut seen).expect("nothing was changed");
        assert_eq!(found, Ok(run.newest.get(&block).cloned()));
        for extent in seen {
            touched[extent.offset as usize..extent.end() as usize].fill(Some(block.0 as u32));
        }
    }
    touched
}

#[test]
fn a_block_whose_read_touches_a_changed_byte_is_lost() {
    let mut dice = Dice::new(1);
    let mut run = aged();
    let (touched, mut refused) = (touched(&mut run), 0u64);
    for (at, block) in touched.iter().enumerate() {
        let Some(block) = block.map(u64::from).map(BlockId) else { continue };
        let bit = 1 << dice.below(8);
        run.disk.bytes[at] ^= bit;
        let found = read(&mut run, block, &mut Vec::new());
        assert_eq!(found.ok(), Some(Err(Lost)), "byte {at}");
        run.disk.bytes[at] ^= bit;
        refused += 1;
    }
    assert_eq!(never_wrong(&mut run), 0, "the disk is as it was");
    println!("{refused} of {} bytes: each change was refused", touched.len());
    assert!(refused as usize > touched.len() / 6);
}

/// Bytes of stale generations, of fakes, of the next merges: the test changes all of a region, and
/// then writes the disk over.
#[test]
fn what_no_read_touches_does_no_harm() {
    let mut dice = Dice::new(2);
    let mut run = aged();
    let touched = touched(&mut run);
    let state = run.engine.state().expect("between two flushes");
    let times = run.engine.access_times().expect("they are in memory").to_bytes();
    let (disk, log, newest) = (run.disk.clone(), run.log.clone(), run.newest.clone());
    let most = run.engine.config().block_bytes;
    let (mut at, mut bytes, mut regions, mut met, mut lost) = (0, 0, 0u64, 0u64, 0);
    while at < touched.len() {
        let is_free = |it: &&Option<u32>| it.is_none();
        let free = touched[at..].iter().take(most).take_while(is_free).count();
        let (first, end) = (at, at + free);
        at = end + usize::from(free == 0);
        if free == 0 {
            continue;
        }
        (run.disk, run.log, run.newest) = (disk.clone(), log.clone(), newest.clone());
        run.restore(&state, Some(&times));
        run.disk.bytes[first..end].iter_mut().for_each(|byte| *byte ^= 1 << dice.below(8));
        (bytes, regions) = (bytes + free, regions + 1);
        lost += goes_on(&mut run, &mut dice);
        met += u64::from(run.engine.met_damage());
    }
    let all = touched.len();
    println!("{bytes} of {all} bytes in {regions} regions: {met} met by a flush, {lost} lost");
    assert!(bytes > all / 4 && met > 0 && lost * 4 < regions);
}

/// Writes until every place was overwritten. No read is wrong. Returns how many blocks are lost:
/// those that a merge had copied to where no read looked yet.
fn goes_on(run: &mut Run, dice: &mut Dice) -> u64 {
    for _ in 0..3 * run.engine.config().blocks {
        run.write(dice.below(run.engine.config().blocks));
    }
    never_wrong(run)
}

/// Replays each extent that a flush ever wrote, with its earlier content.
#[test]
fn no_extent_replayed_from_before_is_believed() {
    let mut dice = Dice::new(3);
    let mut run = aged();
    let (mut old, mut replayed, mut refused) = (run.disk.bytes.clone(), 0, 0);
    for _ in 0..3 {
        age(&mut run, &mut dice, 1);
        let now = run.disk.bytes.clone();
        let layout = run.engine.layout();
        let extents: BTreeSet<Extent> =
            (0..run.engine.flushes().0).flat_map(|flush| layout.writes(Flush(flush))).collect();
        for extent in extents {
            let range = extent.offset as usize..extent.end() as usize;
            run.disk.bytes[range.clone()].copy_from_slice(&old[range.clone()]);
            refused += never_wrong(&mut run);
            run.disk.bytes[range.clone()].copy_from_slice(&now[range]);
            replayed += 1;
        }
        old = now;
    }
    println!("{replayed} extents replayed, {refused} reads refused, none wrong");
    assert!(refused > 0);
}
