//! The signals that end what is served, or that come while somebody is asked.

use anyhow::Result;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;
use std::time::Duration;

/// So long may a store do nothing while a server ends, and clients take for their replies.
pub const GRACE: Duration = Duration::from_secs(10);

/// What ends or stops a process that does not say otherwise.
const ALL: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP];

/// Whether each of [`ALL`] does what it does by default: a handler that was once there stays, and
/// would else do nothing. There is one for a process, as there is one set of handlers.
static BY_DEFAULT: LazyLock<[Arc<AtomicBool>; ALL.len()]> =
    LazyLock::new(|| ALL.map(|_| Arc::new(AtomicBool::new(true))));

/// Says of some signals whether they do what they do by default.
fn by_default(signals: &[i32], default: bool) {
    let all = ALL.iter().zip(BY_DEFAULT.iter()).filter(|(signal, _)| signals.contains(signal));
    all.for_each(|(_, flag)| flag.store(default, Ordering::SeqCst));
}

/// From now on signals to end are for [`forward`] to tell of, and do not end the process. To follow
/// the last question.
///
/// # Errors
/// Those of the system.
pub fn catch() -> Result<Signals> {
    let ending = [SIGINT, SIGTERM, SIGHUP];
    let signals = Signals::new(ending)?;
    by_default(&ending, false);
    Ok(signals)
}

/// Tells of each signal, on a thread of its own.
///
/// # Errors
/// Those of the system.
pub fn forward(mut signals: Signals, tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let told = move || signals.forever().for_each(|_| tell());
    thread::Builder::new().name("signals".into()).spawn(told).map(drop)
}

/// While this lives signals wait to be heard.
pub struct Asking(Signals);

/// From now on, and until it is dropped, signals are for [`Asking::heard`] to tell of; those that
/// this process was started to ignore it still does.
///
/// # Errors
/// Those of the system.
pub fn while_asking() -> io::Result<Asking> {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    let heard = ALL.into_iter().filter(|signal| !is_ignored(*signal)).collect::<Vec<_>>();
    if REGISTERED.set(()).is_ok() {
        for (signal, flag) in ALL.iter().zip(BY_DEFAULT.iter()) {
            if heard.contains(signal) {
                register_conditional_default(*signal, Arc::clone(flag))?;
            }
        }
    }
    let signals = Signals::new(&heard)?;
    by_default(&ALL, false);
    Ok(Asking(signals))
}

impl Asking {
    /// A signal that came.
    pub fn heard(&mut self) -> Option<i32> {
        self.0.pending().next()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        by_default(&ALL, true);
        // One that came at the last moment does what it would have done.
        for signal in self.0.pending() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// Whether the process may be stopped by a signal that is to stop it: only where somebody is there
/// to let it go on, as the system has it. (That is a parent in the same session; the system looks
/// at all processes of the group.) Every other signal does what it does.
pub fn may_stop(signal: i32) -> bool {
    use rustix::process::{getppid, getsid};
    let session = |process| getsid(process).ok();
    signal != SIGTSTP || getppid().is_some_and(|parent| session(Some(parent)) == session(None))
}

/// Whether this process was started with a signal ignored, as `nohup` does.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
