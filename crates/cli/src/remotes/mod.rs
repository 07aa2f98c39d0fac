//! `remote`: names and secrets for stores on a network.

mod add;
mod import;
mod log_on;
mod rclone;

use crate::args::{RemoteCommand, RemoteList, RemoteRemove, RemoteTest};
use crate::exit::{Code, fault};
use crate::human::{plain, say, say_json};
use anyhow::Result;
use oblivio_app::online::{Begin, Effort, try_out};
use oblivio_app::remotes::{self, ListedRemote};
use serde_json::json;

/// Runs the command.
pub fn run(command: &RemoteCommand) -> Result<()> {
    match command {
        RemoteCommand::List(args) => list(args),
        RemoteCommand::Test(args) => test(args),
        RemoteCommand::Add(args) => add::run(args),
        RemoteCommand::Remove(args) => remove(args),
        RemoteCommand::ImportRclone(args) => import::run(args),
    }
}

fn list(args: &RemoteList) -> Result<()> {
    let all = remotes::list()?;
    if args.json {
        let one = |it: &ListedRemote| {
            json!({ "name": it.name, "url": it.url, "user": it.user, "secret": it.secret,
                "from": it.from })
        };
        return say_json(&all.iter().map(one).collect::<Vec<_>>());
    }
    let width = |of: &dyn Fn(&ListedRemote) -> usize| all.iter().map(of).max().unwrap_or(0);
    let (names, urls) = (width(&|it| it.name.len()), width(&|it| it.url.chars().count()));
    for it in &all {
        let from = match (it.secret, &it.from) {
            (None, _) => "no secret here".to_owned(),
            (Some("secret"), _) => "secret in the file of remotes".to_owned(),
            (Some("keyring"), _) => "secret in the keyring".to_owned(),
            (Some(kind), from) => format!("{kind} {}", from.as_deref().unwrap_or_default()),
        };
        say(plain(&format!("{:names$}  {:urls$}  {from}", it.name, it.url)))?;
    }
    Ok(())
}

fn test(args: &RemoteTest) -> Result<()> {
    // A name alone is the place itself.
    let place = match args.place.contains(':') {
        true => args.place.clone(),
        false => format!("{}:", args.place),
    };
    let effort = Effort::of(args.small_probe);
    let verdict = try_out(&place, effort)?;
    verdict.lines().iter().try_for_each(|line| say(format!("  {line}")))?;
    match verdict.begin {
        Begin::Refused(why) => {
            let what = format!("this store cannot hold a volume: {why}");
            Err(fault(Code::Refused, what, "Choose another service."))
        }
        _ => Ok(()),
    }
}

fn remove(args: &RemoteRemove) -> Result<()> {
    remotes::remove(&args.name)?;
    say(format!("Forgot {}; what is stored there stays.", args.name))
}
