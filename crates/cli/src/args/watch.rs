//! Seeing what the storage sees.

use clap::Args;
use std::path::PathBuf;

/// Draw on a local page what the storage sees while the volume is in use
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio watch ~/vault           prints the address of the page
  oblivio watch --open ~/vault    and opens it in the browser

Needs no passphrase. Then use the volume, from another terminal: what is done is drawn beside how
it would look if every file were only encrypted. The page is there for this computer alone, and
for whoever has its address; nothing is recorded. Ctrl-C stops.")]
pub struct WatchArgs {
    /// The volume's folder
    pub volume: PathBuf,
    /// The port of the page [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Only the address
    #[arg(short, long)]
    pub quiet: bool,
}
