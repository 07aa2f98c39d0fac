//! Servers that speak like S3.

use super::server::{Folder, Server, Skip, find_program, free_port};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

/// The programs that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum S3Kind {
    /// `versitygw`, over a folder.
    VersityGw,
    /// `moto_server`, in memory.
    Moto,
    /// `minio`.
    Minio,
}

impl S3Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::VersityGw, Self::Moto, Self::Minio];
}

/// A server with one bucket.
#[derive(Debug)]
pub struct S3Rig {
    /// The server.
    pub server: Server,
}

impl S3Rig {
    /// The bucket's name.
    pub const BUCKET: &'static str = "rig-bucket";
    /// The id of the one access key.
    pub const KEY_ID: &'static str = "rigkey";
    /// The key.
    pub const SECRET: &'static str = "canary-s3-secret";

    /// Starts a server.
    ///
    /// # Errors
    /// When the program is not there, or does not serve.
    pub fn start(kind: S3Kind) -> Result<Self, Skip> {
        let (folder, port) = (Folder::new()?, free_port()?);
        let address = format!("127.0.0.1:{port}");
        let data = folder.path().join("data");
        fs::create_dir_all(data.join(Self::BUCKET))?;
        let mut command = match kind {
            S3Kind::VersityGw => {
                let mut command = Command::new(find_program("versitygw")?);
                command.args(["--port", &address, "posix"]).arg(&data);
                command.env("ROOT_ACCESS_KEY", Self::KEY_ID).env("ROOT_SECRET_KEY", Self::SECRET);
                command
            }
            S3Kind::Moto => {
                let mut command = Command::new(find_program("moto_server")?);
                command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
                command
            }
            S3Kind::Minio => {
                let mut command = Command::new(find_program("minio")?);
                command.args(["server", "--address", &address]).arg(&data);
                command.env("MINIO_ROOT_USER", Self::KEY_ID);
                command.env("MINIO_ROOT_PASSWORD", Self::SECRET);
                command
            }
        };
        let server = Server::start(&mut command, port, folder)?;
        if kind == S3Kind::Moto {
            // It has no folder, and takes any signature or none.
            make_bucket(&server)?;
        }
        Ok(Self { server })
    }

    /// The URL of a folder in the bucket.
    #[must_use]
    pub fn url(&self, folder: &str) -> String {
        self.url_through(self.server.address, folder)
    }

    /// The same, through a network at another address.
    #[must_use]
    pub fn url_through(&self, address: SocketAddr, folder: &str) -> String {
        format!("s3://{}/{folder}?endpoint=http://{address}&region=us-east-1", Self::BUCKET)
    }
}

fn make_bucket(server: &Server) -> Result<(), Skip> {
    let mut line = TcpStream::connect(server.address)?;
    let (bucket, address) = (S3Rig::BUCKET, server.address);
    write!(
        line,
        "PUT /{bucket} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    line.read_to_string(&mut answer)?;
    let done = answer.starts_with("HTTP/1.1 200");
    done.then_some(()).ok_or_else(|| Skip(format!("no bucket: {answer}")))
}
