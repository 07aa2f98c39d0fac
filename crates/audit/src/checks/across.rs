//! A session must not repeat paths of earlier sessions more often than chance does.
//!
//! The sessions of one volume share no shown label. Two sessions that begin at the same state and
//! access the same blocks show the same paths, which reveals that they are the same.

use super::e_value::EValue;
use crate::report::Finding;
use crate::trace::{MAX_DEPTH, Trace};
use std::collections::HashSet;

/// The least number of accesses of a session, and before it, for a comparison.
const LEAST: usize = 8;

/// Judges, session by session, how many paths an earlier one has shown.
pub(crate) fn repeats_of(name: &str, sessions: &[Trace]) -> Finding {
    // The longest common depth: a grown tree shows more turns of a path.
    let requests =
        || sessions.iter().flat_map(|trace| &trace.requests).filter(|r| !r.leaves.is_empty());
    let Some(depth) = requests().map(|request| request.depth.min(MAX_DEPTH)).min() else {
        return Finding::unjudged(name, "no paths were drawn");
    };
    let (tree, mut seen, mut bet) = (2f64.powi(depth as i32), HashSet::new(), EValue::new());
    let mut judged = 0;
    for session in sessions {
        let short = |request: &crate::trace::TraceRequest| {
            let by = request.depth.min(MAX_DEPTH) - depth;
            request.leaves.iter().map(move |leaf| leaf >> by).collect::<Vec<u64>>()
        };
        let leaves: Vec<u64> = session.requests.iter().flat_map(short).collect();
        if seen.len() >= LEAST && leaves.len() >= LEAST {
            let chance = seen.len() as f64 / tree;
            leaves.iter().for_each(|leaf| bet.see(seen.contains(leaf), chance.min(1.0)));
            judged += leaves.len();
        }
        seen.extend(leaves);
    }
    if judged == 0 {
        return Finding::unjudged(name, "there are no two sessions with paths enough");
    }
    let what = format!("of {judged} paths were shown by a session before");
    bet.finding(name, &what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planted::SplitMix64;
    use crate::trace::TraceRequest;

    fn session(leaves: Vec<u64>) -> Trace {
        Trace {
            depth: 10,
            requests: vec![TraceRequest { leaves, depth: 10, ..TraceRequest::default() }],
        }
    }

    fn random(seed: u64) -> Vec<u64> {
        let mut rng = SplitMix64::new(seed);
        (0..447).map(|_| rng.below(1024)).collect()
    }

    #[test]
    fn the_same_file_is_told_from_another() {
        let first = session(random(1));
        let p = |second| repeats_of("x", &[first.clone(), session(second)]).p_value;
        let mut same = random(1);
        same[200] ^= 1;
        assert!(p(same) < 1e-30);
        let mut other = random(2);
        other[0] = random(1)[0];
        assert!(p(other) > 1e-3);
        let mut tenth = random(3);
        tenth[..90].copy_from_slice(&random(1)[..90]);
        assert!(p(tenth) < 1e-4);
    }

    #[test]
    fn too_little_is_not_judged() {
        assert!(!repeats_of("x", &[session(random(1))]).judged);
        assert!(!repeats_of("x", &[session(random(1)), session(vec![1])]).judged);
    }
}
