//! The examples run: their own functions, on volumes of this test.

#[path = "../../examples/backup.rs"]
#[expect(dead_code, reason = "its `main` is run by people")]
mod backup;
#[path = "../../examples/image.rs"]
#[expect(dead_code, reason = "its `main` is run by people")]
mod image;
#[cfg(feature = "share")]
#[path = "../../examples/log.rs"]
#[expect(dead_code, reason = "its `main` is run by people")]
mod log;
#[path = "../../examples/notes.rs"]
#[expect(dead_code, reason = "its `main` is run by people")]
mod notes;

use super::facade::Room;
use oblivio::{Passphrase, Result, Volume};
use std::fs;

#[test]
fn notes_are_kept() -> Result<()> {
    let room = Room::new();
    room.volume().close()?;
    let volume = notes::open(&room.place(), "secret", room.open())?;
    assert_eq!(notes::show(&volume, "garden")?, "");
    notes::add(&volume, "garden", "Plant the beans.")?;
    notes::add(&volume, "garden", "Water them.")?;
    volume.close()?;
    let volume = notes::open(&room.place(), "secret", room.open())?;
    assert_eq!(notes::show(&volume, "garden")?, "Plant the beans.\nWater them.\n");
    volume.close()
}

/// Into a folder that a sync client copies, as into any other place.
#[test]
fn a_backup_copies_what_is_new() -> Result<()> {
    let room = Room::new();
    let folder = room.0.path().join("letters");
    fs::create_dir_all(folder.join("old/older")).expect("a folder");
    fs::write(folder.join("new"), b"See you on Sunday.").expect("a file");
    fs::write(folder.join("old/older/long"), vec![7; 2_500_000]).expect("a file");
    let volume = room.create().sync_folder().create(room.place(), "secret")?;
    let copy = |volume: &Volume| backup::copy_new(&folder, volume).expect("copied");
    assert_eq!(copy(&volume), 2);
    assert_eq!(copy(&volume), 0);
    fs::write(folder.join("new"), b"See you on Monday, and bring the letters.").expect("a file");
    volume.close()?;
    let volume = room.again()?;
    assert_eq!(copy(&volume), 1);
    assert_eq!(volume.read("/new")?, b"See you on Monday, and bring the letters.");
    assert_eq!(volume.read("/old/older/long")?, vec![7; 2_500_000]);
    volume.close()
}

#[test]
fn an_image_becomes_a_disk() -> Result<()> {
    let room = Room::new();
    let mut content = vec![0; 3_000_001];
    content[2_000_000..].fill(9);
    let stored = image::store(
        &mut &content[..],
        content.len() as u64,
        &room.place(),
        Passphrase::from("secret"),
        room.create(),
    );
    let disk = stored.expect("stored");
    assert_eq!(disk.len(), 3_000_001_u64.next_multiple_of(512));
    disk.close()?;
    let disk = room.open().open_disk(room.place(), "secret")?;
    assert_eq!(disk.read_at(0, content.len())?, content);
    disk.close()
}

#[cfg(feature = "share")]
#[test]
#[ignore = "system: listens on a port"]
fn two_computers_append_to_one_log() -> Result<()> {
    let team = super::shared::Team::new();
    let place = team.place("team");
    let first = log::open(&place, "secret", team.first("anna", "team"))?;
    log::append(&first, "one")?;
    let second = log::open(&place, "secret", team.first("ben", "team"))?;
    log::append(&second, "two")?;
    assert_eq!(log::lines(&second)?, ["one", "two"]);
    second.close()?;
    first.close()
}
