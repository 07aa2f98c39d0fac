//! Files without names that are still open somewhere.

use crate::attempt::Attempted;
use crate::client::PrivateFs;
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout::{self, ORPHAN_LISTS};
use crate::listed::StampedList;
use crate::transactions::{Ask, Owner};

/// Takes a file's last name or one of several. `stamp` is what it was read with. It lives on
/// while somebody holds it open.
pub fn remove_name(attempt: &mut Attempted<'_>, mut inode: Inode) -> Result<()> {
    let (fs, stamp) = (attempt.fs, inode.stamp);
    inode.nlink = inode.nlink.saturating_sub(1);
    if inode.nlink == 0 && !fs.anybody_holds(&inode.holders)? {
        attempt.ask(inode.forget());
        return Ok(());
    }
    inode.changed(fs.random(), fs.now());
    if inode.nlink > 0 {
        attempt.ask(inode.replace(stamp, fs.block_bytes));
        return Ok(());
    }
    let mut list = read_list(attempt, inode.id)?;
    if !list.has_room(fs.block_bytes) {
        return Err(Error::Full("open files without names"));
    }
    list.ids.push(inode.id);
    write_list(attempt, inode.id, &list);
    attempt.ask(inode.orphan(stamp, fs.block_bytes));
    Ok(())
}

/// Removes a file that nobody holds and that has no name.
pub fn reap(attempt: &mut Attempted<'_>, inode: &Inode) -> Result<()> {
    let mut list = read_list(attempt, inode.id)?;
    if list.ids.contains(&inode.id) {
        list.ids.retain(|id| *id != inode.id);
        write_list(attempt, inode.id, &list);
    }
    attempt.ask(inode.forget());
    Ok(())
}

fn read_list(attempt: &mut Attempted<'_>, id: Owner) -> Result<StampedList> {
    StampedList::decode(attempt.read(layout::orphans(id))?.as_deref())
}

fn write_list(attempt: &mut Attempted<'_>, id: Owner, list: &StampedList) {
    let action = list.write(attempt.fs.random());
    attempt.ask(Ask::change(layout::orphans(id), action, list.unchanged()));
}

impl PrivateFs {
    /// All files in the lists of orphans.
    pub(crate) fn orphans(&self) -> Result<Vec<Owner>> {
        self.look_again(|attempt| {
            let names: Vec<_> = (0..ORPHAN_LISTS).map(layout::orphan_list).collect();
            attempt.read_many(&names)?;
            let mut ids = Vec::new();
            for name in names {
                ids.extend(StampedList::decode(attempt.read(name)?.as_deref())?.ids);
            }
            Ok(ids)
        })
    }

    /// Removes files without names whose holders' sessions have ended. It asks for each list of
    /// orphans, and for each orphan. For the start of a client, and when a session ended.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn clean_up(&self) -> Result<u64> {
        let mut removed = 0;
        for id in self.orphans()? {
            removed += u64::from(self.change(|attempt| {
                attempt.ask_afresh();
                let Some(inode) = attempt.find_inode(id)? else {
                    let mut list = read_list(attempt, id)?;
                    list.ids.retain(|listed| *listed != id);
                    write_list(attempt, id, &list);
                    return Ok(false);
                };
                if inode.nlink > 0 || self.anybody_holds(&inode.holders)? {
                    return Ok(false);
                }
                reap(attempt, &inode)?;
                Ok(true)
            })?);
        }
        Ok(removed)
    }
}
