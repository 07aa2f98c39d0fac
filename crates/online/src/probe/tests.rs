//! The probe against stores that lie.

use super::*;
use crate::{OnlineStore, Runtime, in_memory};
use oblivio_store::Objects;
use oblivio_store::{Layer, PutMode, ReadAt, StoreAnswer, StoreCall, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const QUICK: Effort = Effort { racers: 8, rounds: 6, pings: 3, bytes: 300_000 };

/// What a liar does.
#[derive(Clone, Copy, Debug, Default)]
struct Lies {
    /// Each third entry is missing in lists.
    lists: bool,
    /// A put over an object that is there succeeds.
    creates: bool,
    /// Ranges begin at the object's beginning.
    ranges: bool,
    /// "Not there" is said once more.
    absent: bool,
}

struct Liar {
    below: OnlineStore,
    lies: Lies,
    said_absent: Arc<std::sync::Mutex<std::collections::BTreeSet<String>>>,
}

impl Layer for Liar {
    type Below = OnlineStore;

    fn below(&self) -> &OnlineStore {
        &self.below
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Put(name, data, PutMode::IfAbsent) if self.lies.creates => {
                StoreCall::Put(name, data, PutMode::Replace).on(&self.below)
            }
            StoreCall::ListUnder(_) if self.lies.lists => match call.on(&self.below)? {
                StoreAnswer::Objects(all) => {
                    let kept = all.into_iter().enumerate().filter(|it| it.0 % 3 != 2);
                    Ok(StoreAnswer::Objects(kept.map(|it| it.1).collect()))
                }
                other => Ok(other),
            },
            StoreCall::Read(reads) if self.lies.ranges => {
                for read in reads.iter_mut() {
                    let (object, buf) = (read.object, &mut *read.buf);
                    StoreCall::Read(&mut [ReadAt { object, offset: 0, buf }]).on(&self.below)?;
                }
                Ok(StoreAnswer::Done)
            }
            StoreCall::Len(name) if self.lies.absent => {
                let mut said = self.said_absent.lock().unwrap();
                let answer = StoreCall::Len(name).on(&self.below)?;
                match answer {
                    StoreAnswer::Number(Some(_)) if said.remove(*name) => {
                        Ok(StoreAnswer::Number(None))
                    }
                    StoreAnswer::Number(None) => {
                        said.insert((*name).to_owned());
                        Ok(answer)
                    }
                    _ => Ok(answer),
                }
            }
            _ => call.on(&self.below),
        }
    }
}

fn verdict(lies: Lies) -> ProbeVerdict {
    let runtime = Runtime::new().unwrap();
    let store = in_memory(&runtime).unwrap();
    // What a trial left that was killed goes as well.
    store.put("probe-0123456789abcdef-a0-0", b"left", PutMode::Replace).unwrap();
    let said_absent = Arc::default();
    let connect = || {
        let (below, said_absent) = (store.clone(), Arc::clone(&said_absent));
        Ok(Box::new(Liar { below, lies, said_absent }) as Box<dyn Objects>)
    };
    let ticks = AtomicUsize::new(0);
    let clock = || Duration::from_millis(ticks.fetch_add(1, Ordering::SeqCst) as u64);
    let verdict = probe(&connect, QUICK, "t1", &clock).unwrap();
    assert!(oblivio_store::Held::list(&store).unwrap().is_empty(), "it removes what it stored");
    verdict
}

#[test]
fn an_honest_store_is_used_by_creating() {
    let found = verdict(Lies::default());
    assert_eq!(found.begin, Begin::Exclusive);
    assert_eq!(found.creates, Some(Race { rounds: 6, several_won: 0, nobody_won: 0 }));
    assert_eq!((found.alone.rounds, found.alone.several_won), (6, 0));
    assert_eq!(found.listed, LostCounts { of: 6 + 6 * 8, lost: 0 });
    assert_eq!(found.ranges, LostCounts { of: 8, lost: 0 });
    assert_eq!(found.speed.ping, Duration::from_millis(1));
    assert_eq!(found.speed.up, 300_000_000);
    assert_eq!(found.lines().len(), 9);
}

#[test]
fn a_liar_is_never_trusted_with_what_it_lies_about() {
    let lies = Lies { creates: true, ..Lies::default() };
    let found = verdict(lies);
    assert_eq!(found.begin, Begin::Alone);
    assert_eq!(found.creates.unwrap().several_won, 6);
    let found = verdict(Lies { lists: true, ..Lies::default() });
    assert_eq!(found.begin, Begin::Exclusive, "lists are not needed then");
    assert!(found.listed.lost > 0);
    let found = verdict(Lies { absent: true, ..Lies::default() });
    assert_eq!(found.begin, Begin::Alone);
    assert_eq!(found.absent_kept.lost, 5);
}

#[test]
fn a_store_that_loses_list_entries_and_creates_nothing_alone_is_refused() {
    let refused = |lies, why: &str| {
        let found = verdict(lies);
        assert!(matches!(found.begin, Begin::Refused(_)), "{found:?}");
        assert!(found.lines()[0].contains(why), "{:?}", found.lines());
    };
    let lies = Lies::default();
    refused(Lies { lists: true, creates: true, ..lies }, "lists are incomplete");
    refused(Lies { lists: true, absent: true, ..lies }, "not there");
    refused(Lies { ranges: true, ..lies }, "ranges");
}

#[test]
fn a_service_that_fails_is_no_verdict() {
    let connect = || Err(StoreError::Busy);
    assert!(probe(&connect, QUICK, "t1", &|| Duration::ZERO).is_err());
}
