//! A server that lies: an error, and no wrong data.

use super::{
    ClientOptions, Line, World, add_one, clock, eventually, get, read, started, value, write,
};
use oblivio_client::{HeadKeeper, Unremembered};
use oblivio_engine::pyramid::share::Head;
use oblivio_share::MemoryShare;
use oblivio_store::share::{
    AskId, AskNumber, ClientSession, SealedAsk, Share, ShareCall, ShareReply,
};
use oblivio_volume::{Error, Result};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A memory that outlives its client.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Head>>);

impl HeadKeeper for Kept {
    fn head(&self) -> Head {
        *self.0.lock().unwrap()
    }

    fn note(&mut self, head: Head, _durable: bool) -> Result<()> {
        *self.0.lock().unwrap() = head;
        Ok(())
    }
}

pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        let into = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &into),
            false => drop(fs::copy(entry.path(), into).unwrap()),
        }
    }
}

#[test]
fn a_server_that_goes_back_is_found_and_shows_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (now, before) = (dir.path().join("now"), dir.path().join("before"));
    fs::create_dir_all(&now).unwrap();
    let known = Kept::default();
    {
        let world = World::over(Arc::new(started(&now)));
        let (client, _) = world.client();
        (0..5).for_each(|_| add_one(&client, 3).unwrap());
        client.close().unwrap();
        copy(&now, &before);
        let client = world.knowing(&world.line, World::options(), Box::new(known.clone())).unwrap();
        (0..5).for_each(|_| add_one(&client, 3).unwrap());
        client.close().unwrap();
        let old: Arc<dyn Share> = Arc::new(started(&before));
        let old = Line::to(old);
        let refused = world.knowing(&old, World::options(), Box::new(known.clone()));
        assert!(matches!(refused, Err(Error::RolledBack(_))));
        // Who knows nothing goes on, on another history.
        let other = world.client_over(&old, World::options());
        (0..20).for_each(|_| add_one(&other, 3).unwrap());
        let refused = world.knowing(&old, World::options(), Box::new(known));
        assert!(matches!(refused, Err(Error::RolledBack(_))), "it is as long, but another one");
        other.close().unwrap();
    }
}

/// An ask that does not open is nobody's: the scribe lets the server forget it.
#[test]
fn asks_of_nobody_do_not_stay_at_the_server() {
    let world = World::over(Arc::new(MemoryShare::new(clock())));
    let (client, _) = world.client();
    add_one(&client, 1).unwrap();
    let id = |random| AskId { session: ClientSession::of(9, random), seq: AskNumber(0) };
    let asks: Vec<SealedAsk> =
        (0..500).map(|n| SealedAsk { id: id(n), sealed: vec![7; 200] }).collect();
    world.line.ask(&asks).unwrap();
    let forgotten = || (world.line.status().unwrap().pending == 0).then_some(());
    eventually("the server has none of them", forgotten);
    assert_eq!(get(&client, 1), 1);
    client.close().unwrap();
}

