//! Real servers behind TLS, and third-party clients.

use super::authority::Authority;
use super::{Rig, good, run};
use crate::common::{self, until};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A rig with the files of a server and its clients, in the folders where clients look for them:
/// `tls` has them all, `bare` only the authority, `stranger` those of another authority.
struct Secure {
    rig: Rig,
    port: u16,
    server: Option<Child>,
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::create_dir_all(dir).expect("a folder");
    std::fs::write(dir.join(name), text).expect("a file");
    std::fs::set_permissions(dir.join(name), Permissions::from_mode(0o600)).expect("our file");
}

impl Secure {
    fn new(rig: Rig) -> Self {
        let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
        let path = |name: &str| rig.scratch.path(name);
        let server = ours.server();
        write(&path("tls"), "server-cert.pem", &server.cert);
        write(&path("tls"), "server-key.pem", &server.key);
        for (dir, authority) in [("tls", &ours), ("stranger", &theirs)] {
            let client = authority.client();
            write(&path(dir), "client-cert.pem", &client.cert);
            write(&path(dir), "client-key.pem", &client.key);
            write(&path(dir), "ca-cert.pem", &ours.pem);
        }
        write(&path("bare"), "ca-cert.pem", &ours.pem);
        write(&path("fooled"), "ca-cert.pem", &theirs.pem);
        Secure { rig, port: 0, server: None }
    }

    /// Serves the disk; if `mutual`, clients need certificates, too.
    fn serve(&mut self, mutual: bool) {
        let mut args = vec!["nbd", "d", "--listen", "127.0.0.1:0"];
        args.extend(["--tls-cert", "tls/server-cert.pem", "--tls-key", "tls/server-key.pem"]);
        if mutual {
            args.extend(["--tls-client-ca", "tls/ca-cert.pem"]);
        }
        let mut command = self.rig.scratch.command(args);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('.').next());
        self.port = port.expect(&line).parse().expect(&line);
        self.server = Some(child);
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.rig.scratch.path(name)
    }

    /// For libnbd's tools, with the certificates in a folder.
    fn uri(&self, dir: &str) -> String {
        let (port, dir) = (self.port, self.dir(dir));
        format!("nbds://localhost:{port}/?tls-certificates={}", dir.display())
    }

    fn kill(&mut self) {
        let mut server = self.server.take().expect("a server");
        server.kill().expect("it is there");
        server.wait().expect("it ends");
    }

    fn end(&mut self) {
        let mut server = self.server.take().expect("a server");
        let id = rustix::process::Pid::from_child(&server);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
        assert_eq!(server.wait().expect("it ends").code(), Some(0));
    }

    /// Runs qemu-io's commands; returns whether all succeeded.
    fn qemu_io(&self, dir: &str, commands: &[&str]) -> bool {
        let dir = self.dir(dir).display().to_string();
        let object = format!("tls-creds-x509,id=t,endpoint=client,dir={dir},verify-peer=yes");
        let image = format!("driver=nbd,host=127.0.0.1,port={},tls-creds=t", self.port);
        let mut args = vec!["--object", &object, "--image-opts", &image];
        commands.iter().for_each(|command| args.extend(["-c", command]));
        let said = run("qemu-io", &args);
        said.status.success() && !String::from_utf8_lossy(&said.stdout).contains("failed")
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
    }
}

/// Rigs with clients that support TLS; `None`, with a printed reason, where there are none.
fn secure(size: &str, programs: &[&str]) -> Option<Secure> {
    Some(Secure::new(Rig::with(size, programs)?))
}

#[test]
#[ignore = "system: starts a server"]
fn images_go_in_and_out_through_tls() {
    let Some(mut secure) = secure("24M", &["nbdcopy", "nbdinfo"]) else { return };
    for mutual in [false, true] {
        secure.serve(mutual);
        let image = common::noise(24 << 20, 5 + u64::from(mutual));
        let path = secure.rig.scratch.write("image", image);
        let (path, back) = (path.to_str().expect("text"), secure.dir("back"));
        let (back, uri) = (back.to_str().expect("text"), secure.uri("tls"));
        let told = common::json(&good("nbdinfo", &["--json", &uri]));
        assert_eq!(told["TLS"], true, "{told}");
        assert_eq!(told["exports"][0]["export-size"], 24 << 20);
        good("nbdcopy", &["--flush", path, &uri]);
        for options in [&["--connections=4"][..], &["--synchronous", "--connections=1"]] {
            let _ = std::fs::remove_file(back);
            good("nbdcopy", &[options, &[&uri, back]].concat());
            assert!(
                std::fs::read(path).expect("it") == std::fs::read(back).expect("it"),
                "{options:?}"
            );
        }
        secure.end();
    }
    assert!(secure.rig.scratch.good(["check", "d"]).starts_with("clean: "));
}

