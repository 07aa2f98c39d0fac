//! Volumes that computers share, at a server that has no key: `share://HOST:PORT/NAME`.

mod care;
mod init;
mod mount;
mod token;

use crate::args::{Command, OpenArgs};
use crate::exit::usage;
use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use oblivio_client::{Client, FileKnown, Keyed, Known, Options};
use oblivio_engine::pyramid::share::Head;
use oblivio_share::{Address, Patience, RemoteShare};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a transaction may take, unless the user says otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a call of the server may take, and how long it is tried again: a client makes it again
/// by itself, and must end in time.
const PATIENCE: Patience =
    Patience { reply: Duration::from_secs(10), outage: Duration::from_secs(2) };

/// Runs a command that names a shared volume; none for others.
pub fn run(command: &Command) -> Option<Result<()>> {
    let place = command.place()?;
    let address = address(place)?;
    Some(address.and_then(|address| match command {
        Command::Init(args) => init::run(args, &address),
        Command::Mount(args) => mount::run(args, &address),
        Command::Info(args) => care::info(args, &address),
        Command::Check(args) => care::check(args, &address),
        _ => Err(usage(
            format!("{} is a shared volume, and this command is not for those", place.display()),
            format!("Mount it: oblivio mount {} DIR", place.display()),
        )),
    }))
}

/// The address of a shared volume; none for a place of another kind.
fn address(place: &Path) -> Option<Result<Address>> {
    let text = place.to_str()?;
    text.starts_with("share://").then(|| Ok(Address::parse(text)?))
}

/// The folder in which this computer keeps what it knows.
fn state() -> Result<PathBuf> {
    let xdg = etcetera::base_strategy::Xdg::new()
        .context("there is no home directory. Set HOME or XDG_STATE_HOME")?;
    let state = xdg.state_dir().unwrap_or_else(|| xdg.home_dir().join(".local/state"));
    Ok(state.join("oblivio"))
}

/// The line to a volume.
fn line(address: &Address, token_file: Option<&Path>) -> Result<RemoteShare> {
    let token = token::of(address, token_file)?;
    Ok(RemoteShare::new(token, PATIENCE)?)
}

/// Begins a session with a volume.
fn open(
    line: RemoteShare,
    keyed: Keyed,
    address: &Address,
    args: &OpenArgs,
    timeout: Duration,
) -> Result<Client> {
    let (place, volume) = (address.to_string(), keyed.volume());
    let mut known = FileKnown::open(&state()?, &place, volume, args.accept_other_volume)?;
    if args.accept_rollback {
        known.note(Head::default(), true)?;
    }
    let options = Options { timeout, ..Options::default() };
    Ok(Client::open(Box::new(line), keyed, Box::new(known), options)?)
}

/// The user who makes a file system or mounts it.
fn owner() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}
