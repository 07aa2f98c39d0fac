//! Damage costs what it hit: what is lost stays lost through merges until it is written again, no
//! older copy takes its place, and what is written where does not change.
//!
//! The campaign plays random damage under random writes, restarts and rebuilds.

use crate::sequential_run::{Run, config, paged};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{BlockId, Carrier, Extent, Job, Lost, Step};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::BTreeSet;

/// Without caches, so that damage shows at once.
fn uncached(dice: &mut Dice) -> SequentialConfig {
    let (blocks, bucket, queue) = (20 + dice.below(60), 2 + dice.below(3), 1 + dice.below(3));
    let ratio = [40, 100, 250][dice.below(3) as usize];
    let config = config(blocks, bucket, queue, 2 + dice.below(3), ratio);
    SequentialConfig { cached_nodes: 0, cached_leaves: 0, ..config }
}

fn play(run: &mut Run, dice: &mut Dice, writes: u64, changed: &mut BTreeSet<BlockId>) {
    for _ in 0..writes {
        let write = run.any_write(dice);
        changed.extend(write.iter().map(|(block, _)| *block));
        run.apply(write);
    }
}

/// The lost blocks. All others are as written last.
fn lost(run: &mut Run, what: &str) -> BTreeSet<BlockId> {
    let blocks = run.blocks();
    let found = run.disk.read(&mut run.engine, blocks.clone()).expect("damage is no failure");
    let mut lost = BTreeSet::new();
    for (block, found) in blocks.into_iter().zip(found) {
        if found == Err(Lost) {
            lost.insert(block);
        } else {
            assert_eq!(found, Ok(run.newest.get(&block).cloned()), "{what}: {block:?} is wrong");
        }
    }
    lost
}

/// The places that a read of a block needs.
fn places(run: &mut Run, block: BlockId) -> Vec<Extent> {
    let (mut seen, engine) = (Vec::new(), &mut run.engine);
    let mut batch = engine.begin_read(vec![block]).expect("it exists");
    loop {
        let step = batch.step(engine).expect("nothing failed");
        if let Step::Read(read) = &step {
            seen.extend_from_slice(read.extents);
        }
        if !run.disk.carry(step).expect("memory") {
            return seen;
        }
    }
}

/// Changes some bytes, of any place, in any way.
fn harm(run: &mut Run, dice: &mut Dice, old: &[u8]) {
    let len = run.disk.bytes.len() as u64;
    let bytes = [1, 16, 128, 512][dice.below(4) as usize].min(len);
    let offset = dice.below(len - bytes + 1);
    let range = offset as usize..(offset + bytes) as usize;
    match dice.below(4) {
        0 => run.disk.bytes[range.clone()].fill(0),
        1 => run.disk.bytes[range.clone()].copy_from_slice(&old[range.clone()]),
        2 => {
            let noise = dice.bytes(range.len());
            run.disk.bytes[range.clone()].copy_from_slice(&noise);
        }
        _ => run.disk.bytes[range.start] ^= 1 << dice.below(8),
    }
}

/// Blocks whose read meets a place that differs between two disks.
fn carried(run: &mut Run, whole: &[u8], harmed: &[u8]) -> BTreeSet<BlockId> {
    run.disk.bytes.copy_from_slice(whole);
    let mut carried = BTreeSet::new();
    for block in run.blocks() {
        let meets = |extent: &Extent| {
            let range = extent.offset as usize..extent.end() as usize;
            whole[range.clone()] != harmed[range]
        };
        if places(run, block).iter().any(meets) {
            carried.insert(block);
        }
    }
    run.disk.bytes.copy_from_slice(harmed);
    carried
}

/// Restarts at the present state, with the access times or after a rebuild of them.
fn restart(run: &mut Run, rebuild: bool) {
    let state = run.engine.state().expect("between two flushes");
    let times = run.engine.access_times().map(|times| times.to_bytes());
    run.restore(&state, times.filter(|_| !rebuild).as_deref());
}

/// An aged disk, and how it was in the middle of that.
fn aged(config: SequentialConfig, dice: &mut Dice) -> (Run, Vec<u8>) {
    let mut run = Run::new(config);
    let writes = dice.below(12 * config.blocks);
    play(&mut run, dice, writes / 2, &mut BTreeSet::new());
    let old = run.disk.bytes.clone();
    play(&mut run, dice, writes - writes / 2, &mut BTreeSet::new());
    (run, old)
}

