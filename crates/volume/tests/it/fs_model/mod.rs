//! The file system against a plain model, with crashes and commits at bad moments.

mod data;
mod model;
mod names;
mod pair;

use crate::common::disks::{SequentialDisk, TestDisk};
use crate::fs::emptied_after_salvage;
use model::{Model, Node, path, split};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::fs::FileSystem;
use pair::Pair;
use proptest::prelude::*;

const BLOCK: usize = 2048;

/// One operation. Numbers choose among the paths of a small fixed set, and for file data also among
/// the files held open.
#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    Write(u8, u32, u16, u8),
    Truncate(u8, u32),
    Read(u8, u32, u16),
    ReadMany(Vec<(u8, u32, u16)>),
    Punch(u8, u32, u16),
    ZeroRange(u8, u32, u16, bool),
    Allocate(u8, u32, u16, bool),
    Seek(u8, u32),
    Hold(u8),
    Release(u8),
    Mkdir(u8),
    Mknod(u8, u8),
    Symlink(u8, u8),
    Link(u8, u8),
    Unlink(u8),
    Rmdir(u8),
    Rename(u8, u8, u8),
    SetXattr(u8, u8, u16, u8),
    RemoveXattr(u8, u8),
    Commit,
    Reopen,
    Crash,
}

fn data_op() -> BoxedStrategy<Op> {
    let at = prop_oneof![0u32..3000, 0u32..12_000, Just(BLOCK as u32), 0u32..200_000];
    let len = prop_oneof![0u16..300, 0u16..10_000, Just(BLOCK as u16)];
    let range = (any::<u8>(), at.clone(), len.clone());
    prop_oneof![
        10 => (range.clone(), any::<u8>()).prop_map(|((p, at, len), b)| Op::Write(p, at, len, b)),
        3 => (any::<u8>(), at.clone()).prop_map(|(p, at)| Op::Truncate(p, at)),
        4 => range.clone().prop_map(|(p, at, len)| Op::Read(p, at, len)),
        2 => prop::collection::vec(range.clone(), 0..6).prop_map(Op::ReadMany),
        4 => range.clone().prop_map(|(p, at, len)| Op::Punch(p, at, len)),
        3 => (range.clone(), any::<bool>())
            .prop_map(|((p, at, len), keep)| Op::ZeroRange(p, at, len, keep)),
        4 => (range, any::<bool>()).prop_map(|((p, at, len), keep)| Op::Allocate(p, at, len, keep)),
        2 => (any::<u8>(), at).prop_map(|(p, at)| Op::Seek(p, at)),
        2 => any::<u8>().prop_map(Op::Hold),
        1 => any::<u8>().prop_map(Op::Release),
    ]
    .boxed()
}

fn name_op() -> BoxedStrategy<Op> {
    prop_oneof![
        6 => any::<u8>().prop_map(Op::Create),
        3 => any::<u8>().prop_map(Op::Mkdir),
        1 => any::<(u8, u8)>().prop_map(|(p, k)| Op::Mknod(p, k)),
        1 => any::<(u8, u8)>().prop_map(|(p, t)| Op::Symlink(p, t)),
        2 => any::<(u8, u8)>().prop_map(|(f, t)| Op::Link(f, t)),
        5 => any::<u8>().prop_map(Op::Unlink),
        1 => any::<u8>().prop_map(Op::Rmdir),
        3 => any::<(u8, u8, u8)>().prop_map(|(f, t, m)| Op::Rename(f, t, m)),
        2 => any::<(u8, u8, u16, u8)>().prop_map(|(p, n, l, m)| Op::SetXattr(p, n, l, m)),
        1 => any::<(u8, u8)>().prop_map(|(p, n)| Op::RemoveXattr(p, n)),
    ]
    .boxed()
}

fn op() -> BoxedStrategy<Op> {
    prop_oneof![
        10 => data_op(),
        6 => name_op(),
        2 => prop_oneof![2 => Just(Op::Commit), 1 => Just(Op::Reopen), 1 => Just(Op::Crash)],
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(64) as u32))]

    #[test]
    fn behaves_like_the_model(ops in prop::collection::vec(op(), 1..160)) {
        let mut pair = Pair::new(Box::new(MemoryBlocks::new(BLOCK, 8192, 256 << 10)), false);
        for op in &ops {
            pair.apply(op);
        }
        pair.compare();
    }

    /// What a salvage leaves is a file system like any other.
    #[test]
    fn behaves_like_the_model_after_a_salvage(
        ops in prop::collection::vec(op(), 1..160),
        lost in any::<u64>(),
    ) {
        let disk = emptied_after_salvage(BLOCK, lost % 8);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        let mut pair = Pair::of(Box::new(disk), fs, false);
        for op in &ops {
            pair.apply(op);
        }
        pair.compare();
    }

    /// The volume commits spontaneously at random operations. After a crash only ranges overwritten
    /// in place may differ, so file data is committed at once here; everything else stays
    /// uncommitted.
    #[test]
    fn survives_commits_at_bad_moments(
        ops in prop::collection::vec(op(), 1..100),
        seed in any::<u64>(),
    ) {
        let disk = MemoryBlocks::new(BLOCK, 8192, 64 << 10);
        let mut pair = Pair::new(Box::new(disk.clone()), true);
        disk.auto_commit(seed, 3);
        for op in &ops {
            pair.apply(op);
        }
        pair.apply(&Op::Crash);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(16) as u32))]

    /// A volume on the sequential engine commits spontaneously too, at the end of each turn. Freed
    /// blocks keep their content there, and it comes back with them.
    #[test]
    fn behaves_like_the_model_on_a_sequential_volume(
        ops in prop::collection::vec(op(), 1..120),
        chance in any::<u64>(),
    ) {
        let mut pair = Pair::new(Box::new(SequentialDisk::new(BLOCK, 4096, chance)), true);
        for op in &ops {
            pair.apply(op);
        }
        pair.compare();
        pair.apply(&Op::Crash);
    }
}
