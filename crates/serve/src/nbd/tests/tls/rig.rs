//! A disk in memory behind TLS, and its clients.

use super::super::super::certificates;
use super::super::super::listen::{ListenPlace, Listener};
use super::super::super::request::OnDiskRequest;
use super::super::super::server::DiskOptions;
use super::super::super::session::{DiskServing, serve};
use super::super::super::wire::{option as opt, reply};
use super::super::authority::{Authority, Identity};
use super::super::{disk, option, request};
use crate::queue::Pulse;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
    SupportedProtocolVersion,
};
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(super) type Secure = StreamOwned<ClientConnection, UnixStream>;

/// The client's flags: fixed newstyle, no zeros.
pub(super) const FLAGS: [u8; 4] = [0, 0, 0, 3];
pub(super) const GREETING: usize = 18;
/// Longer than any step takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Writes a file that only this user can read.
pub(super) fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("our file");
    path
}

pub(super) fn server_config(
    authority: &Authority,
    clients: Option<&Authority>,
) -> Arc<ServerConfig> {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write(dir.path(), name, text);
    let Identity { cert, key } = authority.server();
    let (cert, key) = (write("cert", &cert), write("key", &key));
    let clients = clients.map(|clients| write("clients", &clients.pem));
    certificates::config(&cert, &key, clients.as_deref()).expect("good files")
}

/// A disk in memory behind TLS, at a socket: what it does is the same as at an address.
pub(super) struct Rig {
    dir: TempDir,
    pub(super) serving: Option<DiskServing>,
    /// Requests that it took.
    taken: Arc<AtomicUsize>,
}

impl Rig {
    pub(super) fn new(config: Arc<ServerConfig>) -> Self {
        Self::on(|listener| listener.with_tls(config))
    }

    /// Without TLS.
    pub(super) fn plain() -> Self {
        Self::on(|listener| listener)
    }

    fn on(with: impl FnOnce(Listener) -> Listener) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let place = ListenPlace::socket(&dir.path().join("socket")).expect("a free name");
        let listener = with(Listener::open(&place).expect("a socket"));
        let taken = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&taken);
        let on_request: OnDiskRequest = Arc::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let options = DiskOptions {
            read_only: false,
            commit_every: Duration::from_secs(3600),
            paced: false,
            timeout: Duration::from_secs(3600),
            on_request: Some(on_request),
            pulse: Pulse::default(),
        };
        let serving = serve(disk().0, Vec::new(), listener, options).expect("threads");
        Rig { dir, serving: Some(serving), taken }
    }

    /// Waits until it has taken this number of requests.
    pub(super) fn takes(&self, requests: usize) {
        let begun = Instant::now();
        while self.taken.load(Ordering::SeqCst) < requests {
            assert!(begun.elapsed() < PATIENCE, "requests are not taken");
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.dir.path().join("socket")).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A connection on which TLS may begin.
    pub(super) fn at_tls(&self) -> UnixStream {
        let mut stream = self.connect();
        stream.read_exact(&mut [0; GREETING]).expect("a greeting");
        stream.write_all(&[&FLAGS[..], &option(opt::STARTTLS, &[])].concat()).expect("it reads");
        assert_eq!(option_reply(&mut stream).expect("a reply"), (opt::STARTTLS, reply::ACK));
        stream
    }

    pub(super) fn secure(&self, config: Arc<ClientConfig>) -> Secure {
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(config, name).expect("a client");
        StreamOwned::new(tls, self.at_tls())
    }

    /// In transmission.
    pub(super) fn client(&self, config: Arc<ClientConfig>) -> Secure {
        let mut stream = self.secure(config);
        go(&mut stream).expect("it is let in");
        stream
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let serving = self.serving.take().expect("once");
        let ending = serving.ending();
        ending.begin();
        ending.leave_clients();
        ending.queues.close();
        let ended = serving.wait();
        assert!(ended.is_ok() || thread::panicking(), "{ended:?}");
    }
}

pub(super) fn client_config(trusted: &Authority, own: Option<&Identity>) -> Arc<ClientConfig> {
    client_of(rustls::DEFAULT_VERSIONS, trusted, own)
}

pub(super) fn client_of(
    versions: &[&'static SupportedProtocolVersion],
    trusted: &Authority,
    own: Option<&Identity>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let cert = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
    roots.add(cert(&trusted.pem)).expect("an authority");
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions")
        .with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).expect("a key");
            builder.with_client_auth_cert(vec![cert(&own.cert)], key).expect("they match")
        }
    };
    Arc::new(config)
}

/// The option and kind of a reply.
pub(super) fn option_reply(stream: &mut impl Read) -> io::Result<(u32, u32)> {
    let mut head = [0; 20];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four bytes"));
    io::copy(&mut stream.take(word(16).into()), &mut io::sink())?;
    Ok((word(8), word(12)))
}

/// Chooses the disk.
pub(super) fn go(stream: &mut (impl Read + Write)) -> io::Result<()> {
    stream.write_all(&option(opt::GO, &[0; 6]))?;
    while option_reply(stream)? != (opt::GO, reply::ACK) {}
    Ok(())
}

pub(super) fn ask(stream: &mut impl Write, command: u16, offset: u64, len: u32, data: &[u8]) {
    let all = [&request(0, command, 7, offset, len)[..], data].concat();
    stream.write_all(&all).expect("the server reads");
}

/// Reads a simple reply and the data of a read.
pub(super) fn answer(stream: &mut impl Read, len: usize) -> Vec<u8> {
    let mut reply = vec![0; 16 + len];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[4..8], [0; 4], "no error");
    reply.split_off(16)
}

pub(super) fn noise(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 11) as u8).collect()
}
