//! Codes and advice for what servers report.

use super::code::Code;
use oblivio_serve::mount::{MountFault as Mount, MountRefusal};
use oblivio_serve::nbd::{DiskFault as Nbd, TlsFault as Tls};
#[cfg(all(feature = "ublk", target_os = "linux"))]
use oblivio_serve::ublk::UblkFault as Ublk;
use oblivio_serve::watch::WatchFault as Watch;
use oblivio_serve::{Error, Unsafe};
use rustix::io::Errno;

/// The code and the advice; `None` where the cause of the error decides.
pub(super) fn judge(error: &Error) -> Option<(Code, String)> {
    let judged = match error {
        Error::GivenUp(Unsafe::Uncommitted) => (Code::General, "What was synced before is safe."),
        Error::GivenUp(Unsafe::Unflushed) => (Code::General, "What was flushed before is safe."),
        Error::NotCarried(_) => {
            (Code::General, "All else is safe. `oblivio umount` waits for such writes.")
        }
        Error::Mount(fault) => mount(fault),
        Error::Nbd(fault) => nbd(fault),
        Error::Tls(fault) => tls(fault)?,
        #[cfg(all(feature = "ublk", target_os = "linux"))]
        Error::Ublk(fault) => ublk(fault),
        Error::Watch(Watch::OpenFolder(folder)) => {
            return Some((Code::General, format!("Run: chmod 700 {}", folder.display())));
        }
        Error::Watch(fault) => watch(fault),
        Error::Volume(_)
        | Error::System { .. }
        | Error::Kernel { .. }
        | Error::Panicked(_)
        | Error::Ended { .. } => return None,
    };
    Some((judged.0, judged.1.into()))
}

const INSTALL: &str = "Install FUSE (Debian, Ubuntu, Fedora: the package fuse3) and load its kernel \
                       module: modprobe fuse.";

fn mount(fault: &Mount) -> (Code, &'static str) {
    match fault {
        Mount::NoFuse(_) | Mount::NoHelper => (Code::General, INSTALL),
        Mount::Refused { why, .. } => (Code::General, refused(*why)),
        Mount::NotUnmounted { .. } => {
            (Code::General, "Unmount as the user who mounted, or as root.")
        }
        Mount::NotChanged { error: Errno::BUSY, .. } => {
            (Code::General, "Files are open for writing there. Close them first.")
        }
        Mount::NotChanged { error: Errno::PERM, .. } => {
            (Code::General, "Only root may change a mount.")
        }
        Mount::NotChanged { .. } => (Code::General, ""),
        Mount::NotMounted(_) => (Code::Path, "`findmnt -t fuse.oblivio` lists what is."),
        Mount::InUse { .. } => {
            (Code::Busy, "Close those files and leave the directory, or detach it with --lazy.")
        }
        Mount::NotSynced { .. } => {
            (Code::General, "Nothing was unmounted. Try again, or give it up with --lazy.")
        }
    }
}

fn refused(why: MountRefusal) -> &'static str {
    match why {
        MountRefusal::OtherUsers => {
            "Leave out --allow-other, or let root add the line user_allow_other to /etc/fuse.conf."
        }
        MountRefusal::NoModule => INSTALL,
        MountRefusal::Device => {
            "Root decides who may use /dev/fuse. A container needs the device and the right to \
             mount: --device /dev/fuse --cap-add SYS_ADMIN. Elsewhere let root \
             look at the device: ls -l /dev/fuse (usual is crw-rw-rw-)."
        }
        MountRefusal::Directory => "Mount on a directory that is yours.",
        MountRefusal::Unknown => "",
    }
}

fn nbd(fault: &Nbd) -> (Code, &'static str) {
    match fault {
        Nbd::Occupied(_) => (Code::Path, "Choose another path; it was left as it is."),
        Nbd::Served(_) => (Code::Busy, "Choose another path, or end that server."),
        Nbd::NoFolder(_) => (Code::Path, "Make it first, or choose another path."),
        Nbd::NoAddress(_) => (Code::Usage, "Write it as 127.0.0.1:10809 or [::1]:10809."),
        Nbd::Exposed { encrypted: true, .. } => (
            Code::Usage,
            "The connection is encrypted, but whoever reaches it has the disk. Say who may come \
             in (--tls-client-ca FILE), or that anybody may (--any-client).",
        ),
        Nbd::Exposed { encrypted: false, .. } => (
            Code::Usage,
            "The connection is not encrypted, and whoever reaches it has the disk. Use TLS \
             (--tls-cert, --tls-key, --tls-client-ca), or listen on 127.0.0.1 and let others in \
             through a tunnel (ssh -L, WireGuard), or say --insecure.",
        ),
        Nbd::AddressInUse(_) => (Code::Busy, "Choose another port, or end what uses it."),
    }
}

fn tls(fault: &Tls) -> Option<(Code, &'static str)> {
    let hint = match fault {
        Tls::Mismatch { .. } => {
            "The first certificate of --tls-cert is the server's own; its authorities follow it."
        }
        Tls::Unfit { .. } => "docs/nbd.md has commands that make certificates.",
        Tls::NoCertificate(_) => {
            "A certificate in the PEM form begins with -----BEGIN CERTIFICATE-----."
        }
        Tls::NoKey(_) => "A private key in the PEM form begins with -----BEGIN PRIVATE KEY-----.",
        Tls::LockedKey(_) => "`openssl pkey -in KEY -out PLAIN` writes it without one.",
        Tls::Library(_) => return None,
    };
    Some((Code::Usage, hint))
}

#[cfg(all(feature = "ublk", target_os = "linux"))]
fn ublk(fault: &Ublk) -> (Code, &'static str) {
    match fault {
        Ublk::NoDriver => (
            Code::General,
            "Load the driver: modprobe ublk_drv. It comes with Linux 6.0 and later where \
             CONFIG_BLK_DEV_UBLK is set; elsewhere serve the disk with `oblivio nbd`.",
        ),
        Ublk::Forbidden(_) => (
            Code::General,
            "Run it as root. If you are root, io_uring is switched off: see \
             /proc/sys/kernel/io_uring_disabled.",
        ),
        Ublk::NoAnswers(_) => (Code::General, ""),
        Ublk::BlockSize => (Code::Usage, "Use 512 to 4096."),
        Ublk::Uneven(_) => (Code::Usage, "Use a smaller --block-size, or none."),
    }
}

fn watch(fault: &Watch) -> (Code, &'static str) {
    match fault {
        Watch::OpenFolder(_) => (Code::General, ""),
        Watch::NoSocket { .. } => {
            (Code::General, "If the path is very long, set XDG_RUNTIME_DIR to a short one.")
        }
        Watch::Watched => (Code::Busy, "Its page is where that command said; or stop it first."),
    }
}

#[cfg(test)]
mod tests {
    use crate::exit::{Code, judge, line};
    use anyhow::Error;
    use oblivio_serve::watch::WatchFault;
    use oblivio_serve::{Error as ServeError, Unsafe};
    use std::io;

    #[test]
    fn the_cause_decides_where_the_server_only_adds_words() {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        let system = ServeError::System { doing: "listening".into(), source };
        let (lost, source) = (Unsafe::Unflushed, Box::new(system));
        let error = ServeError::Ended { what: "the server", lost, source };
        let error = Error::new(error);
        assert_eq!(judge(&error).0, Code::Full);
        let said = line(&error);
        assert!(
            said.starts_with("the server ended, and what was not flushed is lost: listening: ")
        );
        let watched = Error::new(ServeError::from(WatchFault::Watched));
        assert_eq!(judge(&watched).0, Code::Busy);
    }
}
