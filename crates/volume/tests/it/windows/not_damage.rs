//! What is no damage is never taken for it: a window would write paths without their blocks.

use super::{contents, create, fill, open, read};
use oblivio_store::{
    Held, Layer, MemoryStore, Objects, PutMode, Result, StoreAnswer, StoreCall, StoreError,
};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

/// What is wrong with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// It answers "not there" to everything.
    Nowhere,
    /// The same, to reads: it still says that objects are there.
    Contradicts,
    /// Another bucket is behind the name, with an older copy of the volume.
    Older,
    /// The credentials ran out.
    Refuses,
    /// It does not answer.
    Silent,
    /// Another computer takes the volume over, and deletes what it replaced.
    TakenOver,
}

struct Service {
    inner: Arc<MemoryStore>,
    older: Mutex<MemoryStore>,
    fault: Mutex<Fault>,
}

impl Service {
    fn new() -> Self {
        let (inner, older) = (Arc::new(MemoryStore::new()), Mutex::new(MemoryStore::new()));
        Self { inner, older, fault: Mutex::new(Fault::Nothing) }
    }

    fn set(&self, fault: Fault) {
        *self.fault.lock().expect("no panic") = fault;
    }
}

impl Layer for Service {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let fault = *self.fault.lock().expect("no panic");
        let io = |kind: ErrorKind| Err(StoreError::service("a", kind, "no".into()));
        let asks = matches!(call, StoreCall::Len(_) | StoreCall::Lens(_) | StoreCall::Read(_));
        match (fault, &mut *call) {
            (Fault::Refuses, _) => return io(ErrorKind::PermissionDenied),
            (Fault::Silent, _) => return io(ErrorKind::TimedOut),
            (Fault::Nowhere | Fault::Contradicts, StoreCall::Read(reads)) => {
                return Err(StoreError::missing(reads[0].object));
            }
            (Fault::Nowhere, StoreCall::Len(_)) => return Ok(StoreAnswer::Number(None)),
            (Fault::Nowhere, StoreCall::Lens(names)) => {
                return Ok(StoreAnswer::Numbers(vec![None; names.len()]));
            }
            (Fault::Older, _) if asks => return call.on(&*self.older.lock().expect("no panic")),
            (Fault::TakenOver, StoreCall::Read(_)) => {
                self.set(Fault::Nothing);
                let mut other = open(self.inner.clone(), 77).expect("the other computer");
                fill(&mut other, &mut SplitMix64::new(9), 200);
                other.finish().expect("memory");
            }
            _ => {}
        }
        call.on(&*self.inner)
    }
}

#[test]
fn an_outage_in_the_middle_costs_nothing() {
    for exclusive in [true, false] {
        for fault in [
            Fault::Nowhere,
            Fault::Contradicts,
            Fault::Older,
            Fault::Refuses,
            Fault::Silent,
            Fault::TakenOver,
        ] {
            let service = Arc::new(Service::new());
            let mut volume = create(service.clone(), exclusive, 1);
            fill(&mut volume, &mut SplitMix64::new(1), 200);
            volume.finish().expect("memory");
            drop(volume);
            *service.older.lock().expect("no panic") = service.inner.snapshot();
            let mut volume = open(service.clone(), 2).expect("sound");
            let model = fill(&mut volume, &mut SplitMix64::new(2), 300);
            let before = contents(&mut volume);
            assert!(model.iter().zip(&before).all(|(set, is)| set.is_none() || set == is));
            service.set(fault);
            // However long it goes on: no block counts as lost, and nothing is written.
            let failed = (0..400).find_map(|step| volume.access(vec![read(step % 200)]).err());
            let failed = failed.expect("buckets had to be read");
            match fault {
                Fault::TakenOver => assert!(matches!(failed, Error::Overtaken), "{failed}"),
                _ => assert!(matches!(failed, Error::Store(_)), "{fault:?}: {failed}"),
            }
            assert_eq!(volume.damaged(), [], "{fault:?}");
            assert!(volume.access(vec![read(0)]).is_err(), "it is closed");
            drop(volume);
            service.set(Fault::Nothing);
            let mut volume = open(service.clone(), 3).expect("as it was");
            if fault != Fault::TakenOver {
                assert_eq!(contents(&mut volume), before, "{fault:?}");
            }
            volume.verify(&mut |_, _| {}).expect("sound");
        }
    }
}

/// The same at the opening.
#[test]
fn a_part_that_is_not_shown_for_a_while_stays_what_it_is() {
    let service = Arc::new(Service::new());
    let mut volume = create(service.clone(), true, 1);
    let model = fill(&mut volume, &mut SplitMix64::new(1), 200);
    volume.finish().expect("memory");
    drop(volume);
    let (part, _) = service.inner.list_under("p-").expect("memory").pop().expect("a part");
    let mut bytes = vec![0; service.inner.len(&part).expect("memory").expect("there") as usize];
    let whole = oblivio_store::ReadAt { object: &part, offset: 0, buf: &mut bytes };
    service.inner.read(&mut [whole]).expect("there");
    service.inner.delete(&[&part]).expect("memory");
    let mut volume = open(service.clone(), 2).expect("made again");
    // It arrives late, and is the same.
    service.inner.put(&part, &bytes, PutMode::Replace).expect("memory");
    assert_eq!(contents(&mut volume), model);
    volume.finish().expect("memory");
    drop(volume);
    let mut volume = open(service, 3).expect("sound");
    assert_eq!(contents(&mut volume), model);
}
