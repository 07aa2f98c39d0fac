//! `watch`: a local page that draws what the storage sees while a volume is in use.

use crate::args::WatchArgs;
use crate::browser;
use crate::exit::{Code, fault};
use crate::human::{plain, say};
use crate::open;
use crate::rendezvous::socket;
use crate::signals;
use anyhow::{Context, Result};
use oblivio_serve::watch::{self, Meeting};
use oblivio_volume::read_header;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// Runs the command until a signal stops it.
pub fn run(args: &WatchArgs) -> Result<()> {
    let store = open::store(&args.volume)?;
    let shown = args.volume.display().to_string();
    let header = read_header(&store).with_context(|| shown.clone())?;
    // From here on a signal ends the loop below, not the process in the middle of something.
    let mut stop = signals::catch()?;
    let hint = "Set HOME or XDG_RUNTIME_DIR.";
    let socket = socket(header.volume)
        .ok_or_else(|| fault(Code::General, "there is no home directory to meet in", hint))?;
    let meeting = Meeting::at(&socket)?;
    let launcher = meeting.beside("watch.html");
    let listener = listen(args.port)?;
    let url = watch::serve(meeting, listener, store, &header, &name(&args.volume))?;

    say(&url)?;
    if !args.quiet {
        eprintln!("Watching {}. Whoever has this address can look: keep it to", plain(&shown));
        eprintln!("yourself. Use the volume with any oblivio command; Ctrl-C stops watching.");
    }
    if args.open {
        // A killed watcher's file leads nowhere.
        watch::end(&launcher);
        browser::open(&launcher, &url, "Watch the volume");
    }
    stop.forever().next();
    watch::end(&launcher);
    watch::end(&socket);
    Ok(())
}

/// The volume's name for people: that of its folder.
fn name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned())
}

fn listen(port: u16) -> Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let hint = "Choose another --port, or leave it out to have a free one found.";
        fault(Code::General, format!("port {port}: {error}"), hint)
    })
}
