//! What a client hears of the changes of others, from an honest server and from another one.

use super::{Line, World, eventually, name, read, write};
use oblivio_client::{Client, ClientOptions};
use oblivio_engine::Action;
use oblivio_engine::pyramid::Operation;
use oblivio_engine::pyramid::share::{Ask, Change, Compare};
use oblivio_store::share::{SealedNotice, Share, ShareReply};
use oblivio_volume::Error;
use std::sync::Arc;

/// What is done to the notices that come.
type Lie = Box<dyn FnMut(&mut Vec<SealedNotice>) + Send>;

fn open(world: &World) -> (Client, Arc<Line>) {
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let options = ClientOptions { notices: true, ..World::options() };
    (world.client_over(&line, options), line)
}

/// What was changed before a test began.
const BEFORE: u64 = 9;

/// What it hears until something comes. None: anything may have changed.
fn next(client: &Client) -> Option<Vec<Change>> {
    eventually("it hears of something", || {
        let Some(mut changes) = client.changed() else { return Some(None) };
        changes.retain(|change| change.name != name(BEFORE));
        (!changes.is_empty()).then_some(Some(changes))
    })
}

/// The names in what it hears, until there are `count`.
fn names(client: &Client, count: usize) -> Vec<u64> {
    let mut names = Vec::new();
    while names.len() < count {
        let changes = next(client).expect("no notice is missing");
        names.extend(changes.iter().map(|change| change.name.index));
    }
    names
}

/// A client that follows the notices of another one.
fn following(world: &World) -> (Client, (Client, Arc<Line>)) {
    let (writer, hearer) = (open(world).0, open(world));
    // What came before the first notice that it hears is not known.
    while hearer.0.changed().is_some() {
        writer.carry_out(&[write(BEFORE, 0)]).unwrap();
    }
    (writer, hearer)
}

#[test]
fn a_client_hears_of_all_that_others_change_and_of_nothing_else() {
    let world = World::in_memory();
    let (writer, (hearer, _)) = following(&world);
    let remove = Operation { action: Action::Remove, and_read: false };
    let remove = |index| Ask::new(name(index), remove.clone());
    writer.carry_out(&[write(1, 1)]).unwrap();
    writer.carry_out(&[read(1)]).unwrap();
    hearer.carry_out(&[write(2, 2)]).unwrap();
    assert!(
        !writer.carry_out(&[write(3, 3), write(4, 4).only_if(Compare::Exists)]).unwrap()[0].done
    );
    writer.carry_out(&[write(5, 5), remove(1)]).unwrap();
    assert_eq!(names(&hearer, 3), [1, 5, 1], "its own changes are no news, nor are reads");
    writer.carry_out(&[Ask::forget(name(6))]).unwrap();
    let forgot = next(&hearer).unwrap();
    assert!(forgot.len() == 1 && forgot[0].and_later && forgot[0].name == name(6), "{forgot:?}");
    writer.close().unwrap();
    hearer.close().unwrap();
}

#[test]
fn a_client_whose_line_broke_knows_that_it_missed_something() {
    let world = World::in_memory();
    let (writer, (hearer, line)) = following(&world);
    line.cut(true);
    // More than a server keeps.
    for round in 0..1100 {
        writer.carry_out(&[write(1, round)]).unwrap();
    }
    line.cut(false);
    assert_eq!(next(&hearer), None);
    // The client may have noticed the silence first. Then it reports the loss once more.
    eventually("it hears of a later change", || {
        writer.carry_out(&[write(2, 2)]).unwrap();
        hearer.changed()?.iter().any(|change| change.name == name(2)).then_some(())
    });
    writer.close().unwrap();
    hearer.close().unwrap();
}

/// Does something to the notices that come, once it hears of them as it should.
fn lied_to(lie: impl FnMut(&mut Vec<SealedNotice>) + Send + 'static) -> (World, Client, Client) {
    let world = World::in_memory();
    let (writer, (hearer, line)) = following(&world);
    let mut lie = lie;
    line.lie(move |_, reply| {
        if let ShareReply::Notices(notices) = reply {
            lie(notices);
        }
    });
    // Calls that are under way are answered without a lie.
    for round in 0..4 {
        writer.carry_out(&[write(1, round)]).unwrap();
    }
    (world, writer, hearer)
}

fn finds(hearer: &Client) -> Error {
    eventually("something is found", || hearer.carry_out(&[read(1)]).err())
}

#[test]
fn a_notice_that_was_changed_or_moved_is_found() {
    let change = |notices: &mut Vec<SealedNotice>| {
        notices.iter_mut().for_each(|notice| notice.sealed[40] ^= 1);
    };
    let mut first = None;
    let stale = move |notices: &mut Vec<SealedNotice>| {
        for notice in notices {
            let first = first.get_or_insert_with(|| notice.sealed.clone());
            notice.sealed.clone_from(first);
        }
    };
    let later = |notices: &mut Vec<SealedNotice>| {
        notices.iter_mut().for_each(|notice| notice.number.0 += 2);
    };
    let last = |notices: &mut Vec<SealedNotice>| {
        notices.iter_mut().for_each(|notice| notice.number.0 = u64::MAX);
    };
    let lies: [Lie; 4] = [Box::new(change), Box::new(stale), Box::new(later), Box::new(last)];
    for lie in lies {
        let (_world, writer, hearer) = lied_to(lie);
        let found = finds(&hearer);
        assert!(matches!(found, Error::Tampered(_)), "{found:?}");
        writer.close().unwrap();
    }
}

/// Then nothing that is cached counts, from a few seconds after the first answer on.
#[test]
fn a_server_that_holds_notices_back_hides_no_change() {
    let (_world, writer, hearer) = lied_to(Vec::clear);
    eventually("it is believed no more", || {
        hearer.carry_out(&[read(1)]).unwrap();
        hearer.changed().is_none().then_some(())
    });
    writer.close().unwrap();
    hearer.close().unwrap();
}

/// One that leaves every second one out, whenever it is asked: the next one says that it is
/// missing.
#[test]
fn a_notice_that_is_left_out_is_missed() {
    let mut sent = Vec::new();
    let (_world, writer, hearer) = lied_to(move |notices| {
        notices.retain(|notice| {
            let at = sent.iter().position(|number| *number == notice.number);
            let at = at.unwrap_or_else(|| {
                sent.push(notice.number);
                sent.len() - 1
            });
            at % 2 == 1
        });
    });
    eventually("one is missed", || {
        writer.carry_out(&[write(1, 1)]).unwrap();
        hearer.changed().is_none().then_some(())
    });
    writer.close().unwrap();
    hearer.close().unwrap();
}

/// The same notice again says nothing new.
#[test]
fn a_notice_that_comes_twice_is_heard_once() {
    let (_world, writer, hearer) = lied_to(|notices| {
        let again = notices.clone();
        notices.extend(again);
    });
    assert_eq!(names(&hearer, 4), [1; 4]);
    writer.close().unwrap();
    hearer.close().unwrap();
}

/// A client that does not want to know asks for no notice.
#[test]
fn only_who_wants_notices_asks_for_them() {
    let world = World::in_memory();
    let (client, line) = world.client();
    line.lie(|_, reply| assert!(!matches!(reply, ShareReply::Notices(_))));
    client.carry_out(&[write(1, 1)]).unwrap();
    assert_eq!(client.changed(), None, "anything may have changed");
    client.close().unwrap();
}
