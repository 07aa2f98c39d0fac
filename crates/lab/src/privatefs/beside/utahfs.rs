//! UtahFS with its oblivious RAM, by its own programs: `utahfs-client` mounts, and many of them
//! share what `utahfs-server` keeps.

use super::batch::{Batch, Times, put_all, take_all};
use super::volumes::BEFORE;
use crate::share::proxy::Proxy;
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take to begin.
const PATIENCE: Duration = Duration::from_secs(30);

/// Its two programs.
#[derive(Clone, Debug)]
pub struct Programs {
    client: PathBuf,
    server: PathBuf,
}

impl Programs {
    /// Those in a folder, or why there are none.
    pub fn find(dir: Option<&Path>) -> std::result::Result<Self, String> {
        let Some(dir) = dir else { return Err("`--utahfs DIR` was not given".into()) };
        let [client, server] = ["utahfs-client", "utahfs-server"].map(|name| dir.join(name));
        for program in [&client, &server] {
            if !program.is_file() {
                return Err(format!("{} is not there", program.display()));
            }
        }
        // They run in a folder of their own.
        let whole = |path: PathBuf| path.canonicalize().map_err(|error| error.to_string());
        Ok(Self { client: whole(client)?, server: whole(server)? })
    }
}

/// Where a client has its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocks {
    /// On this computer, which runs the oblivious RAM itself.
    Here,
    /// At the server, which runs it.
    Served(SocketAddr),
}

/// The file of settings of a client.
fn client_settings(home: &Path, blocks: Blocks) -> String {
    let home = home.display();
    let place = match blocks {
        Blocks::Here => format!("storage-provider:\n  disk-path: {home}/store"),
        Blocks::Served(at) => {
            format!("remote-server:\n  url: https://{at}/\n  transport-key: of the line")
        }
    };
    format!("data-dir: {home}/client\npassword: lab\noram: true\n{place}\n")
}

/// The file of settings of a server.
fn server_settings(home: &Path) -> String {
    let home = home.display();
    format!(
        "data-dir: {home}/server\nstorage-provider:\n  disk-path: {home}/store\n\
         transport-key: of the line\noram:\n  key: of the server\n"
    )
}

/// Clients of a server behind the delay, one after the other.
///
/// # Errors
/// Those of its programs.
pub fn served(
    programs: &Programs,
    dir: Option<&Path>,
    batches: &[Batch],
    round_trip: Duration,
) -> Result<Vec<Times>> {
    let scratch = scratch(dir)?;
    let server = Server::start(programs, scratch.path())?;
    fill(programs, scratch.path(), Blocks::Served(server.address))?;
    let proxy = Proxy::start(server.address, round_trip / 2)?;
    work(programs, scratch.path(), Blocks::Served(proxy.address), batches)
}

/// One client without a server, whose blocks are on this computer's disk.
///
/// # Errors
/// Those of its program.
pub fn alone(programs: &Programs, dir: Option<&Path>, batches: &[Batch]) -> Result<Vec<Times>> {
    let scratch = scratch(dir)?;
    fill(programs, scratch.path(), Blocks::Here)?;
    work(programs, scratch.path(), Blocks::Here, batches)
}

fn scratch(dir: Option<&Path>) -> Result<tempfile::TempDir> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_path_buf);
    tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())
}

/// As much as the others have before.
fn fill(programs: &Programs, home: &Path, blocks: Blocks) -> Result<()> {
    let before = Batch { name: "before", files: 1, bytes: BEFORE };
    let mount = Mount::start(programs, home, blocks)?;
    before.put(&mount.dir)?;
    mount.end()
}

fn work(programs: &Programs, home: &Path, blocks: Blocks, batches: &[Batch]) -> Result<Vec<Times>> {
    let mut times = vec![Times::default(); batches.len()];
    let mount = Mount::start(programs, home, blocks)?;
    put_all(batches, &mount.dir, &mut times)?;
    mount.end()?;
    // A new process, as for the others.
    let mount = Mount::start(programs, home, blocks)?;
    take_all(batches, &mount.dir, &mut times)?;
    mount.end()?;
    Ok(times)
}

/// A program of it, whose messages are in a file.
struct Program {
    child: Child,
    said: PathBuf,
}

