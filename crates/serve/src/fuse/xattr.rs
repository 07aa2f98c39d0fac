//! What the requests about extended attributes have in common.

use super::answer::FileAnswer;
use fuser::Errno;
use oblivio_volume::fs::{Ino, ROOT_INO, XattrMode};
use std::path::Path;

/// The attribute by which `oblivio umount` learns which process serves a mount. It waits for the
/// end of that process: then the volume is free.
pub const SERVER_NAME: &[u8] = b"oblivio.pid";

/// What the server of a mount answers in an attribute of this directory.
pub fn asked(dir: &Path, name: &[u8]) -> Option<String> {
    let mut value = [0; 256];
    let len = rustix::fs::getxattr(dir, std::str::from_utf8(name).ok()?, &mut value).ok()?;
    String::from_utf8(value.get(..len)?.to_vec()).ok()
}

const XATTR_CREATE: i32 = 1;
const XATTR_REPLACE: i32 = 2;

/// This process, if it is asked for.
pub fn server(ino: Ino, name: &[u8]) -> Option<Vec<u8>> {
    let asked = ino == ROOT_INO && name == SERVER_NAME;
    asked.then(|| std::process::id().to_string().into_bytes())
}

/// What a program wants; `None` if it contradicts itself.
pub fn mode(flags: i32) -> Option<XattrMode> {
    match flags & (XATTR_CREATE | XATTR_REPLACE) {
        0 => Some(XattrMode::Set),
        XATTR_CREATE => Some(XattrMode::Create),
        XATTR_REPLACE => Some(XattrMode::Replace),
        _ => None,
    }
}

/// A list of names as programs get it.
pub fn names(names: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        list.extend(name);
        list.push(0);
    }
    list
}

/// The answer with a value. With no room the caller asks only for the length.
pub fn sized(value: Vec<u8>, room: u32) -> Result<FileAnswer, Errno> {
    let len = u32::try_from(value.len()).map_err(|_| Errno::E2BIG)?;
    match room {
        0 => Ok(FileAnswer::Size(len)),
        _ if len > room => Err(Errno::ERANGE),
        _ => Ok(FileAnswer::Data(value)),
    }
}
