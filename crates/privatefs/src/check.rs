//! A look at everything: names, links, orphans. For a time when no other client changes anything.

use crate::attempt::Attempted;
use crate::bucket::{self, Dirent};
use crate::client::PrivateFs;
use crate::directory::ChangedBucket;
use crate::error::{Error, Result};
use crate::inode::{DataForm, Inode};
use crate::layout::{self, MOVES, ORPHANS, ROOT};
use crate::listed::StampedList;
use crate::transactions::{Ask, Name, Owner, TOGETHER};
use crate::types::FileKind;
use std::collections::btree_map::Entry as BTreeEntry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;

/// Something that no client leaves behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A name of nothing.
    NoInode {
        /// The directory.
        parent: Owner,
        /// The name.
        name: Vec<u8>,
    },
    /// An entry's kind is not the inode's.
    WrongKind {
        /// The directory.
        parent: Owner,
        /// The name.
        name: Vec<u8>,
    },
    /// A directory has two names, or is said to be somewhere else.
    WrongParent(Owner),
    /// A number of names that is not the true one.
    WrongLinks {
        /// Which inode.
        id: Owner,
        /// What it says.
        said: u32,
        /// What was found.
        found: u32,
    },
    /// A name in a bucket that it does not belong to, or twice in its directory.
    Misplaced {
        /// The directory.
        parent: Owner,
        /// The name.
        name: Vec<u8>,
    },
    /// A file without a name that nobody holds: its session ended, or did not clean up.
    Orphan(Owner),
    /// Blocks of nothing that can be reached.
    Unreachable(Owner),
    /// An inode or directory that cannot be read.
    Damaged(Owner),
    /// Names of a directory that are lost: those of some of its blocks.
    LostNames(Owner),
    /// Data of a file that is lost to damage.
    LostData {
        /// Which inode.
        id: Owner,
        /// Its bytes, ascending.
        ranges: Vec<Range<u64>>,
    },
}

impl Problem {
    /// Whether it is only room that an ended client left.
    pub fn is_left_over(&self) -> bool {
        matches!(self, Problem::Orphan(_) | Problem::Unreachable(_))
    }

    /// Whether names are lost, perhaps.
    fn is_of_names(&self) -> bool {
        matches!(self, Problem::Damaged(_) | Problem::LostNames(_))
    }
}

impl Problem {
    /// What it is about.
    fn owner(&self) -> Owner {
        match self {
            Self::NoInode { parent, .. }
            | Self::WrongKind { parent, .. }
            | Self::Misplaced { parent, .. } => *parent,
            Self::WrongLinks { id, .. } | Self::LostData { id, .. } => *id,
            Self::WrongParent(id)
            | Self::Orphan(id)
            | Self::Unreachable(id)
            | Self::Damaged(id)
            | Self::LostNames(id) => *id,
        }
    }

    /// In words, where what it is about is called so.
    fn in_words(&self, of: &str) -> String {
        let (name, what) = match self {
            Self::NoInode { name, .. } => (name, "leads to nothing"),
            Self::WrongKind { name, .. } => (name, "says another kind than its inode"),
            Self::Misplaced { name, .. } => (name, "is in a wrong bucket, or twice"),
            Self::WrongParent(_) => return format!("{of}: a wrong parent"),
            Self::WrongLinks { said, found, .. } => {
                return format!("{of}: it says {said} links, and {found} are there");
            }
            Self::Orphan(_) => return format!("{of}: no name, and nobody holds it"),
            Self::Unreachable(_) => return format!("{of}: blocks of nothing"),
            Self::Damaged(_) => return format!("{of}: it cannot be read"),
            Self::LostNames(_) => {
                return format!("the directory {of}: some of its names are lost");
            }
            Self::LostData { ranges, .. } => {
                let range = |it: &Range<u64>| format!("{} to {}", it.start, it.end - 1);
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                return format!("{of}: bytes {} are lost", ranges.join(", "));
            }
        };
        format!("the name {:?} in {of} {what}", String::from_utf8_lossy(name))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&hex(&self.owner())))
    }
}

