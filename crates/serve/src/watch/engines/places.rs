//! Places of writes in a store that hides writes, and the flushes that they are of.

use crate::watch::event::{Part, Written};
use oblivio_engine::Level;
use oblivio_engine::sequential::{Bucket, Generation, Layout};
use oblivio_volume::sequential::SequentialInfo;

/// The object with the levels.
const DISK: &str = "disk";

/// The objects of the store laid end to end, and the writes seen there.
#[derive(Default)]
pub struct Places {
    objects: Vec<(String, u64)>,
    flushes: Option<Flushes>,
}

impl Places {
    /// For these objects with their lengths, which stay fixed.
    pub fn of(objects: Vec<(String, u64)>) -> Self {
        Self { objects, flushes: None }
    }

    /// Takes the engine's parameters, to count flushes from now on. Returns the parts of the store:
    /// the levels of the disk, and the other objects.
    pub fn describe(&mut self, engine: &SequentialInfo) -> Vec<Part> {
        // The parameters are those of an open volume, so they are valid.
        let Ok(layout) = Layout::new(&engine.parameters) else { return Vec::new() };
        let last = layout.schedule().last();
        let level = |level: Level| Part {
            name: if level == last {
                "last level".into()
            } else {
                format!("level {}", level.0 + 1)
            },
            bytes: layout.level_bytes(level),
        };
        let levels: Vec<Part> = layout.schedule().levels().map(level).collect();
        let parts = self.objects.iter().flat_map(|(name, bytes)| match name.as_str() {
            DISK => levels.clone(),
            _ => vec![Part { name: name.clone(), bytes: *bytes }],
        });
        let parts = parts.collect();
        self.flushes = Some(Flushes::after(engine.flushes, &layout));
        parts
    }

    /// Notes writes that the store took together: objects, and offsets and lengths in them.
    pub fn see<'w>(&mut self, writes: impl Iterator<Item = (&'w str, (u64, u64))>) -> Written {
        let mut places = Vec::new();
        for (object, (offset, len)) in writes {
            if let Some(flushes) = self.flushes.as_mut().filter(|_| object == DISK) {
                flushes.see(offset, len);
            }
            let before = self.objects.iter().take_while(|(name, _)| name != object);
            places.push((before.map(|(_, len)| len).sum::<u64>() + offset, len));
        }
        Written::of(&places, self.flushes.as_ref().map(Flushes::seen))
    }
}

/// Counts flushes as an observer of the writes can: from the second turn of the queue on, each
/// flush writes one bucket of the top level.
pub struct Flushes {
    seen: u64,
    bucket_bytes: u64,
    /// Buckets in a generation of the top level, and bytes from one generation to the next.
    buckets: u64,
    stride: u64,
    /// Bytes of the top level.
    end: u64,
}

impl Flushes {
    /// For a disk with this many flushes so far.
    pub fn after(flushes: u64, layout: &Layout) -> Self {
        let level = Level(0);
        let first =
            |number| layout.bucket(Bucket { generation: Generation { level, number }, index: 0 });
        let buckets = layout.schedule().queue_buckets();
        Self {
            seen: flushes.saturating_sub(buckets),
            bucket_bytes: first(0).bytes,
            buckets,
            stride: first(1).offset,
            end: layout.level_bytes(level),
        }
    }

    /// Flushes seen so far.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// Notes a write to the disk.
    pub fn see(&mut self, offset: u64, len: u64) {
        self.seen += self.begun_before(offset + len) - self.begun_before(offset);
    }

    /// Buckets of the top level that begin before this place.
    fn begun_before(&self, place: u64) -> u64 {
        let place = place.min(self.end);
        let in_generation = (place % self.stride).div_ceil(self.bucket_bytes);
        place / self.stride * self.buckets + in_generation.min(self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Result;
    use oblivio_engine::sequential::{Flush, SequentialConfig};

    #[test]
    fn flushes_are_counted_from_what_they_write() -> Result<()> {
        for (bucket_blocks, queue_buckets, fan_out) in [(2, 3, 3), (1, 1, 2), (5, 20, 4)] {
            let config = SequentialConfig {
                bucket_blocks,
                queue_buckets,
                fan_out,
                sector_bytes: 128,
                ..SequentialConfig::new(64, 1000)
            };
            let layout = Layout::new(&config)?;
            let (mut all, mut late) = (Flushes::after(0, &layout), None);
            for flush in 0..500 {
                // One by one, and adjacent ones in one piece, as a store may get them.
                let mut writes = layout.writes(Flush(flush));
                if flush % 2 == 0 {
                    writes.sort_unstable();
                    writes.dedup_by(|next, last| {
                        let joined = last.end() == next.offset;
                        last.bytes += if joined { next.bytes } else { 0 };
                        joined
                    });
                }
                let mut counts: Vec<&mut Flushes> =
                    [&mut all].into_iter().chain(&mut late).collect();
                for write in writes {
                    counts.iter_mut().for_each(|count| count.see(write.offset, write.bytes));
                }
                assert_eq!(all.seen(), (flush + 1).saturating_sub(queue_buckets));
                late = late.or((flush == 200).then(|| Flushes::after(201, &layout)));
            }
            assert_eq!(late.map(|late| late.seen()), Some(500 - queue_buckets));
        }
        Ok(())
    }
}
