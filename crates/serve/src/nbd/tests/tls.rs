//! Connections within TLS, with rustls as the client.

use super::super::certificates;
use super::super::listen::Conn;
use super::super::negotiation::until_tls;
use super::super::tls::accept;
use super::super::wire::{command, option as opt, reply};
use super::authority::Authority;
use super::{Line, SIZE, option, replies, request};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

mod rig;
mod strangers;
use rig::*;

/// Other clients are still served.
fn serves(rig: &Rig, config: Arc<ClientConfig>) {
    let mut client = rig.client(config);
    ask(&mut client, command::READ, 0, 1000, &[]);
    answer(&mut client, 1000);
}

#[test]
fn a_disk_is_written_and_read_and_left() {
    let authority = Authority::new("a");
    for version in [&TLS12, &TLS13] {
        let rig = Rig::new(server_config(&authority, Some(&authority)));
        let own = authority.client();
        served_well(rig.client(client_of(&[version], &authority, Some(&own))));
    }
}

fn served_well(mut client: Secure) {
    let data = noise(SIZE as usize - 1);
    ask(&mut client, command::WRITE, 1, data.len() as u32, &data);
    answer(&mut client, 0);
    ask(&mut client, command::FLUSH, 0, 0, &[]);
    answer(&mut client, 0);
    for (at, len) in [(0, 10), (5, 70_000), (0, data.len()), (16 << 10, 16 << 10)] {
        ask(&mut client, command::READ, at as u64 + 1, len as u32, &[]);
        assert!(answer(&mut client, len) == data[at..at + len], "{len} at {at}");
    }
    ask(&mut client, command::DISC, 0, 0, &[]);
    // TLS must end in order; anything else is an error here.
    assert_eq!(client.read(&mut [0; 1]).expect("a good end"), 0);
}

/// The server's plain output and result, for a client that sends this after its flags.
fn plain_talk(options: &[Vec<u8>]) -> (Vec<(u32, u32)>, io::Result<bool>) {
    let said = [&FLAGS[..], &options.concat()].concat();
    let mut line = Line(&said, Vec::new());
    let ended = until_tls(&mut line).map(|greeted| greeted.is_some());
    let said = replies(&line.1[GREETING..]);
    (said.into_iter().map(|(option, kind, _)| (option, kind)).collect(), ended)
}

#[test]
fn nothing_is_told_before_tls() {
    let refused = [opt::LIST, opt::STRUCTURED_REPLY, opt::INFO, opt::GO, 77];
    let options: Vec<_> = refused.iter().map(|&kind| option(kind, &[])).collect();
    let (said, ended) = plain_talk(&[&options[..], &[option(opt::STARTTLS, &[])]].concat());
    let mut wanted: Vec<_> = refused.iter().map(|&kind| (kind, reply::ERR_TLS_REQD)).collect();
    wanted.push((opt::STARTTLS, reply::ACK));
    assert_eq!((said, ended.expect("good")), (wanted, true));

    let (said, ended) = plain_talk(&[option(opt::STARTTLS, b"x"), option(opt::ABORT, &[])]);
    let wanted = [(opt::STARTTLS, reply::ERR_INVALID), (opt::ABORT, reply::ACK)];
    assert_eq!((&said[..], ended.expect("good")), (&wanted[..], false));

    let (said, ended) = plain_talk(&[option(opt::EXPORT_NAME, &[])]);
    assert_eq!(ended.expect_err("it has no errors").kind(), ErrorKind::InvalidData);
    assert_eq!(said, []);
    let (_, ended) = plain_talk(&vec![option(opt::LIST, &[]); 300]);
    assert_eq!(ended.expect_err("too many").kind(), ErrorKind::InvalidData);
}

