//! Whether what clients saw of a shared store is linearizable: as if each transaction had happened
//! at one moment between its call and its answer.
//!
//! Blocks are independent, so transactions that touch the same blocks, directly or through others,
//! are judged together, and apart from all else. The search is the one of Wing, Gong and Lowe
//! ([`todc_utils`]). A call that was never answered may have happened at any time, or not at all.

mod spec;

pub use spec::{Answer, Change, Compare, Part, carry_out};

use spec::{Done, StoreSpec};
use std::collections::{BTreeMap, BTreeSet};
use todc_utils::{Action, History, WGLChecker};

/// A transaction of a recorded history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was called, on a clock that all clients share.
    pub called: u64,
    /// What it asked for.
    pub parts: Vec<Part>,
    /// When it was answered, and how; none if it never was.
    pub answered: Option<(u64, Vec<Answer>)>,
}

/// Judges a history.
///
/// # Errors
/// The blocks of the first group of transactions that no order explains.
pub fn judge(history: &[Call]) -> Result<(), BTreeSet<u64>> {
    let odd = groups(history).into_iter().find(|(_, calls)| !is_linearizable(calls));
    odd.map_or(Ok(()), |(blocks, _)| Err(blocks))
}

/// The transactions that have to do with each other, and the blocks that they touch.
fn groups(history: &[Call]) -> Vec<(BTreeSet<u64>, Vec<&Call>)> {
    let mut group_of: BTreeMap<u64, usize> = BTreeMap::new();
    let mut groups: Vec<(BTreeSet<u64>, Vec<&Call>)> = Vec::new();
    for call in history {
        let blocks: BTreeSet<u64> = call.parts.iter().map(|part| part.block).collect();
        let met: BTreeSet<usize> =
            blocks.iter().filter_map(|block| group_of.get(block).copied()).collect();
        let mut joined = (blocks, Vec::new());
        for group in met {
            let (mut blocks, mut calls) = std::mem::take(&mut groups[group]);
            joined.0.append(&mut blocks);
            joined.1.append(&mut calls);
        }
        joined.1.push(call);
        group_of.extend(joined.0.iter().map(|block| (*block, groups.len())));
        groups.push(joined);
    }
    groups.retain(|(_, calls)| !calls.is_empty());
    groups
}

fn is_linearizable(calls: &[&Call]) -> bool {
    // What has no effect and was not answered says nothing.
    let says = |call: &&&Call| call.answered.is_some() || call.parts.iter().any(Part::changes);
    let calls: Vec<&Call> = calls.iter().filter(says).copied().collect();
    // At one moment, calls come before answers: they may overlap.
    let mut actions: Vec<(u64, bool, usize, Action<Done>)> = Vec::with_capacity(2 * calls.len());
    for (at, call) in calls.iter().enumerate() {
        let (end, answers) = match &call.answered {
            Some((end, answers)) => (*end, Some(answers.clone())),
            None => (u64::MAX, None),
        };
        let done = Done { parts: call.parts.clone(), answers };
        actions.push((call.called, false, at, Action::Call(done.clone())));
        actions.push((end, true, at, Action::Response(done)));
    }
    actions.sort_by_key(|(time, answer, at, _)| (*time, *answer, *at));
    let actions: Vec<_> = actions.into_iter().map(|(_, _, at, action)| (at, action)).collect();
    actions.is_empty() || WGLChecker::<StoreSpec>::is_linearizable(History::from_actions(actions))
}
