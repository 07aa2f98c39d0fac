//! What is found.

use std::fmt;

/// Something out of order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A file, and a line where there is one.
    pub at: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    {}", self.at, self.what, self.advice)
    }
}