#[test]
#[ignore = "system: starts a server"]
fn qemu_speaks_tls() {
    let Some(mut secure) = secure("16M", &["qemu-io"]) else { return };
    secure.serve(true);
    assert!(secure.qemu_io("tls", &["write -P 1 0 1M", "write -f -P 2 1000 3000"]));
    let many: Vec<String> =
        (0..32).map(|at| format!("aio_write -P {} {}k 65k", at + 1, 2048 + at * 65)).collect();
    let mut commands: Vec<&str> = many.iter().map(String::as_str).collect();
    let reads: Vec<String> =
        (0..32).map(|at| format!("aio_read -P {} {}k 65k", at + 1, 2048 + at * 65)).collect();
    commands.push("aio_flush");
    commands.extend(reads.iter().map(String::as_str));
    commands.extend(["aio_flush", "write -z 0 512k", "read -P 0 0 512k", "read -P 1 512k 512k"]);
    assert!(secure.qemu_io("tls", &commands));
    assert!(!secure.qemu_io("stranger", &["read 0 512"]), "somebody else's certificate");
    assert!(!secure.qemu_io("bare", &["read 0 512"]), "no certificate");
    secure.end();
}

#[test]
#[ignore = "system: starts a server"]
fn clients_that_do_not_belong_are_refused() {
    let Some(mut secure) = secure("2M", &["nbdinfo"]) else { return };
    let refused = |uri: &str| {
        let said = run("nbdinfo", &["--size", uri]);
        assert!(!said.status.success() && said.stdout.is_empty(), "{uri}: {said:?}");
        String::from_utf8_lossy(&said.stderr).into_owned()
    };
    secure.serve(true);
    good("nbdinfo", &["--size", &secure.uri("tls")]);
    // Without TLS the client gets the reason.
    let said = refused(&format!("nbd://127.0.0.1:{}", secure.port));
    assert!(said.contains("TLS"), "{said}");
    for dir in ["bare", "stranger", "fooled"] {
        refused(&secure.uri(dir));
    }
    good("nbdinfo", &["--size", &secure.uri("tls")]);
    secure.end();
    secure.serve(false);
    good("nbdinfo", &["--size", &secure.uri("bare")]);
    refused(&secure.uri("fooled"));
    secure.end();
    // A client that wants TLS does not go on without it.
    let mut plain = secure.rig.scratch.command(["nbd", "d", "--listen", "127.0.0.1:0"]);
    let mut child = plain.stdout(Stdio::piped()).spawn().expect("the command runs");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let port = line.split("127.0.0.1:").nth(1).and_then(|rest| rest.split('.').next());
    secure.port = port.expect(&line).parse().expect(&line);
    secure.server = Some(child);
    refused(&secure.uri("tls"));
    good("nbdinfo", &["--size", &format!("nbd://127.0.0.1:{}", secure.port)]);
    secure.end();
}

/// The server is killed while a client copies: the client ends with an error, earlier flushed data
/// survives, and the next server goes on.
#[test]
#[ignore = "system: starts a server"]
fn a_kill_in_the_middle_of_a_transfer() {
    let Some(mut secure) = secure("32M", &["nbdcopy"]) else { return };
    let image = secure.rig.scratch.write("image", common::noise(32 << 20, 9));
    let image = image.to_str().expect("text").to_owned();
    let back = secure.dir("back").to_str().expect("text").to_owned();
    secure.serve(true);
    good("nbdcopy", &["--flush", &image, &secure.uri("tls")]);
    for (round, (from, to)) in
        [(true, 20), (false, 60), (true, 120), (false, 5)].into_iter().enumerate()
    {
        let uri = secure.uri("tls");
        let args = if from { [&uri, &back] } else { [&image, &uri] };
        let _ = std::fs::remove_file(&back);
        let quiet = Stdio::null;
        let mut copy = Command::new("nbdcopy")
            .args(args)
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .expect("the program runs");
        std::thread::sleep(Duration::from_millis(to));
        if round % 2 == 0 {
            secure.kill();
            copy.wait().expect("it ends, well or not");
            secure.serve(true);
        } else {
            // The client dies instead; the server serves the next one.
            copy.kill().expect("it is there, or has just ended");
            copy.wait().expect("it ends");
        }
    }
    // Every version ever written was the same.
    let _ = std::fs::remove_file(&back);
    good("nbdcopy", &[&secure.uri("tls"), &back]);
    assert!(std::fs::read(&image).expect("it") == std::fs::read(&back).expect("it"));
    secure.end();
    assert!(secure.rig.scratch.good(["check", "d"]).starts_with("clean: "));
}

