//! Renames: one transaction, whatever they move and replace.

use crate::attempt::Attempted;
use crate::bucket::{Dirent, check_name};
use crate::client::PrivateFs;
use crate::directory::{ChangedBucket, check_empty};
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout::{self, ROOT};
use crate::listed::StampedList;
use crate::names::{find, note_in};
use crate::orphans::remove_name;
use crate::transactions::{Ask, Owner};
use crate::types::{FileKind, RenameMode};

/// Directories within directories; deeper ones are a circle.
const DEEPEST: usize = 100_000;

/// A name in a directory.
#[derive(Clone, Copy)]
struct Place<'a> {
    parent: Owner,
    name: &'a [u8],
}

/// What a rename found.
struct Found {
    moved: Dirent,
    target: Option<Dirent>,
}

impl PrivateFs {
    /// Moves a name.
    ///
    /// # Errors
    /// `NotFound`, `Exists`, `NotEmpty`, `IsADirectory`, `NotADirectory`; `Invalid` if a directory
    /// would come to be within itself.
    pub fn rename(
        &self,
        (parent, name): (Owner, &[u8]),
        (new_parent, new_name): (Owner, &[u8]),
        mode: RenameMode,
    ) -> Result<()> {
        check_name(name)?;
        check_name(new_name)?;
        let (from, to) = (Place { parent, name }, Place { parent: new_parent, name: new_name });
        self.change(|attempt| plan(attempt, from, to, mode))
    }
}

fn plan(attempt: &mut Attempted<'_>, from: Place, to: Place, mode: RenameMode) -> Result<()> {
    let (mut source, mut old) = find(attempt, from.parent, from.name)?;
    let (mut target, mut new) = find(attempt, to.parent, to.name)?;
    let moved = old.find(from.name).ok_or(Error::NotFound)?.clone();
    let found = Found { moved, target: new.find(to.name).cloned() };
    if !is_allowed(&found, mode)? {
        return Ok(());
    }
    let crossing = from.parent != to.parent;
    change_names(attempt, &mut old, &mut new, (from, to), &found, mode)?;

    let links = (source.nlink, target.nlink);
    let is_directory = |entry: &Dirent| entry.kind == FileKind::Directory;
    if crossing && is_directory(&found.moved) {
        source.nlink = source.nlink.saturating_sub(1);
        target.link()?;
    }
    if found.target.as_ref().is_some_and(is_directory) {
        // Within one directory there is one inode, in two variables: `source` is written.
        let of = if crossing { &mut target } else { &mut source };
        of.nlink = of.nlink.saturating_sub(1);
        if mode == RenameMode::Exchange {
            source.link()?;
        }
    }
    note_in(attempt, source, links.0);
    if crossing {
        note_in(attempt, target, links.1);
    }
    move_directories(attempt, (from, to), &found, mode)?;
    match (mode, found.target) {
        (RenameMode::Replace, Some(replaced)) => remove(attempt, &replaced),
        _ => Ok(()),
    }
}

/// Whether there is something to do, and no rule against it.
fn is_allowed(found: &Found, mode: RenameMode) -> Result<bool> {
    let Some(target) = &found.target else {
        return match mode {
            RenameMode::Exchange => Err(Error::NotFound),
            _ => Ok(true),
        };
    };
    let directories = (found.moved.kind == FileKind::Directory, target.kind == FileKind::Directory);
    match (mode, directories) {
        (RenameMode::NoReplace, _) => Err(Error::Exists),
        // Two names of one file: POSIX leaves both.
        _ if target.id == found.moved.id => Ok(false),
        (RenameMode::Replace, (true, false)) => Err(Error::NotADirectory),
        (RenameMode::Replace, (false, true)) => Err(Error::IsADirectory),
        _ => Ok(true),
    }
}

fn change_names(
    attempt: &mut Attempted<'_>,
    old: &mut ChangedBucket,
    new: &mut ChangedBucket,
    (from, to): (Place, Place),
    found: &Found,
    mode: RenameMode,
) -> Result<()> {
    let one = old.is(new);
    let renamed = Dirent { name: to.name.to_vec(), ..found.moved.clone() };
    match &found.target {
        Some(target) if mode == RenameMode::Exchange => {
            old.replace(Dirent { name: from.name.to_vec(), ..target.clone() });
        }
        _ => old.remove(from.name),
    }
    // Both names may be in one bucket.
    let new = if one { &mut *old } else { new };
    match found.target {
        Some(_) => new.replace(renamed),
        None => new.insert(attempt, renamed)?,
    }
    new.write(attempt);
    if !one {
        old.write(attempt);
    }
    Ok(())
}

/// Directories that change their parent. One such rename at a time: each changes a counter of the
/// whole volume, so no two make a circle together.
fn move_directories(
    attempt: &mut Attempted<'_>,
    (from, to): (Place, Place),
    found: &Found,
    mode: RenameMode,
) -> Result<()> {
    let mut moves = Vec::new();
    if found.moved.kind == FileKind::Directory {
        moves.push((found.moved.id, to.parent));
    }
    if let (RenameMode::Exchange, Some(target)) = (mode, &found.target)
        && target.kind == FileKind::Directory
    {
        moves.push((target.id, from.parent));
    }
    if from.parent == to.parent || moves.is_empty() {
        return Ok(());
    }
    attempt.ask_afresh();
    let mut counter = StampedList::decode(attempt.read(layout::moves())?.as_deref())?;
    for &(id, parent) in &moves {
        check_not_within(attempt, parent, id)?;
    }
    for (id, parent) in moves {
        let mut inode = attempt.find_inode(id)?.ok_or(Error::Conflict)?;
        let stamp = inode.stamp;
        inode.parent = parent;
        inode.changed(attempt.fs.random(), attempt.fs.now());
        attempt.ask(inode.replace(stamp, attempt.fs.block_bytes));
    }
    let compare = counter.unchanged();
    counter.ids = vec![];
    let action = counter.write(attempt.fs.random());
    attempt.ask(Ask::change(layout::moves(), action, compare));
    Ok(())
}

/// Asks for each directory from here to the root, after the counter: none of them can have moved
/// when the transaction finds the counter unchanged.
fn check_not_within(attempt: &mut Attempted<'_>, mut directory: Owner, moved: Owner) -> Result<()> {
    for _ in 0..DEEPEST {
        if directory == moved {
            return Err(Error::Invalid("a directory within itself"));
        }
        if directory == ROOT {
            return Ok(());
        }
        let block = attempt.fs.contents(&[layout::inode(directory)])?.pop().flatten();
        let inode = Inode::decode(directory, &block.ok_or(Error::Conflict)?)?;
        directory = inode.parent;
    }
    Err(Error::Damaged("directories in a circle"))
}

fn remove(attempt: &mut Attempted<'_>, replaced: &Dirent) -> Result<()> {
    if replaced.kind == FileKind::Directory {
        attempt.ask_afresh();
        let inode = attempt.find_inode(replaced.id)?.ok_or(Error::Conflict)?;
        check_empty(attempt, &inode)?;
        attempt.ask(inode.forget());
        return Ok(());
    }
    let inode = attempt.find_inode(replaced.id)?.ok_or(Error::Conflict)?;
    remove_name(attempt, inode)
}