#[test]
fn within_tls_it_is_not_begun_again() {
    let authority = Authority::new("a");
    let rig = Rig::new(server_config(&authority, None));
    let mut client = rig.secure(client_config(&authority, None));
    client.write_all(&option(opt::STARTTLS, &[])).expect("it reads");
    assert_eq!(option_reply(&mut client).expect("it"), (opt::STARTTLS, reply::ERR_INVALID));
    client.write_all(&option(opt::LIST, &[])).expect("it reads");
    assert_eq!(option_reply(&mut client).expect("it"), (opt::LIST, reply::SERVER));
    assert_eq!(option_reply(&mut client).expect("it"), (opt::LIST, reply::ACK));
    go(&mut client).expect("the disk");
}

/// An attacker in the middle may add plain text behind STARTTLS; it must not count as sent within
/// TLS.
#[test]
fn plain_text_behind_the_beginning_of_tls_is_refused() {
    let authority = Authority::new("a");
    let rig = Rig::new(server_config(&authority, None));
    for injected in [option(opt::LIST, &[]), option(opt::GO, &[0; 6]), vec![0; 100]] {
        let mut stream = rig.connect();
        stream.read_exact(&mut [0; GREETING]).expect("a greeting");
        let begin = [&FLAGS[..], &option(opt::STARTTLS, &[]), &injected].concat();
        stream.write_all(&begin).expect("it reads");
        assert_eq!(option_reply(&mut stream).expect("it"), (opt::STARTTLS, reply::ACK));
        // An unsuspecting client goes on with its handshake, which fails.
        let name = ServerName::try_from("localhost").expect("a name");
        let tls = ClientConnection::new(client_config(&authority, None), name).expect("a client");
        let mut client = StreamOwned::new(tls, stream);
        assert!(go(&mut client).is_err());
    }
    // The only response is an alert of TLS.
    let mut stream = rig.connect();
    stream.read_exact(&mut [0; GREETING]).expect("a greeting");
    let all = [&FLAGS[..], &option(opt::STARTTLS, &[]), &option(opt::LIST, &[])].concat();
    stream.write_all(&all).expect("it reads");
    assert_eq!(option_reply(&mut stream).expect("it"), (opt::STARTTLS, reply::ACK));
    let mut rest = Vec::new();
    // It may be reset, because bytes were left unread.
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.is_empty() || (rest[0] == 21 && rest.len() == 7), "{rest:?}");
    serves(&rig, client_config(&authority, None));
}

#[test]
fn only_those_with_the_right_certificate_come_in() {
    let (authority, clients, stranger) =
        (Authority::new("servers"), Authority::new("clients"), Authority::new("stranger"));
    let rig = Rig::new(server_config(&authority, Some(&clients)));
    let let_in = |config| go(&mut rig.secure(config));
    let good = clients.client();
    let_in(client_config(&authority, Some(&good))).expect("a client of ours");
    // The client does not know the server.
    let error = let_in(client_config(&stranger, Some(&good))).expect_err("a wrong authority");
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    // The server does not know the client: one without a certificate, with one by another
    // authority, by the server's authority, by an authority that only has the right name, or one
    // that is no client's.
    let namesake = Authority::new("clients");
    for own in [
        None,
        Some(stranger.client()),
        Some(authority.client()),
        Some(namesake.client()),
        Some(clients.server()),
    ] {
        let_in(client_config(&authority, own.as_ref())).expect_err("nobody we know");
    }
    let_in(client_config(&authority, Some(&good))).expect("a client of ours");
}

