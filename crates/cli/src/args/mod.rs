//! The command line: what each command takes, with an example for each.

mod care;
mod lane;
#[cfg(feature = "online")]
mod migrate;
mod mount;
mod nbd;
mod open;
mod passphrase;
mod pick;
#[cfg(feature = "online")]
mod remote;
mod serve;
mod share;
mod status;
mod transfer;
mod tree;
#[cfg(all(feature = "ublk", target_os = "linux"))]
mod ublk;
mod watch;

#[cfg(feature = "man")]
pub use care::ManArgs;
pub use care::{
    AuditArgs, CheckArgs, CompletionsArgs, DemoArgs, InfoArgs, PassphraseCommand, PassphraseList,
    PassphraseNew, PassphraseRemove, RepairArgs, ResizeArgs,
};
pub use lane::{LaneCommand, LanePassphraseArgs, LaneStatusArgs};
#[cfg(feature = "online")]
pub use migrate::MigrateArgs;
pub use mount::{MountArgs, UmountArgs};
pub use nbd::NbdArgs;
pub use open::OpenArgs;
pub use passphrase::{NewPassphraseArgs, PassphraseArgs};
pub use pick::PickArgs;
#[cfg(feature = "online")]
pub use remote::{RemoteAdd, RemoteCommand, RemoteImport, RemoteList, RemoteRemove, RemoteTest};
pub use serve::ServeArgs;
pub use share::{
    ShareCommand, ShareQuota, ShareServe, ShareStatus, TokenAdd, TokenCommand, TokenList,
    TokenRevoke,
};
pub use status::{GcArgs, StatusArgs};
pub use transfer::{CatArgs, GetArgs, InitArgs, PutArgs, SeenBy};
pub use tree::{CpArgs, DuArgs, LsArgs, MkdirArgs, MvArgs, RmArgs, StatArgs};
#[cfg(all(feature = "ublk", target_os = "linux"))]
pub use ublk::UblkArgs;
pub use watch::WatchArgs;

use clap::{Parser, Subcommand};
use std::path::Path;

const EXAMPLES: &str = "\
Examples:
  oblivio demo                              see what it does, in under a minute
  oblivio init ~/vault                      make a volume
  oblivio put -r ~/vault Documents /        store a directory as /Documents
  oblivio ls -l ~/vault /Documents
  oblivio get -r ~/vault /Documents back    bring it back
  oblivio mount ~/vault ~/private           use it as a directory, with any program
  oblivio nbd ~/disk --socket ~/disk.sock   serve a volume that holds a disk
  oblivio check ~/vault                     is everything as it was written?

A path inside a volume begins with `/`. The passphrase is asked for, or comes from
OBLIVIO_PASSPHRASE, --passphrase-file or --passphrase-fd; never from the command line.

Exit codes: 0 all went well, 1 failed, 2 the command line makes no sense, 3 not found or there
already, 4 wrong passphrase, 5 tampered or damaged, 6 rolled back, 7 no space, 8 in use, 9 not a
volume, or one that holds something else, 10 some files could not be dealt with, 11 another volume
than before, 14 files that a sync client brings are still to come, 15 two histories: see
`oblivio pick`. Volumes at URLs: 12 another computer has the volume now, 13 refused by the service,
16 no answer from it.";

