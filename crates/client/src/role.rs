//! Who is the scribe: a client claims the lease when nobody has it, goes on from what the server
//! keeps, serves, and lets go.

use crate::convert;
use crate::error::Failure;
use crate::inner::Inner;
use crate::scribe::serve;
use crate::term::{Before, TermEnd};
use oblivio_engine::pyramid::share::{Scribe, TakeOver, Term as EngineTerm};
use oblivio_store::share::{Checkpoint, Number, ScribeTerm, ShareError};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest pause between two looks at the lease.
const LOOK: Duration = Duration::from_millis(500);
/// The pause of a scribe for whose records there is no room.
const FULL: Duration = Duration::from_secs(5);
/// How often the lease is renewed while old records are read.
const RENEW: Duration = Duration::from_millis(500);
/// Bytes that one call reads of old records.
const READ_BYTES: usize = 4 << 20;

/// Becomes the scribe whenever nobody is, until the client ends.
pub fn watch(inner: &Inner) {
    loop {
        {
            let state = inner.state();
            if state.stopping || state.failed.is_some() {
                return;
            }
        }
        let pause = match inner.share.status() {
            Ok(status) => match status.lease_left {
                Some(left) => left.clamp(Duration::from_millis(20), LOOK),
                None => match be_scribe(inner, status.term) {
                    TermEnd::Ended => return,
                    TermEnd::Failed(failure) => return inner.fail(failure),
                    TermEnd::Share(ShareError::Superseded(_) | ShareError::Held { .. }) => LOOK,
                    TermEnd::Share(error) => {
                        let is_full = matches!(&error, ShareError::Quota | ShareError::Store(_));
                        inner.trouble(error);
                        if is_full { FULL } else { LOOK }
                    }
                },
            },
            Err(error) => {
                inner.trouble(error);
                LOOK
            }
        };
        if inner.pause(pause) {
            return;
        }
    }
}

fn be_scribe(inner: &Inner, previous: ScribeTerm) -> TermEnd {
    let term = match inner.share.claim(previous) {
        Ok(term) => term,
        Err(error) => return error.into(),
    };
    let (scribe, before) = match take_over(inner, term) {
        Ok(taken) => taken,
        Err(stop) => {
            let _ = inner.share.release(term);
            return stop;
        }
    };
    let stop = serve(inner, term, scribe, before);
    if !matches!(stop, TermEnd::Share(ShareError::Superseded(_))) {
        let _ = inner.share.release(term);
    }
    stop
}

/// The most batches that may be shown again.
const MOST_AGAIN: usize = 64;

/// Reads what the scribes before it left.
fn take_over(inner: &Inner, term: ScribeTerm) -> Result<(Scribe, Before), TermEnd> {
    let (share, keyed) = (&inner.share, &inner.keyed);
    let known = inner.newest_known();
    let mut renewed = Instant::now();
    let mut renew = || {
        if renewed.elapsed() >= RENEW {
            renewed = Instant::now();
            share.renew(term)?;
        }
        Ok::<(), ShareError>(())
    };
    let (oram, sealer) = (keyed.oram()?, keyed.sealer());
    let mut taking = match share.checkpoint()? {
        None => TakeOver::new(oram, sealer, known),
        Some(checkpoint) => {
            let pieces = read_state(inner, checkpoint, &mut renew)?;
            TakeOver::from_checkpoint(oram, sealer, known, checkpoint.at.0, pieces)?
        }
    };
    let mut shown: BTreeMap<Vec<u8>, Number> = BTreeMap::new();
    loop {
        let from = Number(taking.head().number);
        let records = share.records(from, READ_BYTES, Duration::ZERO)?;
        if records.is_empty() {
            break;
        }
        for record in records {
            renew()?;
            if record.number.0 != taking.head().number {
                let why = "the server leaves out records of the history";
                return Err(TermEnd::Failed(Failure::Tampered(why.into())));
            }
            if !record.asks.is_empty() {
                if shown.len() >= MOST_AGAIN {
                    let oldest = shown.iter().min_by_key(|(_, number)| **number);
                    let oldest = oldest.map(|(sealed, _)| sealed.clone());
                    oldest.and_then(|sealed| shown.remove(&sealed));
                }
                shown.insert(record.sealed.clone(), record.number);
            }
            taking.record(&convert::stored(record))?;
        }
    }
    let head = taking.head();
    let before = Before { next: Number(head.number), shown, head };
    Ok((taking.finish(EngineTerm(term.0))?, before))
}

/// Reads a scribe's state in its pieces.
fn read_state(
    inner: &Inner,
    checkpoint: Checkpoint,
    renew: &mut dyn FnMut() -> Result<(), ShareError>,
) -> Result<Vec<Vec<u8>>, TermEnd> {
    let wrong = || TermEnd::Failed(Failure::Tampered("a scribe's state is not whole".into()));
    let config = inner.keyed.config();
    // An entry of the index has less than 128 bytes, and the stash less than 8 q blocks.
    let most = (256 << 20)
        + config.blocks() * 128
        + (8 * config.block_bytes as u64).saturating_mul(1 << config.log_stash);
    if checkpoint.len > most {
        return Err(wrong());
    }
    let (mut pieces, mut bytes, mut offset) = (Vec::new(), Vec::new(), 0);
    while offset < checkpoint.len || !bytes.is_empty() {
        if let Some(piece) = framed(&mut bytes) {
            pieces.push(piece);
            continue;
        }
        let len = (checkpoint.len - offset).min(READ_BYTES as u64);
        if len == 0 {
            return Err(wrong());
        }
        let part = inner.share.read_checkpoint(checkpoint.at, offset, len as usize)?;
        if part.len() as u64 != len {
            return Err(wrong());
        }
        bytes.extend(part);
        offset += len;
        renew()?;
    }
    Ok(pieces)
}

/// Takes the next piece off, if all of it is there.
fn framed(bytes: &mut Vec<u8>) -> Option<Vec<u8>> {
    let len = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
    let piece = bytes.get(4..4 + len)?.to_vec();
    bytes.drain(..4 + len);
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::frame;

    #[test]
    fn pieces_are_taken_off_as_they_were_put_together() {
        let mut bytes = [frame(b"one"), frame(b""), frame(b"three")].concat();
        assert_eq!(framed(&mut bytes), Some(b"one".to_vec()));
        assert_eq!(framed(&mut bytes), Some(Vec::new()));
        bytes.pop();
        assert_eq!(framed(&mut bytes), None, "a byte is missing");
    }
}
