//! Work that several threads do together.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// How many threads may work on something: two, where there are so many cores. More would wait for the
/// store all the same.
pub(crate) fn hands() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(2))
}

/// Does all parts, one for each thread if the system has room for them.
pub(crate) fn together<P: Send>(parts: Vec<P>, run: impl Fn(P) + Sync) {
    let helpers = parts.len().saturating_sub(1);
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(part) = next() {
            run(part);
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // Whatever nobody else does is done here.
            let _ = thread::Builder::new().name("sealing".into()).spawn_scoped(scope, work);
        }
        work();
    });
}
