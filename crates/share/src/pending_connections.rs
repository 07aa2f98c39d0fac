//! Connections of nobody known: they must cost little and keep nobody out. So they have a limit of
//! their own, and at the limit the oldest one goes. A real client leaves this set at once.

use crate::stream::Stream;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connections, in order of arrival.
pub struct PendingConnections {
    inside: Mutex<(u64, BTreeMap<u64, Stream>)>,
    most: usize,
}

impl PendingConnections {
    /// At most `most` of them.
    pub fn new(most: usize) -> Self {
        Self { inside: Mutex::default(), most }
    }

    fn inside(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Stream>)> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in, and cuts the oldest one for it. Returns its number.
    pub fn enter(&self, stream: Stream) -> u64 {
        let mut inside = self.inside();
        let (next, streams) = &mut *inside;
        if streams.len() >= self.most
            && let Some((_, oldest)) = streams.pop_first()
        {
            oldest.cut();
        }
        *next += 1;
        streams.insert(*next, stream);
        *next
    }

    /// Removes one that is known now, or gone.
    pub fn leave(&self, number: u64) {
        self.inside().1.remove(&number);
    }

    /// Cuts all of them.
    pub fn cut_all(&self) {
        self.inside().1.values().for_each(Stream::cut);
    }
}