/// A client asks for as much as it can without reading, and writes behind it. It waits, others do
/// not, and when it reads, everything is there.
#[test]
fn a_client_that_does_not_read_holds_up_itself_alone() {
    const LEN: u32 = 512 << 10;
    const READS: usize = 120;
    let authority = Authority::new("a");
    let config = client_config(&authority, None);
    let rig = Rig::new(server_config(&authority, None));
    let mut client = rig.client(Arc::clone(&config));
    let data = noise(LEN as usize);
    ask(&mut client, command::WRITE, 0, LEN, &data);
    answer(&mut client, 0);
    for _ in 0..READS {
        ask(&mut client, command::READ, 0, LEN, &[]);
    }
    let write = request(0, command::WRITE, 8, SIZE / 2, 64 << 10);
    client.write_all(&[&write[..], &data[..64 << 10]].concat()).expect("there is room on the way");
    // Replies have begun that nobody reads. It is not read before all others were served.
    rig.takes(1 + 8);
    (0..5).for_each(|_| serves(&rig, Arc::clone(&config)));
    let (mut read, mut written) = (0, false);
    while read < READS || !written {
        // Requests that wait together are answered in any order.
        let mut head = [0; 16];
        client.read_exact(&mut head).expect("a reply");
        assert_eq!(head[4..8], [0; 4], "no error");
        if head[15] == 8 {
            written = true;
            continue;
        }
        let mut got = vec![0; LEN as usize];
        client.read_exact(&mut got).expect("data");
        assert!(got == data, "read {read}");
        read += 1;
    }
    ask(&mut client, command::READ, SIZE / 2, 64 << 10, &[]);
    assert!(answer(&mut client, 64 << 10) == data[..64 << 10]);
}

/// A reply that waits for the client must not stop the server from reading: the client may want all
/// of its writes taken before it reads.
#[test]
fn writes_are_taken_while_replies_wait() {
    const LEN: u32 = 512 << 10;
    // Together within the connection's budget, and each more than the system buffers.
    const READS: usize = 42;
    const WRITES: usize = 34;
    let authority = Authority::new("a");
    let rig = Rig::new(server_config(&authority, None));
    let mut client = rig.client(client_config(&authority, None));
    for _ in 0..READS {
        ask(&mut client, command::READ, 0, LEN, &[]);
    }
    rig.takes(READS);
    let data = noise(LEN as usize);
    for _ in 0..WRITES {
        ask(&mut client, command::WRITE, SIZE / 2, LEN, &data);
    }
    for _ in 0..READS {
        assert!(answer(&mut client, LEN as usize).iter().all(|&byte| byte == 0));
    }
    (0..WRITES).for_each(|_| drop(answer(&mut client, 0)));
    ask(&mut client, command::READ, SIZE / 2, LEN, &[]);
    assert!(answer(&mut client, LEN as usize) == data);
}

/// Both directions are full at the same time, beyond any buffer.
#[test]
fn much_goes_both_ways_at_once() {
    const LEN: usize = 256 << 10;
    const COUNT: usize = 200;
    let authority = Authority::new("a");
    let rig = Rig::new(server_config(&authority, None));
    let client = rig.client(client_config(&authority, None));
    let StreamOwned { conn: mut tls, sock: mut socket } = client;
    tls.set_buffer_limit(None);
    let data = noise(LEN);
    // Encrypted in advance, to let the client send and receive independently.
    let mut sent = Vec::new();
    for at in 0..COUNT as u64 {
        let (write, read) = (command::WRITE, command::READ);
        tls.writer().write_all(&request(0, write, at, 0, LEN as u32)).expect("room");
        tls.writer().write_all(&data).expect("room");
        tls.writer().write_all(&request(0, read, COUNT as u64 + at, 0, LEN as u32)).expect("room");
    }
    while tls.wants_write() {
        tls.write_tls(&mut sent).expect("memory");
    }
    let mut sending = socket.try_clone().expect("a handle");
    let sender = thread::spawn(move || sending.write_all(&sent));
    // It reads late, to meet full buffers.
    rig.takes(20);
    let mut stream = rustls::Stream::new(&mut tls, &mut socket);
    let (mut written, mut read) = (0, 0);
    while written + read < 2 * COUNT {
        let mut head = [0; 16];
        stream.read_exact(&mut head).expect("a reply");
        assert_eq!(head[4..8], [0; 4], "no error");
        if u64::from_be_bytes(head[8..].try_into().expect("eight bytes")) < COUNT as u64 {
            written += 1;
        } else {
            let mut got = vec![0; LEN];
            stream.read_exact(&mut got).expect("data");
            assert!(got == data, "read {read}");
            read += 1;
        }
    }
    sender.join().expect("no panic").expect("all of it was taken");
    assert_eq!((written, read), (COUNT, COUNT));
}

