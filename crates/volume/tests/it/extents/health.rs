//! Each file of a folder once removed, cut, changed, or replaced by an older one: a check names it,
//! and a computer that holds its bytes puts it back.

use super::common::{BLOCKS, names};
use super::{Computer, contents, write};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, ReadAt};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::every;
use oblivio_volume::{BlockSpace, DamagedPlace, Error, Volume, Which};
use std::sync::Arc;

pub type Model = Vec<Option<u8>>;

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    Removed,
    Cut,
    Flipped,
    Longer,
    /// Another file of the same extent is under its name.
    Older,
}

pub const HARMS: [Harm; 5] = [Harm::Removed, Harm::Cut, Harm::Flipped, Harm::Longer, Harm::Older];

/// Two computers that have used a folder, and each one's copy of it as it is now. Only the first
/// has the newest epoch.
pub struct World {
    pub folder: MemoryStore,
    /// Every file that there ever was.
    past: Vec<(String, Vec<u8>)>,
    pub writer: Computer,
    pub beside: MemoryStore,
    pub other: Computer,
    pub other_beside: MemoryStore,
    pub model: Model,
}

pub fn bytes(folder: &dyn Held, name: &str) -> Vec<u8> {
    let mut buf = vec![0; folder.len(name).unwrap().unwrap() as usize];
    folder.read(&mut [ReadAt { object: name, offset: 0, buf: &mut buf }]).unwrap();
    buf
}

impl World {
    pub fn new() -> Self {
        let (folder, beside) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
        let other_beside = Arc::new(MemoryStore::new());
        let mut writer = Computer::with(beside.clone(), 1);
        let mut other = Computer::with(other_beside.clone(), 40);
        let mut volume = Volume::from(writer.create(folder.clone()));
        let (mut model, mut dice) = (vec![None; BLOCKS as usize], SplitMix64::new(3));
        let mut past = Vec::new();
        for round in 0..4 {
            for at in 0..BLOCKS {
                let (id, byte) = if round == 0 { (at, at as u8) } else { any(&mut dice) };
                volume.access(vec![write(id, byte)]).unwrap();
                model[id as usize] = Some(byte);
            }
            volume.finish().unwrap();
            let all = names(&*folder).into_iter();
            past.extend(all.map(|(name, _)| (name.clone(), bytes(&*folder, &name))));
            if round == 1 {
                other.open(folder.clone()).unwrap().finish().unwrap();
            }
        }
        drop(volume);
        // The other one does not hold the newest epoch, and nothing but it is in the folder.
        let folder = folder.snapshot();
        let (beside, other_beside) = (beside.snapshot(), other_beside.snapshot());
        Self { folder, past, writer, beside, other, other_beside, model }
    }

    /// The files of the folder that the newest epoch needs, and those that say where computers
    /// stand. The writer keeps the former, and nothing else.
    pub fn files(&self) -> Vec<String> {
        let held = |name: &String| match name.strip_prefix("d-") {
            Some(entry) => format!("e-{entry}"),
            None => name.clone(),
        };
        let kept = |name: &String| self.beside.len(&held(name)).unwrap().is_some();
        let all = names(&self.folder).into_iter().map(|it| it.0);
        all.filter(|name| kept(name) || is_stand(name)).collect()
    }

    /// The files that only an older epoch needs, on which the other computer stands.
    fn of_the_past(&self) -> Vec<String> {
        let needed = self.files();
        let all = names(&self.folder).into_iter().map(|it| it.0);
        all.filter(|name| !needed.contains(name) && !name.starts_with("header")).collect()
    }

    /// The entry of the newest epoch.
    pub fn newest_entry(&self) -> String {
        self.files().into_iter().find(|name| name.starts_with("e-")).unwrap()
    }

    /// Another file of the same extent.
    fn older(&self, name: &str) -> Option<Vec<u8>> {
        let extent = |name: &str| name.split('-').nth(2).map(str::to_owned);
        let fits = |it: &&(String, Vec<u8>)| {
            it.0.starts_with("x-") && extent(&it.0) == extent(name) && it.1 != self.now(name)
        };
        let found = self.past.iter().filter(|_| name.starts_with("x-")).find(fits);
        found.map(|it| it.1.clone())
    }

    fn now(&self, name: &str) -> Vec<u8> {
        bytes(&self.folder, name)
    }

