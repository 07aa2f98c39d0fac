//! Who can see the storage, which decides the engine.

use crate::args::{InitArgs, SeenBy};
use crate::exit::usage;
use crate::human;
use anyhow::Result;
use std::io::{self, BufRead, IsTerminal, Write};

/// For users who need no more.
pub const ENCRYPTION_ONLY: &str = "\
Then encryption is all you need, and others are faster: gocryptfs or rclone for files, LUKS or
VeraCrypt for disks. Nothing was made.";

const QUESTION: &str = "\
Who may see the storage that the volume is kept in?
  1  whoever keeps it sees every read and every write: a cloud, a rented server, a bucket
  2  somebody sees what was written, now and then or always, but never a read: an inspector who
     images the disk, a service that syncs a folder of this computer
  3  nobody who matters: it only needs to be encrypted";

/// Asks the person at the terminal whether to go on. Without one, a script decided already.
pub fn go_on(args: &InitArgs) -> Result<bool> {
    if args.open.quiet || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let mut answer = String::new();
    write!(io::stderr(), "Go on? [y/N]: ")?;
    io::stderr().flush()?;
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Whether the disk has seeks, which decides how much a volume against snapshots writes: the answer
/// of the command line, or of the person at the terminal. Scripts get what suits every disk.
pub fn seeks(args: &InitArgs, seen_by: SeenBy) -> Result<bool> {
    let is_alone = args.open.quiet || !io::stdin().is_terminal() || !io::stderr().is_terminal();
    let matters = seen_by == SeenBy::Snapshots && !args.map_on_disk && !args.sync_folder;
    if args.seeks.is_some() || is_alone || !matters {
        return Ok(args.seeks.unwrap_or(true));
    }
    let mut answer = String::new();
    write!(io::stderr(), "Is it on a hard disk that turns? On an SSD it writes less. [y/N]: ")?;
    io::stderr().flush()?;
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The answer of the command line, or of the person at the terminal; scripts get the old default.
/// `None` when there is nobody to hide from.
pub fn seen_by(args: &InitArgs) -> Result<Option<SeenBy>> {
    if let Some(seen_by) = args.seen_by {
        return Ok(Some(seen_by));
    }
    if args.open.quiet || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(Some(SeenBy::Storage));
    }
    human::say(QUESTION)?;
    for _ in 0..3 {
        let mut answer = String::new();
        write!(io::stderr(), "Choose 1, 2 or 3 [1]: ")?;
        io::stderr().flush()?;
        if io::stdin().lock().read_line(&mut answer)? == 0 {
            break;
        }
        match answer.trim() {
            "" | "1" => return Ok(Some(SeenBy::Storage)),
            "2" => return Ok(Some(SeenBy::Snapshots)),
            "3" => return Ok(None),
            _ => {}
        }
    }
    Err(usage("who may see the storage?", "Say --seen-by storage or --seen-by snapshots."))
}
