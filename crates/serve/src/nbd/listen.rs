//! Where clients connect: a socket for this user alone, or an address.

use super::fault::DiskFault;
use crate::error::{Doing, Error, Result};
use rustix::fs::Mode;
use rustls::ServerConfig;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenPlace {
    /// A socket at this path.
    Socket(PathBuf),
    /// An address of this computer.
    Address(SocketAddr),
}

/// The protection between a disk and the clients that reach its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenGuard {
    /// Nothing.
    None,
    /// Encryption, but any client may enter.
    Encryption,
    /// Clients must authenticate, or the user waived it.
    AsAsked,
}

impl ListenPlace {
    /// A socket at a path, which must be free or the remnant of an earlier server.
    ///
    /// # Errors
    /// Something else is there.
    pub fn socket(path: &Path) -> Result<Self> {
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(found) if !found.file_type().is_socket() => {
                return Err(DiskFault::Occupied(path.to_owned()).into());
            }
            Ok(_) if UnixStream::connect(path).is_ok() => {
                return Err(DiskFault::Served(path.to_owned()).into());
            }
            Ok(_) => {}
            Err(error) => return Err(error).doing(path.display()),
        }
        // Absolute: it is removed at the end, whatever the working directory is by then.
        let whole = std::path::absolute(path)?;
        if !whole.parent().is_some_and(Path::is_dir) {
            return Err(DiskFault::NoFolder(path.to_owned()).into());
        }
        Ok(ListenPlace::Socket(whole))
    }

    /// An address of this computer. An address that others can reach needs the guard that the user
    /// must have chosen.
    ///
    /// # Errors
    /// The address is wrong, or lacks its guard.
    pub fn address(text: &str, guard: ListenGuard) -> Result<Self> {
        let found = text.to_socket_addrs().map(|mut found| found.next());
        let Ok(Some(address)) = found else { return Err(DiskFault::NoAddress(text.into()).into()) };
        if address.ip().is_loopback() || guard == ListenGuard::AsAsked {
            return Ok(ListenPlace::Address(address));
        }
        Err(DiskFault::Exposed {
            address: text.into(),
            encrypted: guard == ListenGuard::Encryption,
        }
        .into())
    }
}

/// An open listener. On drop it removes its socket.
pub struct Listener {
    inner: Inner,
    tls: Option<Arc<ServerConfig>>,
    /// Its socket was removed: what is there now is another server's.
    left: AtomicBool,
}

enum Inner {
    Unix { listener: UnixListener, path: PathBuf, id: (u64, u64) },
    Tcp(TcpListener),
}

impl Listener {
    /// Starts to listen.
    ///
    /// # Errors
    /// Those of the system, with the place.
    pub fn open(place: &ListenPlace) -> Result<Self> {
        let inner = match place {
            ListenPlace::Address(address) => {
                let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
                    ErrorKind::AddrInUse => DiskFault::AddressInUse(*address).into(),
                    _ => Error::System { doing: format!("listening on {address}"), source: error },
                })?;
                Inner::Tcp(listener)
            }
            ListenPlace::Socket(path) => {
                // Another server may have started while the passphrase was typed.
                ListenPlace::socket(path)?;
                if path.symlink_metadata().is_ok() {
                    std::fs::remove_file(path)?;
                }
                // No other user may connect, not even for a moment.
                let before = rustix::process::umask(Mode::RWXG | Mode::RWXO | Mode::XUSR);
                let bound = UnixListener::bind(path);
                rustix::process::umask(before);
                let listener = bound.doing(format_args!("listening on {}", path.display()))?;
                let made = path.symlink_metadata()?;
                Inner::Unix { listener, path: path.clone(), id: (made.dev(), made.ino()) }
            }
        };
        Ok(Self { inner, tls: None, left: AtomicBool::new(false) })
    }

    /// From now on clients must use TLS.
    pub fn with_tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// The TLS configuration, if clients must use TLS.
    pub fn tls(&self) -> Option<&Arc<ServerConfig>> {
        self.tls.as_ref()
    }

    /// The address; with the actual port if the system chose it.
    pub fn address(&self) -> Option<SocketAddr> {
        match &self.inner {
            Inner::Tcp(listener) => listener.local_addr().ok(),
            Inner::Unix { .. } => None,
        }
    }

    /// The next client.
    ///
    /// # Errors
    /// Those of the system; one after [`Self::stop`].
    pub fn accept(&self) -> io::Result<Conn> {
        match &self.inner {
            Inner::Unix { listener, .. } => Ok(Conn::Unix(Arc::new(listener.accept()?.0))),
            Inner::Tcp(listener) => {
                let stream = listener.accept()?.0;
                // Replies are small, and clients wait for them.
                stream.set_nodelay(true)?;
                Ok(Conn::Tcp(Arc::new(stream)))
            }
        }
    }

    /// Accepts no more clients; a pending [`Self::accept`] returns.
    pub fn stop(&self) {
        let fd = match &self.inner {
            Inner::Unix { listener, .. } => listener.as_fd(),
            Inner::Tcp(listener) => listener.as_fd(),
        };
        let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
    }

    /// Removes its socket.
    pub fn leave(&self) {
        if let Inner::Unix { path, id, .. } = &self.inner
            && !self.left.swap(true, Ordering::SeqCst)
            && path.symlink_metadata().is_ok_and(|found| (found.dev(), found.ino()) == *id)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A connection. Clones are the same one, without a descriptor of their own.
#[derive(Clone)]
pub enum Conn {
    Unix(Arc<UnixStream>),
    Tcp(Arc<TcpStream>),
}

impl Conn {
    /// Shuts down one or both directions.
    pub fn shutdown(&self, how: Shutdown) {
        let _ = match self {
            Conn::Unix(stream) => stream.shutdown(how),
            Conn::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Sets the timeout of reads.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_patience(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Conn::Unix(stream) => stream.set_read_timeout(time),
            Conn::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    /// Sets the timeout of writes.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set_write_patience(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Conn::Unix(stream) => stream.set_write_timeout(time),
            Conn::Tcp(stream) => stream.set_write_timeout(time),
        }
    }
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Conn::Unix(stream) => stream.as_fd(),
            Conn::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for Conn {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Conn::Unix(stream) => (&**stream).read(into),
            Conn::Tcp(stream) => (&**stream).read(into),
        }
    }
}

impl Write for Conn {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Conn::Unix(stream) => (&**stream).write(bytes),
            Conn::Tcp(stream) => (&**stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
