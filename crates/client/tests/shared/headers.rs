//! A server that lies about what is read before any record: the header, and the scribe's term.

use super::{Line, World, passphrase, read, write};
use oblivio_client::unlock;
use oblivio_store::share::{Call, Parameters, Reply, Share, Term};
use oblivio_volume::Error;
use std::sync::Arc;

/// The header is read before any key is known.
#[test]
fn a_header_that_was_changed_gives_no_keys() {
    let (world, other) = (World::in_memory(), World::in_memory());
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let honest = world.line.parameters().unwrap().unwrap();
    let met = |with: Option<Parameters>| {
        line.lie(move |call, reply| {
            if *call == Call::Parameters {
                *reply = Reply::Parameters(with.clone());
            }
        });
        unlock(&*line, &passphrase())
    };
    assert!(met(Some(honest.clone())).is_ok());
    for at in (0..honest.header.len()).step_by(13) {
        let mut changed = honest.clone();
        changed.header[at] ^= 1;
        assert!(met(Some(changed)).is_err(), "byte {at}");
        let mut cut = honest.clone();
        cut.header.truncate(at);
        assert!(met(Some(cut)).is_err(), "cut at {at}");
    }
    assert!(met(None).is_err());
    assert!(met(Some(Parameters { slot_bytes: 1, ..honest.clone() })).is_err());
    // A whole header of another volume is that volume, whose records are not here.
    let foreign = met(other.line.parameters().unwrap()).unwrap();
    let keyed = World { line: Arc::clone(&world.line), keyed: foreign };
    let (honest, _) = world.client();
    honest.carry_out(&[write(1, 1)]).unwrap();
    honest.close().unwrap();
    let (lied_to, _) = keyed.client();
    let met = lied_to.carry_out(&[read(1)]);
    assert!(matches!(met, Err(Error::Tampered(_))), "{met:?}");
}

/// Two scribes at once would share a term.
#[test]
fn a_term_that_is_not_newer_is_not_taken() {
    let world = World::in_memory();
    for round in 0..2 {
        let (client, _) = world.client();
        client.carry_out(&[write(1, round)]).unwrap();
        client.close().unwrap();
    }
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    line.lie(|call, reply| {
        if matches!(call, Call::Claim { .. }) {
            *reply = Reply::Term(Term(1));
        }
    });
    let client = world.client_over(&line, World::options());
    let met = client.carry_out(&[read(1)]);
    assert!(matches!(met, Err(Error::Tampered(_))), "{met:?}");
}
