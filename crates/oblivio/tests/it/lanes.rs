//! Lanes: a volume of their own beside another one, which only their passphrase opens.

use super::facade::Room;
use oblivio::{CreateOptions, Disk, Error, Result, SeenBy, Volume};
use std::thread;

impl Room {
    /// A volume in one file, with a lane of a quarter.
    fn beside(&self) -> CreateOptions {
        let lanes = oblivio::LaneParameters { share: 4, ..Default::default() };
        let new = self.create().seen_by(SeenBy::Snapshots).one_file().size(16 << 20);
        new.lanes(Some(lanes)).lane_passphrase("hidden")
    }

    fn by(&self, passphrase: &str) -> Result<Volume> {
        self.open().open(self.place(), passphrase)
    }
}

/// Writes into the volume until a sync of its first lane returns.
fn carried(volume: &Volume) {
    carried_of(volume, 1);
}

/// The same of any.
fn carried_of(volume: &Volume, number: usize) {
    let lane = volume.lane(number).expect("it is open");
    thread::scope(|scope| {
        let synced = scope.spawn(|| lane.sync());
        for round in 0.. {
            volume.write("/carrier", &[round as u8; 100_000]).expect("there is room");
            volume.sync().expect("it is stored");
            if synced.is_finished() {
                break;
            }
        }
        synced.join().expect("no panic").expect("it was carried");
    });
}

#[test]
fn a_lane_is_there_for_its_passphrase_alone() -> Result<()> {
    let room = Room::new();
    let volume = room.beside().create(room.place(), "secret")?;
    volume.write("/shown", b"anybody may see this")?;
    let lane = volume.lane(1).expect("it was given a passphrase");
    lane.create_dir("/letters")?;
    lane.write("/letters/alice", b"See you on Sunday.")?;
    carried(&volume);
    assert_eq!(lane.lane_status().expect("it is a lane").waiting, 0);
    assert!(volume.lane_status().is_none() && volume.lane(2).is_none() && lane.lane(1).is_none());
    volume.close()?;

    let volume = room.by("secret")?;
    assert!(volume.lane(1).is_none());
    assert_eq!(volume.read("/shown")?, b"anybody may see this");
    assert!(!volume.exists("/letters")?);
    volume.write("/shown", b"changed without the lane")?;
    volume.close()?;

    let volume = room.by("hidden")?;
    assert_eq!(volume.read("/shown")?, b"changed without the lane");
    let lane = volume.lane(1).expect("its passphrase was given");
    assert_eq!(lane.read("/letters/alice")?, b"See you on Sunday.");
    let status = lane.lane_status().expect("it is a lane");
    assert!(status.bytes > 3 << 20 && status.grace_left_bytes <= status.grace_bytes);
    volume.close()?;
    assert!(matches!(room.by("neither"), Err(Error::WrongPassphrase)));
    Ok(())
}

#[test]
fn what_a_lane_has_not_carried_is_not_said_to_be_safe() -> Result<()> {
    let room = Room::new();
    let volume = room.beside().create(room.place(), "secret")?;
    volume.lane(1).expect("it is open").write("/much", &[7; 1 << 20])?;
    volume.write("/little", b"one")?;
    assert!(matches!(volume.close(), Err(Error::Full(_))));
    let volume = room.by("hidden")?;
    assert_eq!(volume.read("/little")?, b"one");
    volume.close()
}

#[test]
fn a_disk_may_have_a_lane_with_a_disk() -> Result<()> {
    let room = Room::new();
    let disk = room.beside().create_disk(room.place(), "secret", 8 << 20)?;
    let lane = disk.lane(1).expect("it was given a passphrase");
    lane.write_at(12_345, b"hidden sectors")?;
    for at in 0..400 {
        disk.write_at(at * 4096 % (8 << 20), &[at as u8; 4096])?;
        disk.sync()?;
    }
    assert_eq!(lane.lane_status().expect("it is a lane").waiting, 0);
    disk.close()?;
    let disk: Disk = room.open().open_disk(room.place(), "hidden")?;
    assert_eq!(disk.lane(1).expect("it is open").read_at(12_345, 14)?, b"hidden sectors");
    assert_eq!(disk.read_at(399 * 4096, 1)?, [399_u64 as u8]);
    disk.close()
}

#[test]
fn a_lane_that_was_synced_ends_well() -> Result<()> {
    let room = Room::new();
    // Its end has no room for all that the lane's end writes.
    let large = room.beside().size(256 << 20).lanes(Some(oblivio::LaneParameters::default()));
    large.create(room.place(), "secret")?.close()?;
    // Nobody wrote into it yet.
    room.by("hidden")?.close()?;
    let volume = room.by("hidden")?;
    volume.lane(1).expect("it is open").write("/letter", b"hidden")?;
    carried(&volume);
    volume.close()?;
    let volume = room.by("hidden")?;
    assert_eq!(volume.lane(1).expect("it is open").read("/letter")?, b"hidden");
    volume.close()
}

