//! Progress on the terminal, for work that takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Delay before the bar shows: most commands are over in a second.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error, if that is a terminal.
pub struct Progress {
    bar: ProgressBar,
    begun: Instant,
    waiting: bool,
}

impl Progress {
    /// Bytes of `total`, with their rate.
    pub fn bytes(quiet: bool, total: Option<u64>) -> Self {
        let known = "{bytes} of {total_bytes}  {bar:30}  {bytes_per_sec}  {eta} left  {wide_msg}";
        let unknown = "{bytes}  {spinner}  {bytes_per_sec}  {wide_msg}";
        Self::new(quiet, total, if total.is_some() { known } else { unknown })
    }

    /// Steps of the unit `what`.
    pub fn steps(quiet: bool, what: &str) -> Self {
        let style = format!("{what}  {{human_pos}} of {{human_len}}  {{bar:30}}  {{eta}} left");
        Self::new(quiet, Some(0), &style)
    }

    fn new(quiet: bool, total: Option<u64>, style: &str) -> Self {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar, begun: Instant::now(), waiting: !quiet && shows() }
    }

    /// Counts `n` more bytes or steps.
    pub fn add(&mut self, n: u64) {
        self.bar.inc(n);
        self.show_in_time();
    }

    /// Sets the steps done, and their total.
    pub fn at(&mut self, done: u64, total: u64) {
        if self.bar.length() != Some(total) {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
        self.show_in_time();
    }

    /// Shows the current item.
    pub fn on(&mut self, what: &str) {
        self.bar.set_message(crate::human::plain(what));
    }

    fn show_in_time(&mut self) {
        if self.waiting && self.begun.elapsed() >= PATIENCE {
            self.waiting = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Writes a line without tearing the bar.
    pub fn aside(&self, line: impl FnOnce()) {
        self.bar.suspend(line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Whether a bar would be visible; work that only serves a bar can be skipped otherwise.
pub fn shows() -> bool {
    std::io::stderr().is_terminal()
}