/// How often the system has put the threads of a process to sleep; `None` if one of them runs or
/// wants to.
fn rests(id: u32) -> Option<u64> {
    let mut all = 0;
    for thread in std::fs::read_dir(format!("/proc/{id}/task")).expect("it is there").flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if field("State:")?.trim_start().starts_with('R') {
            return None;
        }
        all += field("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()?;
    }
    Some(all)
}

/// Waiting or unresponsive clients cost no processor time.
#[test]
#[ignore = "system: starts a server"]
fn a_server_that_waits_sleeps() {
    let Some(mut secure) = secure("2M", &["nbdcopy"]) else { return };
    secure.serve(false);
    let port = secure.port;
    // One in each state: greeted, in its handshake, after sending something that is not TLS.
    let mut clients: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("a server")).collect();
    for client in &mut clients[1..] {
        client.read_exact(&mut [0; 18]).expect("a greeting");
        client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0").expect("STARTTLS");
        client.read_exact(&mut [0; 20]).expect("a reply");
    }
    clients[2].write_all(&[22, 3, 1, 2, 0, 1]).expect("the beginning of a record");
    // A client that stops reading in the middle of a copy.
    let uri = secure.uri("bare");
    let mut copy = Command::new("nbdcopy")
        .args(["--connections=1", &uri, "-"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let id = secure.server.as_ref().expect("a server").id();
    // A thread that tries again and again, with or without pauses, is never found asleep so often.
    let (mut before, mut still) = (None, 0);
    until(|| {
        let now = rests(id);
        still = if now.is_some() && now == before { still + 1 } else { 0 };
        before = now;
        still == 50
    });
    let mut all = Vec::new();
    copy.stdout.take().expect("a pipe").read_to_end(&mut all).expect("the disk");
    assert!(all == vec![0; 2 << 20]);
    assert!(copy.wait().expect("it ends").success());
    drop(clients);
    secure.end();
}

#[test]
fn files_and_places_are_checked() {
    let secure = Secure::new(Rig::new("2M"));
    let scratch = &secure.rig.scratch;
    let with = |more: &[&'static str]| {
        let tls = ["nbd", "d", "--tls-cert", "tls/server-cert.pem"];
        tls.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()
    };
    let key = ["--tls-key", "tls/server-key.pem"];
    let listen = ["--listen", "127.0.0.1:0"];
    scratch.bad(2, with(&listen));
    scratch.bad(2, ["nbd", "d", "--listen", "127.0.0.1:0", "--tls-client-ca", "tls/ca-cert.pem"]);
    scratch.bad(2, with(&[&key[..], &listen, &["--insecure"]].concat()));
    let said = scratch.bad(2, with(&[&key[..], &["--socket", "s"]].concat()));
    assert!(said.contains("--listen"), "{said}");
    let said = scratch.bad(2, with(&[&["--tls-key", "tls/client-key.pem"][..], &listen].concat()));
    assert!(said.contains("is not the key of tls/server-cert.pem"), "{said}");
    let said = scratch.bad(3, with(&[&["--tls-key", "tls/none.pem"][..], &listen].concat()));
    assert!(said.contains("tls/none.pem"), "{said}");
    // On an address that others reach encryption is not enough, unless any client may enter.
    let far = ["--listen", "0.0.0.0:0"];
    let said = scratch.bad(2, with(&[&key[..], &far].concat()));
    assert!(said.contains("--tls-client-ca") && said.contains("--any-client"), "{said}");
    let both = ["--any-client", "--tls-client-ca", "tls/ca-cert.pem"];
    scratch.bad(2, with(&[&key[..], &far, &both].concat()));
    scratch.bad(2, ["nbd", "d", "--listen", "0.0.0.0:0", "--any-client"]);
}

#[test]
#[ignore = "system: starts a server"]
fn a_key_that_everybody_can_read_is_warned_of() {
    let secure = Secure::new(Rig::new("2M"));
    let scratch = &secure.rig.scratch;
    let path = scratch.path("tls/server-key.pem");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our file");
    let secret = std::fs::read_to_string(&path).expect("it");
    for guard in [&["--any-client"][..], &["--tls-client-ca", "tls/ca-cert.pem"]] {
        let tls = ["nbd", "d", "--tls-cert", "tls/server-cert.pem"];
        let serves = ["--tls-key", "tls/server-key.pem", "--listen", "0.0.0.0:0"];
        let mut command = scratch.command([&tls[..], &serves, guard].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert!(line.starts_with("Serving d, a disk of "), "{line}");
        child.kill().expect("it is there");
        let said = child.wait_with_output().expect("it ends").stderr;
        let said = String::from_utf8(said).expect("text");
        assert!(said.contains("can read the key tls/server-key.pem"), "{said}");
        assert!(!said.contains(&secret[40..60]), "{said}");
    }
}
