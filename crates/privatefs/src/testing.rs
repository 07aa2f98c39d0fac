//! Transactions in memory, for tests: they record, die and wait on request.

use crate::error::{Error, Result};
use crate::transactions::{
    Action, Answer, Ask, Change, Changes, Compare, Does, MOST_ASKS, MOST_COMPARED, Name, Owner,
    Session, Space, Transactions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks beyond this are refused.
const MOST_BLOCKS: u64 = 1 << 22;
/// Changes that a client did not fetch; more, and it learns that anything may have changed.
const MOST_CHANGES: usize = 4096;

#[derive(Default)]
struct State {
    blocks: BTreeMap<Name, Vec<u8>>,
    changes: BTreeMap<Session, Changes>,
    ended: BTreeSet<Session>,
    full: bool,
}

/// The blocks, for any number of clients.
pub struct Memory {
    block_bytes: usize,
    state: Mutex<State>,
}

impl Memory {
    /// No blocks yet.
    pub fn new(block_bytes: usize) -> Arc<Self> {
        Arc::new(Self { block_bytes, state: Mutex::default() })
    }

    /// A client of its own.
    pub fn client(self: &Arc<Self>, session: Session) -> Arc<MemoryClient> {
        self.state().changes.insert(session, Changes::Known(Vec::new()));
        Arc::new(MemoryClient {
            memory: Arc::clone(self),
            session: Mutex::new(session),
            next: Mutex::default(),
            log: Mutex::default(),
            left: Mutex::new(None),
            before: Mutex::default(),
        })
    }

    /// Ends a session: its later asks are refused.
    pub fn end(&self, session: Session) {
        let mut state = self.state();
        state.ended.insert(session);
        state.changes.remove(&session);
    }

    /// Lets no more blocks come to be.
    pub fn fill(&self, full: bool) {
        self.state().full = full;
    }

    /// Changes a block behind everybody's back.
    pub fn tamper(&self, name: Name, change: impl FnOnce(&mut Option<Vec<u8>>)) {
        let mut state = self.state();
        let mut block = state.blocks.remove(&name);
        change(&mut block);
        state.blocks.extend(block.map(|block| (name, block)));
    }

    /// How many blocks exist.
    pub fn blocks(&self) -> usize {
        self.state().blocks.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Before = Box<dyn Fn() + Send + Sync>;

/// One client's line to the blocks.
pub struct MemoryClient {
    memory: Arc<Memory>,
    session: Mutex<Session>,
    next: Mutex<Option<Session>>,
    log: Mutex<Vec<Vec<Ask>>>,
    left: Mutex<Option<u64>>,
    before: Mutex<Option<Arc<Before>>>,
}

impl MemoryClient {
    /// The transactions since the last call.
    pub fn take_log(&self) -> Vec<Vec<Ask>> {
        std::mem::take(&mut *self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Dies after this many more transactions.
    pub fn die_after(&self, transactions: u64) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(transactions);
    }

    /// When its session has ended, it goes on in this one.
    pub fn goes_on_as(&self, session: Session) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }

    /// Calls this before each transaction, on the thread that asks.
    pub fn before_each(&self, step: Before) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(step));
    }

    /// The session to ask in.
    fn asks_in(&self, state: &mut State) -> Result<Session> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if state.ended.contains(&*session) {
            let next = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
            *session = next.ok_or_else(Self::dead)?;
            state.changes.insert(*session, Changes::Unknown);
        }
        Ok(*session)
    }

    fn dead() -> Error {
        Error::Below("the line is cut".into())
    }

    fn step(&self) -> Result<()> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(before) = before {
            before();
        }
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match left.as_mut() {
            Some(0) => return Err(Self::dead()),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }
}

impl State {
    fn carry_out(&mut self, asks: &[Ask], by: &Session, block_bytes: usize) -> Result<Vec<Answer>> {
        check(asks, block_bytes)?;
        let done = asks.iter().all(|ask| holds(self.blocks.get(&ask.name), &ask.compare));
        let answer = |ask: &Ask| {
            let asked = matches!(&ask.does, Does::Block(operation) if operation.and_read);
            let content = self.blocks.get(&ask.name).filter(|_| asked).cloned();
            Answer { done, content }
        };
        let answers = asks.iter().map(answer).collect();
        let keeps = |action: &Action| matches!(action, Action::Read | Action::Remove);
        let grows = |ask: &Ask| match &ask.does {
            Does::Block(operation) => !keeps(&operation.action),
            _ => false,
        };
        let full = self.full || self.blocks.len() as u64 >= MOST_BLOCKS;
        if full && asks.iter().any(|ask| grows(ask) && !self.blocks.contains_key(&ask.name)) {
            return Err(Error::Full("more blocks"));
        }
        for ask in asks.iter().filter(|_| done) {
            self.apply(ask, by, block_bytes);
        }
        Ok(answers)
    }

