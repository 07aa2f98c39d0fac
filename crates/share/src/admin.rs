//! What the administrator of a server wants, whether the server runs or not: a request to the
//! control socket in its folder, or the same done on the folder itself.

use crate::devices::Device;
use crate::ending::Ending;
use crate::error::{Doing, Error, Result};
use crate::frame::{Frame, Kind};
use crate::hub::{Hub, VolumeStatus};
use crate::identity;
use crate::message::{pack, unpack};
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest frame on the control socket.
const MOST: usize = 1 << 20;
/// How long either side may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an administrator wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Wish {
    /// A device is to be admitted: the hash of its secret.
    Add(Device, [u8; 32]),
    /// A device is not to be admitted any more.
    Revoke(Device),
    /// All devices.
    List,
    /// A volume's limit in bytes.
    Quota(String, Option<u64>),
    /// What the server knows.
    Status,
}

/// What came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Granted {
    /// It is done. With the server's fingerprint.
    Done([u8; 32]),
    /// All devices.
    Devices(Vec<Device>),
    /// What the server knows, and whether it runs.
    Status(Vec<VolumeStatus>, bool),
}

#[derive(Serialize, Deserialize)]
enum Outcome {
    Granted(Granted),
    NoVolume(String),
    NoDevice(String),
    Taken(String),
    BadName(String),
    Failed(String),
}

fn path(dir: &Path) -> PathBuf {
    dir.join("control")
}

/// Has a wish granted: by the server that runs, or on its folder.
///
/// # Errors
/// What is wrong with the wish; those of storage and the system.
pub fn wish(dir: &Path, wish: &Wish) -> Result<Granted> {
    match UnixStream::connect(path(dir)) {
        Ok(stream) => ask(&stream, wish),
        Err(error) if is_down(&error) => {
            if !dir.join("devices").exists() {
                let what = io::Error::from(io::ErrorKind::NotFound);
                return Err(what).doing(format_args!("no server's folder: {}", dir.display()));
            }
            grant(&Hub::open(dir, None)?, dir, wish, false)
        }
        Err(error) => Err(error).doing("reaching the server that runs"),
    }
}

fn is_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn ask(mut stream: &UnixStream, wish: &Wish) -> Result<Granted> {
    let doing = "asking the server that runs";
    stream.set_read_timeout(Some(PATIENCE)).doing(doing)?;
    let frame = Frame { kind: Kind::Call, number: 0, head: pack(wish), body: Vec::new() };
    frame.write(&mut stream).doing(doing)?;
    let frame = Frame::read(&mut stream, MOST).doing(doing)?;
    let frame = frame.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof)).doing(doing)?;
    match unpack(&frame.head)? {
        Outcome::Granted(granted) => Ok(granted),
        Outcome::NoVolume(name) => Err(Error::NoVolume(name)),
        Outcome::NoDevice(name) => Err(Error::NoDevice(name)),
        Outcome::Taken(name) => Err(Error::Taken(name)),
        Outcome::BadName(name) => Err(Error::BadName(name)),
        Outcome::Failed(why) => Err(Error::Said(why)),
    }
}

fn grant(hub: &Hub, dir: &Path, wish: &Wish, runs: bool) -> Result<Granted> {
    let fingerprint = || identity::load(dir).map(|(_, fingerprint)| Granted::Done(fingerprint));
    match wish {
        Wish::Add(device, hash) => {
            hub.add_device(*hash, device.clone()).and_then(|()| fingerprint())
        }
        Wish::Revoke(device) => hub.remove_device(device).and_then(|()| fingerprint()),
        Wish::List => Ok(Granted::Devices(hub.devices())),
        Wish::Quota(volume, quota) => {
            hub.volume(volume)?.share.set_quota(*quota)?;
            fingerprint()
        }
        Wish::Status => Ok(Granted::Status(hub.status()?, runs)),
    }
}

/// The control socket of a server that starts.
pub struct Control {
    listener: UnixListener,
    dir: PathBuf,
}

/// Opens the control socket. The folder is this process's by then.
///
/// # Errors
/// Those of the system.
pub fn listen(dir: &Path) -> Result<Control> {
    let path = path(dir);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).doing(path.display());
        }
        _ => {}
    }
    let listener = UnixListener::bind(&path).doing(path.display())?;
    fs::set_permissions(&path, Permissions::from_mode(0o600)).doing(path.display())?;
    listener.set_nonblocking(true).doing(path.display())?;
    Ok(Control { listener, dir: dir.into() })
}

impl Control {
    /// Grants wishes until the end.
    pub fn serve(&self, hub: &Hub, until: &Ending) {
        while !until.is_over() {
            match self.listener.accept() {
                // A wish that cannot be read is nobody's.
                Ok((stream, _)) => drop(self.answer(hub, &stream)),
                Err(_) => until.wait(Duration::from_millis(20)),
            }
        }
        let _ = fs::remove_file(path(&self.dir));
    }

    fn answer(&self, hub: &Hub, mut stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(frame) = Frame::read(&mut stream, MOST)? else { return Ok(()) };
        let outcome = match unpack(&frame.head) {
            Ok(wish) => grant(hub, &self.dir, &wish, true),
            Err(error) => Err(error.into()),
        };
        let outcome = match outcome {
            Ok(granted) => Outcome::Granted(granted),
            Err(Error::NoVolume(name)) => Outcome::NoVolume(name),
            Err(Error::NoDevice(name)) => Outcome::NoDevice(name),
            Err(Error::Taken(name)) => Outcome::Taken(name),
            Err(Error::BadName(name)) => Outcome::BadName(name),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        Frame { kind: Kind::Reply, number: 0, head: pack(&outcome), body: Vec::new() }
            .write(&mut stream)
    }
}
