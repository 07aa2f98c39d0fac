//! Leaks in what a volume asks of its store. Each is a layer between a volume and what the store
//! sees: it asks for less, more, or in another way, as a careless volume or store would, by what
//! only the user's computer knows.

use super::truth::Truth;
use oblivio_store::{
    Held, Layer, MemoryStore, Objects, ReadAt, RecordStore, Result, Slots, StoreAnswer, StoreCall,
    WriteAt,
};
use oblivio_testkit::FaultStore;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store: recorded, and failing where a test says so.
pub(super) type Seen = RecordStore<FaultStore<Arc<MemoryStore>>>;

/// What is wrong with the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    ChangedBucketsOnly,
    NamesFromContent,
    CacheByUse,
    NoGetOnAHit,
    ShortForAbsent,
    PartsOfWhatLives,
    RetryOnAnotherPath,
    SmallerAfterErrors,
    Hedged,
    AsManyAtOnceAsReal,
    PrefetchWhenFull,
    DeletesTheDead,
    InPiecesWhenLarge,
    HintOfTheDead,
}

/// Ranges that a cache by use keeps.
const CACHED: usize = 300;

#[derive(Default)]
struct State {
    /// Names that follow from content.
    names: HashMap<String, String>,
    /// What was used last, from the oldest on.
    used: VecDeque<((String, u64), Vec<u8>)>,
    /// The last read of a batch, and the one before it.
    last: Vec<(String, u64, usize)>,
    before: Vec<(String, u64, usize)>,
    /// Whether the last call failed; how many batches are made smaller for it.
    failed: bool,
    smaller: u32,
    /// An object that was stored.
    stored: Option<(String, usize)>,
}

/// The layer.
pub(super) struct Leaky {
    pub seen: Arc<Seen>,
    pub below: Arc<MemoryStore>,
    pub wrong: Option<Wrong>,
    pub truth: Arc<Mutex<Truth>>,
    state: Mutex<State>,
}

