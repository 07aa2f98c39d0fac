//! Whole files and directories: appended to, copied, listed and removed.

use super::facade::Room;
use oblivio::{Disk, Error, File, Result, Volume};
use std::collections::BTreeSet;

#[test]
fn what_is_appended_follows_what_is_there() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    volume.append("/log", b"one ")?;
    volume.append("/log", b"two ")?;
    let file = volume.open_file("/log")?;
    file.append(b"three")?;
    volume.append("/log", b"")?;
    assert_eq!(volume.read("/log")?, b"one two three");
    assert!(matches!(volume.append("/none/log", b"x"), Err(Error::NotFound(_))));
    assert!(matches!(volume.append("/", b"x"), Err(Error::IsADirectory(_))));
    drop(file);
    volume.close()?;
    assert_eq!(room.again()?.read("/log")?, b"one two three");
    Ok(())
}

#[test]
fn a_copy_is_a_file_of_its_own() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    let content: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    volume.write("/a", &content)?;
    volume.write("/b", b"something longer than nothing")?;
    assert_eq!(volume.copy("/a", "/b")?, 3_000_000);
    assert_eq!(volume.copy("/a", "/new")?, 3_000_000);
    volume.write_at("/a", 0, b"changed")?;
    assert_eq!(volume.read("/b")?, content);
    assert_eq!(volume.read("/new")?, content);
    volume.write("/short", b"short")?;
    assert_eq!(volume.copy("/short", "/b")?, 5);
    assert_eq!(volume.read("/b")?, b"short");
    assert!(matches!(volume.copy("/b", "/b"), Err(Error::Invalid(_))));
    assert_eq!(volume.read("/b")?, b"short", "it was not cut off");
    assert!(matches!(volume.copy("/none", "/b"), Err(Error::NotFound(_))));
    volume.create_dir("/dir")?;
    assert!(matches!(volume.copy("/b", "/dir"), Err(Error::IsADirectory(_))));
    assert!(matches!(volume.copy("/dir", "/c"), Err(Error::IsADirectory(_))));
    volume.close()
}

/// More names than are read together, and some are removed meanwhile.
#[test]
fn a_large_directory_is_listed_as_it_is_read() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    volume.create_dir("/many")?;
    for at in 0..2500 {
        volume.create_file(format!("/many/{at:04}"))?;
    }
    let mut listed = Vec::new();
    for entry in volume.list("/many")? {
        let entry = entry?;
        assert!(!entry.is_dir());
        listed.push(entry.name().to_string_lossy().into_owned());
    }
    assert_eq!(listed, (0..2500).map(|at| format!("{at:04}")).collect::<Vec<_>>());

    let mut entries = volume.list("/many")?;
    assert_eq!(entries.next().expect("the first")?.path().to_str(), Some("/many/0000"));
    for at in 2000..2500 {
        volume.remove(format!("/many/{at:04}"))?;
    }
    let rest = entries.by_ref().collect::<Result<Vec<_>>>()?;
    let once: BTreeSet<_> = rest.iter().map(|entry| entry.name().to_owned()).collect();
    assert_eq!((rest.len(), once.len()), (1999, 1999));
    assert!(entries.next().is_none());

    let mut cut_short = volume.list("/many")?;
    volume.close()?;
    let ended = cut_short.by_ref().find_map(Result::err);
    assert!(matches!(ended, Some(Error::Closed(_))) && cut_short.next().is_none());
    Ok(())
}

#[test]
fn a_directory_is_removed_with_all_that_is_in_it() -> Result<()> {
    let room = Room::new();
    let volume = room.volume();
    for above in ["/tree", "/tree/a", "/tree/b", "/tree/b/c/d/e", "/beside"] {
        volume.create_dir_all(above)?;
        for at in 0..20 {
            volume.write(format!("{above}/{at}"), b"x")?;
        }
    }
    for at in 0..1100 {
        volume.create_file(format!("/tree/b/many{at}"))?;
    }
    assert!(matches!(volume.remove_dir_all("/beside/1"), Err(Error::NotADirectory(_))));
    assert!(matches!(volume.remove_dir_all("/none"), Err(Error::NotFound(_))));
    assert!(matches!(volume.remove_dir_all("/"), Err(Error::Invalid(_))));
    volume.remove_dir_all("/tree")?;
    volume.close()?;
    let volume = room.again()?;
    let left = volume.list("/")?.collect::<Result<Vec<_>>>()?;
    assert_eq!(left.iter().map(|entry| entry.name()).collect::<Vec<_>>(), ["beside"]);
    assert_eq!(volume.list("/beside")?.count(), 20);
    volume.close()
}

/// The crate's documentation promises it.
#[test]
fn handles_go_to_other_threads() {
    fn goes<T: Send + Sync>() {}
    goes::<Volume>();
    goes::<File>();
    goes::<Disk>();
    goes::<oblivio::Entries>();
}
