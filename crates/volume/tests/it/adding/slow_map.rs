//! A store to copy from: objects in a map, 20 ms away. See `docs/adding.md`.

use oblivio_store::{
    Capabilities, Held, Objects, PutMode, ReadAt, Result, StoreAnswer, StoreCall, StoreError,
    check_name,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The way there and back.
const DELAY: Duration = Duration::from_millis(20);

type Map = BTreeMap<String, Vec<u8>>;

/// The objects. A real store would have a client of some service here. Clones are connections to
/// the same service.
#[derive(Clone, Default)]
pub struct SlowMap(Arc<Mutex<Map>>);

impl SlowMap {
    /// A request about objects whose names stores take.
    fn request<'a>(&self, names: impl Iterator<Item = &'a str>) -> Result<MutexGuard<'_, Map>> {
        let mut names = names;
        names.try_for_each(check_name)?;
        std::thread::sleep(DELAY);
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Held for SlowMap {
    /// Say what is true. A store on a network asks the service, and never assumes.
    fn capabilities(&self) -> Capabilities {
        // The lock of the map sees to it.
        Capabilities { creates_exclusively: true, writes_over: false }
    }

    /// All ranges at once: a volume reads many objects side by side.
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let objects = self.request(reads.iter().map(|read| read.object))?;
        for ReadAt { object, offset, buf } in reads {
            let wanted = offset.checked_add(buf.len() as u64);
            let wanted = wanted.ok_or_else(|| StoreError::out_of_range(object))?;
            let found = objects.get(*object).ok_or_else(|| StoreError::missing(object))?;
            let bytes = found.get(*offset as usize..wanted as usize);
            let len = found.len() as u64;
            buf.copy_from_slice(bytes.ok_or_else(|| StoreError::short(object, len, wanted))?);
        }
        Ok(())
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        Ok(self.lens(&[object])?[0])
    }

    fn lens(&self, objects: &[&str]) -> Result<Vec<Option<u64>>> {
        let held = self.request(objects.iter().copied())?;
        let len = |name: &&str| held.get(*name).map(|data| data.len() as u64);
        Ok(objects.iter().map(len).collect())
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let held = self.request(std::iter::empty())?;
        Ok(held.iter().map(|(name, data)| (name.clone(), data.len() as u64)).collect())
    }
}

impl Objects for SlowMap {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        let mut held = self.request([object].into_iter())?;
        if mode == PutMode::IfAbsent && held.contains_key(object) {
            return Err(StoreError::Exists { object: object.to_owned() });
        }
        held.insert(object.to_owned(), data.to_vec());
        Ok(())
    }

    /// One request for all of them. A store that sends them in the background waits in `settle`.
    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        let mut held = self.request(objects.iter().map(|object| object.0))?;
        held.extend(objects.iter().map(|(name, data)| ((*name).to_owned(), data.to_vec())));
        Ok(())
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        let mut held = self.request(objects.iter().copied())?;
        objects.iter().for_each(|name| drop(held.remove(*name)));
        Ok(())
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_objects(self)
    }
}
