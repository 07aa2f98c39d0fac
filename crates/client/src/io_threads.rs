//! The threads that send a client's asks, to the server or to its own scribe, and fetch its
//! answers.

use crate::inner::Inner;

use crate::error::Failure;
use crate::presence;
use oblivio_store::share::{AskNumber, ClientSession, Number};
use std::time::{Duration, Instant};

/// The most asks of one call.
const MOST_AT_ONCE: usize = 256;
/// After this time without any answer, asks are sent again: the server may have been started anew.
const AGAIN: Duration = Duration::from_secs(2);
/// How long a call waits for answers at the server.
const LISTEN: Duration = Duration::from_secs(2);
/// An idle client asks something so often: who is silent for long is taken for dead.
const ALIVE: Duration = Duration::from_secs(20);
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(200);

/// Sends asks until the client ends.
pub fn send(inner: &Inner) {
    loop {
        let mut state = inner.state();
        let asks = loop {
            if state.stopping {
                return;
            }
            if std::mem::take(&mut state.lost) {
                state.progress = Instant::now();
                break state.again();
            }
            if state.has_unsent() {
                break state.take_unsent(MOST_AT_ONCE);
            }
            if state.is_silent(ALIVE) {
                let session = state.session();
                let _ = state.begin(&[presence::look(session)], false, Instant::now());
                continue;
            }
            let idle = state.open() == 0;
            let left = AGAIN.saturating_sub(state.progress.elapsed());
            if !idle && left.is_zero() {
                state.progress = Instant::now();
                break state.again();
            }
            state = inner.rest(state, if idle { AGAIN } else { left });
        };
        drop(state);
        for part in asks.chunks(MOST_AT_ONCE) {
            if inner.ask_own(part) {
                continue;
            }
            if let Err(error) = inner.share.ask(part) {
                // They are open still, and go out again.
                inner.trouble(error);
                if inner.pause(PAUSE) {
                    return;
                }
                inner.state().lost = true;
                break;
            }
        }
    }
}

/// Fetches answers until the client ends.
pub fn receive(inner: &Inner) {
    let mut broken = false;
    loop {
        let mut state = inner.state();
        let (session, seq) = loop {
            if state.stopping {
                return;
            }
            match state.next_answer() {
                Some(next) => break next,
                None => state = inner.rest(state, LISTEN),
            }
        };
        drop(state);
        let came = inner.share.answers(ClientSession(session.0), AskNumber(seq.0), LISTEN);
        match came {
            Ok(answers) => {
                let mut state = inner.state();
                if std::mem::take(&mut broken) {
                    state.lost = true;
                    inner.work.notify_all();
                }
                let taken = state.take(answers, Instant::now());
                if taken.is_ok() && state.trouble.is_some() {
                    state.trouble = None;
                }
                drop(state);
                match taken {
                    Ok(_) => inner.came.notify_all(),
                    Err(error) => return inner.fail(Failure::of_engine(&error)),
                }
            }
            Err(error) => {
                inner.trouble(error);
                broken = true;
                if inner.pause(PAUSE) {
                    return;
                }
            }
        }
    }
}

/// Fetches what batches changed, until the client ends: those from the newest on when it begins.
pub fn hear(inner: &Inner) {
    let mut from = None;
    loop {
        {
            let state = inner.state();
            if state.stopping || state.failed.is_some() {
                return;
            }
        }
        let came = match from {
            None => inner.share.status().map(|status| {
                from = Some(status.next);
                Vec::new()
            }),
            Some(from) => inner.share.notices(from, LISTEN),
        };
        match came {
            Ok(notices) => {
                let heard = inner.state().hear(&notices, Instant::now());
                if let Err(error) = heard {
                    return inner.fail(Failure::of_engine(&error));
                }
                if let Some(last) = notices.last() {
                    from = Some(Number(last.number.0.saturating_add(1)));
                }
            }
            Err(error) => {
                inner.trouble(error);
                if inner.pause(PAUSE) {
                    return;
                }
            }
        }
    }
}