#[test]
fn changed_bytes_of_tables_cost_their_blocks() {
    let memory = Arc::new(MemoryShare::new(clock()));
    let world = World::over(Arc::clone(&memory) as Arc<dyn Share>);
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let options = World::options();
    let client = world.client_over(&line, options);
    let writes: Vec<_> = (0..200).map(|index| vec![write(index, index + 1)]).collect();
    client.carry_out_many(&writes).unwrap();
    // From now on, a bit of each sum and slot is another one.
    line.lie(|call, reply| {
        if let (ShareCall::Sums { .. } | ShareCall::Slots { .. }, ShareReply::Bytes(bytes)) =
            (call, reply)
        {
            bytes.iter_mut().step_by(64).for_each(|byte| *byte ^= 1);
        }
    });
    let reads: Vec<_> = (0..200).map(|index| vec![read(index)]).collect();
    let found = client.carry_out_each(&reads).unwrap();
    let lost: Vec<u64> = (0..200).filter(|index| found[*index as usize].is_err()).collect();
    for (index, answers) in (0..).zip(&found) {
        assert!(answers.as_ref().is_err() || value(&answers.as_ref().unwrap()[0]) == index + 1);
    }
    assert!(lost.len() >= 10, "those of tables: {}", lost.len());
    assert!(client.damaged().len() >= lost.len());
    // What is lost stays so, also if the server has it again, until it is written as a whole.
    line.lie(|_, _| {});
    let one = lost[0];
    let error = client.carry_out(&[read(one)]).unwrap_err();
    assert!(matches!(error, Error::Lost(_)), "{error}");
    let other = world.client().0;
    assert!(matches!(other.carry_out(&[read(one)]), Err(Error::Lost(_))));
    other.carry_out(&[write(one, 7)]).unwrap();
    assert_eq!(value(&client.carry_out(&[read(one)]).unwrap()[0]), 7);
}

/// What comes from the server is changed; whatever is answered is right.
fn lied_to(kind: &str, lie: fn(&ShareCall<'_>, &mut ShareReply)) {
    let world = World::in_memory();
    let (writer, line) = world.client();
    let writes: Vec<_> = (0..100).map(|index| vec![write(index, index + 1)]).collect();
    // Enough that there is a state of a scribe.
    (0..4).for_each(|_| drop(writer.carry_out_many(&writes).unwrap()));
    line.lie(lie);
    // A call that waits in vain gets no wrong answer.
    let options = ClientOptions { timeout: Duration::from_secs(1), ..World::options() };
    let lied = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    lied.lie(lie);
    drop(writer);
    let client = world.knowing(&lied, options, Box::new(Unremembered::default()));
    let Ok(client) = client else { return };
    for index in 0..3 {
        match client.carry_out(&[read(index)]) {
            Ok(answers) => assert_eq!(value(&answers[0]), index + 1, "{kind}"),
            Err(error) => {
                let tells =
                    matches!(error, Error::Tampered(_) | Error::RolledBack(_) | Error::Store(_));
                assert!(tells, "{kind}: {error:?}");
                break;
            }
        }
    }
    client.close().ok();
    // An honest line shows that nothing was broken for good.
    let (honest, _) = world.client();
    assert_eq!(get(&honest, 99), 100, "{kind}");
    honest.close().unwrap();
}

#[test]
fn changed_records_give_no_wrong_data() {
    lied_to("records", |_, reply| {
        if let ShareReply::Records(records) = reply {
            records.iter_mut().for_each(|record| record.sealed[20] ^= 1);
        }
    });
    lied_to("asks of records", |_, reply| {
        if let ShareReply::Records(records) = reply {
            let asks = records.iter_mut().flat_map(|record| &mut record.asks);
            asks.for_each(|ask| ask.sealed[20] ^= 1);
        }
    });
}

#[test]
fn changed_asks_and_answers_give_no_wrong_data() {
    lied_to("answers", |_, reply| {
        if let ShareReply::Answers(answers) = reply {
            answers.iter_mut().for_each(|answer| answer.sealed[20] ^= 1);
        }
    });
    lied_to("asks", |_, reply| {
        if let ShareReply::Asks(asks, _) = reply {
            asks.iter_mut().for_each(|ask| ask.sealed[20] ^= 1);
        }
    });
}

#[test]
fn states_and_records_that_are_left_out_give_no_wrong_data() {
    lied_to("states", |call, reply| {
        if let (ShareCall::ReadCheckpoint { .. }, ShareReply::Bytes(bytes)) = (call, reply) {
            bytes.iter_mut().skip(40).step_by(1000).for_each(|byte| *byte ^= 1);
        }
    });
    lied_to("a record is left out", |_, reply| {
        if let ShareReply::Records(records) = reply
            && records.len() > 1
        {
            records.remove(0);
        }
    });
}
