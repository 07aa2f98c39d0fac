//! What a store at a URL really does, found out before anything is entrusted to it.

use crate::args::InitArgs;
#[cfg(feature = "online")]
use crate::exit::{Code, fault};
#[cfg(feature = "online")]
use crate::human;
use crate::open;
use anyhow::Result;

/// What was found out of a store.
#[derive(Clone, Copy)]
pub struct FoundStore {
    /// Whether it creates objects exclusively.
    pub exclusive: bool,
    /// Bytes in a block, and in an object, that suit it.
    pub block_bytes: usize,
    pub object_bytes: usize,
}

/// Refuses a place where something is. Tries the store out, and says what was found.
#[cfg(feature = "online")]
pub fn find_out(args: &InitArgs) -> Result<FoundStore> {
    use oblivio_app::online::{Begin, Effort, shape, try_out};

    refuse_what_is_there(args)?;
    if !args.open.quiet {
        human::say(
            "Trying out what the store does: races, lists and speed. It takes a moment ...",
        )?;
    }
    let effort = Effort::of(args.small_probe);
    let url = args.volume.to_string_lossy();
    let oblivio_app::online::PartSizes { block_bytes, object_bytes } = shape(&url)?;
    let verdict = try_out(&url, effort)?;
    if !args.open.quiet {
        verdict.lines().iter().try_for_each(|line| human::say(format!("  {line}")))?;
    }
    match verdict.begin {
        Begin::Exclusive => Ok(FoundStore { exclusive: true, block_bytes, object_bytes }),
        Begin::Alone => Ok(FoundStore { exclusive: false, block_bytes, object_bytes }),
        Begin::Refused(why) => {
            let what = format!("this store cannot hold a volume: {why}");
            Err(fault(Code::Refused, what, "Choose another service; nothing was made."))
        }
    }
}

/// Without the feature there is nothing to try.
#[cfg(not(feature = "online"))]
pub fn find_out(args: &InitArgs) -> Result<FoundStore> {
    open::store(&args.volume).map(|_| FoundStore {
        exclusive: false,
        block_bytes: 0,
        object_bytes: 0,
    })
}

#[cfg(feature = "online")]
fn refuse_what_is_there(args: &InitArgs) -> Result<()> {
    use oblivio_volume::is_header;

    let shown = args.volume.display();
    let there = open::store(&args.volume)?.objects().list()?;
    if there.iter().any(|(name, _)| is_header(name)) {
        let what = format!("there is a volume in {shown} already");
        return Err(fault(Code::Path, what, "Choose another path; this one was left as it is."));
    }
    match oblivio_app::moving::stranger(&there) {
        Some(name) => {
            let what = format!("{shown} is not empty: it holds {name}");
            Err(fault(Code::Path, what, "Add a path of its own to the URL."))
        }
        None => Ok(()),
    }
}
