//! Servers that speak WebDAV.

use super::server::{Folder, Server, Skip, find_program, free_port};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebDavKind {
    /// `apache2`, with a user and password.
    Apache,
    /// `wsgidav`, without.
    WsgiDav,
    /// `rclone serve webdav`, with a user and password.
    Rclone,
}

impl WebDavKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Apache, Self::WsgiDav, Self::Rclone];
}

/// A server with an empty folder.
#[derive(Debug)]
pub struct WebDavRig {
    /// The server.
    pub server: Server,
    /// Whether it wants [`Self::USER`] and [`Self::PASSWORD`].
    pub has_user: bool,
}

/// The password as Apache keeps it: SHA-1, in base64.
const APACHE_PASSWORD: &str = "{SHA}Qk9kTgPtilZ9oo9TE7z62q85XUU=";

const APACHE_MODULES: [&str; 8] = [
    "mpm_event",
    "auth_basic",
    "authn_core",
    "authn_file",
    "authz_core",
    "authz_user",
    "dav",
    "dav_fs",
];

impl WebDavRig {
    /// The user.
    pub const USER: &'static str = "alice";
    /// The password.
    pub const PASSWORD: &'static str = "canary-dav-secret";

    /// Starts a server.
    ///
    /// # Errors
    /// When the program is not there, or does not serve.
    pub fn start(kind: WebDavKind) -> Result<Self, Skip> {
        let (folder, port) = (Folder::new()?, free_port()?);
        let data = folder.path().join("data");
        fs::create_dir(&data)?;
        let mut command = match kind {
            WebDavKind::Apache => apache(folder.path(), &data, port)?,
            WebDavKind::WsgiDav => {
                let mut command = Command::new(find_program("wsgidav")?);
                command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
                command.args(["--auth", "anonymous", "--root"]).arg(&data);
                command
            }
            WebDavKind::Rclone => {
                let mut command = Command::new(find_program("rclone")?);
                command.args(["serve", "webdav", "--addr", &format!("127.0.0.1:{port}")]);
                command.args(["--user", Self::USER]).arg(&data);
                command.env("RCLONE_PASS", Self::PASSWORD);
                command
            }
        };
        let server = Server::start(&mut command, port, folder)?;
        Ok(Self { server, has_user: kind != WebDavKind::WsgiDav })
    }

    /// The URL of a folder.
    #[must_use]
    pub fn url(&self, folder: &str) -> String {
        format!("webdav://{}/{folder}", self.server.address)
    }
}

fn apache_modules() -> Result<PathBuf, Skip> {
    let places = ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules"].map(PathBuf::from);
    let found = places.into_iter().find(|dir| dir.join("mod_dav_fs.so").is_file());
    found.ok_or_else(|| Skip("Apache's module mod_dav_fs is not installed".to_owned()))
}

fn apache(folder: &Path, data: &Path, port: u16) -> Result<Command, Skip> {
    let program = find_program("apache2").or_else(|_| find_program("httpd"))?;
    let modules = apache_modules()?;
    let locks = folder.join("locks");
    fs::create_dir(&locks)?;
    // Started by root, it serves as nobody.
    for dir in [data, &locks] {
        fs::set_permissions(dir, Permissions::from_mode(0o777))?;
    }
    let mut config = String::new();
    for name in APACHE_MODULES {
        config += &format!("LoadModule {name}_module {}/mod_{name}.so\n", modules.display());
    }
    let (root, data) = (folder.display(), data.display());
    config += &format!(
        "ServerRoot {root}\nServerName localhost\nListen 127.0.0.1:{port}\nPidFile {root}/pid\n\
         ErrorLog {root}/errors\nUser nobody\nGroup nogroup\nDocumentRoot {data}\n\
         DavLockDB {locks}/dav\nKeepAlive On\nMaxKeepAliveRequests 0\n<Directory {data}>\nDav On\n\
         AuthType Basic\nAuthName rig\nAuthUserFile {root}/users\nRequire valid-user\n\
         </Directory>\n",
        locks = locks.display()
    );
    fs::write(folder.join("config"), config)?;
    fs::write(folder.join("users"), format!("{}:{APACHE_PASSWORD}\n", WebDavRig::USER))?;
    let mut command = Command::new(program);
    command.arg("-f").arg(folder.join("config")).arg("-DFOREGROUND");
    Ok(command)
}
