//! The server of volumes of many clients.

use crate::human::parse_size;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Serve volumes of many clients, which this computer cannot read
#[derive(Debug, Subcommand)]
pub enum ShareCommand {
    /// Serve a folder of such volumes, until SIGTERM or Ctrl-C
    #[command(after_help = "\
Examples:
  oblivio share serve /srv/share --listen 0.0.0.0:7420 --volume team
  oblivio share token add /srv/share team anna --host nas.example.org > anna.token
  oblivio share serve /srv/big --listen 0.0.0.0:7420 --volume team --tables s3://bucket/big

The server has no key: all that it stores is sealed by its clients. At its first start it makes a
certificate; clients know it by the fingerprint in their tokens. docs/share-server.md has the rest.")]
    Serve(ShareServe),
    /// Say which devices are admitted
    #[command(subcommand)]
    Token(TokenCommand),
    /// Limit the bytes that a volume may take
    #[command(after_help = "\
Examples:
  oblivio share quota /srv/share team 200G
  oblivio share quota /srv/share team none

What is shown to the server when the limit is reached is still ended in order, with 64 MiB at most.")]
    Quota(ShareQuota),
    /// Show the clients, the scribe and the space of each volume
    #[command(after_help = "\
Examples:
  oblivio share status /srv/share
  oblivio share status --watch /srv/share
  oblivio share status --json /srv/share")]
    Status(ShareStatus),
}

/// Devices.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Admit a device: prints its token, one line that is a secret
    #[command(after_help = "\
Examples:
  oblivio share token add /srv/share team anna --host nas.example.org > anna.token
  oblivio share token add /srv/share team anna --host nas.example.org:443 --out anna.token

The server keeps a hash of it only: a token that is lost is revoked, and another one made.")]
    Add(TokenAdd),
    /// List the devices
    #[command(after_help = "\
Example:
  oblivio share token list /srv/share")]
    List(TokenList),
    /// Do not admit a device any more, and end its connections at once
    #[command(after_help = "\
Example:
  oblivio share token revoke /srv/share team anna

Who has a token may use the server; who has the volume's passphrase may read it. A device that knew
both still knows the passphrase.")]
    Revoke(TokenRevoke),
}

#[derive(Args, Debug)]
pub struct ShareServe {
    /// The server's folder; it is made at the first start
    pub folder: PathBuf,
    /// The address and port of this computer to serve on
    #[arg(long, value_name = "ADDR")]
    pub listen: String,
    /// Serve a volume of this name, empty at first; give it several times for several
    #[arg(long, value_name = "NAME")]
    pub volume: Vec<String>,
    /// Keep the tables of all volumes, nearly all of their bytes, at this URL or in this folder,
    /// and everything small in the server's folder; from the first start on, or never
    #[arg(long, value_name = "URL")]
    pub tables: Option<PathBuf>,
    /// Serve this volume even if tables of it are missing or cut, or old records that only answers
    /// are read from; what they held is then lost for good, and clients learn of each block
    #[arg(long, value_name = "NAME")]
    pub damaged: Vec<String>,
}

#[derive(Args, Debug)]
pub struct TokenAdd {
    /// The server's folder
    pub folder: PathBuf,
    /// The volume's name
    pub volume: String,
    /// A name for the device
    pub device: String,
    /// The name under which clients reach the server, with the port if it
    /// is not the one on which the server listens
    #[arg(long, value_name = "HOST[:PORT]")]
    pub host: String,
    /// Write the token to this new file, for this user alone, in place of standard output
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct TokenList {
    /// The server's folder
    pub folder: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct TokenRevoke {
    /// The server's folder
    pub folder: PathBuf,
    /// The volume's name
    pub volume: String,
    /// The device's name
    pub device: String,
}

#[derive(Args, Debug)]
pub struct ShareQuota {
    /// The server's folder
    pub folder: PathBuf,
    /// The volume's name
    pub volume: String,
    /// The most bytes, as in 200G, or `none`
    #[arg(value_parser = parse_quota)]
    pub quota: Quota,
}

/// A limit in bytes, or none.
#[derive(Clone, Copy, Debug)]
pub struct Quota(pub Option<u64>);

fn parse_quota(text: &str) -> Result<Quota, String> {
    if text == "none" { Ok(Quota(None)) } else { parse_size(text).map(|bytes| Quota(Some(bytes))) }
}

#[derive(Args, Debug)]
pub struct ShareStatus {
    /// The server's folder
    pub folder: PathBuf,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Again every second, until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}