fn hex(id: &Owner) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Every inode that is not a directory.
    pub files: u64,
    /// Directories, including the root.
    pub directories: u64,
    /// Those of the files that have no name and are open somewhere, or were until a client died.
    pub held: u64,
    /// Whether blocks that nothing leads to were looked for.
    pub complete: bool,
    /// Everything wrong.
    pub problems: Vec<Problem>,
    /// The paths of what is wrong, as far as names lead there.
    pub paths: BTreeMap<Owner, String>,
}

impl Findings {
    /// A problem in words, with a path in the place of a number where there is one.
    pub fn line(&self, problem: &Problem) -> String {
        let id = problem.owner();
        problem.in_words(&self.paths.get(&id).cloned().unwrap_or_else(|| hex(&id)))
    }
}

/// What a walk from the root gathers.
#[derive(Default)]
struct Walk {
    names: BTreeMap<Owner, u32>,
    /// The first name of each, and the directory that has it.
    places: BTreeMap<Owner, (Owner, Vec<u8>)>,
    subdirectories: BTreeMap<Owner, u32>,
    inodes: BTreeMap<Owner, Inode>,
    held: u64,
    problems: Vec<Problem>,
}

impl Walk {
    /// The path of what names lead to.
    fn path(&self, id: Owner) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), id);
        while at != ROOT {
            let (parent, name) =
                self.places.get(&at).filter(|_| names.len() <= self.places.len())?;
            names.push(String::from_utf8_lossy(name));
            at = *parent;
        }
        let path = names.iter().rev().fold(String::new(), |path, name| path + "/" + name);
        Some(if path.is_empty() { "/".into() } else { path })
    }

    fn orphan(&mut self, fs: &PrivateFs, id: Owner) -> Result<()> {
        match fs.look_again(|attempt| attempt.find_inode(id)) {
            Ok(Some(inode)) => {
                match inode.nlink == 0 && !fs.anybody_holds(&inode.holders)? {
                    true => self.problems.push(Problem::Orphan(id)),
                    false => self.held += u64::from(inode.nlink == 0),
                }
                self.inodes.entry(id).or_insert(inode);
            }
            Ok(None) => self.problems.push(Problem::Orphan(id)),
            Err(Error::Below(error)) => return Err(Error::Below(error)),
            Err(_) => self.problems.push(Problem::Damaged(id)),
        }
        Ok(())
    }

    fn read_data(&mut self, fs: &PrivateFs) -> Result<()> {
        let block_bytes = fs.block_bytes as u64;
        let files = self.inodes.iter().filter(|(_, inode)| inode.kind == FileKind::File);
        for (id, inode) in files {
            let mut ranges: Vec<Range<u64>> = Vec::new();
            for page in lost_pages(fs, *id, inode)? {
                let range = page * block_bytes..((page + 1) * block_bytes).min(inode.size);
                match ranges.last_mut() {
                    Some(last) if last.end == range.start => last.end = range.end,
                    _ => ranges.push(range),
                }
            }
            if !ranges.is_empty() {
                self.problems.push(Problem::LostData { id: *id, ranges });
            }
        }
        Ok(())
    }
}

/// The pages of a file that cannot be read.
fn lost_pages(fs: &PrivateFs, id: Owner, inode: &Inode) -> Result<Vec<u64>> {
    let mut lost = Vec::new();
    if inode.form != DataForm::Blocks {
        return Ok(lost);
    }
    let pages: Vec<u64> = (0..inode.size.div_ceil(fs.block_bytes as u64)).collect();
    for numbers in pages.chunks(TOGETHER) {
        let names: Vec<Name> = numbers.iter().map(|&page| layout::data(id, page)).collect();
        let found = numbers.iter().zip(fs.contents_each(&names)?);
        lost.extend(found.filter(|(_, content)| content.is_err()).map(|(page, _)| *page));
    }
    Ok(lost)
}

