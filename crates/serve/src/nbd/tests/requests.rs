//! One client's requests and their replies, byte by byte.

use super::super::wire::{Errno, SIMPLE_REPLY_MAGIC, chunk, command, flag};
use super::{BLOCK, Client, EXPORT, PLAIN, SIZE, STRUCTURED, connected, request};
use crate::nbd::negotiation::Export;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;

#[test]
fn bytes_come_back() {
    let mut client = Client::new(EXPORT, PLAIN);
    client.ask(0, command::WRITE, 1000, 5, b"hello");
    assert_eq!(client.simple(), 0);
    client.ask(0, command::READ, 999, 7, &[]);
    assert_eq!(client.simple(), 0);
    assert_eq!(client.data(7), b"\0hello\0");
    for (flags, command, offset, len) in [
        (0, command::FLUSH, 0, 0),
        (flag::FUA, command::WRITE_ZEROES, 1001, 3),
        (flag::FUA, command::TRIM, 5000, 100),
    ] {
        client.ask(flags, command, offset, len, &[]);
        assert_eq!(client.simple(), 0, "{command}");
    }
    client.ask(0, command::READ, 999, 7, &[]);
    assert_eq!(client.simple(), 0);
    assert_eq!(client.data(7), b"\0h\0\0\0o\0");
    client.ask(0, command::DISC, 0, 0, &[]);
    client.end().expect("good order");
}

#[test]
fn structured_replies_name_the_offset() {
    let mut client = Client::new(EXPORT, STRUCTURED);
    client.ask(flag::FUA, command::WRITE, SIZE - 2, 2, b"ab");
    assert_eq!(client.simple(), 0);
    client.ask(flag::DF, command::READ, SIZE - 3, 3, &[]);
    let (kind, payload) = client.chunk();
    assert_eq!(kind, chunk::OFFSET_DATA);
    assert_eq!(payload, [&(SIZE - 3).to_be_bytes()[..], b"\0ab"].concat());
    client.ask(0, command::READ, 5, 0, &[]);
    assert_eq!(client.chunk(), (chunk::NONE, vec![]));
    client.ask(0, command::READ, SIZE - 1, 2, &[]);
    let (kind, payload) = client.chunk();
    assert_eq!(kind, chunk::ERROR);
    assert_eq!(payload[..4], 22u32.to_be_bytes());
    let len = u16::from_be_bytes([payload[4], payload[5]]);
    assert_eq!(payload.len(), 6 + len as usize);
    assert!(std::str::from_utf8(&payload[6..]).expect("text").contains("no sense"));
}

/// The descriptors of a status reply.
fn extents(client: &mut Client, flags: u16, offset: u64, len: u32) -> Vec<(u32, u32)> {
    client.ask(flags, command::BLOCK_STATUS, offset, len, &[]);
    let (kind, payload) = client.chunk();
    assert_eq!(kind, chunk::BLOCK_STATUS);
    assert_eq!(payload[..4], [0, 0, 0, 1]);
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().expect("four bytes"));
    payload[4..].chunks(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect()
}

#[test]
fn what_exists_is_told() {
    let mut client = Client::new(EXPORT, STRUCTURED);
    let block = BLOCK as u32;
    assert_eq!(extents(&mut client, 0, 0, SIZE as u32), [(SIZE as u32, 3)]);
    client.ask(0, command::WRITE, 2 * BLOCK as u64, block, &[1; BLOCK]);
    assert_eq!(client.simple(), 0);
    let three = [(2 * block, 3), (block, 0), (SIZE as u32 - 3 * block, 3)];
    assert_eq!(extents(&mut client, 0, 0, SIZE as u32), three);
    assert_eq!(extents(&mut client, flag::REQ_ONE, 0, SIZE as u32), three[..1]);
    assert_eq!(extents(&mut client, 0, 2 * BLOCK as u64 + 5, block), [(block - 5, 0), (5, 3)]);
    // Zeros free the block, unless they are to stay.
    client.ask(0, command::WRITE_ZEROES, 0, 3 * block, &[]);
    assert_eq!(client.simple(), 0);
    assert_eq!(extents(&mut client, 0, 0, SIZE as u32), [(SIZE as u32, 3)]);
    client.ask(flag::NO_HOLE, command::WRITE_ZEROES, 0, block, &[]);
    assert_eq!(client.simple(), 0);
    assert_eq!(extents(&mut client, 0, 0, 2 * block), [(block, 0), (block, 3)]);
}

#[test]
fn fast_zeros_are_promised_only_where_they_are_fast() {
    let mut client = Client::new(EXPORT, PLAIN);
    let (fast, block) = (flag::FAST_ZERO, BLOCK as u32);
    for (flags, offset, len, wanted) in [
        (fast, 0, block, 0),
        (fast, 1, 2 * block, 0),
        (fast, 1, 2 * block - 2, Errno::NotSupported as u32),
        (fast | flag::NO_HOLE, 0, block, Errno::NotSupported as u32),
        (flag::NO_HOLE, 0, block, 0),
        (0, 1, 1, 0),
    ] {
        client.ask(flags, command::WRITE_ZEROES, offset, len, &[]);
        assert_eq!(client.simple(), wanted, "{flags} {offset} {len}");
    }
}

