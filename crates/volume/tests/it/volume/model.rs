//! Random events on a volume and on a plain map: round trips, a crash at every storage operation.

use super::{BYTES, created, passphrase, read, tight, write};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_testkit::CrashStore;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::{BlockSpace, Error, Volume};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Event {
    Access(Vec<(u64, Option<u8>)>),
    Defer(Vec<(u64, u8)>),
    Reserve(u64),
    Discard(u64, u64),
    /// This many idle steps, in which the volume may commit by itself.
    Idle(u8),
    Commit,
    Finish,
}

/// Writes enough blocks that the tree grows, so that a discard may make it shrink.
fn many(first: u64, fill: u8) -> Vec<(u64, Option<u8>)> {
    (first..first + 100).map(|id| (id, Some(fill))).collect()
}

fn any_events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let op = (0..200u64, proptest::option::of(1u8..));
    let event = prop_oneof![
        6 => proptest::collection::vec(op, 1..10).prop_map(Event::Access),
        1 => (1..200u64).prop_map(Event::Reserve),
        1 => (0..200u64, 1..200u64).prop_map(|(first, count)| Event::Discard(first, count)),
        1 => (0..100u64, 1u8..).prop_map(|(first, fill)| Event::Access(many(first, fill))),
        1 => (1..9u8).prop_map(Event::Idle),
        3 => proptest::collection::vec((0..200u64, 1u8..), 1..10).prop_map(Event::Defer),
        2 => Just(Event::Commit),
        1 => Just(Event::Finish),
    ];
    proptest::collection::vec(event, 1..most)
}

pub type Model = BTreeMap<u64, u8>;

/// A run of events against the model.
struct Run {
    model: Model,
    committed: Model,
    addressable: u64,
}

fn second_half(&(id, fill): &(u64, u8)) -> BlockOp {
    let action = Action::Patch { offset: BYTES / 2, bytes: vec![fill; BYTES - BYTES / 2] };
    BlockOp { id: BlockId(id), action }
}

impl Run {
    fn on(volume: &Volume, committed: &Model) -> Self {
        let info = volume.info().expect("memory");
        let addressable = info.report.number("addressable_blocks").expect("a tree");
        Self { model: committed.clone(), committed: committed.clone(), addressable }
    }

    fn access(&mut self, volume: &mut Volume, ops: &[(u64, Option<u8>)]) -> Result<(), Error> {
        let ops: Vec<_> = ops.iter().filter(|(id, _)| *id < self.addressable).collect();
        let asked = ops.iter().map(|(id, fill)| match fill {
            Some(fill) => write(*id, *fill),
            None => read(*id),
        });
        let answers = volume.access(asked.collect())?;
        for ((id, fill), answer) in ops.into_iter().zip(answers) {
            match fill {
                Some(fill) => drop(self.model.insert(*id, *fill)),
                None => assert_eq!(answer, self.model.get(id).map(|fill| vec![*fill; BYTES])),
            }
        }
        Ok(())
    }

    fn discard(&mut self, volume: &mut Volume, first: u64, count: u64) -> Result<(), Error> {
        let ids: Vec<u64> = (first..first + count).collect();
        volume.discard(&ids)?;
        self.model.retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Each write is half a block, so the rest must be kept.
    fn defer(&mut self, volume: &mut Volume, writes: &[(u64, u8)]) -> Result<(), Error> {
        let writes = writes.iter().filter(|(id, _)| *id < self.addressable);
        let half = |&(id, fill): &(u64, u8)| BlockOp {
            id: BlockId(id),
            action: Action::Patch { offset: 0, bytes: vec![fill; BYTES / 2] },
        };
        volume
            .defer(writes.clone().flat_map(|write| [half(write), second_half(write)]).collect())?;
        self.model.extend(writes.copied());
        Ok(())
    }

    /// Plays events until one fails; gives the states that a crash may leave.
    fn play(mut self, volume: &mut Volume, events: &[Event]) -> (Vec<Model>, bool) {
        for event in events {
            let epoch = volume.known().epoch;
            let (result, commits) = match event {
                Event::Access(ops) => (self.access(volume, ops), false),
                Event::Reserve(blocks) => (volume.reserve(*blocks), false),
                Event::Discard(first, count) => (self.discard(volume, *first, *count), false),
                Event::Defer(writes) => (self.defer(volume, writes), false),
                Event::Idle(times) => ((0..*times).try_for_each(|_| volume.idle().map(drop)), true),
                Event::Commit => (volume.commit(), true),
                Event::Finish => (volume.finish(), true),
            };
            if result.is_err() {
                // A commit that did not return may or may not have happened.
                let maybe = commits.then_some(self.model);
                return ([self.committed].into_iter().chain(maybe).collect(), false);
            }
            if let Event::Reserve(blocks) = event {
                self.addressable = self.addressable.max(blocks.next_power_of_two());
            }
            // An idle step need not commit; a sync with nothing to commit is durable all the same.
            if commits && (!matches!(event, Event::Idle(_)) || volume.known().epoch > epoch) {
                self.committed = self.model.clone();
            }
        }
        (vec![self.committed], true)
    }
}

pub fn content(volume: &mut Volume) -> Model {
    volume.reserve(200).expect("within the capacity");
    let answers = volume.access((0..200).map(read).collect()).expect("sound");
    let mut model = Model::new();
    for (id, answer) in answers.into_iter().enumerate() {
        if let Some(bytes) = answer {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a block is whole");
            model.insert(id as u64, bytes[0]);
        }
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(24) as u32))]

    #[test]
    fn volumes_answer_like_a_plain_map_and_survive_closing(
        sessions in proptest::collection::vec(any_events(20), 1..4),
    ) {
        let mut disk = created();
        let mut committed = Model::new();
        for events in &sessions {
            let store = Arc::new(disk.snapshot());
            let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
            prop_assert_eq!(&content(&mut volume), &committed);
            let (mut states, whole) = Run::on(&volume, &committed).play(&mut volume, events);
            prop_assert!(whole);
            committed = states.remove(0);
            disk = store.snapshot();
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(3) as u32))]

    /// The power fails in every storage operation of a run in turn; the result may have torn and
    /// reordered writes.
    #[test]
    fn a_crash_at_any_operation_loses_nothing_that_was_committed(
        events in any_events(14),
        seed in any::<u64>(),
    ) {
        let disk = created();
        let counting = Arc::new(CrashStore::holding(&disk));
        let mut volume = Volume::open(counting.clone(), &passphrase(), tight()).expect("sound");
        Run::on(&volume, &Model::new()).play(&mut volume, &events);
        drop(volume);
        for cut in 0..counting.operations() {
            let store = Arc::new(CrashStore::holding(&disk));
            store.crash_after(cut);
            let states = match Volume::open(store.clone(), &passphrase(), tight()) {
                Err(_) => vec![Model::new()],
                Ok(mut volume) if !store.crashed() => {
                    Run::on(&volume, &Model::new()).play(&mut volume, &events).0
                }
                Ok(_) => vec![Model::new()],
            };
            let mut left: Vec<_> = store.extremes().into_iter().map(|(_, disk)| disk).collect();
            left.extend((0..2).map(|n| store.survivors(seed.wrapping_add(n))));
            for disk in left {
                let mut volume = Volume::open(Arc::new(disk), &passphrase(), tight())
                    .expect("a crash leaves a volume that opens");
                volume.verify(&mut |_, _| {}).expect("clean");
                let found = content(&mut volume);
                prop_assert!(states.contains(&found), "found {found:?}, expected one of {states:?}");
            }
        }
    }
}
