//! Other computers that have a volume, or want it.

use crate::exit::{Code, fault};
use crate::human::plain;
use anyhow::Result;
use oblivio_app::others;
use oblivio_serve::log;
use oblivio_volume::{HolderNotice, OnWait, OnWanted};
use rustix::process::{Signal, getpid, kill_process};
use std::sync::Mutex;

/// The computer that a server of this process hands its volume over to.
static WANTED: Mutex<Option<String>> = Mutex::new(None);

/// Says who has the volume, and waits.
pub fn on_wait(quiet: bool) -> OnWait {
    let mut said = 0;
    Box::new(move |waiting| {
        let silent = others::is_silent(waiting);
        let due = if silent { 2 } else { 1 };
        if !quiet && said < due {
            said = due;
            eprintln!("oblivio: {}", plain(&line(waiting, silent)));
        }
        others::goes_on(waiting, others::WAIT)
    })
}

fn line(waiting: &HolderNotice, silent: bool) -> String {
    let host = &waiting.host;
    match silent {
        false => format!(
            "{host} has the volume, and was asked for it; waiting (--take-over does not wait)"
        ),
        true => format!("{host} does not answer; after 90 seconds the volume is taken over"),
    }
}

/// Ends this server in order when another computer asks for its volume, as a signal would.
pub fn on_wanted() -> OnWanted {
    Box::new(|host| {
        log::note(&format!("{host} asks for the volume, and gets it"));
        if let Ok(mut wanted) = WANTED.lock() {
            *wanted = Some(host.to_owned());
        }
        // It fails for no process of one's own.
        let _ = kill_process(getpid(), Signal::TERM);
    })
}

/// After a server has ended: whether another computer had asked for its volume.
///
/// # Errors
/// It had: nothing is lost, but the volume is elsewhere.
pub fn handed_over() -> Result<()> {
    let wanted = WANTED.lock().ok().and_then(|wanted| wanted.clone());
    match wanted {
        None => Ok(()),
        Some(host) => Err(fault(
            Code::Overtaken,
            format!("the volume was handed over to {host}"),
            "Everything is stored. Start this again to ask for it back.",
        )),
    }
}
