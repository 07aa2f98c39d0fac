//! Places of writes in a store that hides writes, and the flushes that they are of.

use crate::watch::event::{StorePart, Written};
use oblivio_volume::report::flushes::Flushes;

/// The objects of the store laid end to end, and the writes seen there.
#[derive(Default)]
pub struct Places {
    objects: Vec<(String, u64)>,
    /// The object with the levels, and what was written there.
    flushes: Option<(&'static str, Flushes)>,
}

impl Places {
    /// For these objects with their lengths, which stay fixed.
    pub fn of(objects: Vec<(String, u64)>) -> Self {
        Self { objects, flushes: None }
    }

    /// Takes where the levels are, in one of the objects, to count flushes from now on. Returns the
    /// parts of the store: the levels, and the other objects.
    pub fn describe(
        &mut self,
        object: &'static str,
        levels: &[(String, u64)],
        flushes: Flushes,
    ) -> Vec<StorePart> {
        let part = |(name, bytes): &(String, u64)| StorePart { name: name.clone(), bytes: *bytes };
        let parts = self.objects.iter().flat_map(|its| match its.0 == object {
            true => levels.iter().map(part).collect(),
            false => vec![part(its)],
        });
        let parts = parts.collect();
        self.flushes = Some((object, flushes));
        parts
    }

    /// Notes writes that the store took together: objects, and offsets and lengths in them.
    pub fn see<'w>(&mut self, writes: impl Iterator<Item = (&'w str, (u64, u64))>) -> Written {
        let mut places = Vec::new();
        for (object, (offset, len)) in writes {
            if let Some((_, flushes)) = self.flushes.as_mut().filter(|it| it.0 == object) {
                flushes.see(offset, len);
            }
            let before = self.objects.iter().take_while(|(name, _)| name != object);
            places.push((before.map(|(_, len)| len).sum::<u64>() + offset, len));
        }
        Written::of(&places, self.flushes.as_ref().map(|(_, flushes)| flushes.seen))
    }
}
