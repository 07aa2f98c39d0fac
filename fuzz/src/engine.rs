//! The tree engine: hostile bucket content, hostile state.

use crate::input::Input;
use oblivio_crypto::{
    Kind, Place, SEAL_HEADER, SealRoot, Sealer, SeededEntropy, TAG_BYTES, VolumeId,
};
use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::{Eviction, MapFormat, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, Result, carry_out};

const BLOCKS: u64 = 64;
const BYTES: usize = 64;

/// Small configurations like the papers', with maps that recurse. Without tags and PMMAC, a
/// bucket's plaintext reaches the engine unchecked.
fn config(choice: u8) -> TreeConfig {
    let (map_format, on_chip_bytes) = match choice % 4 {
        0 => (MapFormat::Flat { bytes: 4 }, usize::MAX),
        1 => (MapFormat::Flat { bytes: 4 }, 16),
        2 => (MapFormat::Flat { bytes: 8 }, 16),
        // Few bits, so that groups roll over.
        _ => (MapFormat::Compressed { individual_bits: 2 }, 64),
    };
    let plain = TreeConfig::new(BYTES, BLOCKS);
    TreeConfig {
        map_format,
        on_chip_bytes,
        eviction: if choice & 4 == 0 { plain.eviction } else { Eviction::Scheduled { every: 2 } },
        // Some of those with a schedule, as in a volume: leaves of fewer slots.
        leaf_steps: choice & 6 == 6,
        cache_bytes: if choice & 8 == 0 { 0 } else { 1000 },
        plb_bytes: 2 * BYTES,
        plb_ways: 1,
        tag_tree: false,
        ..plain
    }
}

fn write(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id % BLOCKS), action: Action::Write(vec![id as u8; BYTES]) }
}

fn any_op(choice: u8) -> BlockOp {
    let id = BlockId(u64::from(choice) % BLOCKS);
    let action = match choice >> 6 {
        0 | 1 => Action::Read,
        2 => Action::Write(vec![choice; BYTES]),
        _ => Action::Remove,
    };
    BlockOp { id, action }
}

/// Plays at most 16 batches of up to four operations each.
fn play(engine: &mut TreeOram, buckets: &mut MemoryBuckets, input: &mut Input<'_>) -> Result<()> {
    for _ in 0..16 {
        let choices = input.take(4);
        let ops = if choices.is_empty() { vec![write(3)] } else { ops(choices) };
        let count = ops.len();
        let answers: Vec<BlockAnswer> = buckets.access(engine, ops)?;
        assert_eq!(answers.len(), count, "an answer for each operation");
        if choices.is_empty() {
            break;
        }
    }
    carry_out(&mut engine.begin_flush()?, engine, buckets)
}

fn ops(choices: &[u8]) -> Vec<BlockOp> {
    choices.iter().map(|choice| any_op(*choice)).collect()
}

/// An engine with half its blocks written.
fn filled(config: TreeConfig) -> (TreeOram, MemoryBuckets) {
    let keys = TreeKeys::from_seed(1);
    let mut engine = TreeOram::new(config, BLOCKS, keys).expect("the configuration works");
    let mut buckets = MemoryBuckets::default();
    for first in (0..BLOCKS).step_by(16) {
        let ops = (first..first + 8).map(write).collect();
        buckets.access(&mut engine, ops).expect("nothing was changed yet");
    }
    let mut flush = engine.begin_flush().expect("idle");
    carry_out(&mut flush, &mut engine, &mut buckets).expect("nothing was changed yet");
    (engine, buckets)
}

/// Buckets of any plaintext, sealed as the engine would seal them. The engine must answer or
/// refuse, not panic.
pub fn bucket(data: &[u8]) {
    let mut input = Input(data);
    let (mut engine, mut buckets) = filled(config(input.byte()));
    let picks = usize::from(input.byte());
    let numbers: Vec<_> = buckets.buckets.keys().copied().collect();
    for pick in 0..1 + picks % 8 {
        let key = numbers[(picks + pick * 5) % numbers.len()];
        let sealed = buckets.buckets.get_mut(&key).expect("it is one of the keys");
        // The root that `TreeKeys::from_seed` makes of the seed 1.
        let root = SealRoot::from_seed(0);
        let mut sealer = Sealer::new(root, Box::new(SeededEntropy::new(99)));
        let place =
            Place { volume: VolumeId([7; 16]), kind: Kind::Bucket, index: key.0, version: 0 };
        sealer.open(&place, sealed).expect("the engine sealed it");
        let plain = sealed.len() - SEAL_HEADER - TAG_BYTES;
        let new = input.take(plain);
        sealed[SEAL_HEADER..SEAL_HEADER + new.len()].copy_from_slice(new);
        sealer.seal(&place, sealed).expect("a bucket is sealed");
    }
    let _ = play(&mut engine, &mut buckets, &mut input);
}

/// A changed state and delta. If the engine accepts them, it must work with them.
pub fn engine_state(data: &[u8]) {
    let mut input = Input(data);
    let choice = input.byte();
    let mut config = config(choice);
    config.tag_tree = choice & 16 != 0;
    config.pmmac = choice & 32 != 0;
    let (mut engine, mut buckets) = filled(config);
    let mut state = Vec::new();
    engine.checkpoint(&mut state);
    engine.committed();
    let edits = usize::from(input.u16());
    let mut edits = Input(input.take(edits));
    let changed = edits.patch(&mut state);
    if choice & 128 != 0 {
        state = [input.take(8), &state].concat();
    }
    let keys = TreeKeys::from_seed(1);
    let mut again = TreeOram::new(config, 1, keys).expect("the same configuration");
    if again.restore(&state).is_err() {
        assert!(changed || choice & 128 != 0, "a sound state is refused");
        return;
    }
    if choice & 64 != 0 {
        let _ = play(&mut engine, &mut buckets, &mut Input(&[1, 2, 130]));
        let mut delta = Vec::new();
        engine.delta(&mut delta);
        let edits = usize::from(input.u16());
        Input(input.take(edits)).patch(&mut delta);
        if again.apply_delta(&delta).is_err() {
            return;
        }
    }
    let _ = play(&mut again, &mut buckets, &mut input);
    again.checkpoint(&mut Vec::new());
}
