//! One try of an operation: what it read, and the asks it ends with. And the loop around it.

use crate::base::{ClientBase, lock};
use crate::cache::Block;
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout;
use crate::transactions::{Action, Answer, Ask, Does, MOST_ASKS, Name, Owner, Session, TOGETHER};
use crate::types::FileKind;
use std::collections::BTreeMap;

/// A change is given up when it met others this often. Of each meeting one side wins.
const MOST_TRIES: u32 = 2000;
/// Blocks that were read one after the other may contradict each other, while others change them.
/// If they do it this often, it is no race.
const MOST_CONTRADICTIONS: u32 = 200;

pub struct Attempted<'a> {
    pub fs: &'a ClientBase,
    fresh: bool,
    used_cache: bool,
    seen: BTreeMap<Name, Option<Block>>,
    asks: Vec<Ask>,
    crowded: Option<Owner>,
    only: Option<Session>,
}

impl<'a> Attempted<'a> {
    pub fn new(fs: &'a ClientBase, fresh: bool) -> Self {
        let (seen, asks) = Default::default();
        Self { fs, fresh, used_cache: false, seen, asks, crowded: None, only: None }
    }

    /// From here on nothing comes from the cache.
    pub fn ask_afresh(&mut self) {
        self.fresh = true;
    }

    /// It is carried out in this session, or not at all.
    pub fn only_in(&mut self, session: Option<Session>) {
        self.only = session;
    }

    pub fn used_cache(&self) -> bool {
        self.used_cache
    }

    /// This directory needs one bucket more.
    pub fn crowd(&mut self, directory: Owner) {
        self.crowded = Some(directory);
    }

    pub fn crowded(&self) -> Option<Owner> {
        self.crowded
    }

    pub fn read(&mut self, name: Name) -> Result<Option<Block>> {
        self.read_many(&[name])?;
        Ok(self.seen.get(&name).cloned().flatten())
    }

    /// Makes blocks known, with the reads in flight together.
    pub fn read_many(&mut self, names: &[Name]) -> Result<()> {
        let mut missing = Vec::new();
        for &name in names {
            if self.seen.contains_key(&name) || missing.contains(&name) {
                continue;
            }
            let cached = match self.fresh {
                true => None,
                false => lock(&self.fs.cache).get(name),
            };
            match cached {
                Some(block) => {
                    self.used_cache = true;
                    self.seen.insert(name, block);
                }
                None => missing.push(name),
            }
        }
        for names in missing.chunks(TOGETHER) {
            self.fetch(names)?;
        }
        Ok(())
    }

    fn fetch(&mut self, names: &[Name]) -> Result<()> {
        let cache = &self.fs.cache;
        names.iter().for_each(|name| lock(cache).begin_read(*name));
        let answers = self.fs.contents(names);
        let mut answers = match answers {
            Ok(answers) => answers.into_iter(),
            Err(error) => {
                names.iter().for_each(|name| lock(cache).end(*name, false, None));
                return Err(error);
            }
        };
        for &name in names {
            let block = answers.next().flatten().map(Block::from);
            lock(cache).end(name, false, Some(block.clone()));
            self.seen.insert(name, block);
        }
        Ok(())
    }

    pub fn inode(&mut self, id: Owner) -> Result<Inode> {
        self.find_inode(id)?.ok_or(Error::Stale)
    }

    pub fn find_inode(&mut self, id: Owner) -> Result<Option<Inode>> {
        let block = self.read(layout::inode(id))?;
        block.map(|block| Inode::decode(id, &block)).transpose()
    }

    pub fn directory(&mut self, id: Owner) -> Result<Inode> {
        let inode = self.inode(id)?;
        match inode.kind {
            FileKind::Directory => Ok(inode),
            _ => Err(Error::NotADirectory),
        }
    }

    pub fn ask(&mut self, ask: Ask) {
        self.asks.push(ask);
    }

