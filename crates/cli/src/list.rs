//! `ls`, `stat` and `du`.

use crate::args::{DuArgs, LsArgs, StatArgs};
use crate::exit::Failures;
use crate::files;
use crate::human::{self, say, say_json};
use crate::inside::{self, VolumePath, entries};
use anyhow::Result;
use oblivio_app::walk::ReadFiles;
use oblivio_volume::fs::{Attr, FileKind, Ino};
use serde_json::{Value, json};
use std::collections::HashSet;

/// Runs `ls`.
pub fn ls(args: &LsArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    each_path(&args.volume, &args.open, &paths, |fs, path| ls_one(args, fs, path, paths.len() > 1))
}

/// Runs `each` on every path; a path that fails does not stop the others.
fn each_path(
    volume: &std::path::Path,
    open: &crate::args::OpenArgs,
    paths: &[VolumePath],
    mut show: impl FnMut(&dyn ReadFiles, &VolumePath) -> Result<()>,
) -> Result<()> {
    files::look(volume, open, |(fs, _)| {
        let mut failures = Failures::default();
        let mut done = 0;
        for path in paths {
            match show(fs, path) {
                Ok(()) => done += 1,
                Err(error) => failures.note(error)?,
            }
        }
        failures.finish(done)
    })
}

fn ls_one(args: &LsArgs, fs: &dyn ReadFiles, path: &VolumePath, several: bool) -> Result<()> {
    let attr = inside::find(fs, path)?;
    if attr.kind != FileKind::Directory {
        return show(args, fs, &path.bytes(), path, &attr);
    }
    if several && !args.json && !args.recursive {
        say(human::name(&[&path.bytes(), &b":"[..]].concat()))?;
    }
    let mut todo = vec![(path.clone(), attr.ino)];
    while let Some((directory, ino)) = todo.pop() {
        let mut below = Vec::new();
        for entry in entries(fs, ino)? {
            if entry.name.first() == Some(&b'.') && !args.all {
                continue;
            }
            let path = directory.join(&entry.name);
            let shown = if args.recursive { path.bytes() } else { entry.name };
            if args.long || args.json {
                show(args, fs, &shown, &path, &fs.attr(entry.ino)?)?;
            } else {
                say(human::name(&shown))?;
            }
            if args.recursive && entry.kind == FileKind::Directory {
                below.push((path, entry.ino));
            }
        }
        todo.extend(below.into_iter().rev());
    }
    Ok(())
}

fn show(
    args: &LsArgs,
    fs: &dyn ReadFiles,
    name: &[u8],
    path: &VolumePath,
    attr: &Attr,
) -> Result<()> {
    if args.json {
        return say_json(&as_json(fs, path, attr)?);
    }
    let mut line = human::name(name);
    if args.long {
        let size = if args.bytes { attr.size.to_string() } else { human::size(attr.size) };
        let mode = human::mode(attr.kind, attr.mode);
        let (links, uid, gid) = (attr.nlink, attr.uid, attr.gid);
        let time = human::time(attr.mtime);
        line.splice(0..0, format!("{mode} {links:>3} {uid:>5} {gid:>5} {size:>9} {time} ").bytes());
        if attr.kind == FileKind::Symlink {
            line.extend(b" -> ");
            line.extend(human::name(&fs.read_link(attr.ino)?));
        }
    }
    say(line)
}

/// Everything known of a file. A name that is not UTF-8 is shown as closely as possible.
fn as_json(fs: &dyn ReadFiles, path: &VolumePath, attr: &Attr) -> Result<Value> {
    let mut value = json!({
        "path": path.to_string(),
        "name": String::from_utf8_lossy(path.name().unwrap_or(b"/")),
        "kind": human::kind(attr.kind),
        "size": attr.size,
        "stored": attr.blocks * 512,
        "mode": format!("{:04o}", attr.mode),
        "uid": attr.uid,
        "gid": attr.gid,
        "links": attr.nlink,
        "inode": attr.ino,
        "mtime": human::exact_time(attr.mtime),
        "ctime": human::exact_time(attr.ctime),
        "created": human::exact_time(attr.crtime),
    });
    if attr.kind == FileKind::Symlink {
        value["target"] = String::from_utf8_lossy(&fs.read_link(attr.ino)?).into();
    }
    Ok(value)
}

/// Runs `stat`.
pub fn stat(args: &StatArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    each_path(&args.volume, &args.open, &paths, |fs, path| {
        let attr = inside::find(fs, path)?;
        let value = as_json(fs, path, &attr)?;
        if args.json { say_json(&value) } else { stat_in_words(fs, path, &attr) }
    })
}

