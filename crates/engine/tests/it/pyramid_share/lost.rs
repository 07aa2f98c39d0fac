//! Slots of the server's tables that are damaged for good: what they held is lost and said to be,
//! all else is served, and what the server sees follows from which slots are damaged.

use super::*;
use oblivio_testkit::campaign::{scaled, seed};

/// Blocks of a volume.
const BLOCKS: u64 = 100;

/// What a block must hold; none if it is absent.
type Content = Option<Vec<u8>>;

/// What is known of the blocks.
struct Expected {
    content: BTreeMap<u64, Content>,
    /// Those that were found to be lost.
    lost: BTreeSet<u64>,
    /// How many ever were.
    losses: usize,
}

impl Expected {
    /// An answer came to an ask of block `id`, alone in its transaction.
    fn check(&mut self, id: u64, ask: &Ask, outcome: &Outcome) {
        let Does::Block(Operation { action, and_read }) = &ask.does else { return };
        let whole = matches!(action, Action::Write(_) | Action::Remove);
        if outcome.refusal == Some(AskRefusal::Lost) {
            assert!(!whole || *and_read, "a whole write needs no content");
            let known = &self.content[&id];
            assert!(known.is_some(), "an absent block is not lost");
            self.losses += usize::from(self.lost.insert(id));
            return;
        }
        assert!((outcome.refusal, outcome.answer.done) == (None, true), "{outcome:?}");
        let content = self.content.entry(id).or_default();
        if *and_read || *action == Action::Read {
            assert!(!self.lost.contains(&id), "it was lost, and nobody wrote it");
            assert_eq!(outcome.answer.content, *content, "block {id}");
        }
        match action {
            Action::Read => {}
            Action::Remove => *content = None,
            action => action.write_to(content.get_or_insert_with(|| vec![0; BYTES])),
        }
        if whole {
            self.lost.remove(&id);
        }
    }
}

/// A bit of each damaged slot, by the table that has it.
type Damage = BTreeMap<TableSpot, (usize, u8)>;

/// Flips a bit of some slots that are whole.
fn damage(world: &mut World, rng: &mut SplitMix64, most: u64, damaged: &mut Damage) -> usize {
    let slot_bytes = world.config.slot_bytes();
    damaged.retain(|spot, _| world.server.tables.contains_key(&spot.home));
    let mut flips = 0;
    for _ in 0..most {
        let homes: Vec<TableHome> = world.server.tables.keys().copied().collect();
        let home = homes[rng.below(homes.len() as u64) as usize];
        let table = world.server.tables.get_mut(&home).expect("it lives");
        let slot = rng.below((table.len() / slot_bytes) as u64) as u32;
        let spot = TableSpot { home, slot: oblivio_engine::pyramid::TableSlot(slot) };
        let (at, bit) = (rng.below(slot_bytes as u64) as usize, 1 << rng.below(8));
        if damaged.insert(spot, (at, bit)).is_none() {
            table[slot as usize * slot_bytes + at] ^= bit;
            flips += 1;
        }
    }
    flips
}

/// Which asks are looked at follows from the damaged slots and from what was shown: those, and no
/// others, with all of their slots.
fn looks_follow(trace: &[Recorded], damaged: &Damage) {
    let is_wrong = |spots: &[TableSpot]| {
        let mut changes = BTreeMap::new();
        for change in spots.iter().filter_map(|spot| damaged.get(spot)) {
            *changes.entry(change.0).or_insert(0) ^= change.1;
        }
        changes.values().any(|bits| *bits != 0)
    };
    let (mut wanted, mut looked) = (Vec::new(), Vec::new());
    for recorded in trace {
        match recorded {
            Recorded::Show(asks) => {
                let wrong = asks.iter().filter(|ask| is_wrong(&ask.2));
                wanted.extend(wrong.flat_map(|ask| ask.2.clone()));
            }
            Recorded::Look(_, spots) => looked.extend(spots.clone()),
            _ => {}
        }
    }
    assert_eq!(looked, wanted);
}

fn one_ask(world: &mut World, expected: &mut Expected, id: u64, ask: Ask) {
    world.ask(0, ask.clone());
    world.settle().expect("damage stops nobody");
    let answers = world.answers.get(&Session(0)).expect("it asked");
    let (_, outcome) = answers.last().expect("it is answered");
    expected.check(id, &ask, outcome);
}

fn any_single(rng: &mut SplitMix64) -> (u64, Ask) {
    let (id, byte) = (rng.below(BLOCKS), rng.below(256) as u8);
    let ask = match rng.below(10) {
        0..=4 => ask(id, Action::Read, false),
        5 => ask(id, Action::Write(vec![byte; BYTES]), false),
        6 => ask(id, Action::Write(vec![byte; BYTES]), true),
        7 | 8 => ask(id, Action::Patch { offset: 3, bytes: vec![byte; 5] }, false),
        _ => ask(id, Action::Remove, false),
    };
    (id, ask)
}