    /// The folder with a harmed file; `None` if that harm cannot be done.
    pub fn harmed(&self, name: &str, harm: Harm) -> Option<Arc<MemoryStore>> {
        let folder = self.folder.snapshot();
        let mut bytes = self.now(name);
        match harm {
            Harm::Removed => folder.delete(&[name]).unwrap(),
            Harm::Cut => bytes.truncate(bytes.len() / 2),
            Harm::Flipped => *bytes.last_mut().unwrap() ^= 1,
            Harm::Longer => bytes.push(0),
            Harm::Older => bytes = self.older(name)?,
        }
        if harm != Harm::Removed {
            folder.put(name, &bytes, PutMode::Replace).unwrap();
        }
        Some(Arc::new(folder))
    }

    /// The writer, with all that it holds.
    pub fn writer(&self) -> Computer {
        let beside = Arc::new(self.beside.snapshot());
        Computer { beside, keeper: self.writer.keeper.twin(), ..self.writer.clone() }
    }

    /// The other computer, which holds an older epoch.
    pub fn other(&self) -> Computer {
        let beside = Arc::new(self.other_beside.snapshot());
        Computer { beside, keeper: self.other.keeper.twin(), ..self.other.clone() }
    }
}

fn any(dice: &mut SplitMix64) -> (u64, u8) {
    (dice.below(BLOCKS), dice.below(256) as u8)
}

/// All places that a volume's session and its check name, mended or not, and whether all are
/// mended.
fn checked(volume: &mut Volume) -> (Vec<DamagedPlace>, bool) {
    let mut bad = Vec::new();
    let found = volume.inspect(&mut |_, _| {}, &mut |place| bad.push(place)).unwrap();
    assert_eq!(found.damaged, bad.len() as u64, "{bad:?}");
    let whole = bad.is_empty();
    (volume.damaged().into_iter().chain(bad).collect(), whole)
}

/// Files of which each computer has its own: only the one that made it can tell, and it says so
/// anew by itself.
fn is_stand(name: &str) -> bool {
    name.starts_with("k-")
}

#[test]
fn the_writer_names_each_harmed_file_and_puts_it_back() {
    let world = World::new();
    let (mut tried, mut olds) = (0, 0);
    for (at, name) in world.files().into_iter().enumerate() {
        for (kind, harm) in HARMS.into_iter().enumerate() {
            let extent = name.starts_with("x-");
            if extent && !(at + kind).is_multiple_of(every(2)) {
                continue;
            }
            let Some(folder) = world.harmed(&name, harm) else { continue };
            let what = format!("{name}, {harm:?}");
            let mut writer = world.writer();
            let mut volume = writer.open(folder.clone()).expect("it has everything itself");
            let (places, whole) = checked(&mut volume);
            if is_stand(&name) && harm == Harm::Removed {
                assert!(places.is_empty() && whole, "{what}: nobody else misses it");
                continue;
            }
            assert_eq!(places.len(), 1, "{what}: {places:?}");
            assert_eq!(places[0].object, name, "{what}");
            let why = &places[0].why;
            olds += u32::from(harm == Harm::Older && why.contains("older"));
            volume.finish().unwrap();
            drop(volume);
            tried += 1;
            if is_stand(&name) {
                assert!(!whole, "{what}: its computer says it anew");
                continue;
            }
            assert!(whole, "{what}: {why}");
            assert_eq!(bytes(&*folder, &name), bytes(&world.folder, &name), "{what}");
            assert_eq!(names(&*folder), names(&world.folder), "{what}");
            let mut third = Computer::new(7000);
            let mut volume = third.open(folder.clone()).expect("everything is there");
            assert_eq!(contents(&mut volume), world.model, "{what}");
            assert_eq!(checked(&mut volume), (Vec::new(), true), "{what}");
        }
    }
    assert!(tried * every(2) > 60 && olds > 2, "{tried} {olds}");
}

/// What only an older epoch needs is nothing that the volume lost.
#[test]
fn a_file_of_the_past_is_not_missed() {
    let world = World::new();
    let past = world.of_the_past();
    assert!(past.iter().any(|name| name.starts_with("e-")) && past.len() > 2, "{past:?}");
    for name in past {
        let folder = world.harmed(&name, Harm::Flipped).unwrap();
        let mut volume = world.writer().open(folder.clone()).unwrap();
        assert_eq!(checked(&mut volume), (Vec::new(), true), "{name}");
        assert_ne!(bytes(&*folder, &name), bytes(&world.folder, &name), "nobody needs it");
    }
}

