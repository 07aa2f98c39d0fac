//! The processes that use a mount.

use super::fault::MountFault;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Processes named at most.
const NAMED: usize = 5;

/// The processes that have files open below a directory or work in it, as far as we may see them,
/// as in `vim (412), bash (97)`; empty if none is visible.
fn users(dir: &Path) -> String {
    let mut found = Vec::new();
    let Ok(processes) = std::fs::read_dir("/proc") else { return String::new() };
    let ours = std::process::id().to_string();
    for process in processes.flatten() {
        let id = process.file_name();
        let is_process = id.as_bytes().iter().all(u8::is_ascii_digit);
        if is_process && id.as_bytes() != ours.as_bytes() && uses(&process.path(), dir) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} ({})", name.trim(), id.display()));
        }
    }
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    let mut text = found.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

/// Only reads links, never follows them: the mount itself may not answer.
fn uses(process: &Path, dir: &Path) -> bool {
    let leads_in = |link: &Path| std::fs::read_link(link).is_ok_and(|to| to.starts_with(dir));
    if ["cwd", "root", "exe"].iter().any(|link| leads_in(&process.join(link))) {
        return true;
    }
    let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    if open.map(|entry| entry.path()).any(|link| leads_in(&link)) {
        return true;
    }
    let mapped = std::fs::read_dir(process.join("map_files")).into_iter().flatten().flatten();
    mapped.map(|entry| entry.path()).any(|link| leads_in(&link))
}

/// The error that a directory is in use.
pub fn in_use(dir: &Path) -> MountFault {
    MountFault::InUse { dir: dir.to_owned(), users: users(dir) }
}