fn stat_in_words(fs: &dyn ReadFiles, path: &VolumePath, attr: &Attr) -> Result<()> {
    let mut line = [b"  ".to_vec(), human::name(&path.bytes())].concat();
    if attr.kind == FileKind::Symlink {
        line.extend(b" -> ");
        line.extend(human::name(&fs.read_link(attr.ino)?));
    }
    say(line)?;
    let kind = human::kind(attr.kind);
    let (size, stored) = (human::size(attr.size), human::size(attr.blocks * 512));
    let mode = human::mode(attr.kind, attr.mode);
    say(format!(
        "  kind      {kind}, inode {}, {}",
        attr.ino,
        human::count(attr.nlink.into(), "name")
    ))?;
    say(format!("  size      {size} ({} bytes), takes {stored}", human::grouped(attr.size)))?;
    say(format!("  mode      {:04o} {mode}, owner {}, group {}", attr.mode, attr.uid, attr.gid))?;
    say(format!("  modified  {}", human::exact_time(attr.mtime)))?;
    say(format!("  changed   {}", human::exact_time(attr.ctime)))?;
    say(format!("  created   {}", human::exact_time(attr.crtime)))
}

/// What a tree holds; a file with several names counts once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub files: u64,
    pub directories: u64,
    pub bytes: u64,
    pub stored: u64,
}

impl Totals {
    fn add(&mut self, other: Totals) {
        self.files += other.files;
        self.directories += other.directories;
        self.bytes += other.bytes;
        self.stored += other.stored;
    }
}

/// The totals of a tree.
pub fn totals(fs: &dyn ReadFiles, attr: &Attr) -> Result<Totals> {
    let mut seen = HashSet::new();
    let mut totals = of_one(attr, &mut seen);
    let mut todo = Vec::new();
    if attr.kind == FileKind::Directory {
        todo.push(attr.ino);
    }
    while let Some(ino) = todo.pop() {
        for entry in entries(fs, ino)? {
            totals.add(of_one(&fs.attr(entry.ino)?, &mut seen));
            if entry.kind == FileKind::Directory {
                todo.push(entry.ino);
            }
        }
    }
    Ok(totals)
}

fn of_one(attr: &Attr, seen: &mut HashSet<Ino>) -> Totals {
    if attr.kind == FileKind::Directory {
        return Totals { directories: 1, ..Totals::default() };
    }
    if attr.nlink > 1 && !seen.insert(attr.ino) {
        return Totals::default();
    }
    Totals { files: 1, directories: 0, bytes: attr.size, stored: attr.blocks * 512 }
}

/// A directory whose total is being added up.
struct Open {
    path: VolumePath,
    totals: Totals,
    /// Entries still to add, last first.
    left: Vec<Attr>,
    names: Vec<Vec<u8>>,
}

/// Runs `du`.
pub fn du(args: &DuArgs) -> Result<()> {
    let paths = inside::parse_all(&args.remote)?;
    let mut seen = HashSet::new();
    each_path(&args.volume, &args.open, &paths, |fs, path| du_one(args, fs, path, &mut seen))
}

/// Shows each directory after its content, as du does.
fn du_one(
    args: &DuArgs,
    fs: &dyn ReadFiles,
    path: &VolumePath,
    seen: &mut HashSet<Ino>,
) -> Result<()> {
    let attr = inside::find(fs, path)?;
    if attr.kind != FileKind::Directory {
        return show_usage(args, path, of_one(&attr, seen));
    }
    let mut stack = vec![enter(fs, path.clone(), attr.ino)?];
    while let Some(top) = stack.last_mut() {
        if let (Some(attr), Some(name)) = (top.left.pop(), top.names.pop()) {
            if attr.kind == FileKind::Directory {
                let path = top.path.join(&name);
                stack.push(enter(fs, path, attr.ino)?);
            } else {
                top.totals.add(of_one(&attr, seen));
            }
            continue;
        }
        let Some(done) = stack.pop() else { break };
        if stack.len() <= args.depth {
            show_usage(args, &done.path, done.totals)?;
        }
        if let Some(above) = stack.last_mut() {
            above.totals.add(done.totals);
        }
    }
    Ok(())
}

fn enter(fs: &dyn ReadFiles, path: VolumePath, ino: Ino) -> Result<Open> {
    let mut all = entries(fs, ino)?;
    all.reverse();
    let left = all.iter().map(|entry| fs.attr(entry.ino)).collect::<Result<_, _>>()?;
    let names = all.into_iter().map(|entry| entry.name).collect();
    let totals = Totals { directories: 1, ..Totals::default() };
    Ok(Open { path, totals, left, names })
}

fn show_usage(args: &DuArgs, path: &VolumePath, totals: Totals) -> Result<()> {
    if args.json {
        return say_json(&json!({
            "path": path.to_string(),
            "bytes": totals.bytes,
            "stored": totals.stored,
            "files": totals.files,
            "directories": totals.directories,
        }));
    }
    let size = if args.bytes { totals.stored.to_string() } else { human::size(totals.stored) };
    let mut line = format!("{size:>9}  ").into_bytes();
    line.extend(human::name(&path.bytes()));
    say(line)
}
