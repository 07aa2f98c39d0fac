//! A read that fails is repeated as it was, and only if no other computer began meanwhile.

use super::{contents, create, fill, open};
use oblivio_store::{
    Layer, MemoryStore, Patience, Result, RetryStore, Store, StoreAnswer, StoreCall, StoreError,
};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{BlockSpace, Error};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The object, offset and length of each range of a read.
type Ranges = Vec<(String, u64, usize)>;

/// A store whose next read fails, and in whose outage another computer may begin.
struct Broken {
    inner: Arc<MemoryStore>,
    breaks: AtomicBool,
    taken_over: bool,
    reads: Mutex<Vec<Ranges>>,
}

impl Layer for Broken {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if let StoreCall::Read(reads) = call {
            let ranges = reads.iter().map(|it| (it.object.to_owned(), it.offset, it.buf.len()));
            self.reads.lock().expect("no panic").push(ranges.collect());
            if self.breaks.swap(false, Ordering::SeqCst) {
                if self.taken_over {
                    drop(open(self.inner.clone(), 77).expect("the other computer"));
                }
                return Err(StoreError::io("a", ErrorKind::TimedOut.into()));
            }
        }
        call.on(&*self.inner)
    }
}

#[test]
fn a_failed_read_is_repeated_whole_unless_another_computer_took_over() {
    for taken_over in [false, true] {
        let (inner, reads) = (Arc::new(MemoryStore::new()), Mutex::default());
        let broken = Broken { inner, breaks: AtomicBool::new(false), taken_over, reads };
        let broken = Arc::new(broken);
        let (below, patience): (Arc<dyn Store>, _) = (broken.clone(), Patience::default());
        let most = Duration::from_secs(60);
        let store = RetryStore::online(below, patience, most, Box::new(|_| {}));
        let mut volume = create(Arc::new(store), true, 1);
        let model = fill(&mut volume, &mut SplitMix64::new(1), 150);
        volume.commit().expect("no outage");
        broken.reads.lock().expect("no panic").clear();
        broken.breaks.store(true, Ordering::SeqCst);
        if taken_over {
            let error = volume.access(vec![super::read(7), super::read(99)]);
            let error = error.expect_err("another computer has it");
            assert!(matches!(error, Error::Overtaken), "{error}");
            // What the other one read is not in the list: it is below.
            assert_eq!(broken.reads.lock().expect("no panic").len(), 1, "nothing was shown again");
            assert!(matches!(volume.commit(), Err(Error::Overtaken)));
        } else {
            assert_eq!(contents(&mut volume), model);
            let reads = broken.reads.lock().expect("no panic");
            assert!(!reads[0].is_empty() && reads[0] == reads[1], "the same request");
        }
    }
}