impl Program {
    fn start(path: &Path, home: &Path, settings: &str, args: &[&str]) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (config, said) =
            (home.join(format!("{name}.yaml")), home.join(format!("{name}.messages")));
        std::fs::write(&config, settings)?;
        let mut command = Command::new(path);
        command.current_dir(home).arg("-cfg").arg(&config).args(args);
        // Any free port: nobody reads its figures.
        command.args(["-metrics-addr", "127.0.0.1:0"]);
        let messages = File::create(&said)?;
        command.stdin(Stdio::null()).stdout(messages.try_clone()?).stderr(messages);
        let child = command.spawn().with_context(|| path.display().to_string())?;
        Ok(Self { child, said })
    }

    /// Waits until it does what it is for.
    fn wait_until(&mut self, ready: impl Fn() -> bool) -> Result<()> {
        let begin = Instant::now();
        while !ready() {
            let ended = self.child.try_wait()?;
            if ended.is_some() || begin.elapsed() > PATIENCE {
                bail!("it did not begin: {}", std::fs::read_to_string(&self.said)?);
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server.
struct Server {
    _program: Program,
    address: SocketAddr,
}

impl Server {
    fn start(programs: &Programs, home: &Path) -> Result<Self> {
        // It takes a port and never says which, so one is chosen that is free now.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let (settings, at) = (server_settings(home), address.to_string());
        let mut program =
            Program::start(&programs.server, home, &settings, &["-server-addr", &at])?;
        program.wait_until(|| TcpStream::connect(address).is_ok())?;
        Ok(Self { _program: program, address })
    }
}

/// A client's mount. It is taken away when it is dropped.
struct Mount {
    program: Program,
    dir: PathBuf,
}

impl Mount {
    fn start(programs: &Programs, home: &Path, blocks: Blocks) -> Result<Self> {
        let dir = home.join("mount");
        std::fs::create_dir_all(&dir)?;
        let (outside, settings) = (dir.metadata()?.dev(), client_settings(home, blocks));
        let at = dir.to_str().context("a folder's name that is no text")?;
        let program = Program::start(&programs.client, home, &settings, &["-mount", at])?;
        let mut mount = Self { program, dir: dir.clone() };
        let mounted = || dir.metadata().is_ok_and(|found| found.dev() != outside);
        mount.program.wait_until(mounted)?;
        Ok(mount)
    }

    /// Unmounts it, which ends the program.
    fn end(mut self) -> Result<()> {
        let status = Command::new("fusermount3").arg("-u").arg(&self.dir).status()?;
        ensure!(status.success(), "{} stays mounted", self.dir.display());
        let ended = self.program.child.wait()?;
        ensure!(ended.success(), "the mount ended with {ended}");
        Ok(())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if !matches!(self.program.child.try_wait(), Ok(Some(_))) {
            let _ = Command::new("fusermount3").arg("-uz").arg(&self.dir).output();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_blocks_in_one_place() {
        let home = Path::new("/home/lab");
        let here = client_settings(home, Blocks::Here);
        assert!(here.contains("disk-path: /home/lab/store\n") && !here.contains("remote-server"));
        let at = SocketAddr::from(([127, 0, 0, 1], 7));
        let served = client_settings(home, Blocks::Served(at));
        assert!(served.contains("url: https://127.0.0.1:7/\n"));
        assert!(!served.contains("storage-provider"));
        assert!([here, served].iter().all(|settings| settings.contains("\noram: true\n")));
        let key = "transport-key: of the line\n";
        assert!(client_settings(home, Blocks::Served(at)).contains(key));
        assert!(server_settings(home).contains(key), "both know the key of the line");
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(Programs::find(None).unwrap_err().contains("--utahfs"));
        let empty = tempfile::tempdir().unwrap();
        assert!(Programs::find(Some(empty.path())).unwrap_err().contains("utahfs-client"));
        std::fs::write(empty.path().join("utahfs-client"), "").unwrap();
        assert!(Programs::find(Some(empty.path())).unwrap_err().contains("utahfs-server"));
        std::fs::write(empty.path().join("utahfs-server"), "").unwrap();
        assert!(Programs::find(Some(empty.path())).is_ok());
    }
}
