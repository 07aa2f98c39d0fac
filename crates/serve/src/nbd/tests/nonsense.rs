//! Clients that send arbitrary bytes: they are disconnected, and no other client notices.

use super::super::wire::{RequestHeader, command};
use super::{Client, EXPORT, PLAIN, STRUCTURED, option, request, talk};
use oblivio_testkit::campaign::scaled;
use proptest::prelude::*;
use std::io::ErrorKind;
use std::net::Shutdown;

#[test]
fn a_request_that_does_not_begin_as_one_ends_the_connection() {
    let mut client = Client::new(EXPORT, PLAIN);
    client.send(&[0x55; RequestHeader::BYTES]);
    assert_eq!(client.end().expect_err("nonsense").kind(), ErrorKind::InvalidData);
}

#[test]
fn a_request_that_is_cut_short_does_nothing() {
    let write = [&request(0, command::WRITE, 7, 0, 1000)[..], &[3; 1000]].concat();
    for cut in [1, 27, 28, 29, 1027] {
        let mut client = Client::new(EXPORT, PLAIN);
        client.send(&write[..cut]);
        client.stream.shutdown(Shutdown::Write).expect("the client leaves");
        // No reply: no write was acknowledged.
        let ended = client.end();
        assert_eq!(ended.expect_err("cut short").kind(), ErrorKind::UnexpectedEof, "{cut}");
    }
    let mut client = Client::new(EXPORT, PLAIN);
    client.stream.shutdown(Shutdown::Write).expect("the client leaves");
    client.end().expect("between two requests anybody may leave");
}

/// Headers with valid or nearly valid fields.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let offset = prop_oneof![0..EXPORT.size, any::<u64>(), Just(EXPORT.size)];
    let len = prop_oneof![0..5000u32, any::<u32>()];
    (any::<u16>(), 0..9u16, any::<u64>(), offset, len).prop_map(
        |(flags, command, cookie, offset, len)| {
            let flags = if flags % 3 == 0 { flags & 0x1f } else { 0 };
            request(flags, command, cookie, offset, len).to_vec()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(64) as u32))]

    #[test]
    fn no_requests_break_the_server(
        headers in proptest::collection::vec(header(), 1..12),
        tail in proptest::collection::vec(any::<u8>(), 0..64),
        structured in any::<bool>(),
    ) {
        let mut client = Client::new(EXPORT, if structured { STRUCTURED } else { PLAIN });
        let mut stream = client.stream.try_clone().expect("a handle");
        let reader = std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        use std::io::Write;
        // The connection may end before all of it is read.
        let _ = client.stream.write_all(&[headers.concat(), tail].concat());
        let _ = client.stream.shutdown(Shutdown::Write);
        // A connection that ends early, with bytes unread, is reset.
        let _ = reader.join().expect("no panic");
        let ended = client.connection.take().expect("once").join();
        prop_assert!(ended.is_ok(), "the connection panicked");
        // The client's end checks the server.
        drop(client);
    }

    #[test]
    fn no_options_break_the_negotiation(
        options in proptest::collection::vec(
            (0..12u32, proptest::collection::vec(any::<u8>(), 0..40)), 0..6),
        small in any::<bool>(),
    ) {
        let options = options.into_iter().map(|(kind, mut data)| {
            // Nearly valid lengths get further.
            if small {
                data.iter_mut().step_by(2).for_each(|byte| *byte = 0);
            }
            option(kind, &data)
        });
        let said = [vec![0, 0, 0, 3], options.collect::<Vec<_>>().concat()].concat();
        let (answer, ended) = talk(&said);
        prop_assert!(answer.len() < 64 * said.len() + 1000);
        if let Err(error) = ended {
            let kind = error.kind();
            prop_assert!(matches!(kind, ErrorKind::InvalidData | ErrorKind::UnexpectedEof));
        }
    }
}