    fn apply(&mut self, ask: &Ask, by: &Session, block_bytes: usize) {
        let name = ask.name;
        match &ask.does {
            Does::Block(operation) => match &operation.action {
                Action::Read => return,
                Action::Remove => drop(self.blocks.remove(&name)),
                action => {
                    let block = self.blocks.entry(name).or_insert_with(|| vec![0; block_bytes]);
                    action.write_to(block);
                }
            },
            Does::Forget => {
                self.blocks
                    .retain(|known, _| known.owner != name.owner || known.index < name.index);
            }
            Does::End(session) => {
                self.ended.insert(*session);
                return;
            }
        }
        let change = Change { session: *by, name, and_later: ask.does == Does::Forget };
        for (session, changes) in &mut self.changes {
            if session == by {
                continue;
            }
            match changes {
                Changes::Known(known) if known.len() < MOST_CHANGES => known.push(change),
                _ => *changes = Changes::Unknown,
            }
        }
    }
}

/// The rules of [`Transactions`] for asks.
fn check(asks: &[Ask], block_bytes: usize) -> Result<()> {
    let names: BTreeSet<Name> = asks.iter().map(|ask| ask.name).collect();
    if asks.is_empty() || asks.len() > MOST_ASKS || names.len() != asks.len() {
        return Err(Error::Invalid("a transaction"));
    }
    for ask in asks {
        let end = match &ask.does {
            Does::Block(operation) => operation.action.end(),
            _ => 0,
        };
        let compared = match &ask.compare {
            Compare::Bytes(at, bytes) if bytes.len() <= MOST_COMPARED => at + bytes.len(),
            Compare::Bytes(..) => usize::MAX,
            _ => 0,
        };
        if end.max(compared) > block_bytes {
            return Err(Error::Invalid("an ask"));
        }
    }
    Ok(())
}

fn holds(block: Option<&Vec<u8>>, compare: &Compare) -> bool {
    match (compare, block) {
        (Compare::Always, _) | (Compare::Absent, None) | (Compare::Exists, Some(_)) => true,
        (Compare::Bytes(at, bytes), Some(block)) => block[*at..at + bytes.len()] == bytes[..],
        _ => false,
    }
}

impl Transactions for MemoryClient {
    fn carry_out(&self, asks: &[Ask]) -> Result<Vec<Answer>> {
        self.step()?;
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(asks.to_vec());
        let mut state = self.memory.state();
        let session = self.asks_in(&mut state)?;
        state.carry_out(asks, &session, self.memory.block_bytes)
    }

    fn carry_out_many(&self, transactions: Vec<Vec<Ask>>) -> Result<Vec<Vec<Answer>>> {
        transactions.iter().map(|asks| self.carry_out(asks)).collect()
    }

    fn carry_out_in(
        &self,
        session: Session,
        transactions: Vec<Vec<Ask>>,
    ) -> Result<Option<Vec<Vec<Answer>>>> {
        let mut answers = Vec::new();
        for asks in transactions {
            self.step()?;
            let mut state = self.memory.state();
            if state.ended.contains(&session) {
                return Ok(None);
            }
            answers.push(state.carry_out(&asks, &session, self.memory.block_bytes)?);
            drop(state);
            self.log.lock().unwrap_or_else(PoisonError::into_inner).push(asks);
        }
        Ok(Some(answers))
    }

    fn changed(&self) -> Changes {
        let mut state = self.memory.state();
        let changes = state.changes.get_mut(&self.session());
        changes.map_or(Changes::Unknown, |changes| {
            std::mem::replace(changes, Changes::Known(Vec::new()))
        })
    }

    fn block_bytes(&self) -> usize {
        self.memory.block_bytes
    }

    fn space(&self) -> Result<Space> {
        let used = self.memory.blocks() as u64;
        Ok(Space { total: MOST_BLOCKS, free: MOST_BLOCKS.saturating_sub(used) })
    }

    fn sync(&self) -> Result<()> {
        match self.memory.state().ended.contains(&self.session()) {
            true => Err(Self::dead()),
            false => Ok(()),
        }
    }

    fn session(&self) -> Session {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_live(&self, session: &Session) -> Result<bool> {
        Ok(!self.memory.state().ended.contains(session))
    }

    fn owners(&self) -> Result<Option<Vec<Owner>>> {
        let owners: BTreeSet<Owner> =
            self.memory.state().blocks.keys().map(|name| name.owner).collect();
        Ok(Some(owners.into_iter().collect()))
    }
}
