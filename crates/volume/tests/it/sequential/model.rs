//! A user's actions, their expected results, and a volume to compare.

use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_testkit::Dice;
use oblivio_volume::{BlockSpace, Result};
use std::collections::BTreeMap;

pub const BLOCK: usize = 64;

/// One step of a user.
#[derive(Clone, Debug)]
pub enum Event {
    /// Operations passed together.
    Ops(Vec<BlockOp>),
    Root(Vec<u8>),
    Commit,
    Finish,
}

/// The content of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    pub blocks: BTreeMap<u64, Vec<u8>>,
    pub root: Vec<u8>,
}

impl Model {
    pub fn apply(&mut self, op: &BlockOp) {
        let id = op.id.0;
        match &op.action {
            Action::Read => {}
            Action::Remove => drop(self.blocks.remove(&id)),
            action => {
                let block = self.blocks.entry(id).or_insert_with(|| vec![0; BLOCK]);
                action.write_to(block);
            }
        }
    }

    /// The states through which an event leads.
    pub fn play(&mut self, event: &Event) -> Vec<Model> {
        match event {
            Event::Ops(ops) => {
                let step = |op: &BlockOp| {
                    self.apply(op);
                    self.clone()
                };
                ops.iter().map(step).collect()
            }
            Event::Root(root) => {
                self.root.clone_from(root);
                vec![self.clone()]
            }
            Event::Commit | Event::Finish => Vec::new(),
        }
    }
}

pub fn any_op(dice: &mut Dice, blocks: u64) -> BlockOp {
    let bytes = |dice: &mut Dice, most: u64| -> Vec<u8> {
        let len = 1 + dice.below(most);
        (0..len).map(|_| dice.next_u64() as u8).collect()
    };
    let action = match dice.below(8) {
        0 => Action::Read,
        1 => Action::Remove,
        2 => Action::Patch { offset: dice.below(40) as usize, bytes: bytes(dice, 24) },
        3 => Action::Patches(vec![(0, bytes(dice, 9)), (50, bytes(dice, 9))]),
        _ => Action::Write(bytes(dice, BLOCK as u64)),
    };
    BlockOp { id: BlockId(dice.below(blocks)), action }
}

pub fn any_event(dice: &mut Dice, blocks: u64) -> Event {
    match dice.below(12) {
        0 | 1 => Event::Commit,
        2 => Event::Root((0..dice.below(30)).map(|_| dice.next_u64() as u8).collect()),
        3 if dice.below(4) == 0 => Event::Finish,
        _ => {
            let count = 1 + dice.below(12);
            Event::Ops((0..count).map(|_| any_op(dice, blocks)).collect())
        }
    }
}

/// `count` random events. For one user in three each is small and synced at once, which fills the
/// log with padding.
pub fn any_events(dice: &mut Dice, blocks: u64, count: u64) -> Vec<Event> {
    if dice.below(3) > 0 {
        return (0..count).map(|_| any_event(dice, blocks)).collect();
    }
    let synced = |_| [Event::Ops(vec![any_op(dice, blocks)]), Event::Commit];
    (0..2 * count).flat_map(synced).collect()
}

/// Plays an event, and compares the answers.
pub fn act(volume: &mut dyn BlockSpace, model: &Model, event: &Event) -> Result<()> {
    match event {
        Event::Ops(ops) => {
            let answers = volume.access(ops.clone())?;
            let mut model = model.clone();
            for (op, answer) in ops.iter().zip(answers) {
                if op.action == Action::Read {
                    assert_eq!(answer.as_ref(), model.blocks.get(&op.id.0), "block {}", op.id.0);
                }
                model.apply(op);
            }
            Ok(())
        }
        Event::Root(root) => {
            volume.set_root(root);
            Ok(())
        }
        Event::Commit => volume.commit(),
        Event::Finish => volume.finish(),
    }
}

/// The whole content of a volume.
pub fn content(volume: &mut dyn BlockSpace) -> Result<Model> {
    let count = volume.capacity_blocks();
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    let answers = volume.access((0..count).map(read).collect())?;
    let blocks = (0..count).zip(answers);
    let blocks = blocks.filter_map(|(id, block)| Some((id, block?))).collect();
    Ok(Model { blocks, root: volume.root().to_vec() })
}
