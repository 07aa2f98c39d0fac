//! The outcome of some damage, and a table of all outcomes.

use oblivio_volume::Error;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of some damage.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The right data, as if nothing had happened.
    NoEffect,
    /// An error, by its name.
    Refused(&'static str),
    /// Must never happen.
    Bug(String),
}

pub fn judge(work: impl FnOnce() -> Result<(), Error>) -> Outcome {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Outcome::NoEffect,
        Ok(Err(error)) => named(&error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or(panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Outcome::Bug(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// The errors that damage may lead to.
pub fn named(error: &Error) -> Outcome {
    match error {
        Error::Tampered(_) => Outcome::Refused("Tampered"),
        Error::Lost(_) => Outcome::Refused("Lost"),
        Error::Unsupported(_) => Outcome::Refused("Unsupported"),
        Error::WrongPassphrase => Outcome::Refused("WrongPassphrase"),
        Error::RolledBack(_) => Outcome::Refused("RolledBack"),
        other => Outcome::Bug(format!("an error that names nothing: {other:?}")),
    }
}

/// The outcomes by kind of damage and object.
#[derive(Default)]
pub struct Tally(pub BTreeMap<String, BTreeMap<Outcome, u64>>);

impl Tally {
    pub fn count(&mut self, what: &str, outcome: Outcome) {
        *self.0.entry(what.to_owned()).or_default().entry(outcome).or_default() += 1;
    }

    pub fn no_effect(&self, what: &str) -> u64 {
        let outcomes = self.0.get(what);
        outcomes.and_then(|of| of.get(&Outcome::NoEffect)).copied().unwrap_or(0)
    }

    pub fn print(&self) {
        println!("| what | tried | outcomes |\n|---|---|---|");
        for (what, outcomes) in &self.0 {
            let tried: u64 = outcomes.values().sum();
            let text = |(outcome, count): (&Outcome, &u64)| match outcome {
                Outcome::NoEffect => format!("no effect {count}"),
                Outcome::Refused(name) => format!("{name} {count}"),
                Outcome::Bug(why) => format!("**{why}** {count}"),
            };
            let outcomes: Vec<String> = outcomes.iter().map(text).collect();
            println!("| {what} | {tried} | {} |", outcomes.join(", "));
        }
    }

    pub fn expect_no_bugs(&self) {
        for (what, outcomes) in &self.0 {
            for outcome in outcomes.keys() {
                assert!(!matches!(outcome, Outcome::Bug(_)), "{what}: {outcome:?}");
            }
        }
    }
}
