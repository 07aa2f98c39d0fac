//! What a transfer did, into a volume or out of one.

use crate::human;
use crate::lost::LostFile;
use serde::Serialize;

/// The result, for people and for `--json`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub bytes: u64,
    pub skipped: u64,
    pub failed: u64,
    pub seconds: f64,
    /// Files that are damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostFile>,
}

/// `3 files, 1 directory, 12 MiB stored in 2.1 s (5.7 MiB/s)`.
pub fn in_words(summary: &Summary, verb: &str) -> String {
    let mut parts = vec![human::count(summary.files, "file")];
    if summary.directories > 0 {
        parts.push(human::count(summary.directories, "directory"));
    }
    if summary.symlinks > 0 {
        parts.push(human::count(summary.symlinks, "link"));
    }
    parts.push(human::size(summary.bytes));
    let mut text = format!("{} {verb} in {:.1} s", parts.join(", "), summary.seconds);
    if summary.seconds > 0.1 && summary.bytes > 0 {
        let rate = (summary.bytes as f64 / summary.seconds) as u64;
        text.push_str(&format!(" ({}/s)", human::size(rate)));
    }
    if summary.skipped > 0 {
        text.push_str(&format!("; {} skipped", summary.skipped));
    }
    text
}
