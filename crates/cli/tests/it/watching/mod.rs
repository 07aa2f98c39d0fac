//! A running `oblivio watch`, and plain HTTP.
#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::common::{PATIENCE, Scratch, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Instant;

/// A watcher that is stopped on drop.
pub struct Watching {
    child: Child,
    pub url: String,
    pub port: u16,
    /// `/TOKEN/`.
    pub path: String,
}

impl Watching {
    /// Watches the scratch folder's volume `v`.
    pub fn begin(scratch: &Scratch) -> Self {
        Self::of(scratch, "v")
    }

    pub fn of(scratch: &Scratch, volume: &str) -> Self {
        std::fs::create_dir_all(scratch.path("run")).expect("a folder");
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(scratch.path("run"), private).expect("ours");
        let mut command = scratch.command(["watch", volume]);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command runs");
        let mut url = String::new();
        let out = child.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut url).expect("its address");
        let url = url.trim().to_owned();
        let rest = url.strip_prefix("http://127.0.0.1:").expect("a local address");
        let (port, token) = rest.split_once('/').expect("a path");
        let (port, path) = (port.parse().expect("a port"), format!("/{token}"));
        Self { child, url, port, path }
    }

    /// Requests this path and host; returns the whole answer.
    pub fn ask(&self, path: &str, host: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        exchange(self.port, request.as_bytes())
    }

    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The stream of events.
    pub fn events(&self) -> Events {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let request = format!("GET {}events HTTP/1.1\r\nHost: {}\r\n\r\n", self.path, self.host());
        stream.write_all(request.as_bytes()).expect("it is sent");
        Events(BufReader::new(stream))
    }

    /// Sends Ctrl-C; returns the exit code.
    pub fn stop(mut self) -> Option<i32> {
        kill_process(self.pid(), Signal::INT).expect("it runs");
        let mut status = None;
        until(|| {
            status = self.child.try_wait().expect("its end");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // It may have been stopped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends bytes and reads the whole answer.
pub fn exchange(port: u16, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream.write_all(request).expect("it is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

/// The events of the stream, as JSON.
pub struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = serde_json::Value;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).ok();
            }
        }
    }
}

impl Events {
    /// Reads on until an event matches.
    pub fn until(&mut self, wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
        let begun = Instant::now();
        self.take_while(|_| begun.elapsed() < PATIENCE).find(wanted).expect("the event")
    }
}
