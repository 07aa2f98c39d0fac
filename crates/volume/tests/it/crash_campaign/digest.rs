//! What disks held, in one number.

use oblivio_store::{Held, MemoryStore, ReadAt};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Of all disks so far, in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// One disk more, with the names and bytes of its objects.
    pub fn take(&mut self, disk: &MemoryStore) {
        // Its keys are fixed.
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        let mut objects = disk.list().expect("memory");
        objects.sort();
        for (object, len) in &objects {
            let mut buf = vec![0; *len as usize];
            disk.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }]).expect("memory");
            (object, buf).hash(&mut hasher);
        }
        self.0 = hasher.finish();
    }
}
