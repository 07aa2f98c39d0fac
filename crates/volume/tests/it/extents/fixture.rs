//! One tiny volume stays for ever and must open for ever; docs/format.md describes it.
//!
//! `just fixtures DIR` makes a new one.

use super::common::{BLOCKS, options};
use super::{Computer, contents, write};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{Objects, SyncFolder};
use oblivio_volume::extents::ExtentVolume;
use oblivio_volume::{BlockSpace, OpenOptions, Volume, Which};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn passphrase() -> Passphrase {
    Passphrase::new("secret")
}

#[test]
fn the_fixture_opens_and_takes_more() {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/extents");
    let dir = tempfile::tempdir().unwrap();
    for entry in from.read_dir().expect("the fixture") {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    let mut computer = Computer::new(3);
    let mut model: Vec<Option<u8>> = (0..BLOCKS).map(|id| Some(id as u8)).collect();
    for byte in [200, 201] {
        let store: Arc<dyn Objects> = Arc::new(SyncFolder::open(dir.path(), None).unwrap());
        let open = computer.session(Which::Newest);
        let mut volume = Volume::open(store, &passphrase(), open).expect("it opens");
        assert_eq!(contents(&mut volume), model);
        volume.access(vec![write(7, byte)]).unwrap();
        model[7] = Some(byte);
        volume.finish().unwrap();
    }
    // It has a second header now, and needs only one.
    let headers = || -> Vec<PathBuf> {
        let all = dir.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
        let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        all.filter(|path| named(path).starts_with("header-")).collect()
    };
    assert_eq!(headers().len(), 2);
    for lost in headers() {
        std::fs::write(&lost, vec![7; 1216]).unwrap();
        let store: Arc<dyn Objects> = Arc::new(SyncFolder::open(dir.path(), None).unwrap());
        let open = computer.session(Which::Newest);
        let mut volume = Volume::open(store, &passphrase(), open).expect("it opens");
        assert_eq!(volume.damaged().len(), 1, "{lost:?}");
        volume.access(vec![write(7, 202)]).unwrap();
        volume.finish().unwrap();
    }
    let open = computer.session(Which::Newest);
    let store: Arc<dyn Objects> = Arc::new(SyncFolder::open(dir.path(), None).unwrap());
    let volume = Volume::open(store, &passphrase(), open).expect("it opens");
    assert!(volume.damaged().is_empty() && headers().len() == 2, "{:?}", headers());
    drop(volume);
    // It has parities and a second entry: a computer that holds nothing misses no one file.
    let all = dir.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut tried = 0;
    for lost in all.filter(|path| path.is_file()).collect::<Vec<_>>() {
        let bytes = std::fs::read(&lost).unwrap();
        std::fs::remove_file(&lost).unwrap();
        let store: Arc<dyn Objects> = Arc::new(SyncFolder::open(dir.path(), None).unwrap());
        let mut other = Computer::new(900);
        let open = OpenOptions { incomplete: true, ..other.session(Which::Newest) };
        let mut volume =
            Volume::open(store, &passphrase(), open).unwrap_or_else(|it| panic!("{lost:?}: {it}"));
        model[7] = Some(202);
        assert_eq!(contents(&mut volume), model, "{lost:?}");
        std::fs::write(&lost, bytes).unwrap();
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

#[test]
#[ignore = "long: makes a new fixture"]
fn long_new_fixture() {
    let dir = PathBuf::from(std::env::var("OBLIVIO_WRITE_FIXTURES").expect("a folder to make"));
    let store = Arc::new(SyncFolder::create(dir.join("extents"), None).unwrap());
    let (open, quiet) = (OpenOptions::default(), &mut |_, _| {});
    let kdf = KdfParams::TEST;
    let made = ExtentVolume::create(store, &passphrase(), kdf, options(), open, quiet);
    let mut volume = made.expect("a new folder");
    for id in 0..BLOCKS {
        volume.access(vec![write(id, id as u8)]).unwrap();
    }
    volume.finish().unwrap();
}
