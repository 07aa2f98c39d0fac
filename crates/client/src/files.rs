//! The file system for several writers over a client.

use crate::client::Client;
use crate::presence;
use oblivio_privatefs::{self as fs, Answer, Ask, Session};
use std::sync::{Mutex, PoisonError};

/// A client's transactions as the file system wants them.
pub struct ClientFiles {
    client: Client,
    /// The newest session that has its block.
    present: Mutex<Option<Session>>,
}

fn below(error: oblivio_volume::Error) -> fs::Error {
    match error {
        oblivio_volume::Error::Full(_) => fs::Error::Full("more blocks"),
        oblivio_volume::Error::Lost(lost) => fs::Error::Lost(lost.to_string()),
        other => fs::Error::Below(Box::new(other)),
    }
}

impl ClientFiles {
    /// The transactions of a client, which should hear of changes
    /// ([`crate::ClientOptions::notices`]).
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

impl fs::Transactions for ClientFiles {
    fn carry_out(&self, asks: &[Ask]) -> fs::Result<Vec<Answer>> {
        let done = self.client.carry_out(asks).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done)
    }

    fn carry_out_many(&self, transactions: Vec<Vec<Ask>>) -> fs::Result<Vec<Vec<Answer>>> {
        let done = self.client.carry_out_many(&transactions).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done)
    }

    fn carry_out_each(&self, transactions: Vec<Vec<Ask>>) -> fs::Result<Vec<Option<Vec<Answer>>>> {
        let done = self.client.carry_out_each(&transactions).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done.into_iter().map(Result::ok).collect())
    }

    fn carry_out_in(
        &self,
        session: Session,
        transactions: Vec<Vec<Ask>>,
    ) -> fs::Result<Option<Vec<Vec<Answer>>>> {
        let done = self.client.carry_out_in(session, &transactions).map_err(below)?;
        self.be_present().map_err(below)?;
        Ok(done)
    }

    fn changed(&self) -> fs::Changes {
        self.client.changed().map_or(fs::Changes::Unknown, fs::Changes::Known)
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

    fn damaged(&self) -> u64 {
        self.client.damaged_count()
    }

    fn session(&self) -> Session {
        // One without its block would be taken for ended.
        let present = *self.present.lock().unwrap_or_else(PoisonError::into_inner);
        present.unwrap_or_else(|| self.client.session())
    }

    fn is_live(&self, session: &Session) -> fs::Result<bool> {
        let session = *session;
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