#[test]
fn requests_that_make_no_sense_get_their_number() {
    let mut client = Client::new(EXPORT, PLAIN);
    let (invalid, space) = (Errno::Invalid as u32, Errno::NoSpace as u32);
    for (flags, command, offset, len, wanted) in [
        (0, command::READ, SIZE, 1, invalid),
        (0, command::READ, u64::MAX, 1, invalid),
        (0, command::READ, 0, u32::MAX, invalid),
        (0, command::TRIM, SIZE - 1, 2, invalid),
        (0, command::WRITE_ZEROES, SIZE - 1, 2, space),
        (0, command::FLUSH, 1, 0, invalid),
        (0, command::FLUSH, 0, 1, invalid),
        // Not agreed on.
        (0, command::BLOCK_STATUS, 0, 1, invalid),
        (flag::DF, command::READ, 0, 1, invalid),
        // A flag of another command, an unknown one; commands likewise.
        (flag::NO_HOLE, command::TRIM, 0, 1, invalid),
        (1 << 9, command::READ, 0, 1, invalid),
        (0, 5, 0, 1, invalid),
        (0, 999, 0, 0, invalid),
    ] {
        client.ask(flags, command, offset, len, &[]);
        assert_eq!(client.simple(), wanted, "{flags} {command} {offset} {len}");
    }
    // The bytes of a refused write are skipped.
    for (offset, len) in [(SIZE - 1, 2), (u64::MAX, 70_000)] {
        client.ask(0, command::WRITE, offset, len, &vec![9; len as usize]);
        assert_eq!(client.simple(), space);
    }
    client.ask(0, command::READ, SIZE - 1, 1, &[]);
    assert_eq!((client.simple(), client.data(1)), (0, vec![0]));
}

#[test]
fn a_write_that_is_too_long_is_passed_over() {
    // The disk is larger than the limit of one write.
    let export = Export { size: 1 << 30, ..EXPORT };
    let mut client = Client::new(export, PLAIN);
    let len = (32 << 20) + 1;
    client.ask(0, command::WRITE, 0, len, &vec![0; len as usize]);
    assert_eq!(client.simple(), Errno::Invalid as u32);
    client.ask(0, command::FLUSH, 0, 0, &[]);
    assert_eq!(client.simple(), 0);
}

#[test]
fn nothing_changes_a_disk_that_is_only_to_be_read() {
    let mut client = Client::new(Export { read_only: true, ..EXPORT }, PLAIN);
    for command in [command::WRITE, command::WRITE_ZEROES, command::TRIM] {
        let data: &[u8] = if command == command::WRITE { &[1] } else { &[] };
        client.ask(0, command, 0, 1, data);
        assert_eq!(client.simple(), Errno::Perm as u32);
    }
    client.ask(0, command::READ, 0, 1, &[]);
    assert_eq!((client.simple(), client.data(1)), (0, vec![0]));
    client.ask(0, command::FLUSH, 0, 0, &[]);
    assert_eq!(client.simple(), 0);
}

#[test]
fn what_was_asked_before_a_disconnect_is_answered() {
    let mut client = Client::new(EXPORT, PLAIN);
    let mut said = Vec::new();
    for cookie in 0..100 {
        said.extend_from_slice(&request(0, command::READ, cookie, cookie * 512, 512));
    }
    said.extend_from_slice(&request(0, command::DISC, 0, 0, 0));
    client.send(&said);
    let mut cookies: Vec<u64> = (0..100)
        .map(|_| {
            let reply = client.data(16 + 512);
            assert_eq!(reply[4..8], [0; 4]);
            u64::from_be_bytes(reply[8..16].try_into().expect("eight bytes"))
        })
        .collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..100).collect::<Vec<_>>());
    client.end().expect("good order");
}

#[test]
fn a_client_that_takes_nothing_holds_up_itself_alone() {
    const LEN: usize = 4096;
    const MANY: u64 = 300;
    let mut client = Client::new(EXPORT, PLAIN);
    client.ask(0, command::WRITE, 0, LEN as u32, &[9; LEN]);
    assert_eq!(client.simple(), 0);
    // Far more replies than the system buffers for it.
    let (mut greedy, connection) = connected(&client.queue, EXPORT, PLAIN);
    let mut asking = greedy.try_clone().expect("a handle");
    let asker = thread::spawn(move || {
        for cookie in 0..MANY {
            let read = request(0, command::READ, cookie, 0, LEN as u32);
            asking.write_all(&read).expect("the server reads");
        }
        asking.shutdown(Shutdown::Write).expect("that is all");
    });
    let mut first = [0; 10];
    greedy.read_exact(&mut first).expect("it is served");
    for fill in 0..50 {
        client.ask(0, command::WRITE, LEN as u64, 100, &[fill; 100]);
        assert_eq!(client.simple(), 0);
        client.ask(0, command::READ, LEN as u64, 100, &[]);
        assert_eq!((client.simple(), client.data(100)), (0, vec![fill; 100]));
    }
    // The buffered replies are whole.
    let mut taken = first.to_vec();
    greedy.read_to_end(&mut taken).expect("all of it");
    asker.join().expect("no panic");
    connection.join().expect("no panic").expect("it left well");
    let mut cookies: Vec<_> = taken
        .chunks(16 + LEN)
        .map(|reply| {
            assert_eq!(reply[..8], [&SIMPLE_REPLY_MAGIC.to_be_bytes()[..], &[0; 4]].concat());
            assert_eq!(reply[16..], [9; LEN]);
            u64::from_be_bytes(reply[8..16].try_into().expect("eight bytes"))
        })
        .collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..MANY).collect::<Vec<_>>());
}
