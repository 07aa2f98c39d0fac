//! Reading and authenticating everything that is stored, whatever is damaged.

use super::cache::DiskCache;
use super::fetch::{Source, Wanted};
use super::ledger::WindowLedger;
use super::pending::Checkpoints;
use super::places::Places;
use crate::Result;
use crate::damage::{DamagedPlace, Inspected};
use oblivio_engine::Level;
use oblivio_engine::tree::{BucketSpot, UNPROVED, Verifier};

/// An object of buckets.
struct Object {
    name: String,
    level: Level,
    window: u64,
    bucket_bytes: usize,
}

/// Looks at all objects: what leads to the newest commit, the parts of the memory, their second
/// copies; then level by level, object by object, all buckets. Its requests follow from what there
/// is, and from what the store lacks.
pub(super) fn inspect(
    ledger: &mut WindowLedger,
    at_once: usize,
    progress: &mut dyn FnMut(u64, u64),
    damaged: &mut dyn FnMut(DamagedPlace),
) -> Result<Inspected> {
    let mut count = 0;
    let mut note = |place| {
        count += 1;
        damaged(place);
    };
    ledger.inspect_small(&mut note)?;
    let mut inspected = inspect_buckets(ledger, at_once, progress, &mut note)?;
    // What was noted on the way was named.
    ledger.places.lacking.take();
    inspected.damaged = count;
    Ok(inspected)
}

fn inspect_buckets(
    ledger: &mut WindowLedger,
    at_once: usize,
    progress: &mut dyn FnMut(u64, u64),
    note: &mut dyn FnMut(DamagedPlace),
) -> Result<Inspected> {
    let objects = objects_of(ledger)?;
    let (all, turns) = (objects.len() as u64, ledger.places.rule.turns() as usize);
    let largest = objects.iter().map(|object| object.bucket_bytes * turns).max().unwrap_or(1);
    let WindowLedger { store, session, engine, places, cache, .. } = ledger;
    let mut verifier = engine.verifier();
    let (mut done, mut count) = (0, 0);
    for some in objects.chunks((at_once / largest).max(1)) {
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
            count += turns as u64;
            object.check((places, cache.as_mut()), &mut verifier, (buf, note))?;
        }
        done += some.len() as u64;
        progress(done, all);
    }
    let lacking = verifier.finish();
    for bucket in lacking.buckets {
        let (object, why) = (places.place(bucket, 0).0, format!("bucket {} is missing", bucket.0));
        note(DamagedPlace { object, bytes: 0..0, why });
    }
    Ok(Inspected { count, lost: lacking.blocks, ..Inspected::default() })
}

impl Object {
    /// Checks its buckets, in their order.
    fn check(
        &self,
        (places, mut cache): (&Places, Option<&mut DiskCache>),
        verifier: &mut Verifier<'_>,
        (buf, note): (&mut [u8], &mut dyn FnMut(DamagedPlace)),
    ) -> Result<()> {
        let Self { name, level, window, bucket_bytes } = self;
        let (turns, whole) = (places.rule.turns(), buf.len() as u64);
        let left = places.lacking.left(name);
        if let Some(left) = left {
            note(DamagedPlace::cut(name, Some(left).filter(|left| *left > 0), whole));
        }
        for (index, sealed) in (0..).zip(buf.chunks_mut(*bucket_bytes)) {
            let bucket = places.rule.bucket(BucketSpot { level: *level, window: *window, index });
            let mut spare = None;
            if let Some(cache) = cache.as_mut().filter(|_| !verifier.expects(bucket, sealed)) {
                let cached = cache.bucket(name, turns, (index, *bucket_bytes));
                spare = cached.filter(|cached| verifier.expects(bucket, cached));
            }
            let held = spare.is_some();
            let why = verifier.check(bucket, spare.as_deref_mut().unwrap_or(sealed))?;
            let begin = index * *bucket_bytes as u64;
            let bytes = begin..begin + *bucket_bytes as u64;
            let why = match why {
                // What is cut is named once, and so is what proved a bucket.
                _ if left.is_some_and(|left| bytes.end > left) => continue,
                Some(UNPROVED) => continue,
                Some(why) => why,
                None if held => HELD,
                None => continue,
            };
            note(DamagedPlace { object: name.clone(), bytes, why: why.into() });
        }
        Ok(())
    }
}

const HELD: &str = "it is not what was stored; this computer's disk cache still has it";

/// The objects of all current buckets.
fn objects_of(ledger: &WindowLedger) -> Result<Vec<Object>> {
    let (engine, places) = (&ledger.engine, &ledger.places);
    let config = engine.config();
    let mut objects = Vec::new();
    for (level, window) in places.current(engine.depth()) {
        let slots = engine.shapes().slots(level, window, config.blocks_per_bucket);
        if slots > 0 {
            let bucket_bytes = config.geometry().bucket_bytes_with(slots);
            objects.push(Object {
                name: places.object(level, window)?,
                level,
                window,
                bucket_bytes,
            });
        }
    }
    Ok(objects)
}

impl WindowLedger {
    /// Looks at all that is no bucket. The memory itself is in memory.
    fn inspect_small(&mut self, note: &mut dyn FnMut(DamagedPlace)) -> Result<()> {
        if let Some((checkpoint, copied)) = self.past.newest {
            self.session.inspect(checkpoint, copied)?.into_iter().for_each(&mut *note);
        }
        for number in self.commits.first_part()..=self.commits.epoch {
            let reader = self.part_reader();
            let expected = reader.expected(number)?;
            if let Err(why) = reader.read_one(&expected)? {
                // If it cannot be made again, the parts to come have all of it in the end.
                let again = reader.again(number)?;
                note_small(&mut self.commits, note, (expected.0, why), again);
            }
        }
        for parity in self.commits.parities.stored() {
            let reader = self.part_reader();
            let expected = reader.expected_parity(&parity)?;
            if let Err(why) = reader.read_one(&expected)? {
                let again = reader.parity_again(&parity)?;
                note_small(&mut self.commits, note, (expected.0, why), again);
            }
        }
        Ok(())
    }
}

fn note_small(
    commits: &mut Checkpoints,
    note: &mut dyn FnMut(DamagedPlace),
    (object, why): (String, String),
    again: Option<Vec<u8>>,
) {
    if let Some(bytes) = again {
        commits.heal(object.clone(), bytes);
    }
    note(DamagedPlace { object, bytes: 0..0, why });
}
