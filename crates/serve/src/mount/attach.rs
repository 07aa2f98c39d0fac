//! Attaching a file system to a directory, and detaching it.
//!
//! Root uses the system calls; other users go through `fusermount3`, the small set-user-ID program
//! of libfuse. (fuser's own mounting names every mount `fuse` and always detaches lazily. Users
//! should see `fuse.oblivio`, and learn which processes still use the mount.)

use super::fault::{MountFault, MountRefusal};
use crate::error::{Doing, Error, Result};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

const DEVICE: &str = "/dev/fuse";
/// The file system type of our mounts.
const KIND: &[u8] = b"fuse.oblivio";

/// The properties of a mount that the system shows.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The first column of `mount` and `df`.
    pub source: OsString,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Whether other users are let in.
    pub allow_other: bool,
    /// Whether set-user-ID bits count.
    pub suid: bool,
    /// Whether device nodes count.
    pub dev: bool,
    /// Whether no program may be run.
    pub noexec: bool,
}

impl Look {
    /// The part that the kernel takes as flags.
    pub fn flags(&self) -> MountFlags {
        let mut flags = MountFlags::NOATIME;
        flags.set(MountFlags::RDONLY, self.read_only);
        flags.set(MountFlags::NOSUID, !self.suid);
        flags.set(MountFlags::NODEV, !self.dev);
        flags.set(MountFlags::NOEXEC, self.noexec);
        flags
    }
}

/// Mounts; returns the descriptor of the connection to the kernel.
pub fn attach(dir: &Path, look: &Look) -> Result<OwnedFd> {
    if !Path::new(DEVICE).exists() {
        return Err(MountFault::NoFuse(DEVICE).into());
    }
    let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let root = rustix::process::geteuid().is_root();
    // The helper may open and mount what we may not; root gains nothing from it.
    let device = match File::options().read(true).write(true).open(DEVICE).map_err(io) {
        Ok(device) => device,
        Err(Errno::PERM | Errno::ACCESS) if !root => return by_helper(dir, look),
        Err(error) => return Err(refused(&format!("{DEVICE}: {error}"))),
    };
    match directly(dir, look, device) {
        Err(Errno::PERM | Errno::ACCESS) if !root => by_helper(dir, look),
        Err(error @ (Errno::PERM | Errno::ACCESS)) => Err(refused(&error.to_string())),
        attached => attached.doing(format_args!("mounting on {}", dir.display())),
    }
}

fn directly(dir: &Path, look: &Look, device: File) -> rustix::io::Result<OwnedFd> {
    let mut options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions,max_read={}",
        device.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
        crate::fuse::MAX_IO,
    );
    if look.allow_other {
        options.push_str(",allow_other");
    }
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    rustix::mount::mount(&look.source, dir, "fuse.oblivio", look.flags(), options.as_c_str())?;
    Ok(device.into())
}

fn by_helper(dir: &Path, look: &Look) -> Result<OwnedFd> {
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        // Without CLOEXEC: the helper inherits its end.
        SocketFlags::empty(),
        None,
    )?;
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::CLOEXEC)?;
    let mut helper = helper();
    helper
        .arg("-o")
        .arg(helper_options(look))
        .arg("--")
        .arg(dir)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let child = helper.spawn().map_err(no_helper)?;
    drop(theirs);
    let received = receive(&ours);
    let output = child.wait_with_output()?;
    match received? {
        Some(device) => {
            rustix::io::fcntl_setfd(&device, rustix::io::FdFlags::CLOEXEC)?;
            Ok(device)
        }
        None => Err(refused(&String::from_utf8_lossy(&output.stderr))),
    }
}

fn helper() -> Command {
    Command::new("fusermount3")
}

fn no_helper(source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::NotFound => MountFault::NoHelper.into(),
        _ => Error::System { doing: "running fusermount3".into(), source },
    }
}

fn helper_options(look: &Look) -> OsString {
    let mut options = OsString::from("subtype=oblivio,default_permissions,noatime,nosuid,nodev");
    options.push(format!(",max_read={}", crate::fuse::MAX_IO));
    for (wanted, option) in
        [(look.read_only, ",ro"), (look.allow_other, ",allow_other"), (look.noexec, ",noexec")]
    {
        if wanted {
            options.push(option);
        }
    }
    options.push(",fsname=");
    // The helper splits at commas without a backslash before them.
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut source = Vec::new();
    for &byte in look.source.as_bytes() {
        if matches!(byte, b',' | b'\\') {
            source.push(b'\\');
        }
        source.push(byte);
    }
    options.push(OsString::from_vec(source));
    options
}

/// The descriptor that the helper sends after mounting.
fn receive(from: &OwnedFd) -> rustix::io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut data = [IoSliceMut::new(&mut byte)];
    loop {
        match rustix::net::recvmsg(from, &mut data, &mut control, RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(_) => break,
        }
    }
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

fn refused(said: &str) -> Error {
    let why = meaning(said, rustix::process::geteuid().is_root());
    MountFault::Refused { said: said.trim().to_owned(), why }.into()
}

/// What a refusal means, by its message. Root is refused in containers only.
fn meaning(said: &str, root: bool) -> MountRefusal {
    let forbidden = ["Permission denied", "not permitted"].iter().any(|why| said.contains(why));
    let no_module = ["device not found", "No such device"].iter().any(|why| said.contains(why));
    match () {
        () if said.contains("user_allow_other") => MountRefusal::OtherUsers,
        () if no_module => MountRefusal::NoModule,
        () if forbidden && (root || said.contains(DEVICE)) => MountRefusal::Device,
        () if forbidden => MountRefusal::Directory,
        () => MountRefusal::Unknown,
    }
}

