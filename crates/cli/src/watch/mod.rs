//! `watch`: a local page that draws what the storage sees while a volume is in use.
//!
//! The working command ([`Publisher`]) reports over a socket ([`meeting`], [`event`]); the watcher
//! forwards the events ([`hub`]) to the pages it serves ([`http`], [`door`], [`page`]).

mod door;
mod event;
pub mod fuzzing;
mod http;
mod hub;
mod meeting;
mod page;
mod places;
mod publisher;
mod written;

pub use event::{Holds, OrdinaryEvent};
pub use publisher::Publisher;
pub use written::WatchedStore;

use crate::args::WatchArgs;
use crate::exit::{Code, fault};
use crate::human::{plain, say};
use crate::open;
use crate::signals;
use anyhow::{Context, Result};
use door::Door;
use http::Site;
use hub::{Hub, Stored};
use meeting::Meeting;
use oblivio_store::Store;
use oblivio_volume::read_header;
use page::Page;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How often the store's size is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs the command until a signal stops it.
pub fn run(args: &WatchArgs) -> Result<()> {
    let store = open::store(&args.volume)?;
    let shown = args.volume.display().to_string();
    let header = read_header(store.as_ref()).with_context(|| shown.clone())?;
    // From here on a signal ends the loop below, not the process in the middle of something.
    let mut stop = signals::catch()?;
    let meeting = Meeting::begin(header.volume)?;
    let (socket, launcher) = (meeting.path().to_owned(), meeting.beside("watch.html"));
    let (listener, door) = listen(args.port)?;
    let url = door.url();
    let hub = Arc::new(Hub::default());
    let page = Page::new(&name(&args.volume), &header.volume.to_string(), header.engine.name);
    let site = Arc::new(Site { door, page, hub: Arc::clone(&hub) });
    spawn("pages", move || http::serve(&listener, &site))?;
    let of_feeds = Arc::clone(&hub);
    spawn("feeds", move || hub::listen(&meeting.listener, &of_feeds))?;
    spawn("store", move || measure(store.as_ref(), &hub))?;

    say(&url)?;
    if !args.quiet {
        eprintln!("Watching {}. Whoever has this address can look: keep it to", plain(&shown));
        eprintln!("yourself. Use the volume with any oblivio command; Ctrl-C stops watching.");
    }
    if args.open {
        open_browser(&launcher, &url);
    }
    stop.forever().next();
    meeting::end(&launcher);
    meeting::end(&socket);
    Ok(())
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    thread::Builder::new().name(name.into()).spawn(work)?;
    Ok(())
}

/// The volume's name for people: that of its folder.
fn name(folder: &Path) -> String {
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    whole.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned())
}

fn listen(port: u16) -> Result<(TcpListener, Door)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let hint = "Choose another --port, or leave it out to have a free one found.";
        fault(Code::General, format!("port {port}: {error}"), hint)
    })?;
    let port = listener.local_addr()?.port();
    Ok((listener, Door::new(port)))
}

/// Reads the lengths of the objects, as the storage can at any time.
fn measure(store: &dyn Store, hub: &Hub) {
    loop {
        // A folder that is away for a while, say unmounted, is tried again.
        if let Ok(objects) = store.list() {
            let all = objects.iter().map(|(_, len)| len).sum();
            let slab = objects.iter().filter(|(name, _)| name.starts_with("slab"));
            let slab = slab.map(|(_, len)| len).sum();
            hub.stored(Stored { all, slab });
        }
        thread::sleep(LOOK_EVERY);
    }
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
    let _ = spawn("browser", move || match child.wait() {
        Ok(status) if status.success() => {}
        _ => fail(),
    });
}

fn write_launcher(path: &Path, url: &str) -> std::io::Result<()> {
    // A killed watcher's file leads nowhere.
    meeting::end(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <title>Oblivio</title><meta http-equiv=refresh content=\"0; url={url}\">\
         <a href=\"{url}\">Watch the volume</a>"
    )
}
