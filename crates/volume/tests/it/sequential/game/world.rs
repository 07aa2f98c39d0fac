//! One of the two worlds: a disk, a home, and an owner who has something in a lane, or nobody.

use super::super::lanes_open::{AT_ONCE, hidden};
use super::super::model::{Event, any_event};
use super::super::passphrase;
use super::acts::{Act, Harm, Who};
use super::home::Home;
use super::leaks::{Leak, Leaky, Secret};
use super::watch::{Diary, Seen, Watch};
use oblivio_crypto::{KdfParams, Passphrase, Randomness};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, Store, WriteAt};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{
    BlockSpace, DamagedPlace, EngineVolume, Environment, Error, Inspection, MemoryKeeper, OpenLane,
    OpenOptions, Result,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// A world.
pub struct World {
    leak: Leak,
    options: SequentialOptions,
    environment: Environment,
    secret: Arc<Secret>,
    pub diary: Arc<Diary>,
    keeper: MemoryKeeper,
    /// What is on the disk while the volume is closed.
    pub disk: MemoryStore,
    copy: Option<MemoryStore>,
    session: Option<Session>,
    owner: Option<Owner>,
}

struct Session {
    volume: SequentialVolume,
    store: Arc<Leaky>,
}

/// Who has something in lanes.
struct Owner {
    dice: Dice,
    /// Whether a passphrase opens one.
    has_lane: bool,
    carried: u64,
}

/// What an act said, to who did it.
#[derive(Default)]
pub struct Said {
    pub words: String,
    /// Places that are damaged, after an opening or a look.
    pub damaged: Vec<DamagedPlace>,
    /// Whether a lane is open, or its passphrase was given: the words are for the owner alone.
    pub to_owner: bool,
    pub works: bool,
}

impl World {
    /// A new volume, open. In both worlds the volume's own randomness is the same, and that of
    /// lanes another one.
    pub fn new(options: SequentialOptions, seed: u64, hides: Option<Dice>, leak: Leak) -> Self {
        let diary = Arc::new(Diary::default());
        let randomness = Randomness::from_seed(seed);
        let lanes = match leak {
            Leak::OneRandomness => randomness.clone(),
            // So that a seed plays again; in no way the other world's.
            _ => Randomness::from_seed(!seed ^ u64::from(hides.is_some())),
        };
        let clock = diary.clock.clone();
        let environment = Environment { clock, randomness, lanes, threads: false };
        let owner = hides.map(|dice| Owner { dice, has_lane: false, carried: 0 });
        let secret = Arc::new(Secret::default());
        let (keeper, disk) = (MemoryKeeper::default(), MemoryStore::new());
        let (copy, session) = (None, None);
        let mut world =
            Self { leak, options, environment, secret, diary, keeper, disk, copy, session, owner };
        let store = world.store();
        let (kdf, quiet) = (KdfParams::TEST, &mut |_, _| {});
        let open = world.open_options(false);
        let made = SequentialVolume::create(
            Arc::clone(&store) as Arc<dyn Store>,
            &passphrase(),
            kdf,
            options,
            open,
            quiet,
        );
        world.session = Some(Session { volume: made.expect("a volume"), store });
        world
    }

    fn store(&self) -> Arc<Leaky> {
        let (disk, diary) = (CrashStore::holding(&self.disk), Arc::clone(&self.diary));
        Arc::new(Leaky::new(Watch { disk, diary }, self.leak, &self.secret, &self.options))
    }

    fn open_options(&self, restored: bool) -> OpenOptions {
        let home = Home::new(&self.keeper, &self.diary, self.leak, &self.secret);
        OpenOptions {
            keeper: Some(Box::new(home)),
            accept_rollback: restored,
            environment: self.environment.clone(),
            ..OpenOptions::default()
        }
    }

    /// Everything that was seen since the last time.
    pub fn take_seen(&self) -> Vec<Seen> {
        self.diary.take()
    }

    /// How many commits of lanes became durable.
    pub fn carried(&self) -> u64 {
        self.owner.as_ref().map_or(0, |owner| owner.carried)
    }

    pub fn play(&mut self, act: &Act) -> Said {
        match act {
            Act::Open(who) => self.open(*who, false),
            Act::Restore => {
                let copy = self.copy.as_ref().expect("there is a copy");
                self.disk = copy.snapshot();
                self.open(Who::Inspector, true)
            }
            Act::Outer(event) => {
                self.hide();
                self.diary.begin_act();
                let words = self.outer(event);
                self.said(words)
            }
            Act::Look => self.look(),
            Act::Sleep(time) => {
                self.environment.clock.sleep(*time);
                self.said(String::new())
            }
            Act::Cut(after) => {
                let disk = self.disk_at_work();
                disk.crash_after(disk.operations() + after);
                self.said(String::new())
            }
            Act::Crash(chance) => self.close(|disk| {
                disk.crash();
                disk.survivors(*chance)
            }),
            Act::Kill => self.close(killed),
            Act::Copy => {
                self.copy = Some(self.disk.snapshot());
                self.said(String::new())
            }
            Act::Harm(harm) => {
                self.harm(*harm);
                self.said(String::new())
            }
        }
    }

    fn disk_at_work(&self) -> &CrashStore {
        &self.session.as_ref().expect("it is open").store.watch.disk
    }

    fn said(&self, words: String) -> Said {
        let works = self.session.as_ref().is_some_and(|session| {
            !session.store.watch.disk.crashed() && !words.starts_with("Err")
        });
        Said { words, damaged: Vec::new(), to_owner: self.secret.get().is_owners(), works }
    }

    fn close(&mut self, left: impl FnOnce(&CrashStore) -> MemoryStore) -> Said {
        if let Some(Session { volume, store }) = self.session.take() {
            drop(volume);
            self.disk = left(&store.watch.disk);
        }
        self.secret.get().end();
        self.said(String::new())
    }

    fn open(&mut self, who: Who, restored: bool) -> Said {
        let hidden = match &mut self.owner {
            Some(owner) if who == Who::Owner => {
                let likes = owner.dice.below(4) > 0;
                (owner.has_lane && likes).then(hidden)
            }
            _ => None,
        };
        let mut opened = self.try_to_open(hidden.as_ref(), restored);
        if hidden.is_some() && opened.as_ref().is_err_and(is_wrong) {
            // Nothing of the lane is left. The owner goes on without, and will make it anew.
            if let Some(owner) = &mut self.owner {
                owner.has_lane = false;
            }
            opened = self.try_to_open(None, restored);
        }
        let volume = match opened {
            Ok(volume) => volume,
            Err(error) => return self.said(format!("Err {error}")),
        };
        let (damaged, info) = (volume.damaged(), volume.sequential_info());
        let mut said = self.said(format!("{info:?}"));
        said.damaged = damaged;
        self.leak.change_words(&mut said, &self.secret, who);
        said
    }

    fn try_to_open(
        &mut self,
        hidden: Option<&Passphrase>,
        restored: bool,
    ) -> Result<&mut SequentialVolume> {
        let store = self.store();
        self.diary.begin_act();
        self.secret.get().begin(hidden.is_some());
        let outer = passphrase();
        let by = hidden.unwrap_or(&outer);
        let to = Arc::clone(&store) as Arc<dyn Store>;
        let opened = SequentialVolume::open(to, by, self.open_options(restored));
        let mut volume = match opened {
            Ok(volume) => volume,
            Err(error) => {
                // It may have gone far.
                self.disk = killed(&store.watch.disk);
                self.secret.get().end();
                return Err(error);
            }
        };
        let lane = volume.lane(0, AT_ONCE);
        self.secret.get().opened(lane.as_ref().map(|lane| lane.sync.clone()));
        if self.leak == Leak::DigestOnlyIfOpen && lane.is_some() && !volume.damaged().is_empty() {
            return Err(Error::Tampered("the lanes are not what was written".into()));
        }
        Ok(&mut self.session.insert(Session { volume, store }).volume)
    }

    fn outer(&mut self, event: &Event) -> String {
        let waits = self.leak == Leak::EndWaits && self.secret.get().waits() > 0;
        let Session { volume, .. } = self.session.as_mut().expect("it is open");
        match event {
            Event::Ops(ops) => format!("{:?}", volume.access(ops.clone())),
            Event::Root(root) => {
                volume.set_root(root);
                String::new()
            }
            Event::Commit => format!("{:?}", volume.commit()),
            Event::Finish if waits => format!("{:?}", volume.commit()),
            Event::Finish => format!("{:?}", volume.finish()),
        }
    }

    /// All that the outer passphrase shows of an open volume.
    fn look(&mut self) -> Said {
        let Session { volume, .. } = self.session.as_mut().expect("it is open");
        let mut found = Vec::new();
        let mut goes_on = |_| ControlFlow::Continue(());
        let mut damaged = |place: DamagedPlace| found.push(place);
        let inspected = volume.inspect(Inspection::of_all(&mut goes_on, &mut damaged));
        let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
        let blocks = volume.access((0..volume.capacity_blocks()).map(read).collect());
        let info = volume.info().map(|info| (info.bytes_stored, info.capacity_blocks, info.report));
        let words = format!("{inspected:?} {:?} {blocks:?} {info:?}", volume.root());
        let mut said = self.said(words);
        said.damaged = found;
        self.leak.change_words(&mut said, &self.secret, Who::Inspector);
        said
    }

    /// What the owner does in lanes before the next act.
    fn hide(&mut self) {
        let (Some(owner), Some(session)) = (&mut self.owner, &mut self.session) else { return };
        let volume = &mut session.volume;
        if !owner.has_lane || owner.dice.below(60) == 0 {
            // A first one, another one for an open lane, or one that begins anew.
            if owner.dice.below(3) == 0 || volume.give_lane(0, &hidden()).is_err() {
                return;
            }
            owner.has_lane = true;
            self.secret.get().given();
        }
        for number in 0..2 {
            let Some(lane) = volume.lane(number, AT_ONCE) else { continue };
            self.secret.get().opened(Some(lane.sync.clone()));
            deeds(owner, lane);
        }
        self.leak.after_deeds(volume, &self.secret);
    }

    fn harm(&mut self, harm: Harm) {
        let objects = self.options.objects().expect("sound parameters");
        let (lanes, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|(name, _)| name.starts_with("lane"));
        let pick =
            |of: &[(&'static str, u64)], object: u64| of[(object % of.len() as u64) as usize];
        let (object, from, bytes) = match harm {
            Harm::Flip { object, at, bits } => {
                let (object, len) = pick(&lanes, object);
                (object, at % len, vec![self.bytes(object, at % len, 1)[0] ^ bits])
            }
            Harm::Zeros { object, at, len } => {
                let (object, whole) = pick(&lanes, object);
                let len = len.min(whole);
                (object, at % (whole - len + 1), vec![0; len as usize])
            }
            Harm::Swap { object, at, with, len } => {
                let (object, whole) = pick(&lanes, object);
                let len = len.min(whole);
                let [at, with] = [at, with].map(|it| it % (whole - len + 1));
                (object, at, self.bytes(object, with, len))
            }
            Harm::Outer { object, at } => {
                let (object, len) = pick(&others, object);
                (object, at % len, vec![self.bytes(object, at % len, 1)[0] ^ 1])
            }
            Harm::Back { object } => {
                return self.put_back(&lanes, object.map(|it| pick(&lanes, it)));
            }
        };
        self.secret.get().harmed.push((object, from..from + bytes.len() as u64));
        self.disk.write(&[WriteAt::new(object, from, &bytes)]).expect("memory");
    }

    fn put_back(&mut self, lanes: &[(&'static str, u64)], only: Option<(&'static str, u64)>) {
        let copy = self.copy.as_ref().expect("there is a copy");
        for (object, len) in only.as_ref().map_or(lanes, std::slice::from_ref) {
            let before = bytes(copy, object, 0, *len);
            self.disk.write(&[WriteAt::new(object, 0, &before)]).expect("memory");
        }
    }

    fn bytes(&self, object: &str, offset: u64, len: u64) -> Vec<u8> {
        bytes(&self.disk, object, offset, len)
    }
}

/// What is left after the program alone was killed: all that the system was given.
fn killed(disk: &CrashStore) -> MemoryStore {
    disk.extremes().into_iter().nth(1).expect("everything pending survived").1
}

/// Bytes of an object.
pub fn bytes(store: &MemoryStore, object: &str, offset: u64, len: u64) -> Vec<u8> {
    let mut buf = vec![0; len as usize];
    store.read(&mut [ReadAt { object, offset, buf: &mut buf }]).expect("it is there");
    buf
}

fn is_wrong(error: &Error) -> bool {
    matches!(error, Error::WrongPassphrase)
}

/// Writes, reads, roots, and waiting, in a lane.
fn deeds(owner: &mut Owner, lane: OpenLane) {
    let OpenLane { mut space, sync } = lane;
    let blocks = space.capacity_blocks();
    for _ in 0..owner.dice.below(4) {
        match any_event(&mut owner.dice, blocks) {
            // Beyond the grace, and after harm, blocks are lost, and a lane may be shut.
            Event::Ops(ops) => drop(space.access_each(ops)),
            Event::Root(root) => space.set_root(&root),
            Event::Commit | Event::Finish => {
                let accepted = space.commit().map(|()| sync.accepted());
                let done = accepted.and_then(|accepted| sync.wait(accepted, Duration::ZERO));
                owner.carried += u64::from(done.is_ok());
            }
        }
    }
}