/// Harms a disk in some places and checks that exactly the blocks there are lost.
fn harm_some(run: &mut Run, dice: &mut Dice, old: &[u8], what: &str) -> BTreeSet<BlockId> {
    let before = lost(run, what);
    let whole = run.disk.bytes.clone();
    for _ in 0..1 + dice.below(4) {
        harm(run, dice, old);
    }
    let harmed = run.disk.bytes.clone();
    let carried = carried(run, &whole, &harmed);
    let now = lost(run, what);
    let expected: BTreeSet<BlockId> = before.union(&carried).copied().collect();
    assert!(now.is_subset(&expected), "{what}: {now:?} are lost, {expected:?} were hit");
    assert!(carried.is_subset(&now), "{what}: of {carried:?} only {now:?} are lost");
    now
}

#[test]
fn what_is_lost_stays_lost_until_it_is_written() {
    let (first, rounds) = (seed(1), scaled(60));
    let (mut hit, mut kept, mut late, mut met) = (0, 0, 0, 0);
    for round in first..first + rounds {
        let mut dice = Dice::new(round);
        let config = uncached(&mut dice);
        let (mut run, old) = aged(config, &mut dice);
        let mut before = BTreeSet::new();
        for step in 0..6 {
            let what = format!("round {round}, step {step}");
            if step < 3 {
                before = harm_some(&mut run, &mut dice, &old, &what);
                hit += before.len();
            }
            let (mut changed, writes) = (BTreeSet::new(), dice.below(2 * config.blocks));
            play(&mut run, &mut dice, writes, &mut changed);
            if dice.below(2) == 0 {
                restart(&mut run, false);
            }
            let now = lost(&mut run, &what);
            let left: BTreeSet<BlockId> = before.difference(&changed).copied().collect();
            // A merge had copied some to where no read looked yet.
            late += now.difference(&left).count();
            kept += now.intersection(&left).count();
            before = now;
        }
        met += u64::from(run.engine.met_damage());
        let blocks: Vec<u64> = run.blocks().iter().map(|block| block.0).collect();
        blocks.into_iter().for_each(|block| run.write(block));
        assert!(lost(&mut run, "written anew").is_empty(), "round {round}");
    }
    println!("{rounds} disks: {hit} blocks hit, {kept} stay, {late} come later, {met} merged any");
    assert!(kept > 0 && late < hit && met > rounds / 4);
}

/// A rebuild cannot know what a damaged leaf listed. More may be lost then, and nothing older
/// shows.
#[test]
fn no_older_copy_shows_after_a_rebuild_or_with_pages() {
    let (first, rounds) = (seed(1), scaled(60));
    let (mut hit, mut after) = (0, 0);
    for round in first..first + rounds {
        let mut dice = Dice::new(round ^ 0x9e37);
        let (plain, pages) = (uncached(&mut dice), dice.below(2));
        let config = paged(SequentialConfig { bucket_blocks: 4, ..plain }, pages);
        let (mut run, old) = aged(config, &mut dice);
        for step in 0..6 {
            let what = format!("round {round}, step {step}, {pages} pages");
            if step < 3 {
                (0..1 + dice.below(4)).for_each(|_| harm(&mut run, &mut dice, &old));
                hit += lost(&mut run, &what).len();
            }
            let writes = dice.below(2 * config.blocks);
            play(&mut run, &mut dice, writes, &mut BTreeSet::new());
            if dice.below(2) == 0 {
                restart(&mut run, true);
            }
            after += lost(&mut run, &what).len();
        }
        let blocks: Vec<u64> = run.blocks().iter().map(|block| block.0).collect();
        blocks.into_iter().for_each(|block| run.write(block));
        restart(&mut run, true);
        assert!(lost(&mut run, "written anew").is_empty(), "round {round}");
    }
    println!("{rounds} disks: {hit} blocks hit, {after} lost in all looks after that");
    assert!(hit > 0 && after > 0);
}

/// What is written, and where, follows from the number of flushes alone.
#[test]
fn damage_changes_no_write() {
    for round in 0..scaled(20) {
        let mut dice = Dice::new(round ^ 0x51);
        let plain = uncached(&mut dice);
        let pages = dice.below(2);
        let config = paged(SequentialConfig { bucket_blocks: 4, ..plain }, pages);
        let mut traces = Vec::new();
        for harmed in [false, true] {
            let mut dice = Dice::new(round ^ 0x52);
            let (mut run, old) = aged(config, &mut dice);
            run.disk.trace.clear();
            for part in 0..4 {
                if harmed {
                    let mut own = Dice::new(round << 8 ^ part);
                    (0..5).for_each(|_| harm(&mut run, &mut own, &old));
                }
                play(&mut run, &mut dice, config.blocks, &mut BTreeSet::new());
                restart(&mut run, part % 2 == 0);
            }
            assert_eq!(run.engine.met_damage(), harmed, "round {round}");
            traces.push(run.disk.trace);
        }
        assert_eq!(traces[0], traces[1], "round {round}");
    }
}
