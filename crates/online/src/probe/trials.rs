//! The trials of a probe, over several connections.

use super::verdict::{Begin, Connect, Effort, LostCounts, ProbeVerdict, Race, Speed, Torn, begin};
use oblivio_store::{Objects, PutMode, ReadAt, Result, StoreError};
use oblivio_store::{TRIALS, is_of_trial};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Duration;

/// Tries for what needs no race.
const TRIES: usize = 5;
/// Objects and ranges of the measured transfer.
const OBJECT_BYTES: usize = 2 << 20;
const RANGE_BYTES: usize = 256 << 10;

pub(super) struct Trials<'a> {
    connect: Connect<'a>,
    stores: Vec<Box<dyn Objects>>,
    effort: Effort,
    tag: &'a str,
    /// All that was stored, to remove it: a list may not show it.
    names: Mutex<Vec<String>>,
}

impl<'a> Trials<'a> {
    pub(super) fn new(connect: Connect<'a>, effort: Effort, tag: &'a str) -> Result<Self> {
        let racers = effort.racers.max(2);
        let stores = (0..racers).map(|_| connect()).collect::<Result<_>>()?;
        Ok(Self { connect, stores, effort, tag, names: Mutex::default() })
    }

    pub(super) fn run(&self, clock: &dyn Fn() -> Duration) -> Result<ProbeVerdict> {
        let mut verdict = ProbeVerdict {
            begin: Begin::Alone,
            creates: None,
            alone: Race::default(),
            listed: LostCounts::default(),
            read: LostCounts::default(),
            ranges: LostCounts::default(),
            absent_kept: LostCounts::default(),
            torn: Torn::Unknown,
            speed: Speed::default(),
        };
        self.at_once(&mut verdict)?;
        verdict.ranges = self.ranges()?;
        verdict.absent_kept = self.absent_kept()?;
        if self.stores[0].capabilities().creates_exclusively {
            verdict.creates = Some(self.creates()?);
        }
        for round in 0..self.effort.rounds {
            self.alone(round, &mut verdict)?;
        }
        verdict.torn = self.torn(clock)?;
        verdict.speed = self.speed(clock)?;
        verdict.begin = begin(&verdict);
        Ok(verdict)
    }

    /// Removes what these trials stored, and what earlier ones left.
    pub(super) fn clean(&self) -> Result<()> {
        let own = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let listed = self.stores[0].list_under(TRIALS)?;
        let mut names: Vec<_> = own.iter().map(String::as_str).collect();
        let left = listed.iter().map(|it| it.0.as_str()).filter(|name| is_of_trial(name));
        names.extend(left);
        names.sort_unstable();
        names.dedup();
        self.stores[0].delete(&names)
    }

    /// A name of the trials.
    fn name(&self, of: &str) -> String {
        let name = format!("{TRIALS}{}-{of}", self.tag);
        self.names.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        name
    }

    /// What one stores, another reads and lists at once.
    fn at_once(&self, verdict: &mut ProbeVerdict) -> Result<()> {
        let prefix = format!("{TRIALS}{}-r", self.tag);
        for round in 0..self.effort.rounds {
            let (one, two) = (&self.stores[round % 2], &self.stores[1 - round % 2]);
            let (name, data) = (self.name(&format!("r{round}")), pattern(64 + round, round));
            one.put(&name, &data, PutMode::Replace)?;
            verdict.read.of += 1;
            verdict.read.lost += usize::from(!has(&**two, &name, 0, &data)?);
            verdict.listed.of += 1;
            let found = two.list_under(&prefix)?;
            verdict.listed.lost += usize::from(found.len() != round + 1);
        }
        Ok(())
    }