/// A file that is whole is not written, whatever is harmed beside it.
#[test]
fn what_is_put_back_follows_from_what_is_harmed() {
    use oblivio_store::RecordStore;
    use oblivio_store::record::CallKind;
    let world = World::new();
    let extents: Vec<String> =
        world.files().into_iter().filter(|name| name.starts_with("x-")).collect();
    for count in [0, 1, 3] {
        let folder = world.folder.snapshot();
        let mut harmed: Vec<String> = extents.iter().step_by(5).take(count).cloned().collect();
        for name in &harmed {
            folder.corrupt(name, 9, |byte| *byte ^= 4).unwrap();
        }
        let folder = Arc::new(RecordStore::new(folder));
        world.writer().open(folder.clone()).unwrap();
        let changes = |op: CallKind| matches!(op, CallKind::Put | CallKind::Delete);
        let events = folder.take().into_iter().filter(|it| changes(it.op));
        let mut written: Vec<String> = events.map(|it| it.object.to_string()).collect();
        // The first put of each is refused: it is there.
        written.dedup();
        harmed.sort();
        written.sort();
        assert_eq!(written, harmed);
    }
}

/// The next epoch names files of epochs before it: those are put back as well.
#[test]
fn an_epoch_is_published_on_whole_files_only() {
    let world = World::new();
    let mut writer = world.writer();
    let folder = Arc::new(world.folder.snapshot());
    let mut volume = writer.open(folder.clone()).unwrap();
    let extents = world.files().into_iter().filter(|name| name.starts_with("x-"));
    for (at, name) in extents.enumerate() {
        match at % 3 {
            0 => folder.delete(&[&name]).unwrap(),
            1 => folder.corrupt(&name, 1, |byte| *byte ^= 1).unwrap(),
            _ => {}
        }
    }
    volume.access(vec![write(3, 99)]).unwrap();
    volume.finish().unwrap();
    drop(volume);
    let mut model = world.model.clone();
    model[3] = Some(99);
    let mut third = Computer::new(7000).open(folder).expect("everything is there");
    assert_eq!(contents(&mut third), model);
}

/// A computer that another one has overtaken puts nothing of its older epoch back; and none does
/// while an entry that may be newer cannot be read.
#[test]
fn nothing_old_comes_back() {
    let world = World::new();
    let folder = Arc::new(world.folder.snapshot());
    let mut other = world.other();
    let before = names(&*folder);
    let mut volume = other.open(folder.clone()).expect("it goes over to the newest");
    assert_eq!(contents(&mut volume), world.model);
    assert_eq!(volume.damaged(), []);
    drop(volume);
    let new = names(&*folder).into_iter().filter(|it| !before.contains(it));
    assert!(new.into_iter().all(|it| is_stand(&it.0)), "nothing but where it stands");
    let newest = world.newest_entry();
    for harm in [Harm::Cut, Harm::Flipped] {
        // Both copies: with one of them it can be read.
        let folder = world.harmed(&newest, harm).unwrap();
        folder.corrupt(&newest.replacen('e', "d", 1), 9, |byte| *byte ^= 1).unwrap();
        let before = names(&*folder);
        for which in [Which::Newest, Which::Older] {
            match world.other().open_as(folder.clone(), which.clone()) {
                Err(Error::StillToCome(why)) => {
                    assert!(why.contains("e-") || which == Which::Older)
                }
                Ok(volume) => assert!(which == Which::Older, "{:?}", volume.damaged()),
                Err(error) => panic!("{error}"),
            }
        }
        let after: Vec<_> = names(&*folder).into_iter().filter(|it| !is_stand(&it.0)).collect();
        let before: Vec<_> = before.into_iter().filter(|it| !is_stand(&it.0)).collect();
        assert_eq!(after, before, "it put nothing back");
    }
}

/// Its own copy is damaged, and the folder's is not: a check makes it whole.
#[test]
fn a_damaged_copy_beside_the_folder_is_made_whole() {
    let world = World::new();
    let mut tried = 0;
    for (name, len) in names(&world.beside) {
        if !name.starts_with("x-") && !name.starts_with("e-") {
            continue;
        }
        let mut writer = world.writer();
        writer.beside.answer_flip(&name, len / 2);
        let folder = Arc::new(world.folder.snapshot());
        let mut volume = writer.open(folder.clone()).expect("the folder has it");
        let (places, whole) = checked(&mut volume);
        assert!(whole && places.len() == 1 && places[0].object == name, "{name}: {places:?}");
        assert_eq!(contents(&mut volume), world.model, "{name}");
        drop(volume);
        assert_eq!(bytes(&*writer.beside, &name), bytes(&world.beside, &name));
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

/// Changes a byte of a computer's own copy.
trait Flip {
    fn answer_flip(&self, name: &str, offset: u64);
}

impl Flip for Arc<dyn oblivio_store::Store> {
    fn answer_flip(&self, name: &str, offset: u64) {
        let mut bytes = bytes(&**self, name);
        bytes[offset as usize] ^= 1;
        self.put(name, &bytes, PutMode::Replace).unwrap();
    }
}