#[test]
fn one_thread_can_sync_a_lane_and_write_to_its_volume() -> Result<()> {
    let room = Room::new();
    let volume = room.beside().create(room.place(), "secret")?;
    let lane = volume.lane(1).expect("it was given a passphrase");
    lane.write("/letter", b"hidden")?;
    let carried = lane.begin_sync()?;
    while lane.lane_status().expect("it is a lane").waiting > 0 {
        volume.write("/carrier", &[1; 100_000])?;
        volume.sync()?;
    }
    carried()?;
    lane.write("/letter", &[7; 1 << 20])?;
    let (lost, file) = (lane.begin_sync()?, lane.open_file("/letter")?);
    assert!(matches!(volume.close(), Err(Error::Full(_))));
    assert!(matches!(lost(), Err(Error::Full(_))), "it says so at once");
    assert!(matches!(file.sync(), Err(Error::Closed(_))));
    room.by("hidden")?.close()
}

/// What was written without it counts as soon as it is open again.
#[test]
fn the_grace_that_is_left_is_told_at_once() -> Result<()> {
    let room = Room::new();
    let volume = room.beside().create(room.place(), "secret")?;
    let left = |volume: &Volume| {
        let status = volume.lane(1).and_then(Volume::lane_status).expect("it is open");
        (status.grace_left_bytes, status.grace_bytes)
    };
    assert_eq!(left(&volume).0, left(&volume).1, "nothing was written in it");
    volume.lane(1).expect("it is open").write("/letter", &[1; 100_000])?;
    carried(&volume);
    (0..20).try_for_each(|round| volume.write("/carrier", &vec![round; 1 << 20]))?;
    volume.close()?;
    let volume = room.by("secret")?;
    (0..3).try_for_each(|round| volume.write("/shown", &vec![round; 300_000]))?;
    volume.close()?;
    let volume = room.by("hidden")?;
    let (left, all) = left(&volume);
    assert!(left < all, "{left} of {all}");
    assert_eq!(volume.lane(1).expect("it is open").read("/letter")?, [1; 100_000]);
    volume.close()
}

/// The passphrase of the second opens both; that of the first is the next that one may give up.
#[test]
fn the_second_of_two_lanes_opens_the_first() -> Result<()> {
    let room = Room::new();
    let lanes = oblivio::LaneParameters { count: 2, share: 4, grace: 2, ..Default::default() };
    let new = room.beside().lanes(Some(lanes)).lane_passphrase("deeper");
    let volume = new.create(room.place(), "secret")?;
    for number in [1, 2] {
        let lane = volume.lane(number).expect("it was given a passphrase");
        lane.write("/letter", format!("of lane {number}").as_bytes())?;
        carried_of(&volume, number);
    }
    volume.close()?;
    for turn in 0..3 {
        let volume = room.by("secret")?;
        assert!(volume.lane(1).is_none() && volume.lane(2).is_none());
        volume.write("/shown", &[turn; 20_000])?;
        volume.close()?;

        let volume = room.by("hidden")?;
        let first = volume.lane(1).expect("it is its passphrase");
        assert!(volume.lane(2).is_none());
        first.write("/letter", format!("of lane 1, turn {turn}").as_bytes())?;
        carried_of(&volume, 1);
        volume.close()?;

        let volume = room.by("deeper")?;
        let [first, second] = [1, 2].map(|number| volume.lane(number).expect("both are open"));
        assert_eq!(first.read("/letter")?, format!("of lane 1, turn {turn}").as_bytes());
        let before = if turn == 0 { "of lane 2".into() } else { format!("of 2, {}", turn - 1) };
        assert_eq!(second.read("/letter")?, before.as_bytes());
        second.write("/letter", format!("of 2, {turn}").as_bytes())?;
        carried_of(&volume, 2);
        volume.close()?;
    }
    Ok(())
}

#[test]
fn a_lane_needs_a_passphrase_of_its_own() {
    let room = Room::new();
    let folder = room.create().lane_passphrase("hidden").create(room.place(), "secret");
    assert!(matches!(folder, Err(Error::Invalid(_))), "{folder:?}");
    let same = room.beside().create(room.place(), "hidden");
    assert!(matches!(same, Err(Error::Invalid(_))), "{same:?}");
    let two = room.beside().lane_passphrase("more").create(room.place(), "secret");
    assert!(two.is_err(), "it has one lane");
    assert!(!room.place().exists(), "nothing is left of what was refused");
}