    /// Ranges have the right bytes, and none go beyond an object's end.
    fn ranges(&self) -> Result<LostCounts> {
        let (name, data) = (self.name("ranges"), pattern(10_000, 7));
        self.stores[0].put(&name, &data, PutMode::Replace)?;
        let two = &*self.stores[1];
        let mut lost = LostCounts::default();
        for (from, end) in [(0, 10_000), (0, 1), (1, 4097), (9_999, 10_000), (5_000, 5_016)] {
            lost.of += 1;
            lost.lost += usize::from(!has(two, &name, from, &data[from..end])?);
        }
        for from in [9_990, 10_000, 20_000] {
            let mut buf = [0; 16];
            let read = two.read(&mut [ReadAt { object: &name, offset: from, buf: &mut buf }]);
            lost.of += 1;
            lost.lost += usize::from(!matches!(read, Err(StoreError::Short { len: 10_000, .. })));
        }
        Ok(lost)
    }

    /// Who saw that an object is not there sees it once it is.
    fn absent_kept(&self) -> Result<LostCounts> {
        let (one, two) = (&self.stores[0], &self.stores[1]);
        let mut lost = LostCounts { of: TRIES, lost: 0 };
        for round in 0..TRIES {
            let name = self.name(&format!("late{round}"));
            let before = two.len(&name)?;
            one.put(&name, b"here", PutMode::Replace)?;
            lost.lost += usize::from(before.is_some() || two.len(&name)? != Some(4));
        }
        Ok(lost)
    }

    /// All connections create one object, at the same moment.
    fn creates(&self) -> Result<Race> {
        let mut race = Race { rounds: self.effort.rounds, ..Race::default() };
        for round in 0..race.rounds {
            let name = &self.name(&format!("c{round}"));
            let won = self.all_at_once(|racer, store| {
                let put = store.put(name, &pattern(100, racer), PutMode::IfAbsent);
                match put {
                    Ok(()) => Ok(true),
                    Err(StoreError::Exists { .. }) => Ok(false),
                    // Some services ask the losers of a race to come again.
                    Err(error) if error.may_pass() => Ok(false),
                    Err(error) => Err(error),
                }
            })?;
            let winners: Vec<_> = (0..won.len()).filter(|&racer| won[racer]).collect();
            race.nobody_won += usize::from(winners.is_empty());
            // A winner whose bytes are not there has not won alone.
            let whole = match winners[..] {
                [winner] => has(&*self.stores[0], name, 0, &pattern(100, winner))?,
                ref winners => winners.is_empty(),
            };
            let again = self.stores[1].put(name, b"again", PutMode::IfAbsent);
            let kept = winners.is_empty() || matches!(again, Err(StoreError::Exists { .. }));
            race.several_won += usize::from(!(whole && kept));
        }
        Ok(race)
    }

    /// Each stores an object of its own at the same moment, and then looks who else has.
    fn alone(&self, round: usize, verdict: &mut ProbeVerdict) -> Result<()> {
        let racers = self.stores.len();
        let prefix = &format!("{TRIALS}{}-a{round}-", self.tag);
        let seen = self.all_at_once(|racer, store| {
            let name = self.name(&format!("a{round}-{racer}"));
            store.put(&name, b"here", PutMode::Replace)?;
            let found = store.list_under(prefix)?;
            Ok((found.iter().any(|it| it.0 == name), found.len()))
        })?;
        let alone = seen.iter().filter(|&&(own, count)| !own || count <= 1).count();
        verdict.alone.rounds += 1;
        verdict.alone.several_won += usize::from(alone > 1);
        verdict.alone.nobody_won += usize::from(alone == 0);
        // Now all are there, for everybody.
        verdict.listed.of += racers;
        for (store, (own, _)) in self.stores.iter().zip(&seen) {
            let lost = !own || store.list_under(prefix)?.len() != racers;
            verdict.listed.lost += usize::from(lost);
        }
        Ok(())
    }

    /// Runs one act on all connections at the same moment.
    fn all_at_once<T: Send>(
        &self,
        act: impl Fn(usize, &dyn Objects) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let (barrier, act) = (&Barrier::new(self.stores.len()), &act);
        std::thread::scope(|scope| {
            let racers = self.stores.iter().enumerate().map(|(racer, store)| {
                scope.spawn(move || {
                    barrier.wait();
                    act(racer, &**store)
                })
            });
            let racers: Vec<_> = racers.collect();
            let ended = || StoreError::io("probe", std::io::Error::other("a racer ended"));
            racers.into_iter().map(|racer| racer.join().unwrap_or_else(|_| Err(ended()))).collect()
        })
    }

