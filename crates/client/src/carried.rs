//! What became of a transaction, from the outcomes of its asks.

use crate::error::at_server;
use crate::session::may_ask_again;
use oblivio_engine::pyramid::share::{Answer, Ask, AskRefusal, Outcome};
use oblivio_volume::{Error, LostBytes, Result};
use std::fmt::Write as _;
use std::io::ErrorKind;

/// The answers of a transaction; or the blocks that it needs and that are lost to damage at the
/// server: then nothing of it was carried out.
pub type Carried = std::result::Result<Vec<Answer>, LostBytes>;

/// The name of a block in messages.
fn named(ask: &Ask) -> String {
    let mut text = format!("block {} of ", ask.name.index);
    for byte in ask.name.owner {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What became of a transaction; none if it must be asked again.
///
/// # Errors
/// `Full`; those of the line if the answer is gone.
pub fn judge(asks: &[Ask], outcomes: Vec<Outcome>) -> Result<Option<Carried>> {
    let lost = |outcome: &Outcome| outcome.refusal == Some(AskRefusal::Lost);
    if let Some(at) = outcomes.iter().position(lost) {
        let what = asks.get(at).map(named).unwrap_or_default();
        return Ok(Some(Err(LostBytes::all(what))));
    }
    match outcomes.iter().find_map(|outcome| outcome.refusal) {
        None => Ok(Some(Ok(outcomes.into_iter().map(|outcome| outcome.answer).collect()))),
        Some(refusal) if may_ask_again(refusal) => Ok(None),
        Some(AskRefusal::Full) => {
            Err(Error::Full("the volume has as many blocks as it can".into()))
        }
        Some(AskRefusal::Crowded) => {
            Err(Error::Full("too many computers use the volume at the same time".into()))
        }
        Some(_) => {
            let why = "the answer came too late, and is gone";
            Err(at_server(std::io::Error::new(ErrorKind::TimedOut, why)))
        }
    }
}

/// All answers, of a caller that needs each of them.
///
/// # Errors
/// `Lost` names the first lost block.
pub fn whole(carried: Vec<Carried>) -> Result<Vec<Vec<Answer>>> {
    carried.into_iter().map(|one| Ok(one?)).collect()
}
