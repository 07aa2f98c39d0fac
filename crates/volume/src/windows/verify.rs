//! Reading and authenticating everything that is stored, whatever is damaged.

use super::cache::DiskCache;
use super::fetch::{Source, Wanted};
use super::ledger::WindowLedger;
use super::places::Places;
use crate::Result;
use crate::damage::{DamagedPlace, Inspected};
use crate::scrub::{Inspection, Reached};
use oblivio_engine::Level;
use oblivio_engine::tree::{BucketSpot, PartChecked, Verifier};

const HELD: &str = "it is not what was stored; this computer's disk cache still has it";

/// An object of buckets.
struct Object {
    /// Its number in the order of an inspection: the same for the one that takes its place.
    place: u64,
    name: String,
    level: Level,
    window: u64,
    bucket_bytes: usize,
}

/// Reads all buckets from a place on, level by level, object by object. Its requests follow from
/// what there is, and from what the store lacks.
pub(super) fn inspect_buckets(
    ledger: &mut WindowLedger,
    inspection: Inspection<'_>,
) -> Result<Inspected> {
    let Inspection { from, at_once, reached, damaged, .. } = inspection;
    let objects = objects_of(ledger)?;
    let first = objects.partition_point(|object| object.place < from);
    let (all, turns) = (objects.len() as u64, ledger.places.rule.turns() as usize);
    let largest = objects.iter().map(|object| object.bucket_bytes * turns).max().unwrap_or(1);
    let WindowLedger { store, session, engine, places, cache, .. } = ledger;
    let mut verifier = match objects.get(first) {
        _ if first == 0 => Verifier::new(engine),
        Some(object) => Verifier::of_part(engine, PartChecked::From(object.level)),
        None => Verifier::of_part(engine, PartChecked::Alone),
    };
    let (mut done, mut found) = (first, Inspected::default());
    let mut places_damaged = 0;
    let mut note = |place| {
        places_damaged += 1;
        damaged(place);
    };
    let mut rest = objects.get(first..).unwrap_or_default();
    loop {
        let some;
        (some, rest) = rest.split_at(rest.len().min((at_once / largest).max(1)));
        let mut bufs: Vec<Vec<u8>> =
            some.iter().map(|object| vec![0; object.bucket_bytes * turns]).collect();
        let wanted = some.iter().zip(&mut bufs).map(|(object, buf)| {
            let buckets = (0..).zip(buf.chunks_mut(object.bucket_bytes)).collect();
            let bucket_bytes = object.bucket_bytes;
            (object.name.clone(), Wanted { bucket_bytes, buckets })
        });
        let mut wanted: Vec<_> = wanted.collect();
        let lacking = &mut places.lacking;
        Source { store: &**store, session, lacking, turns: turns as u64 }.fetch(&mut wanted)?;
        drop(wanted);
        for (object, buf) in some.iter().zip(&mut bufs) {
            (found.count, found.bytes) =
                (found.count + turns as u64, found.bytes + buf.len() as u64);
            object.check((places, cache.as_mut()), &mut verifier, (buf, &mut note))?;
        }
        done += some.len();
        let next = rest.first().map(|object| object.place);
        let goes_on = reached(Reached { done: done as u64, total: all, next }).is_continue();
        match next {
            None => break,
            Some(_) if goes_on => {}
            Some(_) => return Ok(Inspected { damaged: places_damaged, ..found }),
        }
    }
    let lacking = verifier.finish();
    for bucket in lacking.buckets {
        let object = places.object_with(bucket).unwrap_or_else(|| format!("bucket {}", bucket.0));
        note(DamagedPlace { object, bytes: 0..0, why: "it is missing".into() });
    }
    Ok(Inspected { damaged: places_damaged, lost: lacking.blocks, ..found })
}

