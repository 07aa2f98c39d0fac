//! A local page that draws what the storage sees while a volume is in use.
//!
//! The working command ([`Publisher`]) reports over a socket (`rendezvous`, `event`); the watcher
//! forwards the events (`hub`) to the pages it serves (`http`, `access`, `page`).

mod access;
mod event;
mod fault;
pub(crate) mod fuzzing;
mod http;
mod hub;
mod page;
mod places;
mod publisher;
mod rendezvous;
mod written;

pub use event::{OrdinaryEvent, WatchedUse};
pub use fault::WatchFault;
pub use publisher::Publisher;
pub use rendezvous::{Meeting, end};
pub use written::watched;

use crate::error::Result;
use crate::threads::spawn;
use access::PageDoor;
use http::Site;
use hub::{Hub, ObjectLengths};
use oblivio_store::{AnyStore, Held};
use oblivio_volume::PublicHeader;
use page::VolumePage;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How often the store's size is read.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Serves the page of a volume on threads of its own, for the life of this process. `name` is the
/// volume's name for people. Returns the page's address: anyone who has it sees the page.
///
/// # Errors
/// Those of the system.
pub fn serve(
    meeting: Meeting,
    listener: TcpListener,
    store: AnyStore,
    header: &PublicHeader,
    name: &str,
) -> Result<String> {
    let door = PageDoor::new(listener.local_addr()?.port());
    let url = door.url();
    let hub = Arc::new(Hub::default());
    let page = VolumePage::new(name, &header.volume.to_string(), header.engine.name);
    let site = Arc::new(Site { door, page, hub: Arc::clone(&hub) });
    spawn("pages", move || http::serve(&listener, &site))?;
    let of_feeds = Arc::clone(&hub);
    spawn("feeds", move || {
        // As a whole: it also holds the lock that keeps a second watcher out.
        let meeting = meeting;
        hub::listen(&meeting.listener, &of_feeds);
    })?;
    spawn("store", move || measure(&store, &hub))?;
    Ok(url)
}

/// Reads the lengths of the objects, as the storage can at any time.
fn measure(store: &AnyStore, hub: &Hub) {
    loop {
        // A folder that is away for a while, say unmounted, is tried again.
        if let Ok(objects) = store.list() {
            let all = objects.iter().map(|(_, len)| len).sum();
            let slab = objects.iter().filter(|(name, _)| name.starts_with("slab"));
            let slab = slab.map(|(_, len)| len).sum();
            hub.stored(ObjectLengths { all, slab });
        }
        thread::sleep(LOOK_EVERY);
    }
}
