//! Volumes that computers share, at a server that has no key: `share://HOST:PORT/NAME`.

mod care;
mod files;
mod init;
mod line;
mod mount;
mod nbd;
mod passphrases;

use crate::args::Command;
use crate::exit::usage;
use anyhow::Result;
use oblivio_app::shared::address;

pub use files::with;

/// Runs a command that names a shared volume; none for others, and for those that work on files of
/// any volume.
pub fn run(command: &Command) -> Option<Result<()>> {
    use Command as C;
    let place = command.place()?;
    let address = address(place)?.map_err(Into::into);
    if let C::Ls(_) | C::Cat(_) | C::Get(_) | C::Stat(_) | C::Du(_) = command {
        return None;
    }
    if let C::Put(_) | C::Mkdir(_) | C::Rm(_) | C::Mv(_) | C::Cp(_) = command {
        return None;
    }
    Some(address.and_then(|address| match command {
        Command::Init(args) => init::run(args, &address),
        Command::Mount(args) => mount::run(args, &address),
        Command::Nbd(args) => nbd::run(args, &address),
        Command::Info(args) => care::info(args, &address),
        Command::Passphrase(command) => passphrases::run(command, &address),
        Command::Check(args) => care::check(args, &address),
        Command::Repair(_) => Err(usage(
            "a volume at a server is not repaired in place",
            "What is lost there is lost for its readers alone. Bring out what is whole with `oblivio \
             get -r`; write or remove the files that `oblivio check` names.",
        )),
        _ => Err(usage(
            format!("{} is a shared volume, and this command is not for those", place.display()),
            format!("Mount it: oblivio mount {} DIR", place.display()),
        )),
    }))
}
