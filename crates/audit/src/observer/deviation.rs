//! Counts deviations from a rule.

use crate::report::Finding;

/// Deviations from one rule, and a description of the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deviation {
    looked: u64,
    count: usize,
    first: Option<String>,
}

impl Deviation {
    /// Counts a check, and its fault, if any.
    pub(crate) fn look(&mut self, wrong: Option<String>) {
        self.looked += 1;
        if let Some(wrong) = wrong {
            self.note(|| wrong);
        }
    }

    /// Counts a deviation.
    pub(crate) fn note(&mut self, wrong: impl FnOnce() -> String) {
        self.count += 1;
        self.first.get_or_insert_with(wrong);
    }

    /// As the finding of an exact test.
    pub(crate) fn finding(&self, name: &str, what: &str) -> Finding {
        let explanation = match &self.first {
            Some(first) => format!("{} deviate, the first: {first}", self.count),
            None => format!("{} {what}", self.looked),
        };
        Finding::exact(name, self.count, explanation)
    }
}
