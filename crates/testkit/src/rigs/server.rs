//! A program that serves on a port, and the folder that it serves.

use std::fs::{self, DirBuilder};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(40);

/// Why a server is not there.
#[derive(Clone, Debug)]
pub struct Skip(pub String);

impl std::fmt::Display for Skip {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<io::Error> for Skip {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

/// A program in PATH, or where a system keeps its servers.
///
/// # Errors
/// When it is not installed.
pub fn find_program(name: &str) -> Result<PathBuf, Skip> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(system).map(|dir| dir.join(name));
    places.find(|file| file.is_file()).ok_or_else(|| Skip(format!("{name} is not installed")))
}

/// A folder that is removed with its owner.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("oblivio-rig-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // Servers that change their user must get through it.
        DirBuilder::new().mode(0o755).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// A running server. It ends with this value, its children too.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
    folder: Folder,
}

/// A port that nobody uses now.
pub(super) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Server {
    /// Starts a program and waits until it listens. What it says is in `said` of its folder.
    pub(super) fn start(command: &mut Command, port: u16, folder: Folder) -> Result<Self, Skip> {
        let said = fs::File::create(folder.path().join("said"))?;
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).process_group(0);
        let child = command.spawn()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut server = Self { child, address, folder };
        let begun = Instant::now();
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            let ended = server.child.try_wait()?.is_some();
            if ended || begun.elapsed() > START {
                let said = fs::read_to_string(server.folder().join("said")).unwrap_or_default();
                return Err(Skip(format!("{:?} does not serve: {said}", command.get_program())));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sends a signal, such as `STOP` or `CONT`, to the program and its children.
    ///
    /// # Errors
    /// When there is no `kill`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        let group = format!("-{}", self.child.id());
        Command::new("kill").args(["-s", name, "--", &group]).status().map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.signal("KILL"));
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
