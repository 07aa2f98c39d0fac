//! Extended attributes: in the inode while they are short, else in blocks of their own.
//!
//! ```text
//! { name's bytes 1 | value's bytes 4 | name | value } ...       each block: stamp 16 | part
//! ```

use crate::attempt::Attempted;
use crate::client::PrivateFs;
use crate::error::{Error, Result};
use crate::inode::Inode;
use crate::layout::{self, BlockCursor, XATTR_BLOCKS};
use crate::transactions::{Action, Ask, Compare, Name, Owner};
use crate::types::{XATTR_NAME_BYTES, XattrMode};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;
const STAMP: usize = 16;

impl PrivateFs {
    /// The value of an attribute.
    ///
    /// # Errors
    /// `NoAttribute`; as [`Self::attr`].
    pub fn xattr(&self, id: Owner, name: &[u8]) -> Result<Vec<u8>> {
        let pairs = self.look(|attempt| {
            let inode = attempt.inode(id)?;
            load(attempt, &inode)
        })?;
        let found = pairs.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value).ok_or(Error::NoAttribute)
    }

    /// The names of all attributes.
    ///
    /// # Errors
    /// As [`Self::attr`].
    pub fn xattr_names(&self, id: Owner) -> Result<Vec<Vec<u8>>> {
        let pairs = self.look(|attempt| {
            let inode = attempt.inode(id)?;
            load(attempt, &inode)
        })?;
        Ok(pairs.into_iter().map(|(name, _)| name).collect())
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// `Exists` and `NoAttribute` by the mode; `Full` beyond what an inode may have.
    pub fn set_xattr(&self, id: Owner, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        if name.is_empty() || name.len() > XATTR_NAME_BYTES {
            return Err(Error::NameTooLong);
        }
        self.change(|attempt| {
            let mut inode = attempt.inode(id)?;
            let mut pairs = load(attempt, &inode)?;
            let at = pairs.iter().position(|(known, _)| known == name);
            match (mode, at) {
                (XattrMode::Create, Some(_)) => return Err(Error::Exists),
                (XattrMode::Replace, None) => return Err(Error::NoAttribute),
                (_, Some(at)) => pairs[at].1 = value.to_vec(),
                (_, None) => pairs.push((name.to_vec(), value.to_vec())),
            }
            store(attempt, &mut inode, &pairs)
        })
    }

    /// Removes an attribute.
    ///
    /// # Errors
    /// `NoAttribute`; as [`Self::attr`].
    pub fn remove_xattr(&self, id: Owner, name: &[u8]) -> Result<()> {
        self.change(|attempt| {
            let mut inode = attempt.inode(id)?;
            let mut pairs = load(attempt, &inode)?;
            let before = pairs.len();
            pairs.retain(|(known, _)| known != name);
            match pairs.len() == before {
                true => Err(Error::NoAttribute),
                false => store(attempt, &mut inode, &pairs),
            }
        })
    }
}

fn blocks(bytes: usize, block_bytes: usize) -> usize {
    bytes.div_ceil(block_bytes - STAMP)
}

fn is_elsewhere(inode: &Inode) -> bool {
    inode.xattrs_stamp != [0; 16]
}

fn load(attempt: &mut Attempted<'_>, inode: &Inode) -> Result<Pairs> {
    if !is_elsewhere(inode) {
        return decode(&inode.xattrs);
    }
    let bytes = inode.xattrs_bytes as usize;
    let count = blocks(bytes, attempt.fs.block_bytes);
    if count > XATTR_BLOCKS {
        return Err(Error::Damaged("attributes that are too long"));
    }
    let names: Vec<Name> = (0..count).map(|part| layout::xattrs(inode.id, part)).collect();
    attempt.read_many(&names)?;
    let mut all = Vec::new();
    for name in names {
        let block = attempt.read(name)?.ok_or(Error::Conflict)?;
        // Another stamp: others changed the attributes after the inode was read.
        if block[..STAMP] != inode.xattrs_stamp {
            return Err(Error::Conflict);
        }
        all.extend_from_slice(&block[STAMP..]);
    }
    decode(all.get(..bytes).ok_or(Error::Damaged("attributes that end early"))?)
}

fn store(attempt: &mut Attempted<'_>, inode: &mut Inode, pairs: &Pairs) -> Result<()> {
    let fs = attempt.fs;
    let (bytes, stamp) = (encode(pairs), inode.stamp);
    let before = match is_elsewhere(inode) {
        true => blocks(inode.xattrs_bytes as usize, fs.block_bytes),
        false => 0,
    };
    inode.xattrs_bytes = bytes.len() as u32;
    let mut parts = Vec::new();
    if inode.fits_xattrs(bytes.len(), fs.block_bytes) {
        (inode.xattrs, inode.xattrs_stamp) = (bytes, [0; 16]);
    } else {
        (inode.xattrs, inode.xattrs_stamp) = (Vec::new(), fs.random());
        parts = bytes.chunks(fs.block_bytes - STAMP).map(<[u8]>::to_vec).collect();
    }
    if parts.len() > XATTR_BLOCKS {
        return Err(Error::Full("attributes of one inode"));
    }
    for at in 0..parts.len().max(before) {
        let action = match parts.get(at) {
            Some(part) => Action::Write([&inode.xattrs_stamp, part.as_slice()].concat()),
            None => Action::Remove,
        };
        attempt.ask(Ask::change(layout::xattrs(inode.id, at), action, Compare::Always));
    }
    inode.changed(fs.random(), fs.now());
    attempt.ask(inode.replace(stamp, fs.block_bytes));
    Ok(())
}

fn encode(pairs: &Pairs) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in pairs {
        bytes.push(name.len() as u8);
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(name);
        bytes.extend(value);
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Pairs> {
    let (mut at, mut pairs) = (BlockCursor(bytes), Vec::new());
    while !at.0.is_empty() {
        let (name, value) = (at.u8()?, at.u32()?);
        pairs.push((at.bytes(name.into())?.to_vec(), at.bytes(value as usize)?.to_vec()));
    }
    Ok(pairs)
}
