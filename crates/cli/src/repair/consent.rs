//! Whether what a repair costs is wanted.

use crate::args::RepairArgs;
use crate::exit::usage;
use anyhow::Result;
use std::io::{self, BufRead, IsTerminal, Write};

/// Whether the person at the terminal wants it, if something is lost. A script says `--yes`.
pub fn goes_on(args: &RepairArgs, nothing_lost: bool) -> Result<bool> {
    if args.dry_run {
        return Ok(false);
    }
    if args.yes || nothing_lost {
        return Ok(true);
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(usage(
            "what is lost stays lost after a repair",
            "Look at it with --dry-run, then say --yes.",
        ));
    }
    eprint!("What is named above stays lost. Go on? [y/N]: ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
