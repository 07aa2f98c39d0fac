//! The disk cache of volumes in online stores: where it is, and how large.

use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_crypto::VolumeId;
use oblivio_store::{Held, LocalStore};
use oblivio_volume::CacheOptions;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most that it takes without being asked, and the share of the free space.
const MOST: u64 = 10 << 30;
const SHARE: u64 = 4;

/// The cache of a volume, of at most this many bytes; without a number, of a quarter of the free
/// space and at most 10 GiB. `None` where there is no room or no folder: then there is no cache.
pub fn of(volume: VolumeId, bytes: Option<u64>) -> Option<CacheOptions> {
    if bytes == Some(0) {
        return None;
    }
    in_folder(&folder()?, volume, bytes)
}

/// How large the cache of a new volume would be.
pub fn size(bytes: Option<u64>) -> u64 {
    bytes.or_else(|| usual(&store(&folder()?)?)).unwrap_or(0)
}

fn folder() -> Option<PathBuf> {
    Some(Xdg::new().ok()?.cache_dir().join("oblivio"))
}

fn store(folder: &Path) -> Option<LocalStore> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    LocalStore::open(folder).ok()
}

/// What is held counts as free, or a cache would shrink itself.
fn usual(store: &LocalStore) -> Option<u64> {
    let held: u64 = store.list().ok()?.iter().map(|(_, len)| len).sum();
    Some(((store.free_bytes().ok()?? + held) / SHARE).min(MOST))
}

fn in_folder(folder: &Path, volume: VolumeId, bytes: Option<u64>) -> Option<CacheOptions> {
    let store = store(&folder.join(volume.to_string()))?;
    let bytes = bytes.or_else(|| usual(&store))?;
    Some(CacheOptions { store: Arc::new(store), bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::WriteAt;

    #[test]
    fn a_volume_has_a_folder_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = |id, bytes| in_folder(folder.path(), VolumeId([id; 16]), bytes);
        let one = cache(1, Some(5)).expect("a folder can be made");
        assert_eq!(one.bytes, 5);
        one.store.write(&[WriteAt::new("b", 0, &[7; 100])]).expect("room");
        assert_eq!(cache(1, None).expect("again").store.list().expect("it").len(), 1);
        let two = cache(2, None).expect("a folder can be made");
        assert!(two.store.list().expect("it").is_empty());
        assert!(two.bytes > 0 && two.bytes <= MOST);
        assert!(of(VolumeId([1; 16]), Some(0)).is_none());
    }
}
