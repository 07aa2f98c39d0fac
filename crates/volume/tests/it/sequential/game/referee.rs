//! Compares what came of an act in both worlds. All must be equal but for what is random.

use super::acts::Act;
use super::watch::{Part, Seen, What};
use super::world::{Said, World, bytes};
use oblivio_store::Held;
use std::collections::BTreeMap;

/// How a leak was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub check: Check,
    pub how: String,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// Calls to the store: kind, objects, places, lengths, order.
    Calls,
    /// Bytes of the volume itself.
    Outer,
    /// Bytes of a lane that are not random.
    Lane,
    /// Notes in the home.
    Home,
    /// When things happened.
    Time,
    /// How much was read of lanes.
    Work,
    /// How often passphrases were tried on lanes.
    Tries,
    /// Results, messages, contents.
    Words,
}

/// Bytes in front of the identity of the lanes' states in a state: the head of a sealed object;
/// five numbers and a tag, an identity and a root with its length.
const BEFORE_IDENTITY: u64 = 24 + (5 * 8 + 16 + 32 + 8 + 1024);

/// Bytes of a write in which a bit is looked for that is not as often set as not.
const HEAD: usize = 64;

/// What the bytes of the lanes of one world had so far.
#[derive(Default)]
struct Bytes {
    ones: u64,
    bits: u64,
    /// Of the first bytes of all writes to an object: how many, and how often each bit was set.
    set: BTreeMap<String, [(u64, [u64; 8]); HEAD]>,
    /// Words that were written in this game.
    words: Vec<u64>,
}

/// Sees both worlds, over all games of a player.
#[derive(Default)]
pub struct Referee {
    bytes: [Bytes; 2],
    /// Bytes read of lanes before the calls that the inspector saw.
    read: [u64; 2],
    /// Bytes of one place of a state.
    place: u64,
    pub calls: u64,
    pub notes: u64,
    pub lane_bytes: u64,
}

fn differs(check: Check, how: String) -> Result<(), Found> {
    Err(Found { check, how })
}

impl Referee {
    pub fn begin_game(&mut self, state_place: u64) {
        self.place = state_place;
        self.bytes.iter_mut().for_each(|it| it.words.clear());
    }

    /// Compares what was seen and said of an act.
    pub fn judge(&mut self, act: &Act, seen: [&[Seen]; 2], said: [&Said; 2]) -> Result<(), Found> {
        let opens = matches!(act, Act::Open(_) | Act::Restore);
        for (one, two) in seen[0].iter().zip(seen[1]) {
            self.judge_one([one, two], opens)?;
        }
        if seen[0].len() != seen[1].len() {
            let left = &seen[usize::from(seen[0].len() < seen[1].len())];
            let next = &left[seen[0].len().min(seen[1].len())];
            let check =
                if matches!(next.what, What::Note(..)) { Check::Home } else { Check::Calls };
            return differs(check, format!("one more: {}", shown(next)));
        }
        judge_words(said)
    }

    fn judge_one(&mut self, [one, two]: [&Seen; 2], opens: bool) -> Result<(), Found> {
        match (&one.what, &two.what) {
            (What::Note(note, keep), What::Note(other, kept)) => {
                self.notes += 1;
                if (note, keep) != (other, kept) {
                    return differs(Check::Home, format!("{note:?} {keep:?}, {other:?} {kept:?}"));
                }
            }
            (What::Call(kind, parts), What::Call(other, others)) => {
                self.calls += 1;
                let place = |part: &Part| (part.object.clone(), part.offset, part.len);
                if kind != other || !parts.iter().map(place).eq(others.iter().map(place)) {
                    return differs(Check::Calls, format!("{} / {}", shown(one), shown(two)));
                }
                for (part, other) in parts.iter().zip(others).filter(|it| it.0.len > 0) {
                    self.judge_bytes([part, other])?;
                }
            }
            (What::Note(..), _) | (_, What::Note(..)) => {
                return differs(Check::Home, format!("{} / {}", shown(one), shown(two)));
            }
        }
        if one.time != two.time {
            return differs(Check::Time, format!("{:?}, {:?}", one.time, two.time));
        }
        if one.tried != two.tried {
            return differs(Check::Tries, format!("{}, {} slots", one.tried, two.tried));
        }
        self.judge_work([one, two], opens)
    }

    /// What an opening reads of a lane comes before its note: the time after that tells nothing of
    /// it. What flushes read is compared in the mean.
    fn judge_work(&mut self, [one, two]: [&Seen; 2], opens: bool) -> Result<(), Found> {
        if opens && matches!(one.what, What::Note(..)) {
            return Ok(());
        }
        if one.read_of_logs != two.read_of_logs {
            let read = (one.read_of_logs, two.read_of_logs);
            let how = format!("{read:?} bytes read of logs before {}", shown(one));
            return differs(Check::Work, how);
        }
        self.read.iter_mut().zip([one.read, two.read]).for_each(|(all, read)| *all += read);
        Ok(())
    }

    fn judge_bytes(&mut self, [part, other]: [&Part; 2]) -> Result<(), Found> {
        if !part.object.starts_with("lane") {
            let same = self.equal(&part.object, part.offset, [&part.data, &other.data]);
            return match same {
                true => Ok(()),
                false => differs(Check::Outer, format!("{} at {}", part.object, part.offset)),
            };
        }
        self.lane_bytes += part.len;
        for (one, two) in part.data.chunks_exact(8).zip(other.data.chunks_exact(8)) {
            if one == two {
                let how = format!("{} at {}: {one:x?} in both", part.object, part.offset);
                return differs(Check::Lane, how);
            }
        }
        let [unused, used] = &mut self.bytes;
        unused.judge(part)?;
        used.judge(other)
    }

