//! How a server begins and ends, and its refusals.

use super::Rig;
use crate::common::{self, until};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

/// Negotiates in the oldest way; returns the size of the disk.
fn agree(stream: &mut (impl Read + Write)) -> u64 {
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).expect("a greeting");
    assert_eq!(greeting[..8], *b"NBDMAGIC");
    stream.write_all(&[0, 0, 0, 3]).expect("flags");
    stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").expect("a choice");
    let mut export = [0; 10];
    stream.read_exact(&mut export).expect("the disk");
    u64::from_be_bytes(export[..8].try_into().expect("eight bytes"))
}

/// Sends a request; returns the error of the reply.
fn ask(stream: &mut (impl Read + Write), command: u8, offset: u64, len: u32, data: &[u8]) -> u32 {
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, command];
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(&offset.to_be_bytes());
    request.extend_from_slice(&len.to_be_bytes());
    request.extend_from_slice(data);
    stream.write_all(&request).expect("the server reads");
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).expect("a reply");
    u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"))
}

#[test]
#[ignore = "system: starts a server"]
fn a_signal_keeps_what_was_written_and_takes_the_socket_away() {
    let mut rig = Rig::new("2M");
    rig.serve(&["--commit-every", "3600"]);
    let mode = rig.socket().metadata().expect("it").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut client = UnixStream::connect(rig.socket()).expect("a server");
    assert_eq!(agree(&mut client), 2 << 20);
    assert_eq!(ask(&mut client, 1, 12_345, 4, b"kept"), 0);
    // The client does not leave: the server ends all the same.
    assert_eq!(rig.end(), Some(0));
    assert!(!rig.socket().exists());
    rig.serve(&[]);
    let mut client = UnixStream::connect(rig.socket()).expect("a server");
    agree(&mut client);
    assert_eq!(ask(&mut client, 0, 12_345, 4, &[]), 0);
    let mut data = [0; 4];
    client.read_exact(&mut data).expect("data");
    assert_eq!(data, *b"kept");
}

#[test]
#[ignore = "system: starts a server"]
fn a_volume_has_one_server_and_one_use() {
    let mut rig = Rig::new("2M");
    rig.serve(&[]);
    let scratch = &rig.scratch;
    assert!(scratch.bad(8, ["nbd", "d", "--socket", "s"]).contains("another server"));
    assert!(scratch.bad(8, ["nbd", "d", "--socket", "t"]).contains("in use"));
    assert!(!scratch.path("t").exists());
    assert_eq!(rig.end(), Some(0));
    let scratch = &rig.scratch;
    scratch.write("file", "x");
    for args in [&["ls", "d", "/"][..], &["put", "d", "file", "/"], &["mount", "d", "m"]] {
        let _ = std::fs::create_dir(scratch.path("m"));
        let said = scratch.bad(9, args);
        assert!(said.contains("holds a disk") && said.contains("oblivio nbd"), "{said}");
    }
    scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "v"]);
    let said = scratch.bad(9, ["nbd", "v", "--socket", "s"]);
    assert!(said.contains("holds files") && said.contains("oblivio mount"), "{said}");
    let told = scratch.good(["info", "d"]);
    assert!(told.contains("a disk of 2.0 MiB (2,097,152 bytes)"), "{told}");
    let told = common::json(&scratch.good(["check", "--json", "d"]));
    assert_eq!((&told["clean"], &told["disk_bytes"]), (&true.into(), &(2 << 20).into()));
}

#[test]
fn places_that_make_no_sense_are_refused() {
    let rig = Rig::new("2M");
    let scratch = &rig.scratch;
    scratch.write("s", "a file");
    assert!(scratch.bad(3, ["nbd", "d", "--socket", "s"]).contains("there already"));
    assert_eq!(std::fs::read(rig.socket()).expect("it"), b"a file");
    assert!(scratch.bad(3, ["nbd", "d", "--socket", "no/s"]).contains("no folder"));
    for far in ["0.0.0.0:0", "[::]:0", "192.0.2.1:10809"] {
        let said = scratch.bad(2, ["nbd", "d", "--listen", far]);
        assert!(said.contains("--insecure") && said.contains("not encrypted"), "{said}");
    }
    for none in ["here", "127.0.0.1", "127.0.0.1:100000"] {
        assert!(scratch.bad(2, ["nbd", "d", "--listen", none]).contains("no address"));
    }
    scratch.bad(2, ["nbd", "d"]);
    scratch.bad(2, ["nbd", "d", "--socket", "t", "--listen", "127.0.0.1:0"]);
    scratch.bad(2, ["nbd", "d", "--socket", "t", "--insecure"]);
    scratch.bad(2, ["nbd", "d", "--socket", "t", "--timeout", "0"]);
    for size in ["0", "513"] {
        assert!(scratch.bad(2, ["init", "--disk", size, "e"]).contains("512"), "{size}");
    }
    scratch.bad(2, ["init", "--disk", "1M", "--size", "1M", "e"]);
    assert!(!scratch.path("e").exists());
}

#[test]
#[ignore = "system: starts a server"]
fn a_server_in_the_background_on_an_address() {
    let rig = Rig::new("2M");
    let said = rig.scratch.good(["nbd", "-b", "d", "--listen", "127.0.0.1:0"]);
    let address = said.split(" on ").nth(1).and_then(|rest| rest.split(". ").next()).expect(&said);
    let id = said.split("kill ").nth(1).and_then(|rest| rest.split('`').next()).expect(&said);
    let mut client = TcpStream::connect(address).expect("a server");
    assert_eq!(agree(&mut client), 2 << 20);
    assert_eq!(ask(&mut client, 1, 0, 3, b"tcp"), 0);
    assert_eq!(ask(&mut client, 3, 0, 0, &[]), 0);
    let id = rustix::process::Pid::from_raw(id.parse().expect("a number")).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it is there");
    until(|| TcpStream::connect(address).is_err());
    // It commits after it stops listening, and then releases the volume.
    until(|| rig.scratch.run(["info", "d"]).status.success());
}
