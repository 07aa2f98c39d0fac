//! `check --scrub`: everything that is stored, a part at a time, from where the last scrub stopped.

use super::found::keep_place;
use super::rate::RateLimit;
use super::{PartsRead, tell};
use crate::args::CheckArgs;
use crate::exit::{Code, fault, usage};
use crate::human::{self, say, say_json};
use crate::open;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::Result;
use oblivio_app::ScrubNote;
use oblivio_volume::{BlockSpace, Inspection, Reached, Volume};
use serde_json::json;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most bytes read at once: a scrub that is stopped ends after them.
const AT_ONCE: u64 = 8 << 20;
/// And the least, where a rate is slow.
const LEAST_AT_ONCE: u64 = 64 << 10;

/// What one scrub did.
struct Scrubbed {
    read: PartsRead,
    /// How far the whole round is.
    reached: Reached,
}

/// When a scrub stops before its end.
struct Stop {
    signalled: Arc<AtomicBool>,
    begun: Instant,
    lasting: Option<Duration>,
}

impl Stop {
    fn now(&self) -> bool {
        let over = self.lasting.is_some_and(|lasting| self.begun.elapsed() >= lasting);
        over || self.signalled.load(Ordering::Relaxed)
    }
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<()> {
    if args.open.unobserved {
        let what = "--unobserved leaves no note, and --scrub notes where it stopped";
        return Err(usage(what, "Leave one of them out."));
    }
    let recorder = Recorder::of(&args.open)?;
    let scrubbed = scrub(args, recorder.as_ref());
    judge(&Recorder::finish_after(recorder, scrubbed)?)
}

fn scrub(args: &CheckArgs, recorder: Option<&Recorder>) -> Result<PartsRead> {
    let (mut volume, _publisher) = open::volume(&args.volume, &args.open, recorder)?;
    let mut note = ScrubNote::at(&args.volume, volume.info()?.volume)?;
    let signalled = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&signalled);
    signals::forward(signals::catch()?, move || heard.store(true, Ordering::Relaxed))?;
    let stop = Stop { signalled, begun: Instant::now(), lasting: args.lasting };
    let Scrubbed { read, reached } = part(&mut volume, &mut note, (args, &stop))?;
    // Before the end of the session, which may fail.
    if !args.json {
        tell::places(&read)?;
    }
    // What has a second copy is whole with this commit.
    let ended = volume.finish();
    if args.json {
        as_json(&read, reached)?;
    } else {
        in_words(&read, reached, ended.is_ok())?;
    }
    ended?;
    note.keep(reached.next.unwrap_or(0))?;
    Ok(read)
}

fn part(
    volume: &mut Volume,
    note: &mut ScrubNote,
    (args, stop): (&CheckArgs, &Stop),
) -> Result<Scrubbed> {
    let info = volume.info()?;
    let rate = RateLimit::new(args.limit_rate, info.bytes_stored);
    let at_once = args.limit_rate.map_or(AT_ONCE, |rate| rate / 4).clamp(LEAST_AT_ONCE, AT_ONCE);
    let mut progress = Progress::steps(args.open.quiet, &format!("{}s", info.verified));
    let said = volume.damaged();
    let from = note.next();
    let (places, mut kept) = (RefCell::new(Vec::new()), Ok(()));
    let mut first = (from == 0).then_some(0);
    let mut last = Reached { done: 0, total: 0, next: None };
    let found = volume.inspect_part(Inspection {
        from,
        at_once: usize::try_from(at_once).unwrap_or(usize::MAX),
        amid_requests: false,
        reached: &mut |now| {
            last = now;
            progress.at(now.done, now.total);
            // Damage that nobody heard of yet is met again by the next one, if this is killed.
            if places.borrow().is_empty() {
                kept = note.keep(now.next.unwrap_or(0));
            }
            let before = *first.get_or_insert(now.done);
            rate.wait(now.done - before, now.total);
            match kept.is_err() || stop.now() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
        damaged: &mut |place| keep_place(&mut places.borrow_mut(), &place),
    })?;
    kept?;
    drop(progress);
    open::tell_damage(volume, &said);
    let read = PartsRead::of(volume, &info, &found, places.into_inner());
    Ok(Scrubbed { read, reached: last })
}

fn in_words(read: &PartsRead, reached: Reached, ended: bool) -> Result<()> {
    let count = human::count(read.count, read.unit);
    let well = match (read.damaged, read.healed.is_empty()) {
        (0, true) => "clean: ",
        (0, false) if ended => "whole again: ",
        _ => "",
    };
    match reached.next {
        None => say(format!("{well}{count} read, to the end. The next scrub begins anew.")),
        Some(_) => {
            let left = human::grouped(reached.total - reached.done);
            let all = human::grouped(reached.total);
            say(format!(
                "{well}{count} read; {left} of {all} are left, where the next scrub goes on."
            ))
        }
    }
}

fn as_json(read: &PartsRead, reached: Reached) -> Result<()> {
    say_json(&json!({
        "clean": read.damaged == 0 && read.healed.is_empty(),
        "unit": read.unit,
        "read": read.count,
        "done": reached.done,
        "left": reached.total - reached.done,
        "complete": reached.next.is_none(),
        "damaged": read.damaged,
        "places": read.places,
        "healed": read.healed,
    }))
}

fn judge(read: &PartsRead) -> Result<()> {
    if read.damaged > 0 {
        let what =
            format!("the volume is not clean: {}", human::count(read.damaged, "damaged place"));
        let advice = read.advice();
        let hint = format!("`oblivio check VOLUME` says what that means in files. {advice}");
        return Err(fault(Code::Tampered, what, hint));
    }
    super::judge_healed(read)
}
