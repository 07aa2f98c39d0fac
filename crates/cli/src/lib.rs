//! The `oblivio` command: the only crate that knows terminals, the environment and local files.
//!
//! It turns arguments into calls of the crates below, and what they say into words, JSON and exit
//! codes. A file for each command; `open` and `shared` open volumes for all of them. It must not
//! know how a volume is stored or what an engine does: it has an engine's name and its report. What
//! the library does alike is in `oblivio_app`, not here.
//!
//! It is a library for its own tests only: everything but [`main`] is private. Programs use the
//! library `oblivio`.
//!
//! The ten that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `args::Cli`, `args::Command` | the whole command line |
//! | `args::OpenArgs` | the options of every command that opens a volume |
//! | `open::OpenSession` | an open file system, and what reports it to `oblivio watch` |
//! | `files::Looked`, `files::Changed` | the files of a volume of any kind, for a command |
//! | `inside::TargetName`, `inside::Destination` | where something goes in a volume, as with `cp` |
//! | `committer::Committer` | commits during a long command |
//! | `exit::Code` | the exit codes: one for each thing that a script may act on |
#![allow(clippy::disallowed_methods, reason = "a program reads clocks, starts threads and waits")]
#![allow(clippy::print_stdout, reason = "a command writes to standard output")]

mod args;
mod audit;
mod browser;
mod check;
mod committer;
mod copy;
mod demo;
mod disk;
mod engines;
mod exit;
mod facts;
mod files;
mod gc;
mod get;
mod human;
mod info;
mod init;
mod inside;
mod lane;
mod list;
mod lost;
#[cfg(feature = "man")]
mod manual;
#[cfg(feature = "online")]
mod migrate;
mod mount;
mod nbd;
mod open;
mod others;
mod passphrase;
mod passphrases;
mod pick;
mod price;
mod progress;
mod put;
mod recorder;
#[cfg(feature = "online")]
mod remotes;
mod rendezvous;
mod repair;
mod resize;
mod share;
mod shared;
mod signals;
mod staging;
mod status;
mod tree;
#[cfg(all(feature = "ublk", target_os = "linux"))]
mod ublk;
mod unobserved;
mod watch;

use anyhow::Result;
use args::{Cli, Command, CompletionsArgs};
use clap::{CommandFactory, Parser};
use exit::{Code, usage};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// The command, with the arguments of this process.
pub fn main() -> ExitCode {
    let args = mount::as_mount_helper(std::env::args_os().collect());
    oblivio_app::silence::on_silence(|url, why| {
        let line = format!("waiting for {url}: {why}");
        // A server in the background may have nobody who hears it.
        drop(writeln!(std::io::stderr(), "oblivio: {}", human::plain(&line)));
    });
    let done = passphrase::leave_environment().and_then(|()| run(&Cli::parse_from(args).command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let (code, hint) = exit::judge(&error);
            if code != Code::Pipe {
                eprintln!("oblivio: {}", exit::line(&error));
                if !hint.is_empty() {
                    eprintln!("  {}", human::plain(&hint));
                }
            }
            ExitCode::from(code as u8)
        }
    }
}

fn run(command: &Command) -> Result<()> {
    if matches!(command, Command::Watch(_) | Command::Share(_)) {
        // It lives long and needs no passphrase.
        passphrase::forget();
    }
    if let Some(done) = shared::run(command) {
        return done;
    }
    if let Some(place) = command.place() {
        refuse_url(place)?;
    }
    if let Some(args) = command.changes() {
        unobserved::refuse_changes(args)?;
    }
    match command {
        Command::Init(args) => init::run(args),
        Command::Put(args) => put::run(args),
        Command::Get(args) => get::run(args),
        Command::Ls(args) => list::ls(args),
        Command::Cat(args) => get::cat(args),
        Command::Cp(args) => copy::run(args),
        Command::Mv(args) => tree::mv(args),
        Command::Rm(args) => tree::rm(args),
        Command::Mkdir(args) => tree::mkdir(args),
        Command::Stat(args) => list::stat(args),
        Command::Du(args) => list::du(args),
        Command::Info(args) => info::run(args),
        Command::Check(args) if args.scrub => check::scrub::run(args),
        Command::Check(args) => check::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Resize(args) => resize::run(args),
        Command::Mount(args) => mount::run(args),
        Command::Umount(args) => mount::umount(args),
        Command::Nbd(args) => nbd::run(args),
        #[cfg(all(feature = "ublk", target_os = "linux"))]
        Command::Ublk(args) => ublk::run(args),
        Command::Passphrase(command) => passphrases::run(command),
        Command::Lane(command) => lane::run(command),
        Command::Pick(args) => pick::run(args),
        Command::Status(args) => status::run(args),
        Command::Gc(args) => gc::run(args),
        #[cfg(feature = "online")]
        Command::Migrate(args) => migrate::run(args),
        #[cfg(feature = "online")]
        Command::Remote(command) => remotes::run(command),
        Command::Share(command) => share::run(command),
        Command::Audit(args) => audit::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Watch(args) => watch::run(args),
        Command::Completions(args) => completions(args),
        #[cfg(feature = "man")]
        Command::Man(args) => manual::run(args),
    }
}

/// Refuses a place that looks like a URL, though a folder could have that name.
fn refuse_url(place: &Path) -> Result<()> {
    let Some(scheme) = oblivio_app::place::scheme(place) else { return Ok(()) };
    if oblivio_app::place::is_service(scheme) || oblivio_app::shared::address(place).is_some() {
        return Ok(());
    }
    let text = place.to_string_lossy();
    Err(usage(
        format!("{text} is a URL of no known service"),
        format!(
            "Known are s3, r2, b2, gs, az, webdav, webdavs, sftp, dropbox, gdrive and onedrive; a \
             folder that has this name is ./{text}"
        ),
    ))
}

fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "oblivio", &mut script);
    human::say(script)
}