fn checked(fs: &PrivateFs, data: bool) -> Result<Findings> {
    let mut walk = Walk::default();
    fs.walk(&mut walk)?;
    let orphans: BTreeSet<Owner> = fs.orphans()?.into_iter().collect();
    for &id in &orphans {
        walk.orphan(fs, id)?;
    }
    for (id, inode) in &walk.inodes {
        let found = match inode.kind {
            FileKind::Directory => 2 + walk.subdirectories.get(id).copied().unwrap_or(0),
            _ => walk.names.get(id).copied().unwrap_or(0),
        };
        if found != inode.nlink {
            let said = inode.nlink;
            walk.problems.push(Problem::WrongLinks { id: *id, said, found });
        }
    }
    if data {
        walk.read_data(fs)?;
    }
    let owners = fs.transactions.owners()?;
    let found = |id: &Owner| walk.inodes.contains_key(id) || walk.names.contains_key(id);
    let known = |id: &Owner| [ORPHANS, MOVES, ROOT].contains(id) || found(id);
    for id in owners.iter().flatten().filter(|id| !known(id)) {
        walk.problems.push(Problem::Unreachable(*id));
    }
    let directories = walk.inodes.values().filter(|inode| inode.kind == FileKind::Directory);
    let directories = directories.count() as u64;
    let wrong = walk.problems.iter().map(Problem::owner);
    let paths = wrong.filter_map(|id| Some((id, walk.path(id)?))).collect();
    Ok(Findings {
        paths,
        files: walk.inodes.len() as u64 - directories,
        directories,
        held: walk.held,
        complete: owners.is_some(),
        problems: walk.problems,
    })
}

impl PrivateFs {
    /// Reads all inodes and directories.
    ///
    /// # Errors
    /// Those of the transactions. What is lost to damage is none: it is a problem that is found.
    pub fn check(&self) -> Result<Findings> {
        checked(self, false)
    }

