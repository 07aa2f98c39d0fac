//! The signals that end a server, or that arrive during a question.

use anyhow::Result;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::thread;

/// The signals that end or stop a process by default.
const ALL: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGTSTP];

/// Whether each of [`ALL`] has its default effect. A handler, once installed, stays, and would
/// otherwise do nothing. One per process, as is the set of handlers.
static BY_DEFAULT: LazyLock<[Arc<AtomicBool>; ALL.len()]> =
    LazyLock::new(|| ALL.map(|_| Arc::new(AtomicBool::new(true))));

/// Sets whether these signals have their default effect.
fn by_default(signals: &[i32], default: bool) {
    let all = ALL.iter().zip(BY_DEFAULT.iter()).filter(|(signal, _)| signals.contains(signal));
    all.for_each(|(_, flag)| flag.store(default, Ordering::SeqCst));
}

/// From now on [`forward`] reports signals to end, and they do not end the process. Call it after
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

/// Calls `tell` for each signal, on a thread of its own.
///
/// # Errors
/// Those of the system.
pub fn forward(mut signals: Signals, tell: impl Fn() + Send + 'static) -> io::Result<()> {
    let told = move || signals.forever().for_each(|_| tell());
    thread::Builder::new().name("signals".into()).spawn(told).map(drop)
}

/// While this lives, signals wait for [`SignalsWait::heard`].
pub struct SignalsWait(Signals);

/// From now on, until the value is dropped, [`SignalsWait::heard`] reports signals. Signals that
/// this process was started to ignore stay ignored.
///
/// # Errors
/// Those of the system.
pub fn while_asking() -> io::Result<SignalsWait> {
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
    Ok(SignalsWait(signals))
}

impl SignalsWait {
    /// A signal that has arrived.
    pub fn heard(&mut self) -> Option<i32> {
        self.0.pending().next()
    }
}

impl Drop for SignalsWait {
    fn drop(&mut self) {
        by_default(&ALL, true);
        // One that came at the last moment gets its default effect.
        for signal in self.0.pending() {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// Whether a stop signal may stop the process: only if somebody can continue it, as the system has
/// it. (Here: a parent in the same session; the system looks at all processes of the group.) True
/// for every other signal.
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
