//! Collecting what nothing needs any more: it lists, and nothing else does.
//!
//! A session deletes what its windows replaced, and what crashed sessions left, without a list.
//! What stays are small things: pointers and first entries of sessions that are over, requests of
//! others, and objects whose deletion was lost together with two sessions.
//!
//! Claims stay for ever. A session that was asleep must find that of the one after it.

use super::places::Places;
use super::volume::WindowVolume;
use crate::Result;
use crate::session::{is_object, stays};
use std::collections::BTreeSet;

/// Names in one call.
const AT_ONCE: usize = 500;

/// What was found, and deleted unless it was only looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Objects that nothing needs.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that are of no volume's names: they are left alone.
    pub strange: u64,
}

impl WindowVolume {
    /// Looks for objects that nothing needs, and deletes them if `delete` is set. Which they are
    /// follows from counters and sessions alone. `progress` gets how many of all are deleted.
    ///
    /// # Errors
    /// `Overtaken`, and those of the store.
    pub fn collect(
        &mut self,
        delete: bool,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Collected> {
        self.guarded(|volume| {
            volume.drain()?;
            // A commit of this session, so that it stands on nothing of an earlier one.
            volume.checkpoint(true)?;
            volume.flush()?;
            let listed = volume.ledger.store.list()?;
            // What a later session stored is in no list that was made before it began.
            volume.ledger.session.look()?;
            let needed = volume.needed()?;
            let mut found = Collected::default();
            let mut garbage = Vec::new();
            for (name, bytes) in &listed {
                match is_object(name) {
                    true if !volume.needs(&needed, name) => {
                        garbage.push(name.as_str());
                        (found.objects, found.bytes) = (found.objects + 1, found.bytes + bytes);
                    }
                    false if !stays(name) && !name.starts_with("header") => {
                        found.strange += 1;
                    }
                    _ => {}
                }
            }
            let all = garbage.len() as u64;
            for (nth, some) in garbage.chunks(AT_ONCE).enumerate().filter(|_| delete) {
                volume.ledger.session.delete(some)?;
                progress(((nth * AT_ONCE) + some.len()) as u64, all);
            }
            Ok(found)
        })
    }

    /// The buckets and parts that are current.
    fn needed(&self) -> Result<BTreeSet<String>> {
        let (places, commits) = (&self.ledger.places, &self.ledger.commits);
        let current = places.current(self.ledger.engine.depth());
        let mut needed =
            current.map(|(level, window)| places.object(level, window)).collect::<Result<_>>()?;
        for number in commits.first_part()..=commits.epoch {
            BTreeSet::insert(&mut needed, places.part(number)?.0);
        }
        for parity in commits.parities.stored() {
            needed.insert(Places::parity_of(parity.session, parity.last));
        }
        Ok(needed)
    }

    /// Whether an object is needed: one that is current, or one of this session that is none of its
    /// buckets, parts and parities.
    fn needs(&self, needed: &BTreeSet<String>, name: &str) -> bool {
        let own = || {
            let id = self.ledger.session.id();
            name[2..].starts_with(&format!("{:016x}", id.random))
                && !name.starts_with(['b', 'p', 'r'])
        };
        needed.contains(name) || own()
    }
}
