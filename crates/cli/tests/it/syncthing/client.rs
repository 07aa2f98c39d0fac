//! Two instances of Syncthing that share a folder over the loopback address: without discovery,
//! without relays, and scanning only when they are told to.

use oblivio_testkit::rigs::find_program;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const API_KEY: &str = "tests";
/// How long a step may take on a busy computer.
const PATIENCE: Duration = Duration::from_secs(120);

/// One instance. It ends with this value.
pub struct Client {
    child: Child,
    port: u16,
    id: String,
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    listener.local_addr().expect("bound").port()
}

/// Two instances with a copy each of a folder; `None` where Syncthing is not installed.
pub fn pair(place: &Path) -> Option<([Client; 2], [PathBuf; 2])> {
    let program = find_program("syncthing").map_err(|skip| eprintln!("skipped: {skip}")).ok()?;
    let homes = ["one", "two"].map(|name| place.join(format!("syncthing-{name}")));
    let folders = ["one", "two"].map(|name| place.join(name).join("synced"));
    let ids = homes.each_ref().map(|home| made(&program, home));
    let (ports, guis) = ([free_port(), free_port()], [free_port(), free_port()]);
    let clients = [0, 1].map(|at| {
        std::fs::create_dir_all(folders[at].join(".stfolder")).expect("a folder");
        let text = config(&ids, ports, (at, guis[at]), &folders[at]);
        std::fs::write(homes[at].join("config.xml"), text).expect("its configuration");
        let child = Command::new(&program)
            .args(["serve", "--no-browser", "--no-restart", "--no-upgrade", "--home"])
            .arg(&homes[at])
            .env("HOME", &homes[at])
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(homes[at].join("said")).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Client { child, port: guis[at], id: ids[at].clone() }
    });
    Some((clients, folders))
}

/// Makes an identity; gives its name.
fn made(program: &Path, home: &Path) -> String {
    let run = |args: &[&str]| {
        let mut command = Command::new(program);
        let output = command.args(args).arg("--home").arg(home).env("HOME", home).output();
        String::from_utf8(output.expect("it runs").stdout).expect("text")
    };
    run(&["generate", "--no-default-folder"]);
    run(&["--device-id"]).trim().to_owned()
}

fn config(ids: &[String; 2], ports: [u16; 2], own: (usize, u16), folder: &Path) -> String {
    let (at, gui) = own;
    let device = |of: usize| {
        let (id, port) = (&ids[of], ports[of]);
        format!(r#"<device id="{id}"><address>tcp://127.0.0.1:{port}</address></device>"#)
    };
    let members = ids.each_ref().map(|id| format!(r#"<device id="{id}"></device>"#)).concat();
    format!(
        r#"<configuration version="36">
<folder id="f" path="{}" type="sendreceive" rescanIntervalS="0" fsWatcherEnabled="false">{members}</folder>
{}{}
<gui enabled="true" tls="false"><address>127.0.0.1:{gui}</address><apikey>{API_KEY}</apikey></gui>
<options>
<listenAddress>tcp://127.0.0.1:{}</listenAddress>
<globalAnnounceEnabled>false</globalAnnounceEnabled>
<localAnnounceEnabled>false</localAnnounceEnabled>
<relaysEnabled>false</relaysEnabled>
<natEnabled>false</natEnabled>
<startBrowser>false</startBrowser>
<urAccepted>-1</urAccepted>
<autoUpgradeIntervalH>0</autoUpgradeIntervalH>
<crashReportingEnabled>false</crashReportingEnabled>
<stunKeepaliveStartS>0</stunKeepaliveStartS>
<reconnectionIntervalS>1</reconnectionIntervalS>
<setLowPriority>false</setLowPriority>
</options>
</configuration>"#,
        folder.display(),
        device(0),
        device(1),
        ports[at]
    )
}

impl Client {
    fn ask(&self, method: &str, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nX-API-Key: {API_KEY}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    /// Bytes that it has sent to the other one, whatever they were.
    pub fn sent(&self) -> u64 {
        let body = self.ask("GET", "/rest/system/connections").expect("it answers");
        let value: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        value["total"]["outBytesTotal"].as_u64().expect("a number")
    }

    /// Looks for what changed in its copy.
    fn scan(&self) -> bool {
        self.ask("POST", "/rest/db/scan?folder=f").is_some()
    }

    /// Whether it knows of nothing that it, or the other one, does not have.
    fn is_done(&self, other: &Self) -> bool {
        let whole = |path: &str, fields: &[&str]| {
            let body = self.ask("GET", path).unwrap_or_default();
            let value: serde_json::Value = serde_json::from_str(&body).unwrap_or_default();
            fields.iter().all(|field| value[*field] == 0)
        };
        let there = format!("/rest/db/completion?folder=f&device={}", other.id);
        whole(&there, &["needBytes", "needItems", "needDeletes"])
            && whole("/rest/db/status?folder=f", &["needTotalItems", "needDeletes", "errors"])
    }
}

/// Lets both scan, and waits until both have the same.
pub fn settle(clients: &[Client; 2], folders: &[PathBuf; 2]) {
    let begun = Instant::now();
    loop {
        let scanned = clients.iter().all(Client::scan);
        let same = || listed(&folders[0]) == listed(&folders[1]);
        if scanned && clients[0].is_done(&clients[1]) && clients[1].is_done(&clients[0]) && same() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the copies did not become the same");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The files of the volume in a copy, with their lengths.
pub fn listed(folder: &Path) -> Vec<(String, u64)> {
    let Ok(entries) = folder.join("private").read_dir() else { return Vec::new() };
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.len()))
        })
        .collect();
    all.sort();
    all
}
