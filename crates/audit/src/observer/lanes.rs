//! The lanes of a sequential volume: each is written at every act, in the same way whether it is
//! used or not (docs/decisions/0051-lanes.md).

use crate::record::RecordedCall;
use std::collections::BTreeMap;

/// The object of a lane's levels, of its log and of its states, for an object of the volume.
const BESIDE: [(&str, &str); 3] = [("disk", ""), ("log", "-log"), ("state", "-state")];

/// What was seen of a lane.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Its states in this session.
    states: u64,
    /// Of its levels, log and states: where the next write is to begin, unless it begins anew.
    next: [Option<u64>; 3],
    /// The lengths of a flush's writes.
    flush: Option<Vec<u64>>,
    /// Bytes of the volume's log, and of this one's, in the first call.
    log: Option<(u64, u64)>,
    state_bytes: Option<u64>,
}

/// What was seen of all lanes, beside the volume's own acts.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lanes: BTreeMap<String, Lane>,
    /// States of the volume in this session.
    states: u64,
}

impl Lanes {
    /// Begins a session: it may repeat the last writes of a broken-off one.
    pub(super) fn begin(&mut self) {
        self.states = 0;
        for lane in self.lanes.values_mut() {
            (lane.states, lane.next) = (0, [None; 3]);
        }
    }

    /// The fault of a call that writes, if any.
    pub(super) fn take(&mut self, call: &RecordedCall) -> Option<String> {
        let mut parts: BTreeMap<(String, usize), Vec<(u64, u64)>> = BTreeMap::new();
        let mut own: [Vec<(u64, u64)>; 3] = Default::default();
        for (object, offset, len) in call.ranges() {
            if let Some(at) = BESIDE.iter().position(|(name, _)| *name == object) {
                own[at].push((offset, len));
            }
            let lane =
                object.strip_prefix("lane-").map(|rest| rest.split('-').next().unwrap_or(""));
            let Some(lane) = lane else { continue };
            let what = &object["lane-".len() + lane.len()..];
            if let Some(at) = BESIDE.iter().position(|(_, suffix)| *suffix == what) {
                parts.entry((lane.to_owned(), at)).or_default().push((offset, len));
            }
        }
        for (lane, _) in parts.keys() {
            self.lanes.entry(lane.clone()).or_default();
        }
        let mut wrong = None;
        for (name, lane) in &mut self.lanes {
            let of = |at| parts.get(&(name.clone(), at)).map_or(&[][..], |it| it);
            let odd = lane.take_flush(of(0), !own[0].is_empty());
            let odd = odd.or_else(|| lane.take_log(of(1), &own[1]));
            let odd = odd.or_else(|| lane.take_state(of(2), (!own[2].is_empty(), self.states)));
            wrong = wrong.or(odd.map(|odd| format!("lane {name}: {odd}")));
        }
        self.states += u64::from(!own[2].is_empty());
        wrong
    }
}

impl Lane {
    /// Whether a write begins where the one before ended, or at the beginning.
    fn goes_on(&mut self, at: usize, (offset, len): (u64, u64)) -> bool {
        let next = self.next[at].replace(offset + len);
        next.is_none_or(|next| offset == next || offset == 0)
    }

    /// Each call that is a flush of the volume is one of the lane: it writes the same lengths, each
    /// time one place further.
    fn take_flush(&mut self, parts: &[(u64, u64)], flushed: bool) -> Option<String> {
        let lengths: Vec<u64> = parts.iter().map(|(_, len)| *len).collect();
        let Some(&first) = parts.first() else {
            return (flushed && self.flush.is_some()).then(|| "a flush without it".into());
        };
        let usual = self.flush.get_or_insert_with(|| lengths.clone());
        if *usual != lengths || !flushed {
            return Some(format!("a flush wrote {lengths:?}, where another wrote {usual:?}"));
        }
        let at = first.0;
        (!self.goes_on(0, first)).then(|| format!("a bucket went to {at}"))
    }

    /// Each call that writes quanta of the volume writes as many of the lane.
    fn take_log(&mut self, parts: &[(u64, u64)], own: &[(u64, u64)]) -> Option<String> {
        let bytes = |parts: &[(u64, u64)]| parts.iter().map(|(_, len)| len).sum::<u64>();
        let (mine, theirs) = (bytes(parts), bytes(own));
        if mine == 0 && (theirs == 0 || self.log.is_none()) {
            return None;
        }
        let (one, other) = *self.log.get_or_insert((theirs, mine));
        if mine * one != theirs * other {
            return Some(format!("{mine} bytes of its log beside {theirs} of the volume's"));
        }
        let odd = parts.iter().find(|part| !self.goes_on(1, **part))?;
        Some(format!("a quantum went to {}", odd.0))
    }

    /// Before each state of the volume comes one of the lane, each time one place further.
    fn take_state(
        &mut self,
        parts: &[(u64, u64)],
        (stated, states): (bool, u64),
    ) -> Option<String> {
        let begun = self.state_bytes.is_some();
        if begun && stated && self.states != states + 1 {
            return Some(format!("{} states beside {}", self.states, states + 1));
        }
        for &part in parts {
            self.states += 1;
            let usual = *self.state_bytes.get_or_insert(part.1);
            if part.1 != usual || self.states > states + 1 || !self.goes_on(2, part) {
                return Some(format!("a state of {} bytes went to {}", part.1, part.0));
            }
        }
        None
    }
}