impl Object {
    /// Checks its buckets, in their order.
    fn check(
        &self,
        (places, mut cache): (&Places, Option<&mut DiskCache>),
        verifier: &mut Verifier<'_>,
        (buf, note): (&mut [u8], &mut dyn FnMut(DamagedPlace)),
    ) -> Result<()> {
        let Self { name, level, window, bucket_bytes, .. } = self;
        let (turns, whole) = (places.rule.turns(), buf.len() as u64);
        let left = places.lacking.left(name).unwrap_or(whole);
        if left < whole {
            let (bytes, why) = match left {
                0 => (0..0, "it is gone".into()),
                left => (left..whole, format!("it ends after {left} bytes")),
            };
            note(DamagedPlace { object: name.clone(), bytes, why });
        }
        for (index, sealed) in (0..).zip(buf.chunks_mut(*bucket_bytes)) {
            let bucket = places.rule.bucket(BucketSpot { level: *level, window: *window, index });
            let mut held = None;
            if let Some(cache) = cache.as_mut().filter(|_| !verifier.expects(bucket, sealed)) {
                let mut buf = vec![0; *bucket_bytes];
                let absent = cache.read(name, turns, &mut [(index, &mut buf)]);
                held = Some(buf).filter(|buf| absent.is_empty() && verifier.expects(bucket, buf));
            }
            let why = verifier.check(bucket, held.as_deref_mut().unwrap_or(sealed))?;
            let begin = index * *bucket_bytes as u64;
            let bytes = begin..begin + *bucket_bytes as u64;
            let why = why.or(held.map(|_| HELD));
            // What is cut is named once.
            if let Some(why) = why.filter(|_| bytes.end <= left) {
                note(DamagedPlace { object: name.clone(), bytes, why: why.into() });
            }
        }
        Ok(())
    }
}

/// The objects of all current buckets.
fn objects_of(ledger: &WindowLedger) -> Result<Vec<Object>> {
    let (engine, places) = (&ledger.engine, &ledger.places);
    let config = engine.config();
    let mut objects = Vec::new();
    for (level, window) in places.current(engine.depth()) {
        let slots = engine.shapes().slots(level, window, config.blocks_per_bucket);
        if slots > 0 {
            let bucket_bytes = config.geometry().bucket_bytes_with(slots);
            let in_level = 1 << (level.0 - places.rule.log_turns);
            objects.push(Object {
                place: in_level + window % in_level,
                name: places.object(level, window)?,
                level,
                window,
                bucket_bytes,
            });
        }
    }
    objects.sort_by_key(|object| object.place);
    Ok(objects)
}

impl WindowLedger {
    /// Looks at what is small: the entry of the newest commit, the parts of the memory, their
    /// parities. What has a second copy is noted, and the next commit makes it whole; gives the
    /// rest. The memory itself is in memory.
    pub(super) fn inspect_small(&mut self) -> Result<Vec<DamagedPlace>> {
        if let Some((checkpoint, _)) = self.past.newest {
            let damaged = self.session.inspect(checkpoint)?;
            self.commits.heals |= !damaged.is_empty();
            self.past.damaged.extend(damaged);
        }
        let mut rest = Vec::new();
        for number in self.commits.first_part()..=self.commits.epoch {
            let reader = self.part_reader();
            let expected = reader.expected(number)?;
            if let Err(why) = reader.read_one(&expected)? {
                let again = reader.again(number)?;
                self.note_small((expected.0, why), again, &mut rest);
            }
        }
        for parity in self.commits.parities.stored() {
            let reader = self.part_reader();
            let expected = reader.expected_parity(&parity)?;
            if let Err(why) = reader.read_one(&expected)? {
                let again = reader.parity_again(&parity)?;
                self.note_small((expected.0, why), again, &mut rest);
            }
        }
        Ok(rest)
    }

    fn note_small(
        &mut self,
        (object, why): (String, String),
        again: Option<Vec<u8>>,
        rest: &mut Vec<DamagedPlace>,
    ) {
        let place = DamagedPlace { object: object.clone(), bytes: 0..0, why };
        match again {
            Some(bytes) => {
                self.commits.heal(object, bytes);
                self.past.damaged.push(place);
            }
            // The parts to come have all of it in the end.
            None => rest.push(place),
        }
    }
}