    /// Reads all inodes and directories, and all data of files.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn check_data(&self) -> Result<Findings> {
        checked(self, true)
    }

    fn walk(&self, walk: &mut Walk) -> Result<()> {
        let mut next = VecDeque::from([(ROOT, ROOT)]);
        while let Some((parent, id)) = next.pop_front() {
            let entries = match self.read_directory(id, walk) {
                Ok((inode, entries)) => {
                    if inode.parent != parent {
                        walk.problems.push(Problem::WrongParent(id));
                    }
                    walk.inodes.insert(id, inode);
                    entries
                }
                Err(Error::Below(error)) => return Err(Error::Below(error)),
                Err(_) => {
                    walk.problems.push(Problem::Damaged(id));
                    continue;
                }
            };
            for entry in entries {
                self.check_entry(id, entry, walk, &mut next)?;
            }
        }
        Ok(())
    }

    fn read_directory(&self, id: Owner, walk: &mut Walk) -> Result<(Inode, Vec<Dirent>)> {
        let (mut misplaced, mut lost) = (Vec::new(), false);
        let read = self.look_again(|attempt: &mut Attempted<'_>| {
            let inode = attempt.directory(id)?;
            let (mut entries, mut seen) = (Vec::new(), BTreeSet::new());
            for number in 0..inode.buckets {
                let bucket = match ChangedBucket::numbered(attempt, &inode, number) {
                    Err(Error::Lost(_)) => {
                        lost = true;
                        continue;
                    }
                    found => found?,
                };
                for entry in bucket.entries() {
                    let (place, _) = bucket::place(bucket::hash(id, &entry.name), inode.buckets);
                    if place != number || !seen.insert(entry.name.clone()) {
                        misplaced.push(entry.name.clone());
                    }
                    entries.push(entry.clone());
                }
            }
            Ok((inode, entries))
        });
        let misplaced = misplaced.into_iter().map(|name| Problem::Misplaced { parent: id, name });
        walk.problems.extend(misplaced);
        walk.problems.extend(lost.then_some(Problem::LostNames(id)));
        read
    }

    fn check_entry(
        &self,
        parent: Owner,
        entry: Dirent,
        walk: &mut Walk,
        next: &mut VecDeque<(Owner, Owner)>,
    ) -> Result<()> {
        let Dirent { name, id, kind } = entry;
        *walk.names.entry(id).or_default() += 1;
        walk.places.entry(id).or_insert_with(|| (parent, name.clone()));
        if let BTreeEntry::Vacant(vacant) = walk.inodes.entry(id) {
            let problem = match self.look_again(|attempt| attempt.find_inode(id)) {
                Ok(Some(inode)) => {
                    vacant.insert(inode);
                    None
                }
                Ok(None) => Some(Problem::NoInode { parent, name: name.clone() }),
                Err(Error::Below(error)) => return Err(Error::Below(error)),
                Err(_) => Some(Problem::Damaged(id)),
            };
            if let Some(problem) = problem {
                walk.problems.push(problem);
                return Ok(());
            }
        }
        if walk.inodes.get(&id).is_some_and(|inode| inode.kind != kind) {
            walk.problems.push(Problem::WrongKind { parent, name });
            return Ok(());
        }
        if kind == FileKind::Directory {
            *walk.subdirectories.entry(parent).or_default() += 1;
            match walk.names.get(&id) {
                Some(1) if id != ROOT => next.push_back((parent, id)),
                _ => walk.problems.push(Problem::WrongParent(id)),
            }
        }
        Ok(())
    }

    /// Repairs what [`Self::check`] found: numbers become the true ones, names of nothing go, and
    /// so does what nothing leads to. How many problems were repaired; misplaced names and damaged
    /// blocks are not.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn repair(&self, findings: &Findings) -> Result<u64> {
        let mut repaired = self.clean_up()?;
        // What lost names lead to is neither unreachable, nor are its links too many.
        let lacks_names = findings.problems.iter().any(Problem::is_of_names);
        for problem in &findings.problems {
            match problem {
                Problem::WrongLinks { .. } | Problem::Unreachable(_) if lacks_names => continue,
                Problem::NoInode { parent, name } | Problem::WrongKind { parent, name } => {
                    self.drop_name(*parent, name)?;
                }
                Problem::WrongLinks { id, found, .. } => self.set_links(*id, *found)?,
                Problem::Unreachable(id) => {
                    let name = layout::inode(*id);
                    let forget = Ask::forget(name);
                    self.transactions.carry_out(&[forget])?;
                }
                Problem::Orphan(_) => continue,
                Problem::WrongParent(_)
                | Problem::Misplaced { .. }
                | Problem::Damaged(_)
                | Problem::LostNames(_)
                | Problem::LostData { .. } => continue,
            }
            repaired += 1;
        }
        Ok(repaired)
    }

    fn drop_name(&self, parent: Owner, name: &[u8]) -> Result<()> {
        self.change(|attempt| {
            attempt.ask_afresh();
            let (_, mut bucket) = crate::names::find(attempt, parent, name)?;
            bucket.remove(name);
            bucket.write(attempt);
            Ok(())
        })
    }

    /// A file without any name becomes an orphan, and goes when nobody holds it.
    fn set_links(&self, id: Owner, found: u32) -> Result<()> {
        self.change(|attempt| {
            attempt.ask_afresh();
            let Some(mut inode) = attempt.find_inode(id)? else { return Ok(()) };
            let stamp = inode.stamp;
            inode.nlink = found;
            inode.changed(self.random(), self.now());
            attempt.ask(inode.replace(stamp, self.block_bytes));
            if found == 0 {
                let name = layout::orphans(id);
                let mut list = StampedList::decode(attempt.read(name)?.as_deref())?;
                if !list.ids.contains(&id) {
                    list.ids.push(id);
                    let action = list.write(self.random());
                    attempt.ask(Ask::change(name, action, list.unchanged()));
                }
            }
            Ok(())
        })
    }
}
