//! Places with names, and how to get at them.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Keep names and secrets for stores on a network
#[derive(Debug, Subcommand)]
pub enum RemoteCommand {
    List(RemoteList),
    Test(RemoteTest),
    Add(RemoteAdd),
    Remove(RemoteRemove),
    ImportRclone(RemoteImport),
}

/// List the remotes: names, URLs, where each secret comes from, and never a secret
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio remote list
  oblivio remote list --json")]
pub struct RemoteList {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Try out what a store really does, as `oblivio init` does
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio remote test cloud
  oblivio remote test 's3://bucket/vault?region=eu-central-1'

Races, lists and speed; it leaves nothing behind. Ends with 13 if the store cannot hold a volume.")]
pub struct RemoteTest {
    /// A remote's name, with or without a folder in it, or a URL
    #[arg(value_name = "NAME-OR-URL")]
    pub place: String,
    /// Try it with fewer bytes, over a slow or dear line (and with
    /// fewer races, if you say how many: then a store that lets two win may pass)
    #[arg(long, value_name = "RACES", num_args = 0..=1, require_equals = true, default_missing_value = "25")]
    pub small_probe: Option<usize>,
}

/// Give a place on a network a name, and keep its secret or log on to it
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio remote add cloud webdavs://cloud.example.org/dav --user me     asks for the password
  oblivio remote add cloud webdavs://cloud.example.org/dav --user me --keyring
  oblivio remote add work s3://bucket --user KEY_ID --secret-command 'pass show work'
  oblivio remote add drop dropbox:/ --client-id ID                       opens a page to log on

Then `cloud:vault` is a place for a volume. The secret is never an argument: it is asked for, or read
from a file or what a command prints. Dropbox, Google Drive and OneDrive want the id of a program
that is registered with them; docs/online.md shows how to register one of your own.")]
pub struct RemoteAdd {
    /// The name: 2 to 32 letters, digits, dashes and underscores
    pub name: String,
    /// Where it is
    pub url: String,
    /// The user, or the id of the access key
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// The file that holds the secret; with --keyring it is copied from there
    #[arg(long, value_name = "FILE", conflicts_with_all = ["secret_command", "no_secret"])]
    pub secret_file: Option<PathBuf>,
    /// A command that prints the secret whenever it is needed
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["keyring", "no_secret"])]
    pub secret_command: Option<String>,
    /// Keep the secret in the keyring of the desktop
    #[arg(long, conflicts_with = "no_secret")]
    pub keyring: bool,
    /// It needs no secret, or has it from the environment
    #[arg(long)]
    pub no_secret: bool,
    /// webdav:// may send the password for all on the way to read
    #[arg(long)]
    pub plain: bool,
    /// To log on: the id of your program at the service
    #[arg(long, value_name = "ID")]
    pub client_id: Option<String>,
    /// To log on: the file with that program's secret, which Google wants
    #[arg(long, value_name = "FILE", requires = "client_id")]
    pub client_secret_file: Option<PathBuf>,
    /// To log on: the port of this computer at which the browser comes back
    #[arg(long, value_name = "PORT", default_value_t = 7422, hide_short_help = true)]
    pub port: u16,
}

/// Forget a remote, and its secret if `oblivio remote add` keeps it
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio remote remove cloud

What is stored there stays. An account's page of connected programs ends what a log-on allowed.")]
pub struct RemoteRemove {
    /// The name
    pub name: String,
}

/// Take over a remote from rclone's file
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  oblivio remote import-rclone cloud
  oblivio remote import-rclone cloud:vaults --as home --keyring
  oblivio remote import-rclone work:bucket/folder

Works for s3, b2, webdav and sftp; for dropbox, drive and onedrive if rclone has a client_id of
yours. Otherwise log on with `oblivio remote add`: a log-on belongs to the program that it was for.")]
pub struct RemoteImport {
    /// The name that it has there, and a path in it: a bucket first, for s3 and b2
    #[arg(value_name = "NAME[:PATH]")]
    pub name: String,
    /// The region of a bucket of b2, as its endpoint has it: us-west-004
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// rclone's file [default: ~/.config/rclone/rclone.conf]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The name that it gets here [default: the same]
    #[arg(long = "as", value_name = "NAME")]
    pub new_name: Option<String>,
    /// Keep the secret in the keyring of the desktop
    #[arg(long)]
    pub keyring: bool,
}
