//! Whether what a repair costs is wanted.

use crate::args::RepairArgs;
use crate::check::{PartsRead, tell};
use crate::exit::usage;
use anyhow::Result;
use std::io::{self, BufRead, IsTerminal, Write};

/// What was said to the user and agreed with, each once.
pub struct Talk<'a> {
    args: &'a RepairArgs,
    pub parts: &'a PartsRead,
    told: bool,
    agreed: bool,
}

impl<'a> Talk<'a> {
    pub fn new(args: &'a RepairArgs, parts: &'a PartsRead) -> Self {
        Self { args, parts, told: false, agreed: false }
    }

    /// Names the damaged places, unless that was done.
    pub fn places(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.told, true) || self.args.json {
            true => Ok(()),
            false => tell::places(self.parts),
        }
    }

    /// Whether the person at the terminal wants what was named, if something is lost. A script says
    /// `--yes`. Who agreed once is not asked again.
    pub fn goes_on(&mut self, nothing_lost: bool) -> Result<bool> {
        if self.args.dry_run {
            return Ok(false);
        }
        if self.agreed || self.args.yes || nothing_lost {
            return Ok(true);
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(usage(
                "what is lost stays lost after a repair",
                "Look at it with --dry-run, then say --yes.",
            ));
        }
        let backup = if self.args.from.is_some() { ", but for what the backup has" } else { "" };
        eprint!("What is named above stays lost{backup}. Go on? [y/N]: ");
        io::stderr().flush()?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer)?;
        self.agreed = matches!(answer.trim(), "y" | "Y" | "yes");
        Ok(self.agreed)
    }
}
