//! A volume as a disk.

use super::serve::ServeArgs;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// Serve a volume that holds a disk to any NBD client
#[derive(Args, Clone, Debug)]
#[command(
    group = ArgGroup::new("place").required(true).args(["socket", "listen"]),
    after_help = "\
Examples:
  oblivio init --disk 20G ~/disk
  oblivio nbd ~/disk --socket ~/disk.sock         until Ctrl-C
  oblivio nbd -b ~/disk --listen 127.0.0.1:10809  in the background, until it gets SIGTERM
  oblivio nbd share://nas:7420/disk --socket ~/disk.sock   a disk at a server
  nbdcopy image.raw 'nbd+unix:///?socket=disk.sock'
  qemu-system-x86_64 -drive file='nbd:unix:disk.sock',format=raw

What a client flushes is safe; everything else is committed every few seconds and at the end. The
connection itself is encrypted with --tls-cert only. docs/nbd.md tells how to make certificates, and
how to use the disk with qemu, nbdfuse and nbd-client."
)]
pub struct NbdArgs {
    /// Serve on a new Unix socket at this path, for this user alone
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Serve on this address and port of this computer, as in 127.0.0.1:10809 or [::1]:10809
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Listen on an address that others can reach: anyone who gets there reads and writes the disk,
    /// and the network sees it all
    #[arg(long)]
    pub insecure: bool,
    /// Accept clients by TLS only, with the certificate in this PEM file; intermediate authorities
    /// follow it there
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "insecure")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file without a passphrase
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Accept only clients with a certificate by an authority in this PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// Accept any client that speaks TLS, on an address that others can reach: anyone who gets
    /// there reads and writes the disk
    #[arg(long, requires = "tls_cert", conflicts_with = "tls_client_ca")]
    pub any_client: bool,
    #[command(flatten)]
    pub serve: ServeArgs,
}
