//! Objects that have begun: their bytes are kept until the service has them.
//!
//! A failed one is sent again by the next settle, with the same bytes. So a retry never needs new
//! bytes, and no name is ever sent with two contents.

use super::failure::Failure;
use oblivio_store::{Result, StoreError};
use opendal::Buffer;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Sends the bytes of an object, and later calls [`Begun::ended`].
pub(super) type Send<'a> = &'a dyn Fn(&str, Buffer);

#[derive(Debug, Default)]
pub(super) struct Begun {
    writes: Mutex<BTreeMap<String, Write>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Write {
    data: Buffer,
    fate: Fate,
}

#[derive(Debug)]
enum Fate {
    Going,
    /// The error, and whether a settle has reported it.
    Failed(Failure, bool),
}

impl Write {
    fn is_going(&self) -> bool {
        matches!(self.fate, Fate::Going)
    }
}

impl Begun {
    /// Begins to send an object. The same bytes under the same name are already on their way.
    pub(super) fn begin(&self, name: &str, data: Buffer, send: Send<'_>) -> Result<()> {
        let mut writes = self.writes();
        if let Some(write) = writes.get(name) {
            let same = write.data.len() == data.len() && write.data.to_bytes() == data.to_bytes();
            let why = "other bytes of this object are being sent: sync it first";
            return if same { Ok(()) } else { Err(StoreError::refused(name, why)) };
        }
        writes.insert(name.to_owned(), Write { data: data.clone(), fate: Fate::Going });
        drop(writes);
        send(name, data);
        Ok(())
    }

    /// The service has answered.
    pub(super) fn ended(&self, name: &str, answer: std::result::Result<(), Failure>) {
        let mut writes = self.writes();
        match answer {
            Ok(()) => drop(writes.remove(name)),
            Err(failure) => {
                if let Some(write) = writes.get_mut(name) {
                    write.fate = Fate::Failed(failure, false);
                }
            }
        }
        self.changed.notify_all();
    }

    /// Waits for these objects. One whose failure is known already is sent again first.
    pub(super) fn settle(&self, names: &[&str], send: Send<'_>) -> Result<()> {
        let mut again = Vec::new();
        let mut writes = self.writes();
        for name in names {
            if let Some(write) = writes.get_mut(*name)
                && matches!(write.fate, Fate::Failed(_, true))
            {
                write.fate = Fate::Going;
                again.push((*name, write.data.clone()));
            }
        }
        drop(writes);
        for (name, data) in again {
            send(name, data);
        }
        let mut writes = self.wait(|name| names.contains(&name));
        let mut first = Ok(());
        for name in names {
            if let Some(Write { fate: Fate::Failed(failure, told), .. }) = writes.get_mut(*name) {
                *told = true;
                first = first.and_then(|()| Err(failure.about(name)));
            }
        }
        first
    }

    /// Waits until none of these objects is being sent.
    pub(super) fn wait_for(&self, names: &[&str]) {
        drop(self.wait(|name| names.contains(&name)));
    }

    /// Waits until no object whose name begins so is being sent.
    pub(super) fn wait_under(&self, prefix: &str) {
        drop(self.wait(|name| name.starts_with(prefix)));
    }

    /// Gives up on these objects, which nobody sends any more.
    pub(super) fn forget(&self, names: &[&str]) {
        self.wait(|name| names.contains(&name)).retain(|name, _| !names.contains(&&**name));
    }

    fn wait(&self, of: impl Fn(&str) -> bool) -> MutexGuard<'_, BTreeMap<String, Write>> {
        let mut writes = self.writes();
        while writes.iter().any(|(name, write)| write.is_going() && of(name)) {
            writes = self.changed.wait(writes).unwrap_or_else(PoisonError::into_inner);
        }
        writes
    }

    fn writes(&self) -> MutexGuard<'_, BTreeMap<String, Write>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn buffer(bytes: &str) -> Buffer {
        Buffer::from(bytes.to_owned())
    }

    #[test]
    fn a_failed_write_is_told_once_and_then_sent_again_with_the_same_bytes() {
        let (begun, sent) = (Begun::default(), RefCell::new(Vec::new()));
        let send = |name: &str, data: Buffer| {
            sent.borrow_mut().push((name.to_owned(), data.to_vec()));
            let failed = sent.borrow().len() < 3;
            begun.ended(name, if failed { Err(Failure::cut()) } else { Ok(()) });
        };
        begun.begin("a", buffer("one"), &send).unwrap();
        begun.begin("a", buffer("one"), &send).unwrap();
        assert_eq!(sent.borrow().len(), 1, "the same bytes are sent once");
        assert!(begun.begin("a", buffer("two"), &send).is_err(), "never two contents");
        assert!(begun.settle(&["a"], &send).unwrap_err().may_pass());
        assert_eq!(sent.borrow().len(), 1, "the first one tells");
        assert!(begun.settle(&["a", "b"], &send).unwrap_err().may_pass());
        begun.settle(&["a"], &send).unwrap();
        begun.settle(&["a"], &send).unwrap();
        assert_eq!(*sent.borrow(), vec![("a".to_owned(), b"one".to_vec()); 3]);
        assert!(begun.writes().is_empty(), "the bytes are kept no longer");
    }

    #[test]
    fn what_is_deleted_is_not_sent_again() {
        let begun = Begun::default();
        let send = |name: &str, _: Buffer| begun.ended(name, Err(Failure::cut()));
        begun.begin("a", buffer("one"), &send).unwrap();
        begun.forget(&["a"]);
        begun.settle(&["a"], &send).unwrap();
    }
}
