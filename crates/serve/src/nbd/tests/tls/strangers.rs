//! Idle connections, and the clients served beside them.

use super::*;
use oblivio_testkit::campaign::{at_least, scaled};

/// Resident memory of this process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0u64) * 4096
}

/// Opens idle connections in all states without a certificate; then clients, each of which reads,
/// while the others stay.
fn clients_are_served(
    rig: &Rig,
    client: impl Fn() -> Box<dyn FnOnce()>,
    idle: impl Fn(usize) -> UnixStream,
) {
    // `just nbd-strangers` runs alone, with more of them.
    let alone = at_least(2.0);
    let (many, tries) = (if alone { 500 } else { 160 }, scaled(4));
    // A computer that stands still for long enough gives strangers up before it serves others.
    let beside = (0..3).any(|_| are_served_beside(many, tries, alone, &client, &idle));
    assert!(beside, "they were served beside the others, not after them");
    assert!(rig.serving.is_some());
}

/// Whether the newest idle connections were still open when the last client had been served.
fn are_served_beside(
    many: usize,
    tries: u64,
    alone: bool,
    client: &impl Fn() -> Box<dyn FnOnce()>,
    idle: &impl Fn(usize) -> UnixStream,
) -> bool {
    let before = resident();
    let strangers: Vec<_> = (0..many).map(idle).collect();
    let grown = resident().saturating_sub(before);
    (0..tries).for_each(|_| client()());
    eprintln!("{many} idle connections: {} KiB of memory; {tries} clients", grown >> 10);
    let beside = strangers[many - 100..].iter().all(is_open);
    // Both ends are in this process; the bound does not depend on their number. Memory that tests
    // beside this one take would count as well.
    assert!(!alone || grown < 128 << 20, "{} MiB", grown >> 20);
    beside
}

/// Whether the server has not ended a connection.
fn is_open(mut stranger: &UnixStream) -> bool {
    stranger.set_nonblocking(true).expect("our socket");
    loop {
        match stranger.read(&mut [0; GREETING]) {
            Ok(0) => return false,
            // Its greeting.
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn idle_strangers_keep_nobody_with_a_certificate_out() {
    let authority = Authority::new("ours");
    let rig = Rig::new(server_config(&authority, Some(&authority)));
    let own = authority.client();
    let config = client_config(&authority, Some(&own));
    let served = || -> Box<dyn FnOnce()> {
        let (mut stream, len) = (rig.client(Arc::clone(&config)), 4096);
        Box::new(move || {
            ask(&mut stream, command::READ, 0, len, &[]);
            answer(&mut stream, len as usize);
        })
    };
    // They send nothing, or go as far as possible without a certificate.
    let idle = |number: usize| if number.is_multiple_of(2) { rig.connect() } else { rig.at_tls() };
    clients_are_served(&rig, served, idle);
}

#[test]
fn idle_strangers_keep_nobody_out_without_tls() {
    let rig = Rig::plain();
    let served = || -> Box<dyn FnOnce()> {
        let mut stream = rig.connect();
        stream.read_exact(&mut [0; GREETING]).expect("a greeting");
        stream.write_all(&FLAGS).expect("it reads");
        go(&mut stream).expect("it is let in");
        Box::new(move || {
            ask(&mut stream, command::READ, 0, 4096, &[]);
            answer(&mut stream, 4096);
        })
    };
    clients_are_served(&rig, served, |_| rig.connect());
}

/// A client is no stranger: it never has to go, however many connections follow.
#[test]
fn who_has_proved_itself_stays() {
    let authority = Authority::new("ours");
    let rig = Rig::new(server_config(&authority, Some(&authority)));
    let own = authority.client();
    let mut first = rig.client(client_config(&authority, Some(&own)));
    let strangers: Vec<_> = (0..200).map(|_| rig.connect()).collect();
    ask(&mut first, command::READ, 0, 512, &[]);
    answer(&mut first, 512);
    // The first of the others had to go.
    let mut gone = &strangers[0];
    let mut said = Vec::new();
    let _ = gone.read_to_end(&mut said);
    assert!(said.len() <= GREETING, "only a greeting: {} bytes", said.len());
}
