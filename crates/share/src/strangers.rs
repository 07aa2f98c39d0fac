//! Connections of nobody known: they must cost little and keep nobody out. So they have a limit of
//! their own, and at the limit the oldest one goes. A real client leaves this set at once.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connections, in order of arrival.
pub struct Strangers {
    inside: Mutex<(u64, BTreeMap<u64, TcpStream>)>,
    most: usize,
}

impl Strangers {
    /// At most `most` of them.
    pub fn new(most: usize) -> Self {
        Self { inside: Mutex::default(), most }
    }

    fn inside(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, TcpStream>)> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in, and cuts the oldest one for it. Returns its number.
    pub fn enter(&self, stream: TcpStream) -> u64 {
        let mut inside = self.inside();
        let (next, streams) = &mut *inside;
        if streams.len() >= self.most
            && let Some((_, oldest)) = streams.pop_first()
        {
            let _ = oldest.shutdown(Shutdown::Both);
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
        for stream in self.inside().1.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
