//! A store that does what it likes.

use oblivio_store::{
    Held, Layer, Log, MemoryStore, Objects, PutMode, ReadAt, Result, StoreAnswer, StoreCall,
    StoreError,
};
use oblivio_testkit::Dice;
use std::sync::{Arc, Mutex};

/// An event at one operation of a session.
#[derive(Clone, Debug)]
pub enum Event {
    /// The session dies: this operation and all after it fail, the first one before or after it
    /// took effect.
    Die { after: bool },
    /// Changes the stored content.
    Meddle(u64),
    /// Restores an object to its state here.
    PutBack(&'static str),
}

/// The stored content, and everything that the store remembers.
pub struct Hostile {
    pub inner: Arc<MemoryStore>,
    pub past: Vec<MemoryStore>,
    /// Another volume, with the same passphrase.
    pub other: MemoryStore,
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    operations: u64,
    event: Option<(u64, Event)>,
    dead: bool,
    /// Whether the first reading of the header gives another volume's.
    false_header: bool,
}

impl Hostile {
    pub fn new(inner: Arc<MemoryStore>, past: &[MemoryStore], other: &MemoryStore) -> Self {
        let past = past.iter().map(MemoryStore::snapshot).collect();
        Self { inner, past, other: other.snapshot(), plan: Mutex::default() }
    }

    pub fn plan(&self, at: u64, event: Event) {
        self.plan.lock().expect("one thread").event = Some((at, event));
    }

    pub fn lie_about_the_header(&self) {
        self.plan.lock().expect("one thread").false_header = true;
    }

    pub fn died(&self) -> bool {
        self.plan.lock().expect("one thread").dead
    }

    /// Counts an operation and decides its fate.
    fn before(&self) -> Result<bool> {
        let mut plan = self.plan.lock().expect("one thread");
        plan.operations += 1;
        if plan.dead {
            return Err(gone());
        }
        match plan.event.take() {
            Some((at, event)) if at == plan.operations => match event {
                Event::Die { after } => {
                    plan.dead = true;
                    if after { Ok(false) } else { Err(gone()) }
                }
                Event::PutBack(object) => {
                    put(
                        &self.inner,
                        object,
                        self.past.first().and_then(|then| bytes_of(then, object)),
                    );
                    Ok(true)
                }
                Event::Meddle(seed) => {
                    meddle(&self.inner, &self.past, &self.other, &mut Dice::new(seed));
                    Ok(true)
                }
            },
            event => {
                plan.event = event;
                Ok(true)
            }
        }
    }
}

fn gone() -> StoreError {
    StoreError::io("everything", std::io::Error::other("the store does not answer"))
}

impl Layer for Hostile {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if let StoreCall::Read(reads) = call {
            let header = reads.iter().any(|read| read.object == "header");
            let mut plan = self.plan.lock().expect("one thread");
            if header && std::mem::take(&mut plan.false_header) {
                return call.on(&self.other);
            }
        }
        if matches!(call, StoreCall::FreeBytes | StoreCall::Lock | StoreCall::Hint(_)) {
            return call.on(&*self.inner);
        }
        if let Some(done) = call.in_parts(self) {
            return done;
        }
        let answered = self.before()?;
        let done = call.on(&*self.inner)?;
        if answered { Ok(done) } else { Err(gone()) }
    }
}

fn bytes_of(store: &MemoryStore, object: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; store.len(object).ok()?? as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }]).ok()?;
    Some(bytes)
}

fn put(store: &MemoryStore, object: &str, bytes: Option<Vec<u8>>) {
    let done = match bytes {
        Some(bytes) => store.put(object, &bytes, PutMode::Replace),
        None => store.delete(&[object]),
    };
    done.expect("memory");
}

/// Changes the stored content; gives the number of a past state if it is restored whole.
pub fn meddle(
    now: &MemoryStore,
    past: &[MemoryStore],
    other: &MemoryStore,
    dice: &mut Dice,
) -> Option<usize> {
    let objects: Vec<String> =
        now.list().expect("memory").into_iter().map(|(name, _)| name).collect();
    let number = dice.below(past.len() as u64) as usize;
    let (then, object) = (&past[number], pick(&objects, dice)?);
    let log = if objects.iter().any(|name| name == "journal") { "journal" } else { "log" };
    match dice.below(12) {
        // A fork, or an earlier state.
        0..=3 => {
            now.restore(then);
            return Some(number);
        }
        // One earlier object: a header, a log, a commit.
        4 | 5 => put(now, object, bytes_of(then, object)),
        6 => put(now, log, bytes_of(then, log)),
        7 => cut(now, log, dice),
        8 => cut(now, object, dice),
        9 => {
            let also = pick(&objects, dice)?;
            let (one, two) = (bytes_of(now, object), bytes_of(now, also));
            put(now, object, two);
            put(now, also, one);
        }
        10 => put(now, object, None),
        _ => match dice.below(2) {
            0 => now.restore(other),
            _ => put(now, object, bytes_of(other, object)),
        },
    }
    None
}

/// Changes bits, or sectors, of some objects.
pub fn damage(now: &MemoryStore, dice: &mut Dice) {
    let mut objects = now.list().expect("memory");
    objects.retain(|(_, len)| *len > 0);
    let blocks = |name: &str| name.starts_with("slab") || name == "disk";
    let mut most = 4;
    if dice.below(2) == 0 && objects.iter().any(|(name, _)| blocks(name)) {
        objects.retain(|(name, _)| blocks(name));
        most = 24;
    }
    if objects.is_empty() {
        return;
    }
    for _ in 0..1 + dice.below(most) {
        let (object, len) = &objects[dice.index(objects.len())];
        let at = dice.below(*len);
        match dice.below(2) {
            0 => now.corrupt(object, at, |byte| *byte ^= 1 << dice.below(8)).expect("in it"),
            _ => {
                let start = at / 512 * 512;
                let noise = dice.bytes((len - start).min(2048) as usize);
                now.write_durable(object, start, &noise).expect("memory");
            }
        }
    }
}

/// Zeros behind a page, or nothing.
fn cut(store: &MemoryStore, object: &str, dice: &mut Dice) {
    let Some(mut bytes) = bytes_of(store, object) else { return };
    let at = (dice.below(bytes.len() as u64 / 4096 + 1) * 4096) as usize;
    match dice.below(2) {
        0 => bytes.truncate(at),
        _ => bytes[at..].fill(0),
    }
    put(store, object, Some(bytes));
}

fn pick<'a, T>(of: &'a [T], dice: &mut Dice) -> Option<&'a T> {
    if of.is_empty() { None } else { of.get(dice.below(of.len() as u64) as usize) }
}

/// Replaces an object by another store's.
pub fn put_over(now: &MemoryStore, from: &MemoryStore, object: &str) {
    put(now, object, bytes_of(from, object));
}
