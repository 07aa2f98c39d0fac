//! The file system for several writers over a client.

use crate::client::Client;
use crate::presence;
use oblivio_engine::pyramid::share as engine;
use oblivio_engine::pyramid::{Name, Operation};
use oblivio_privatefs as fs;
use std::sync::{Mutex, PoisonError};

/// A client's transactions as the file system wants them.
pub struct Files {
    client: Client,
    /// The newest session that has its block.
    present: Mutex<Option<engine::Session>>,
}

fn below(error: oblivio_volume::Error) -> fs::Error {
    match error {
        oblivio_volume::Error::Full(_) => fs::Error::Full("more blocks"),
        other => fs::Error::Below(Box::new(other)),
    }
}

fn session_of(session: &fs::Session) -> engine::Session {
    engine::Session(session.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
}

fn name(name: fs::Name) -> Name {
    Name { owner: name.owner, index: name.index }
}

fn ask(ask: &fs::Ask) -> engine::Ask {
    let mut and_read = ask.and_read;
    let action = match &ask.action {
        fs::Action::Read => {
            and_read = true;
            oblivio_engine::Action::Read
        }
        fs::Action::Write(bytes) => oblivio_engine::Action::Write(bytes.clone()),
        fs::Action::Patch { at, bytes } => {
            oblivio_engine::Action::Patch { offset: *at, bytes: bytes.clone() }
        }
        fs::Action::Remove => oblivio_engine::Action::Remove,
        fs::Action::Forget => return engine::Ask::forget(name(ask.name)).only_if(compare(ask)),
    };
    engine::Ask::new(name(ask.name), Operation { action, and_read }).only_if(compare(ask))
}

fn compare(ask: &fs::Ask) -> engine::Compare {
    match &ask.compare {
        fs::Compare::Always => engine::Compare::Always,
        fs::Compare::Absent => engine::Compare::Absent,
        fs::Compare::Exists => engine::Compare::Exists,
        fs::Compare::Bytes(at, bytes) => engine::Compare::Bytes(*at, bytes.clone()),
    }
}

fn change(change: engine::Change) -> fs::Change {
    let name = fs::Name { owner: change.name.owner, index: change.name.index };
    if change.and_later { fs::Change::Forgotten(name) } else { fs::Change::Block(name) }
}

fn answers(answers: Vec<engine::Answer>) -> Vec<fs::Answer> {
    let one = |answer: engine::Answer| fs::Answer { done: answer.done, content: answer.content };
    answers.into_iter().map(one).collect()
}

impl Files {
    /// The transactions of a client, which should hear of changes ([`crate::Options::notices`]).
    ///
    /// # Errors
    /// Those of the line.
    pub fn new(client: Client) -> oblivio_volume::Result<Self> {
        let this = Self { client, present: Mutex::new(None) };
        this.be_present()?;
        Ok(this)
    }

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Ends the client, as [`Client::close`].
    ///
    /// # Errors
    /// As [`Client::close`].
    pub fn close(&self) -> oblivio_volume::Result<()> {
        self.client.close()
    }

    /// Gives the client's session its block. After a long silence it is another one.
    fn be_present(&self) -> oblivio_volume::Result<()> {
        loop {
            let session = self.client.session();
            let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
            if *present == Some(session) {
                return Ok(());
            }
            self.client.carry_out(&[presence::come(session)])?;
            *present = Some(session);
        }
    }
}

impl fs::Transactions for Files {
    fn carry_out(&self, asks: &[fs::Ask]) -> fs::Result<Vec<fs::Answer>> {
        let asks: Vec<engine::Ask> = asks.iter().map(ask).collect();
        let done = self.client.carry_out(&asks).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(answers(done))
    }

    fn carry_out_many(&self, transactions: Vec<Vec<fs::Ask>>) -> fs::Result<Vec<Vec<fs::Answer>>> {
        let asks: Vec<Vec<engine::Ask>> =
            transactions.iter().map(|asks| asks.iter().map(ask).collect()).collect();
        let done = self.client.carry_out_many(&asks).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done.into_iter().map(answers).collect())
    }

    fn carry_out_in(
        &self,
        session: fs::Session,
        transactions: Vec<Vec<fs::Ask>>,
    ) -> fs::Result<Option<Vec<Vec<fs::Answer>>>> {
        let asks: Vec<Vec<engine::Ask>> =
            transactions.iter().map(|asks| asks.iter().map(ask).collect()).collect();
        let done = self.client.carry_out_in(session_of(&session), &asks).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done.map(|done| done.into_iter().map(answers).collect()))
    }

    fn changed(&self) -> fs::Changes {
        let changed = self.client.changed();
        let known = changed.map(|changes| changes.into_iter().map(change).collect());
        known.map_or(fs::Changes::Unknown, fs::Changes::Known)
    }

    fn block_bytes(&self) -> usize {
        self.client.block_bytes()
    }

    fn space(&self) -> fs::Result<fs::Space> {
        let (live, total) = self.client.blocks();
        Ok(fs::Space { total, free: total.saturating_sub(live) })
    }

    fn sync(&self) -> fs::Result<()> {
        // What was answered stands in a batch, and a batch is durable before it is read for.
        Ok(())
    }

    fn session(&self) -> fs::Session {
        // One without its block would be taken for ended.
        let present = *self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let session = present.unwrap_or_else(|| self.client.session());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&session.0.to_le_bytes());
        bytes
    }

    fn is_live(&self, session: &fs::Session) -> fs::Result<bool> {
        let session = session_of(session);
        if session == self.client.session() {
            return Ok(true);
        }
        let asked = self.client.carry_out(&[presence::look(session)]).map_err(below)?;
        let is_there = asked.first().is_none_or(|answer| answer.content.is_some());
        if !is_there {
            // Its block goes first, and its end is an ask of its own. What it asks in between would
            // land behind what follows here.
            self.client.end(session).map_err(below)?;
        }
        Ok(is_there)
    }
}