    /// Carries out all asks. False: others changed something that they compare.
    pub fn commit(self) -> Result<bool> {
        if self.asks.is_empty() {
            return Ok(true);
        }
        if self.asks.len() > MOST_ASKS {
            return Err(Error::Full("a change of so many blocks at once"));
        }
        let (fs, cache) = (self.fs, &self.fs.cache);
        self.asks.iter().for_each(|ask| lock(cache).begin_write(ask.name));
        let answers = fs.carry_out(self.only, std::slice::from_ref(&self.asks));
        let answers = answers.map(|mut answers| answers.pop().unwrap_or_default());
        let done = match &answers {
            Ok(answers) if answers.len() == self.asks.len() => {
                Ok(answers.iter().all(|answer| answer.done))
            }
            Ok(_) => Err(Error::Damaged("answers are missing")),
            Err(_) => Ok(false),
        };
        let mut cache = lock(cache);
        for (at, ask) in self.asks.iter().enumerate() {
            let answer = answers.as_ref().ok().and_then(|answers| answers.get(at));
            let known = answer.filter(|_| matches!(done, Ok(true)));
            let known = known.and_then(|answer| after(ask, answer, fs.block_bytes));
            cache.end(ask.name, true, known);
            if ask.does == Does::Forget {
                cache.forget_from(ask.name);
            }
        }
        answers?;
        done
    }
}

/// What a block holds after an ask, if that is known.
fn after(ask: &Ask, answer: &Answer, block_bytes: usize) -> Option<Option<Block>> {
    let (action, and_read) = match &ask.does {
        Does::Block(operation) => (&operation.action, operation.and_read),
        Does::Forget => return Some(None),
        Does::End(_) => return None,
    };
    let mut block = match action {
        Action::Write(_) => Vec::new(),
        Action::Patch { .. } | Action::Patches(_) if and_read => {
            answer.content.clone().unwrap_or_default()
        }
        Action::Remove => return Some(None),
        _ => return None,
    };
    block.resize(block_bytes, 0);
    if action.end() > block_bytes {
        return None;
    }
    action.write_to(&mut block);
    Some(Some(Block::from(block)))
}

impl ClientBase {
    /// Answers from what is cached or asked for. A strict client asks.
    pub fn look<R>(&self, plan: impl FnMut(&mut Attempted<'_>) -> Result<R>) -> Result<R> {
        self.notice_changes();
        self.repeat(self.options.strict, true, plan)
    }

    /// As [`Self::look`], never from the cache.
    pub fn look_again<R>(&self, plan: impl FnMut(&mut Attempted<'_>) -> Result<R>) -> Result<R> {
        self.notice_changes();
        self.repeat(true, true, plan)
    }

    /// Carries out the asks that the plan ends with as one transaction; makes the plan again if
    /// others changed what it was made from. A refusal is never made from the cache.
    pub fn change<R>(&self, plan: impl FnMut(&mut Attempted<'_>) -> Result<R>) -> Result<R> {
        self.notice_changes();
        self.repeat(self.options.strict, false, plan)
    }

    /// As [`Self::change`], in this session or not at all.
    pub fn change_in<R>(
        &self,
        only: Option<Session>,
        mut plan: impl FnMut(&mut Attempted<'_>) -> Result<R>,
    ) -> Result<R> {
        self.change(|attempt| {
            attempt.only_in(only);
            plan(attempt)
        })
    }

    fn repeat<R>(
        &self,
        mut fresh: bool,
        trust: bool,
        mut plan: impl FnMut(&mut Attempted<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut contradictions = 0;
        for _ in 0..MOST_TRIES {
            let mut attempt = Attempted::new(self, fresh);
            match plan(&mut attempt) {
                Ok(answer) => {
                    let crowded = attempt.crowded();
                    if attempt.commit()? {
                        self.relieve(crowded);
                        return Ok(answer);
                    }
                }
                Err(Error::Conflict) => match attempt.crowded() {
                    Some(directory) => self.split(directory)?,
                    None if contradictions == MOST_CONTRADICTIONS => {
                        return Err(Error::Damaged("blocks that do not fit together"));
                    }
                    None => contradictions += 1,
                },
                Err(error) if !trust && error.is_refusal() && attempt.used_cache() => {}
                Err(error) => return Err(error),
            }
            fresh = true;
        }
        Err(Error::Busy)
    }

    /// A bucket needed a further block: the directory gets one bucket more. If that fails, the next
    /// name that meets a full bucket tries again.
    fn relieve(&self, crowded: Option<Owner>) {
        if let Some(directory) = crowded {
            let _ = self.split(directory);
        }
    }
}