    /// Closes connections while they store an object, a little later each time: how long a whole
    /// one takes is measured first.
    fn torn(&self, clock: &dyn Fn() -> Duration) -> Result<Torn> {
        let data = pattern(self.effort.bytes, 3);
        let store = |store: &dyn Objects, name: &str, data: &[u8]| {
            store.begin(&[(name, data)])?;
            store.settle(&[name])
        };
        let (first, whole) = (self.name("whole"), self.name("cut"));
        store(&*self.stores[0], &first, &data[..1])?;
        let begun = clock();
        store(&*self.stores[0], &whole, &data)?;
        let takes = clock() - begun;
        let mut torn = Torn::Unknown;
        for round in 0..TRIES as u32 {
            let name = self.name(&format!("cut{round}"));
            let cut = (self.connect)()?;
            // Its connection is made, and so is the folder.
            store(&*cut, &first, &data[..1])?;
            let begun = clock();
            cut.begin(&[(&name, &data)])?;
            while clock() - begun < takes * (round + 1) / (TRIES as u32 + 2) {
                self.stores[0].len(&first)?;
            }
            drop(cut);
            match self.stores[0].len(&name)? {
                Some(len) if len < data.len() as u64 => return Ok(Torn::Seen),
                Some(_) => {}
                None => torn = Torn::Never,
            }
        }
        Ok(torn)
    }

    fn speed(&self, clock: &dyn Fn() -> Duration) -> Result<Speed> {
        let store = &*self.stores[0];
        let ping = self.name("ping");
        // Connections are made before the clock runs.
        store.lens(&[ping.as_str(); 8])?;
        let mut pings = Vec::new();
        for _ in 0..self.effort.pings.max(1) {
            let begun = clock();
            store.len(&ping)?;
            pings.push(clock().saturating_sub(begun));
        }
        pings.sort();
        let bytes = self.effort.bytes.max(1);
        let mut data = pattern(bytes, 5);
        let parts = data.chunks(OBJECT_BYTES).enumerate();
        let parts: Vec<_> =
            parts.map(|(part, data)| (self.name(&format!("speed{part}")), data)).collect();
        let names: Vec<_> = parts.iter().map(|part| part.0.as_str()).collect();
        let begun: Vec<_> = parts.iter().map(|(name, data)| (name.as_str(), *data)).collect();
        let since = clock();
        store.begin(&begun)?;
        store.settle(&names)?;
        let up = clock().saturating_sub(since);
        let names: Vec<_> = names.into_iter().map(str::to_owned).collect();
        let mut reads = Vec::new();
        for (name, part) in names.iter().zip(data.chunks_mut(OBJECT_BYTES)) {
            for (index, buf) in part.chunks_mut(RANGE_BYTES).enumerate() {
                let offset = (index * RANGE_BYTES) as u64;
                reads.push(ReadAt { object: name.as_str(), offset, buf });
            }
        }
        let begun = clock();
        store.read(&mut reads)?;
        let down = clock().saturating_sub(begun);
        let rate = |time: Duration| (bytes as f64 / time.as_secs_f64().max(1e-9)) as u64;
        let (ping, slowest_ping) = (pings[pings.len() / 2], pings[pings.len() - 1]);
        Ok(Speed { ping, slowest_ping, up: rate(up), down: rate(down) })
    }
}

/// Whether the store has these bytes there.
fn has(store: &dyn Objects, name: &str, from: usize, data: &[u8]) -> Result<bool> {
    let mut buf = vec![0; data.len()];
    let read = ReadAt { object: name, offset: from as u64, buf: &mut buf };
    match store.read(&mut [read]) {
        Ok(()) => Ok(buf == data),
        Err(StoreError::Missing { .. } | StoreError::Short { .. }) => Ok(false),
        // A server that ignores ranges.
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::Unsupported => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Bytes that differ from place to place and from one `kind` to the next.
fn pattern(len: usize, kind: usize) -> Vec<u8> {
    (0..len).map(|index| (index.wrapping_mul(167) >> 3 ^ index ^ kind) as u8).collect()
}
