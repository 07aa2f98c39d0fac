//! A store to copy from: objects in a map, 20 ms away. See `docs/adding.md`.

use oblivio_store::{Capabilities, LeaseKind, Objects, Result, StoreError, check_name};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The way there and back.
const DELAY: Duration = Duration::from_millis(20);

/// The objects. A real store would have a client of some service here.
#[derive(Default)]
pub struct SlowMap(Mutex<BTreeMap<String, Vec<u8>>>);

impl SlowMap {
    /// The map, for a request about a name that stores take.
    fn request(&self, name: &str) -> Result<MutexGuard<'_, BTreeMap<String, Vec<u8>>>> {
        check_name(name)?;
        Ok(self.wait())
    }

    fn wait(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        std::thread::sleep(DELAY);
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects for SlowMap {
    /// Say what is true. A store on a network asks the service, and never assumes.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            // The map ends with the process.
            durable: false,
            replaces_atomically: false,
            // The lock of the map sees to it.
            creates_exclusively: true,
            writes_over: true,
            versions: false,
            frees_discarded: false,
            reserves_space: false,
            knows_free_space: false,
            lease: LeaseKind::Granted,
        }
    }

    fn put_new(&self, name: &str, data: &[u8]) -> Result<()> {
        let mut objects = self.request(name)?;
        if objects.contains_key(name) {
            return Err(StoreError::Exists { object: name.to_owned() });
        }
        objects.insert(name.to_owned(), data.to_vec());
        Ok(())
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let objects = self.request(name)?;
        let object = || name.to_owned();
        let found = objects.get(name).ok_or_else(|| StoreError::Missing { object: object() })?;
        let bytes = found.get(range.start as usize..range.end as usize);
        bytes.map(<[u8]>::to_vec).ok_or_else(|| StoreError::Short {
            object: object(),
            len: found.len() as u64,
            wanted: range.end,
        })
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.request(name)?.remove(name);
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let objects = self.wait();
        let found = objects.iter().filter(|(name, _)| name.starts_with(prefix));
        Ok(found.map(|(name, data)| (name.clone(), data.len() as u64)).collect())
    }
}