/// Goes through a volume's life with damage, and returns how many slots were damaged and how many
/// blocks were lost.
fn volume(seed: u64) -> (usize, usize) {
    let (mut world, mut rng) = (World::new(7, 1, seed), SplitMix64::new(seed));
    let (content, lost) = (BTreeMap::new(), BTreeSet::new());
    let mut expected = Expected { content, lost, losses: 0 };
    for id in 0..BLOCKS {
        let write = ask(id, Action::Write(vec![id as u8; BYTES]), false);
        one_ask(&mut world, &mut expected, id, write);
    }
    let (mut flips, mut damaged) = (0, Damage::new());
    for round in 0..12 {
        let most = 1 + rng.below(6);
        flips += damage(&mut world, &mut rng, most, &mut damaged);
        for _ in 0..rng.below(60) {
            let (id, ask) = any_single(&mut rng);
            // Where tables lie is used again: what is damaged is looked up while it is there.
            damaged.retain(|spot, _| world.server.tables.contains_key(&spot.home));
            let (from, before) = (world.server.trace.len(), damaged.clone());
            one_ask(&mut world, &mut expected, id, ask);
            looks_follow(&world.server.trace[from..], &before);
            let built = |seen: &Recorded| match seen {
                Recorded::Build(home, _) => Some(*home),
                _ => None,
            };
            let built: BTreeSet<_> = world.server.trace[from..].iter().filter_map(built).collect();
            damaged.retain(|spot, _| !built.contains(&spot.home));
        }
        if round % 3 == 2 {
            world.kill().expect("a new scribe goes on from damaged tables");
        }
    }
    for id in 0..BLOCKS {
        one_ask(&mut world, &mut expected, id, ask(id, Action::Read, false));
    }
    assert!(expected.losses <= flips, "{} of {flips}", expected.losses);
    assert_eq!(broken(&world.server.trace, &world.config), None, "seed {seed}");
    for id in expected.lost.clone() {
        let write = ask(id, Action::Write(vec![7; BYTES]), false);
        one_ask(&mut world, &mut expected, id, write);
        one_ask(&mut world, &mut expected, id, ask(id, Action::Read, false));
    }
    assert!(expected.lost.is_empty(), "a whole write heals");
    (flips, expected.losses)
}

#[test]
fn a_damaged_slot_costs_its_block_and_the_server_sees_only_which_slots_it_damaged() {
    let (mut flips, mut losses) = (0, 0);
    for seed in seed(0)..seed(0) + scaled(20) {
        let (more, lost) = volume(seed);
        (flips, losses) = (flips + more, losses + lost);
    }
    println!("{flips} damaged slots: {losses} blocks lost");
    assert!(losses > 20, "{losses} of {flips}");
}

/// A transaction that needs a lost block is not carried out, and says which.
#[test]
fn a_transaction_with_a_lost_block_is_not_carried_out() {
    let mut world = World::new(7, 1, 3);
    for id in 0..BLOCKS {
        world.ask(0, ask(id, Action::Write(vec![1; BYTES]), false));
    }
    world.settle().expect("an honest server");
    for table in world.server.tables.values_mut() {
        table.fill(0);
    }
    for id in 0..BLOCKS {
        world.ask(0, ask(id, Action::Read, false));
    }
    world.settle().expect("damage stops nobody");
    let is_lost = |answer: &&(Seq, Outcome)| answer.1.refusal == Some(AskRefusal::Lost);
    let answers = &world.answers[&Session(0)][BLOCKS as usize..];
    let lost = answers.iter().position(|answer| is_lost(&answer)).expect("all slots are zeros");
    let there = answers.iter().position(|answer| !is_lost(&answer)).expect("one in the stash");
    let (lost, there) = (lost as u64, there as u64);
    world.kill().expect("a new scribe goes on");
    let change = |id| ask(id, Action::Write(vec![2; BYTES]), false);
    let compared = |id| change(id).only_if(Compare::Bytes(0, vec![1]));
    world.transaction(0, vec![change(there), compared(lost)]);
    world.ask(0, ask(there, Action::Read, false));
    world.transaction(0, vec![change(there), change(lost).only_if(Compare::Exists)]);
    world.ask(0, ask(lost, Action::Read, false));
    world.settle().expect("damage stops nobody");
    let answers = &world.answers[&Session(0)];
    let last: Vec<_> = answers[answers.len() - 6..].iter().map(|(_, outcome)| outcome).collect();
    assert!(!last[0].answer.done && last[0].refusal.is_none(), "{:?}", last[0]);
    assert_eq!(last[1].refusal, Some(AskRefusal::Lost));
    assert_eq!(last[2].answer.content, Some(vec![1; BYTES]), "nothing of it was carried out");
    assert!(last[3].answer.done && last[4].answer.done, "it exists, and is written as a whole");
    assert_eq!(last[5].answer.content, Some(vec![2; BYTES]));
}