/// Storage that does not learn what you touch
///
/// A volume is a folder of sealed blocks. Its keeper (a cloud, a server, a stick) sees that
/// something is accessed or synced, but not which file, nor whether the same one as before.
#[derive(Debug, Parser)]
#[command(name = "oblivio", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Init(InitArgs),
    Put(PutArgs),
    Get(GetArgs),
    Ls(LsArgs),
    Cat(CatArgs),
    Cp(CpArgs),
    Mv(MvArgs),
    Rm(RmArgs),
    Mkdir(MkdirArgs),
    Stat(StatArgs),
    Du(DuArgs),
    Info(InfoArgs),
    Check(CheckArgs),
    Repair(RepairArgs),
    Resize(ResizeArgs),
    Mount(MountArgs),
    Umount(UmountArgs),
    Nbd(NbdArgs),
    #[cfg(all(feature = "ublk", target_os = "linux"))]
    Ublk(UblkArgs),
    /// Add, remove, change or count the passphrases that open a volume
    #[command(subcommand)]
    Passphrase(PassphraseCommand),
    /// Show or change the lanes of a volume, which are written beside it, used or not
    #[command(subcommand)]
    Lane(LaneCommand),
    Pick(PickArgs),
    Status(StatusArgs),
    Gc(GcArgs),
    #[cfg(feature = "online")]
    Migrate(MigrateArgs),
    #[cfg(feature = "online")]
    #[command(subcommand)]
    Remote(RemoteCommand),
    #[command(subcommand)]
    Share(ShareCommand),
    Audit(AuditArgs),
    Demo(DemoArgs),
    Watch(WatchArgs),
    Completions(CompletionsArgs),
    #[cfg(feature = "man")]
    #[command(hide = true)]
    Man(ManArgs),
}

impl Command {
    /// The options to open the volume with, for a command that only changes it.
    pub fn changes(&self) -> Option<&OpenArgs> {
        match self {
            Command::Init(args) => Some(&args.open),
            Command::Put(args) => Some(&args.open),
            Command::Cp(args) => Some(&args.open),
            Command::Mv(args) => Some(&args.open),
            Command::Rm(args) => Some(&args.open),
            Command::Mkdir(args) => Some(&args.open),
            Command::Pick(args) => Some(&args.open),
            Command::Lane(LaneCommand::Passphrase(args)) => Some(&args.open),
            _ => None,
        }
    }

    /// The volume's place, if the command is about one volume.
    pub fn place(&self) -> Option<&Path> {
        let place = match self {
            Command::Init(args) => &args.volume,
            Command::Put(args) => &args.volume,
            Command::Get(args) => &args.volume,
            Command::Ls(args) => &args.volume,
            Command::Cat(args) => &args.volume,
            Command::Cp(args) => &args.volume,
            Command::Mv(args) => &args.volume,
            Command::Rm(args) => &args.volume,
            Command::Mkdir(args) => &args.volume,
            Command::Stat(args) => &args.volume,
            Command::Du(args) => &args.volume,
            Command::Info(args) => &args.volume,
            Command::Resize(args) => &args.volume,
            Command::Check(args) => &args.volume,
            Command::Repair(args) => &args.volume,
            Command::Mount(args) => &args.volume,
            Command::Nbd(args) => &args.serve.volume,
            #[cfg(all(feature = "ublk", target_os = "linux"))]
            Command::Ublk(args) => &args.serve.volume,
            Command::Passphrase(PassphraseCommand::Add(args)) => &args.volume,
            Command::Passphrase(PassphraseCommand::Remove(args)) => &args.volume,
            Command::Passphrase(PassphraseCommand::Change(args)) => &args.volume,
            Command::Passphrase(PassphraseCommand::List(args)) => &args.volume,
            Command::Lane(LaneCommand::Passphrase(args)) => &args.volume,
            Command::Pick(args) => &args.volume,
            Command::Status(args) => &args.volume,
            Command::Gc(args) => &args.volume,
            #[cfg(feature = "online")]
            Command::Migrate(args) => &args.from,
            Command::Watch(args) => &args.volume,
            #[cfg(feature = "online")]
            Command::Remote(_) => return None,
            Command::Lane(LaneCommand::Status(_))
            | Command::Umount(_)
            | Command::Share(_)
            | Command::Audit(_)
            | Command::Demo(_)
            | Command::Completions(_) => return None,
            #[cfg(feature = "man")]
            Command::Man(_) => return None,
        };
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        fn look(command: &clap::Command) {
            if command.has_subcommands() {
                return command.get_subcommands().for_each(look);
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("oblivio "), "{}", command.get_name());
        }
        look(&Cli::command());
    }
}
