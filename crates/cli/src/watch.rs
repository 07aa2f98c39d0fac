//! `watch`: a local page that draws what the storage sees while a volume is in use.

use crate::args::WatchArgs;
use crate::exit::{Code, fault};
use crate::human::{plain, say};
use crate::meeting::socket;
use crate::open;
use crate::signals;
use anyhow::{Context, Result};
use oblivio_serve::watch::{self, Meeting};
use oblivio_volume::read_header;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// Runs the command until a signal stops it.
pub fn run(args: &WatchArgs) -> Result<()> {
    let store = open::store(&args.volume)?;
    let shown = args.volume.display().to_string();
    let header = read_header(store.as_ref()).with_context(|| shown.clone())?;
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
        open_browser(&launcher, &url);
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

/// Opens the page. Other users can read the command lines of this computer's programs. So the
/// browser gets a file that only this user can read, and the file leads to the page.
fn open_browser(launcher: &Path, url: &str) {
    let opened = write_launcher(launcher, url).and_then(|()| {
        let mut command = Command::new("xdg-open");
        command.arg(launcher).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn()
    });
    let fail = || eprintln!("oblivio: no browser could be started; open the address yourself");
    let Ok(mut child) = opened else { return fail() };
    // It may run as long as the browser does.
    let wait = move || match child.wait() {
        Ok(status) if status.success() => {}
        _ => fail(),
    };
    let _ = thread::Builder::new().name("browser".into()).spawn(wait);
}

fn write_launcher(path: &Path, url: &str) -> std::io::Result<()> {
    // A killed watcher's file leads nowhere.
    watch::end(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <title>Oblivio</title><meta http-equiv=refresh content=\"0; url={url}\">\
         <a href=\"{url}\">Watch the volume</a>"
    )
}