#[test]
fn a_connection_that_is_cut_or_damaged_does_nothing() {
    let authority = Authority::new("a");
    let config = client_config(&authority, None);
    let rig = Rig::new(server_config(&authority, None));
    for damage in [None, Some(4), Some(30), Some(900)] {
        let StreamOwned { conn: mut tls, sock: mut socket } = rig.client(Arc::clone(&config));
        let write = [&request(0, command::WRITE, 7, 0, 1000)[..], &[3; 1000]].concat();
        tls.writer().write_all(&write).expect("room");
        let mut sent = Vec::new();
        tls.write_tls(&mut sent).expect("memory");
        match damage {
            None => sent.truncate(500),
            Some(at) => sent[at] ^= 1,
        }
        socket.write_all(&sent).expect("it reads");
        socket.shutdown(Shutdown::Write).expect("the client leaves");
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        // Only an alert or a last word, within TLS, may come.
        assert!(rest.len() < 60, "{damage:?}: {rest:?}");
    }
    let mut client = rig.client(config);
    ask(&mut client, command::READ, 0, 1000, &[]);
    assert_eq!(answer(&mut client, 1000), [0; 1000], "nothing was written");
}

/// A handshake has one time limit, however slowly the client sends.
#[test]
fn a_slow_handshake_is_given_up() {
    let authority = Authority::new("a");
    let config = server_config(&authority, None);
    let (mut client, server) = UnixStream::pair().expect("a pair");
    let until = Instant::now() + Duration::from_millis(400);
    let served =
        thread::spawn(move || accept(&Conn::Unix(Arc::new(server)), &config, until).map(drop));
    let begun = Instant::now();
    // The beginning of a record that claims to be long.
    for byte in [22, 3, 1, 0x3f, 0xff].into_iter().chain([1; 10_000]) {
        if client.write_all(&[byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
        assert!(begun.elapsed() < PATIENCE, "it never ends");
    }
    let error = served.join().expect("no panic").expect_err("too slow");
    assert!([ErrorKind::TimedOut, ErrorKind::InvalidData].contains(&error.kind()), "{error}");
}

#[test]
fn files_that_do_not_fit_are_told_apart() {
    let (authority, other) = (Authority::new("a"), Authority::new("b"));
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| write(dir.path(), name, text);
    let (own, another) = (authority.server(), other.server());
    let (cert, key) = (write("cert", &own.cert), write("key", &own.key));
    let ca = write("ca", &authority.pem);
    let (foreign, nothing) = (write("foreign", &another.key), write("nothing", "text"));
    let locked = write("locked", &own.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"));
    let broken = write("broken", &own.cert.replace('A', "?"));
    let odd = write("odd", &own.cert.replace("MI", "AA"));
    let none = dir.path().join("none");
    let config = |cert, key, ca: Option<&PathBuf>| {
        let made = certificates::config(cert, key, ca.map(|path| path.as_path()));
        made.map(drop).map_err(|error| error.line())
    };
    config(&cert, &key, None).expect("a pair");
    config(&cert, &key, Some(&ca)).expect("a pair and an authority");
    for (wrong, why) in [
        (config(&cert, &foreign, None), "foreign is not the key of"),
        (config(&cert, &cert, None), "cert holds no private key"),
        (config(&key, &key, None), "key holds no certificate"),
        (config(&nothing, &key, None), "nothing holds no certificate"),
        (config(&broken, &key, None), "broken holds no certificate"),
        (config(&odd, &key, None), "odd cannot be used for TLS"),
        (config(&cert, &locked, None), "protected by a passphrase"),
        (config(&none, &key, None), "none: "),
        (config(&cert, &none, None), "the key "),
        (config(&cert, &key, Some(&key)), "key holds no certificate"),
        (config(&cert, &key, Some(&none)), "none: "),
    ] {
        let said = wrong.expect_err(why);
        assert!(said.contains(why), "{said}");
        assert!(!said.contains(&own.key[40..60]), "{said}");
    }
}
