//! Replacing a file of this computer's own as a whole.

use crate::medium::sync_directory;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the parts of one process from each other.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// How the names of files end that are not whole yet. A crash may leave one.
pub const UNFINISHED: &str = ".new";

/// Puts a file of these bytes in the place of another one, or of none. A crash leaves the one or
/// the other, whole. At no moment may others read it. A symbolic link is followed. Returns the new
/// file, open for reading and writing.
///
/// # Errors
/// Those of the system; then the file is as it was, or the new one is there and may not last.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<File> {
    // The file itself, not a link to it.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut part = path.clone().into_os_string();
    part.push(format!(
        ".{}-{}{UNFINISHED}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    // A process that was killed may have had this number.
    drop(fs::remove_file(&part));
    let mut options = OpenOptions::new();
    let mut file = options.read(true).write(true).create_new(true).mode(0o600).open(&part)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&part, &path));
    renamed.inspect_err(|_| drop(fs::remove_file(&part)))?;
    sync_directory(&File::open(folder.unwrap_or(Path::new(".")))?)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let entries = folder.read_dir().unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_its_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        symlink("file", &link).unwrap();
        replace_file(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        drop(replace_file(&link, b"the second").unwrap());
        assert_eq!(fs::read(&file).unwrap(), b"the second");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("file"));
        assert_eq!(names(dir.path()), ["file", "link"]);
    }

    #[test]
    fn a_failure_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("folder");
        fs::create_dir_all(folder.join("full")).unwrap();
        assert!(replace_file(&folder.join("full"), b"a file over a folder").is_err());
        assert!(replace_file(&dir.path().join("none/file"), b"").is_err());
        assert_eq!(
            (names(dir.path()), names(&folder)),
            (vec!["folder".into()], vec!["full".into()])
        );
    }
}
