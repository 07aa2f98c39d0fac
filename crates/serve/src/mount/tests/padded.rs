//! With padding the store sees as much of two programs that do equal things with different files of
//! a real mount. Recorded at the store; skipped where nothing can be mounted.
//!
//! The kernel decides when it writes times and forgets files. So the test compares only pairs with
//! equal kernel requests, by how much was shown. `just padded-pairs` compares more of them.

use crate::fuse::FileOpKind;
use crate::mount::attach;
use crate::mount::server::OnRequest;
use crate::mount::session::{MountOptions, serve};
use crate::paired::pairs::{Session, compare_totals, padded};
use oblivio_crypto::KdfParams;
use oblivio_store::MemoryStore;
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

const BLOCK: usize = 4096;
/// Files of each kind, all of equal length.
const EACH: u64 = 12;
const LONG: usize = 24 * BLOCK + 500;

static FILLED: LazyLock<Arc<MemoryStore>> = LazyLock::new(|| {
    let store = Arc::new(MemoryStore::new());
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &Session::secret(), create, OpenOptions::default());
    let files = FileSystem::format(Box::new(volume.expect("empty"))).expect("room");
    for number in 0..EACH {
        for (kind, len) in [("long", LONG), ("short", 700), ("victim", 3 * BLOCK)] {
            let name = name_of(kind, number);
            let node = NewNode { mode: 0o644, ..NewNode::default() };
            let (_, file) = files.create(ROOT_INO, name.as_bytes(), node).expect("room");
            files.write(file, 0, &vec![number as u8; len]).expect("room");
            files.close(file).expect("open");
        }
    }
    drop(files.into_blocks().expect("memory"));
    store
});

fn name_of(kind: &str, number: u64) -> String {
    format!("{kind} {number} {}", "y".repeat((number * 5 % 40) as usize))
}

#[derive(Clone, Copy, Debug)]
enum Step {
    New(usize),
    /// Overwrites this many pages of a file.
    Overwrite(usize),
    Read,
    Chmod,
    MkDir,
    Link,
    List,
}

fn any_step(dice: &mut Dice) -> Step {
    match dice.below(9) {
        0..2 => Step::New(1 + dice.below(40_000) as usize),
        2..4 => Step::Overwrite(1 + dice.below(8) as usize),
        4 => Step::Read,
        5 => Step::Chmod,
        6 => Step::MkDir,
        7 => Step::Link,
        _ => Step::List,
    }
}

/// One program; it syncs every change at once.
struct Program<'a> {
    dir: &'a Path,
    dice: &'a mut Dice,
    same: bool,
    made: u64,
    /// Files not read yet: the kernel caches those it has read.
    unread: Vec<u64>,
}

impl Program<'_> {
    fn new_path(&mut self) -> PathBuf {
        self.made += 1;
        let salt = "z".repeat(self.dice.below(30) as usize);
        self.dir.join(format!("{salt}{}", self.made))
    }

    fn any(&mut self, kind: &str) -> PathBuf {
        let number = if self.same { 5 } else { self.dice.below(EACH) };
        self.dir.join(name_of(kind, number))
    }

    fn sync(&self) {
        fs::File::open(self.dir).and_then(|dir| dir.sync_all()).expect("synced");
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::New(len) => {
                let mut file = fs::File::create(self.new_path()).expect("made");
                file.write_all(&vec![3; len]).expect("written");
                file.sync_all().expect("synced");
            }
            Step::Overwrite(pages) => {
                let path = self.any("long");
                let mut file = fs::File::options().write(true).open(path).expect("there");
                let at = self.dice.below(24 - pages as u64 + 1) * BLOCK as u64;
                file.seek(SeekFrom::Start(at)).expect("inside");
                file.write_all(&vec![9; pages * BLOCK]).expect("written");
                file.sync_all().expect("synced");
            }
            Step::Read => {
                let at = self.dice.below(self.unread.len() as u64) as usize;
                let path = self.dir.join(name_of("short", self.unread.swap_remove(at)));
                assert_eq!(fs::read(path).expect("there").len(), 700);
            }
            Step::Chmod => {
                let (path, mode) = (self.any("long"), 0o400 + self.dice.below(0o177) as u32);
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("there");
                self.sync();
            }
            Step::MkDir => {
                fs::create_dir(self.new_path()).expect("made");
                self.sync();
            }
            Step::Link => {
                let target = "t".repeat(1 + self.dice.below(200) as usize);
                std::os::unix::fs::symlink(target, self.new_path()).expect("made");
                self.sync();
            }
            Step::List => assert!(fs::read_dir(self.dir).expect("there").count() > 20),
        }
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn pairs_of_programs_in_a_mount_look_the_same() {
    let run = |public: &mut Dice, hidden: &mut Dice| {
        let parent = tempfile::tempdir().expect("a folder");
        let dir = parent.path().join("m");
        fs::create_dir(&dir).expect("a directory");
        let open = OpenOptions { short_pauses: true, ..padded() };
        let (session, volume) = Session::open(&FILLED, open);
        let files = FileSystem::open_ahead(Box::new(volume), usize::MAX).expect("sound");
        session.seen();
        // The timer never fires: only requested work happens.
        let commit_every = Duration::from_secs(1 << 20);
        let asked: Arc<Mutex<Vec<(FileOpKind, u64)>>> = Arc::default();
        let tell = Arc::clone(&asked);
        let on_request: OnRequest = Box::new(move |kind, _, _, len| {
            if kind != FileOpKind::Metadata {
                tell.lock().expect("alone").push((kind, len));
            }
        });
        let on_request = Some(on_request);
        let options = MountOptions { commit_every, on_request, ..MountOptions::default() };
        let mounted = match serve(files, Vec::new(), &dir, options) {
            Ok(mounted) => mounted,
            Err(error) => {
                eprintln!("skipped: {error:#}");
                return None;
            }
        };
        let mut reads = 0;
        let steps: Vec<Step> = (0..4 + public.below(20)).map(|_| any_step(public)).collect();
        let same = hidden.below(2) == 0;
        let unread = (0..EACH).collect();
        let mut program = Program { dir: &dir, dice: hidden, same, made: 0, unread };
        for step in steps {
            reads += u64::from(matches!(step, Step::Read));
            if reads <= EACH || !matches!(step, Step::Read) {
                program.step(step);
            }
        }
        // Last, because the kernel decides when it releases these.
        let (victims, first) = (public.below(4), program.dice.below(EACH));
        for victim in 0..victims {
            let name = name_of("victim", (first + victim * 5) % EACH);
            fs::remove_file(dir.join(name)).expect("there");
        }
        // The kernel may still be closing files.
        let begun = Instant::now();
        while let Err(error) = attach::detach(&dir, false) {
            assert!(begun.elapsed() < super::LONG, "{error:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        mounted.wait().expect("a last commit");
        let asked = std::mem::take(&mut *asked.lock().expect("alone"));
        Some((session.seen(), asked))
    };
    compare_totals("a mount", scaled(3), run);
}
