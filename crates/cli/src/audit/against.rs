//! Two traces side by side: what the contract lets the storage see.

use super::judged::Judged;
use crate::exit::{Code, fault};
use crate::human::say;
use anyhow::Result;
use oblivio_audit::schedule::PublicFact;

/// Whether the compared traces differ in a public fact.
pub fn differ(judged: &[Judged]) -> bool {
    judged.iter().flat_map(|one| &one.seen).any(|seen| seen.differs)
}

/// Prints the public facts of two traces, a line each.
pub fn in_words(seen: &[PublicFact]) -> Result<()> {
    if seen.is_empty() {
        return Ok(());
    }
    say("      What the contract lets the storage see (docs/audits.md):")?;
    for one in seen {
        let mark = if one.differs { "DIFFERS" } else { "same" };
        say(format!("      {mark:<9}{:<13}{}", one.name, one.explanation))?;
    }
    Ok(())
}

/// What a pass of a comparison means.
pub fn meaning(judged: &[Judged]) -> &'static str {
    match differ(judged) {
        false => "Nothing tells the two apart.",
        true => {
            "Where they go tells nothing.\n\
             BUT THE TWO CAN BE TOLD APART by their counts, marked DIFFERS above. The contract lets \
             the storage\nsee those; --pad and --pace hide more of them."
        }
    }
}

/// An error when something public differs.
pub fn refuse_differences(judged: &[Judged]) -> Result<()> {
    if !differ(judged) {
        return Ok(());
    }
    Err(fault(
        Code::General,
        "the two can be told apart by what the contract lets the storage see",
        "Compare work on copies of one volume, and record it with --pad.",
    ))
}