/// Why detaching failed.
#[derive(Debug)]
pub enum Stuck {
    /// A process has files open there, or works in it.
    Busy,
    /// Something else.
    Other(Error),
}

impl Stuck {
    /// As an error of the directory.
    pub fn error(self, dir: &Path) -> Error {
        match self {
            Self::Busy => super::busy::in_use(dir).into(),
            Self::Other(error) => error,
        }
    }
}

/// Unmounts; `lazy` detaches it at once, even if in use.
pub fn detach(dir: &Path, lazy: bool) -> Result<(), Stuck> {
    let flags = if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(dir, flags | UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(Stuck::Busy),
        Err(Errno::PERM) => detach_by_helper(dir, lazy),
        Err(source) => Err(Stuck::Other(Error::Kernel { doing: shown(dir), source })),
    }
}

/// How long [`detach_when_free`] tries: the last file may be about to be closed, and between fork
/// and exec a child process holds its parent's files.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two attempts.
pub const PAUSE: Duration = Duration::from_millis(20);

/// Unmounts, and waits a moment for those who still use it.
///
/// # Errors
/// It is still in use; see [`busy`](super::busy). Those of the unmount.
pub fn detach_when_free(dir: &Path) -> Result<()> {
    let since = Instant::now();
    loop {
        match detach(dir, false) {
            Ok(()) => return Ok(()),
            Err(Stuck::Busy) if since.elapsed() < PATIENCE => thread::sleep(PAUSE),
            Err(stuck) => return Err(stuck.error(dir)),
        }
    }
}

fn detach_by_helper(dir: &Path, lazy: bool) -> Result<(), Stuck> {
    let mut helper = helper();
    helper.arg("-u").args(lazy.then_some("-z")).arg("--").arg(dir);
    let output = helper.output().map_err(|error| Stuck::Other(no_helper(error)))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("busy") {
        return Err(Stuck::Busy);
    }
    let said = said.trim().to_owned();
    Err(Stuck::Other(MountFault::NotUnmounted { dir: dir.to_owned(), said }.into()))
}

fn shown(dir: &Path) -> String {
    format!("unmounting {}", dir.display())
}

/// Raises the kernel's read-ahead to what one request carries, and limits its dirty data to what
/// suits a file system of this kind (newer kernels do not do so by themselves). Without the
/// permission the system's values stay.
///
/// The device number comes from the list of mounts. Asking the directory would send a request to
/// this very process: if killed before it answers, the process would wait for itself, and not even
/// `kill -9` would end it.
pub fn tune(dir: &Path) {
    let Ok(Some(mount)) = mounted_on(dir) else { return };
    let set = |knob: &str, value: u32| {
        let path = format!("/sys/class/bdi/{}/{knob}", mount.device);
        let _ = std::fs::write(path, value.to_string());
    };
    set("read_ahead_kb", crate::fuse::MAX_IO >> 10);
    set("max_ratio", 1);
    set("strict_limit", 1);
}

/// One line of the system's list of mounts.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    kind: Vec<u8>,
    /// Its device numbers, as `0:40`.
    device: String,
}

/// Whether a volume is mounted on a directory, given by its full name.
///
/// # Errors
/// The list of mounts cannot be read.
pub fn is_mounted(dir: &Path) -> Result<bool> {
    Ok(mounted_on(dir)?.is_some_and(|mount| mount.kind == KIND))
}

/// The topmost mount at a directory.
fn mounted_on(dir: &Path) -> Result<Option<Mount>> {
    let list = std::fs::read("/proc/self/mountinfo").doing("reading the list of mounts")?;
    Ok(find_mount(&list, dir.as_os_str()))
}

fn find_mount(list: &[u8], dir: &OsStr) -> Option<Mount> {
    use std::os::unix::ffi::OsStrExt;
    let mut found = None;
    for line in list.split(|&byte| byte == b'\n') {
        let mut words = line.split(|&byte| byte == b' ');
        let (Some(device), Some(at)) = (words.nth(2), words.nth(1)) else { continue };
        if unescape(at) == dir.as_bytes() {
            let kind = words.skip_while(|word| *word != b"-").nth(1);
            let device = String::from_utf8_lossy(device).into_owned();
            found = kind.map(|kind| Mount { kind: kind.to_vec(), device });
        }
    }
    found
}

/// The kernel writes a space and similar bytes as a backslash and three octal digits.
fn unescape(word: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::with_capacity(word.len()), word);
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        out.push(code.unwrap_or(byte));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_understood() {
        let device = "fusermount3: failed to open /dev/fuse: Permission denied";
        assert_eq!(meaning(device, false), MountRefusal::Device);
        let withheld = "/dev/fuse: Operation not permitted (os error 1)";
        assert_eq!(meaning(withheld, true), MountRefusal::Device);
        assert_eq!(meaning("Operation not permitted (os error 1)", true), MountRefusal::Device);
        let module = "fuse: device not found, try 'modprobe fuse' first";
        assert_eq!(meaning(module, false), MountRefusal::NoModule);
        let directory = "fusermount3: user has no write access to mountpoint /m: Permission denied";
        assert_eq!(meaning(directory, false), MountRefusal::Directory);
    }

    #[test]
    fn mounts_are_found_by_their_directory() {
        let list = b"22 1 0:20 / /a rw - ext4 /dev/x rw\n\
                     30 22 0:40 / /a/b\\040c rw,noatime shared:1 - fuse.oblivio /v rw\n";
        let found =
            |dir: &str| find_mount(list, OsStr::new(dir)).map(|mount| (mount.kind, mount.device));
        assert_eq!(found("/a/b c"), Some((b"fuse.oblivio".to_vec(), "0:40".to_owned())));
        assert_eq!(found("/a"), Some((b"ext4".to_vec(), "0:20".to_owned())));
        assert_eq!(found("/a/b"), None);
    }
}