impl Leaky {
    pub(super) fn new(
        seen: Arc<Seen>,
        below: Arc<MemoryStore>,
        wrong: Option<Wrong>,
        truth: Arc<Mutex<Truth>>,
    ) -> Self {
        Self { seen, below, wrong, truth, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn truth(&self) -> Truth {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads for show alone.
    fn show(&self, ranges: &[(String, u64, usize)]) -> Result<()> {
        let mut bufs: Vec<Vec<u8>> = ranges.iter().map(|range| vec![0; range.2]).collect();
        let each = ranges.iter().zip(&mut bufs);
        let mut reads: Vec<ReadAt<'_>> =
            each.map(|(it, buf)| ReadAt { object: &it.0, offset: it.1, buf }).collect();
        if reads.is_empty() { Ok(()) } else { self.seen.read(&mut reads) }
    }

    /// A batch's read; `None` if nothing is wrong with this one.
    fn read(&self, reads: &mut [ReadAt<'_>]) -> Option<Result<()>> {
        let (truth, mut state) = (self.truth(), self.state());
        let asked: Vec<(String, u64, usize)> =
            reads.iter().map(|it| (it.object.to_owned(), it.offset, it.buf.len())).collect();
        let again = std::mem::take(&mut state.failed);
        let shown = match self.wrong? {
            Wrong::NoGetOnAHit if truth.hit => Ok(()),
            Wrong::ShortForAbsent if truth.absent => {
                let short = asked.iter().map(|it| (it.0.clone(), it.1, it.2 / 2));
                self.show(&short.collect::<Vec<_>>())
            }
            Wrong::CacheByUse => self.show(&state.missing(&asked)),
            Wrong::RetryOnAnotherPath if again => self.show(&state.before).or(Ok(())),
            Wrong::SmallerAfterErrors if again || state.smaller > 0 => {
                state.smaller = if again { 10 } else { state.smaller - 1 };
                let half = asked.len().div_ceil(2);
                self.show(&asked[..half]).and_then(|()| self.show(&asked[half..]))
            }
            // A slow answer is asked for once more, if somebody waits for it.
            Wrong::Hedged if truth.real > 0 && truth.dice % 8 == 0 => {
                self.show(&asked).and_then(|()| self.show(&asked))
            }
            Wrong::AsManyAtOnceAsReal => {
                let first = asked.len() * truth.real / truth.asked.max(1);
                self.show(&asked[..first]).and_then(|()| self.show(&asked[first..]))
            }
            Wrong::PrefetchWhenFull if truth.stash > truth.full => {
                let ahead =
                    state.stored.iter().map(|it| (it.0.clone(), 0, it.1)).collect::<Vec<_>>();
                self.show(&ahead).and_then(|()| self.show(&asked))
            }
            Wrong::NamesFromContent => {
                let named = asked
                    .iter()
                    .map(|it| (state.names.get(&it.0).unwrap_or(&it.0).clone(), it.1, it.2));
                self.show(&named.collect::<Vec<_>>())
            }
            _ => {
                state.before = std::mem::replace(&mut state.last, asked);
                return None;
            }
        };
        let got = shown.and_then(|()| self.below.read(reads));
        for (key, it) in asked.iter().zip(reads) {
            state.use_it((key.0.clone(), key.1), it.buf);
        }
        Some(got)
    }

    fn write(&self, it: &WriteAt<'_>) -> Option<Result<()>> {
        let truth = self.truth();
        let part = it.object.starts_with("p-");
        let buckets = it.object.starts_with("b-");
        let shown = match self.wrong? {
            Wrong::ChangedBucketsOnly if buckets && !truth.changed => Ok(()),
            Wrong::NamesFromContent if buckets => {
                let sum = it.data.iter().fold(7u64, |sum, byte| {
                    (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                });
                let named = format!("b-{sum:016x}-{}", &it.object[19..]);
                self.state().names.insert(it.object.to_owned(), named.clone());
                self.seen.write(&[WriteAt::new(&named, 0, it.data)])
            }
            Wrong::PartsOfWhatLives if part => {
                let dead = 8 * truth.dead as usize;
                let len = it.data.len() - dead.min(it.data.len() / 2);
                self.seen.write(&[WriteAt::new(it.object, 0, &it.data[..len])])
            }
            Wrong::InPiecesWhenLarge if part && truth.stash > truth.full => {
                let (first, rest) = it.data.split_at(it.data.len() / 2);
                let first = WriteAt::new(it.object, 0, first);
                let rest = WriteAt::new(it.object, first.data.len() as u64, rest);
                self.seen.write(&[first]).and_then(|()| self.seen.write(&[rest]))
            }
            Wrong::HintOfTheDead if it.object == "n-newest" => {
                let mut hint = it.data.to_vec();
                hint.resize(hint.len() + truth.dead as usize, 0);
                self.seen.write(&[WriteAt::new(it.object, 0, &hint)])
            }
            Wrong::PrefetchWhenFull if buckets => {
                self.state().stored = Some((it.object.to_owned(), it.data.len()));
                return None;
            }
            _ => return None,
        };
        Some(shown.and_then(|()| self.below.write(&[*it])))
    }
}

impl State {
    /// What a cache by use has not.
    fn missing(&self, asked: &[(String, u64, usize)]) -> Vec<(String, u64, usize)> {
        let held = |it: &&(String, u64, usize)| {
            self.used.iter().any(|(key, _)| key.0 == it.0 && key.1 == it.1)
        };
        asked.iter().filter(|it| !held(it)).cloned().collect()
    }

    fn use_it(&mut self, key: (String, u64), bytes: &[u8]) {
        self.used.retain(|(held, _)| *held != key);
        self.used.push_back((key, bytes.to_vec()));
        while self.used.len() > CACHED {
            self.used.pop_front();
        }
    }
}

impl Layer for Leaky {
    type Below = Arc<Seen>;

    fn below(&self) -> &Arc<Seen> {
        &self.seen
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let truth = self.truth();
        let done = match call {
            StoreCall::Read(reads) if reads.iter().any(|it| it.object.starts_with("b-")) => {
                // A window reads whole objects; with such a leak it goes on as it is.
                let batch = reads.iter().any(|it| it.buf.len() <= truth.bucket);
                let named = self.wrong == Some(Wrong::NamesFromContent);
                if batch || named { self.read(reads) } else { None }
            }
            StoreCall::Begin(objects) => match objects[..] {
                [(object, data)] => self.write(&WriteAt::new(object, 0, data)),
                _ => None,
            },
            StoreCall::Settle(_) if self.wrong.is_some_and(Wrong::hides_stores) => {
                Some(call.on(&*self.below).map(drop))
            }
            StoreCall::Delete(names) if self.wrong == Some(Wrong::DeletesTheDead) => {
                let dead = if truth.changed { names.len() } else { names.len() / 2 };
                Some(self.seen.delete(&names[..dead]))
            }
            _ => None,
        };
        let answer = match done {
            Some(done) => done.map(StoreAnswer::from),
            None => call.on(&*self.seen),
        };
        if answer.is_err() {
            self.state().failed = true;
        }
        answer
    }
}

impl Wrong {
    /// Whether the store does not have all objects under their names.
    fn hides_stores(self) -> bool {
        matches!(self, Self::ChangedBucketsOnly | Self::NamesFromContent)
    }
}
