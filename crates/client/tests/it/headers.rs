//! A server that lies about what is read before any record: the header, and the scribe's term.

use super::{Line, World, passphrase, read, write};
use oblivio_client::{add_passphrase, change_passphrase, remove_passphrase, unlock};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::share::{ScribeTerm, Share, ShareCall, ShareError, ShareParameters, ShareReply};
use oblivio_volume::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The header is read before any key is known.
#[test]
fn a_header_that_was_changed_gives_no_keys() {
    let (world, other) = (World::in_memory(), World::in_memory());
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let honest = world.line.parameters().unwrap().unwrap();
    let met = |with: Option<ShareParameters>| {
        line.lie(move |call, reply| {
            if *call == ShareCall::Parameters {
                *reply = ShareReply::Parameters(with.clone());
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
    assert!(met(Some(ShareParameters { slot_bytes: 1, ..honest.clone() })).is_err());
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
        if matches!(call, ShareCall::Claim { .. }) {
            *reply = ShareReply::Term(ScribeTerm(1));
        }
    });
    let client = world.client_over(&line, World::options());
    let met = client.carry_out(&[read(1)]);
    assert!(matches!(met, Err(Error::Tampered(_))), "{met:?}");
}

#[test]
fn a_passphrase_is_added_changed_and_removed_while_others_use_the_volume() {
    let world = World::in_memory();
    let [second, third] = ["second", "third"].map(Passphrase::new);
    let (client, _) = world.client();
    client.carry_out(&[write(1, 1)]).unwrap();
    let (line, kdf) = (&*world.line, KdfParams::TEST);
    assert_eq!(add_passphrase(line, &passphrase(), &second, kdf).unwrap(), 2);
    let again = add_passphrase(line, &passphrase(), &second, kdf);
    assert!(matches!(again, Err(Error::Invalid(_))), "{again:?}");
    let unknown = add_passphrase(line, &third, &third, kdf);
    assert!(matches!(unknown, Err(Error::WrongPassphrase)), "{unknown:?}");
    assert_eq!(change_passphrase(line, &second, &third, kdf).unwrap(), 2);
    assert!(matches!(unlock(line, &second), Err(Error::WrongPassphrase)));
    assert_eq!(remove_passphrase(line, &passphrase()).unwrap(), 1);
    assert!(matches!(unlock(line, &passphrase()), Err(Error::WrongPassphrase)));
    let last = remove_passphrase(line, &third);
    assert!(matches!(last, Err(Error::Invalid(_))), "{last:?}");
    // One who has the key goes on, and the new passphrase gives the same key.
    client.carry_out(&[write(2, 2)]).unwrap();
    let keyed = unlock(line, &third).unwrap();
    let (other, _) = World { line: Arc::clone(&world.line), keyed }.client();
    assert_eq!((super::get(&other, 1), super::get(&other, 2)), (1, 2));
    client.close().unwrap();
    other.close().unwrap();
}

/// Each of two computers reads the header before the other one stores its own.
#[test]
fn of_two_changes_at_once_none_is_lost() {
    let world = World::in_memory();
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let (share, once) = (Arc::clone(&world.line), AtomicBool::new(true));
    line.lie(move |call, _| {
        if *call == ShareCall::Parameters && once.swap(false, Ordering::SeqCst) {
            let other = Passphrase::new("of the other one");
            add_passphrase(&*share, &passphrase(), &other, KdfParams::TEST).unwrap();
        }
    });
    let mine = Passphrase::new("of this one");
    assert_eq!(add_passphrase(&*line, &passphrase(), &mine, KdfParams::TEST).unwrap(), 3);
    for text in ["of the other one", "of this one", "correct horse"] {
        assert!(unlock(&*world.line, &Passphrase::new(text)).is_ok(), "{text}");
    }
    // Both remove the same one: the second finds that it is gone, as it wanted.
    let (share, once) = (Arc::clone(&world.line), AtomicBool::new(true));
    line.lie(move |call, _| {
        if *call == ShareCall::Parameters && once.swap(false, Ordering::SeqCst) {
            remove_passphrase(&*share, &Passphrase::new("of this one")).unwrap();
        }
    });
    assert_eq!(remove_passphrase(&*line, &mine).unwrap(), 2);
    assert!(matches!(remove_passphrase(&*line, &mine), Err(Error::WrongPassphrase)));
}

/// A line that lost the answer to a header that was stored, and asked again.
struct Forgetful(Arc<Line>);

impl Share for Forgetful {
    fn device(&self) -> u16 {
        self.0.device()
    }

    fn call(&self, call: ShareCall<'_>) -> oblivio_store::share::Result<ShareReply> {
        let stores = matches!(call, ShareCall::PutParameters { .. });
        match self.0.call(call)? {
            ShareReply::Version(version) if stores => Err(ShareError::Version(version)),
            reply => Ok(reply),
        }
    }
}

#[test]
fn a_header_whose_answer_was_lost_is_not_stored_twice() {
    let world = World::in_memory();
    let (line, new) = (Forgetful(Arc::clone(&world.line)), Passphrase::new("new"));
    assert_eq!(add_passphrase(&line, &passphrase(), &new, KdfParams::TEST).unwrap(), 2);
    assert!(unlock(&*world.line, &new).is_ok());
}
