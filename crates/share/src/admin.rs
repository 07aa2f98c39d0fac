//! What the administrator of a server wants, whether the server runs or not: a request to the
//! control socket in its folder, or the same done on the folder itself.

use crate::address::{PORT, ShareAddress, Token};
use crate::devices::{KnownDevice, secret_hash};
use crate::ending::ServerEnding;
use crate::error::{Doing, Error, Result};
use crate::frame::{Frame, FrameKind};
use crate::identity::{self, random};
use crate::message::{pack, unpack};
use crate::volume_registry::{Home, VolumeRegistry, VolumeStatus};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// The longest frame on the control socket.
const MOST: usize = 1 << 20;
/// How long either side may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What an administrator wants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum AdminRequest {
    /// A device is to be admitted: the hash of its secret.
    Add(KnownDevice, [u8; 32]),
    /// A device is not to be admitted any more.
    Revoke(KnownDevice),
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
    /// It is done. With the server's fingerprint, and the port on which it listens, if it runs.
    Done([u8; 32], Option<u16>),
    /// All devices.
    Devices(Vec<KnownDevice>),
    /// What the server knows, whether it runs, and what it found when it started.
    Status(Vec<VolumeStatus>, bool, Vec<String>),
}

#[derive(Serialize, Deserialize)]
enum Outcome {
    Granted(Granted),
    NoVolume(String),
    NoDevice(String),
    Taken(String),
    SameNumber,
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
pub fn wish(dir: &Path, wish: &AdminRequest) -> Result<Granted> {
    match UnixStream::connect(path(dir)) {
        Ok(stream) => ask(&stream, wish),
        Err(error) if is_down(&error) => {
            if !dir.join("devices").exists() {
                let what = io::Error::from(io::ErrorKind::NotFound);
                return Err(what).doing(format_args!("no server's folder: {}", dir.display()));
            }
            grant(&VolumeRegistry::open(dir, Home::default())?, dir, wish, None)
        }
        Err(error) => Err(error).doing("reaching the server that runs"),
    }
}

/// Admits a new device of the address's volume, and returns its token. If the address does not say
/// the port (it is 0), it is that of the server that runs, or [`PORT`].
///
/// # Errors
/// As for [`wish`].
pub fn admit(dir: &Path, name: &str, mut address: ShareAddress) -> Result<Token> {
    let device = KnownDevice { volume: address.volume.clone(), name: name.into() };
    loop {
        let secret = Zeroizing::new(random()?);
        match wish(dir, &AdminRequest::Add(device.clone(), secret_hash(&secret))) {
            Ok(Granted::Done(fingerprint, port)) => {
                if address.port == 0 {
                    address.port = port.unwrap_or(PORT);
                }
                return Ok(Token { address, fingerprint, secret });
            }
            Ok(_) => return Err(Error::Said("the server gave no fingerprint".into())),
            // One of 65,536 for each device that is there.
            Err(Error::SameNumber) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_down(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

fn ask(mut stream: &UnixStream, wish: &AdminRequest) -> Result<Granted> {
    let doing = "asking the server that runs";
    stream.set_read_timeout(Some(PATIENCE)).doing(doing)?;
    let frame = Frame { kind: FrameKind::Call, number: 0, head: pack(wish), body: Cow::default() };
    frame.write(&mut stream).doing(doing)?;
    let frame = Frame::read(&mut stream, MOST).doing(doing)?;
    let frame = frame.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof)).doing(doing)?;
    match unpack(&frame.head)? {
        Outcome::Granted(granted) => Ok(granted),
        Outcome::NoVolume(name) => Err(Error::NoVolume(name)),
        Outcome::NoDevice(name) => Err(Error::NoDevice(name)),
        Outcome::Taken(name) => Err(Error::Taken(name)),
        Outcome::SameNumber => Err(Error::SameNumber),
        Outcome::BadName(name) => Err(Error::BadName(name)),
        Outcome::Failed(why) => Err(Error::Said(why)),
    }
}

/// Grants a wish. A server that runs listens on a port; 0 if nowhere.
fn grant(
    registry: &VolumeRegistry,
    dir: &Path,
    wish: &AdminRequest,
    runs: Option<u16>,
) -> Result<Granted> {
    let port = runs.filter(|port| *port > 0);
    let fingerprint = || identity::load(dir).map(|(_, found)| Granted::Done(found, port));
    match wish {
        AdminRequest::Add(device, hash) => {
            registry.add_device(*hash, device.clone()).and_then(|()| fingerprint())
        }
        AdminRequest::Revoke(device) => registry.remove_device(device).and_then(|()| fingerprint()),
        AdminRequest::List => Ok(Granted::Devices(registry.devices())),
        AdminRequest::Quota(volume, quota) => {
            registry.volume(volume)?.share.set_quota(*quota)?;
            fingerprint()
        }
        AdminRequest::Status => {
            Ok(Granted::Status(registry.status()?, runs.is_some(), registry.findings()))
        }
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
    /// Grants wishes until the end, as the server that listens on this port.
    pub fn serve(&self, registry: &VolumeRegistry, port: u16, until: &ServerEnding) {
        while !until.is_over() {
            match self.listener.accept() {
                // A wish that cannot be read is nobody's.
                Ok((stream, _)) => drop(self.answer(registry, port, &stream)),
                Err(_) => until.wait(Duration::from_millis(20)),
            }
        }
        let _ = fs::remove_file(path(&self.dir));
    }

    fn answer(
        &self,
        registry: &VolumeRegistry,
        port: u16,
        mut stream: &UnixStream,
    ) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let Some(frame) = Frame::read(&mut stream, MOST)? else { return Ok(()) };
        let outcome = match unpack(&frame.head) {
            Ok(wish) => grant(registry, &self.dir, &wish, Some(port)),
            Err(error) => Err(error.into()),
        };
        let outcome = match outcome {
            Ok(granted) => Outcome::Granted(granted),
            Err(Error::NoVolume(name)) => Outcome::NoVolume(name),
            Err(Error::NoDevice(name)) => Outcome::NoDevice(name),
            Err(Error::Taken(name)) => Outcome::Taken(name),
            Err(Error::SameNumber) => Outcome::SameNumber,
            Err(Error::BadName(name)) => Outcome::BadName(name),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        Frame { kind: FrameKind::Reply, number: 0, head: pack(&outcome), body: Cow::default() }
            .write(&mut stream)
    }
}