    /// Whether bytes of the volume itself are equal. Those of a state are, under equal keys and
    /// salts, but for the identity of the lanes' states that it names, its tag, and what the tag
    /// hides.
    fn equal(&self, object: &str, offset: u64, [one, two]: [&[u8]; 2]) -> bool {
        if one.len() != two.len() {
            return false;
        }
        if !["state", "state-2"].contains(&object) {
            return one == two;
        }
        let identity = BEFORE_IDENTITY..BEFORE_IDENTITY + 32;
        let mut bytes = (offset..).zip(one.iter().zip(two));
        bytes.all(|(at, (one, two))| {
            let at = at % self.place;
            one == two || at < 24 || identity.contains(&at) || at >= self.place - 16
        })
    }

    /// Compares all that is on the disks and not of lanes. No word of a lane came twice.
    pub fn end_game(&mut self, [one, two]: [&World; 2]) -> Result<(), Found> {
        for bytes in &mut self.bytes {
            bytes.words.sort_unstable();
            if let Some(twice) = bytes.words.windows(2).find(|it| it[0] == it[1]) {
                return differs(Check::Lane, format!("{:x} was written twice", twice[0]));
            }
        }
        let list = |world: &World| world.disk.list().expect("memory");
        if list(one) != list(two) {
            return differs(Check::Calls, "other objects".into());
        }
        for (object, len) in list(one).iter().filter(|it| !it.0.starts_with("lane")) {
            let [first, second] = [one, two].map(|world| bytes(&world.disk, object, 0, *len));
            if !self.equal(object, 0, [&first, &second]) {
                return differs(Check::Outer, format!("{object} at the end"));
            }
        }
        Ok(())
    }

    /// Bytes read of lanes that were used, for each one of those that were not.
    pub fn read_more(&self) -> f64 {
        self.read[1] as f64 / self.read[0].max(1) as f64
    }

    /// Judges the bytes of lanes of all games together.
    pub fn judge_all(&self) -> Result<(), Found> {
        self.bytes.iter().try_for_each(Bytes::judge_bits)?;
        // Maps of so small disks are read more often than those of others.
        let [unused, used] = self.read;
        match unused + used > 100_000 && (used > 2 * unused || unused > 2 * used) {
            true => differs(Check::Work, format!("{unused}, {used} bytes read in all games")),
            false => Ok(()),
        }
    }
}

impl Bytes {
    fn judge(&mut self, part: &Part) -> Result<(), Found> {
        let data = &part.data;
        self.bits += 8 * data.len() as u64;
        self.ones += data.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        for word in data.chunks_exact(8) {
            let word = u64::from_le_bytes(std::array::from_fn(|at| word[at]));
            self.words.push(word);
            if word >> 24 == 0 {
                let how = format!("{} at {}: {word}", part.object, part.offset);
                return differs(Check::Lane, how);
            }
        }
        let set = self.set.entry(part.object.clone()).or_insert([(0, [0; 8]); HEAD]);
        for ((count, bits), byte) in set.iter_mut().zip(data) {
            *count += 1;
            for (bit, ones) in bits.iter_mut().enumerate() {
                *ones += u64::from(byte >> bit & 1);
            }
        }
        Ok(())
    }

    /// Whether a bit is set too often, or not often enough: by seven deviations, which a fair one
    /// of the thousands here is once in 10^8 times.
    fn judge_bits(&self) -> Result<(), Found> {
        let fair = |ones: u64, of: u64| (2 * ones).abs_diff(of) as f64 <= 7.0 * (of as f64).sqrt();
        if !fair(self.ones, self.bits) {
            return differs(Check::Lane, format!("{} ones of {}", self.ones, self.bits));
        }
        for (object, bytes) in &self.set {
            for (at, (count, bits)) in bytes.iter().enumerate() {
                if let Some(ones) = bits.iter().find(|ones| !fair(**ones, *count)) {
                    let how = format!("{object}, byte {at}: a bit is set {ones} times of {count}");
                    return differs(Check::Lane, how);
                }
            }
        }
        Ok(())
    }
}

/// What was said to who has the outer passphrase only. What the owner of an open lane hears of it
/// stays with him.
fn judge_words([one, two]: [&Said; 2]) -> Result<(), Found> {
    if one.words != two.words || one.works != two.works {
        return differs(Check::Words, format!("{} / {}", one.words, two.words));
    }
    let to_owner = one.to_owner || two.to_owner;
    let damaged = |said: &Said| {
        let mut places = said.damaged.clone();
        places.retain(|it| !to_owner || !it.object.starts_with("lane"));
        places
    };
    match damaged(one) == damaged(two) {
        true => Ok(()),
        false => differs(Check::Words, format!("{:?} / {:?}", one.damaged, two.damaged)),
    }
}

fn shown(seen: &Seen) -> String {
    match &seen.what {
        What::Note(note, keep) => format!("{note:?} {keep:?}"),
        What::Call(kind, parts) => {
            let parts: Vec<_> = parts.iter().map(|it| (&it.object, it.offset, it.len)).collect();
            format!("{kind:?} {parts:?}")
        }
    }
}
