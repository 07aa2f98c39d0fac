//! `cp`: copies inside a volume.

use crate::args::CpArgs;
use crate::committer::{COMMIT_BYTES, Committer};
use crate::exit::{Failures, usage};
use crate::files::{self, Changed};
use crate::get::{Holes, each_piece};
use crate::inside::{self, TargetName, VolumePath, entries, in_words_of};
use crate::lost::DamagedFiles;
use crate::progress::Progress;
use crate::staging::Staging;
use crate::tree::{check_paths, refuse_into_itself, sources_and_places};
use anyhow::Result;
use oblivio_app::walk::{OpenFile, WriteFiles};
use oblivio_serve::watch::{OrdinaryEvent, Publisher};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, FileKind, Ino, NewNode, SetAttr};
use std::collections::HashMap;

/// Runs the command.
pub fn run(args: &CpArgs) -> Result<()> {
    check_paths(&args.paths)?;
    files::change(&args.volume, &args.open, |changed| {
        let mut copy = Copy::new(changed, Progress::bytes(args.open.quiet, None))?;
        let (mut failures, mut done) = (Failures::default(), 0);
        for (from, place) in sources_and_places(changed.0, &args.paths)? {
            match copy.named(&from, place, args.recursive) {
                Ok(()) => done += 1,
                Err(error) => failures.note(error)?,
            }
        }
        let lost = copy.finish();
        failures.finish(done)?;
        lost
    })
}

/// One `cp` at work. Modes, owners, times, links and holes are kept.
struct Copy<'f> {
    fs: &'f dyn WriteFiles,
    publisher: &'f Publisher,
    committer: Committer<'f>,
    staging: Staging<'f>,
    progress: Progress,
    /// Files with several names: the copy of the first.
    links: HashMap<Ino, Ino>,
    /// Directories whose times are set last.
    directories: Vec<(Ino, SetAttr)>,
    lost: DamagedFiles,
    copied: u64,
}

impl<'f> Copy<'f> {
    fn new((fs, publisher): Changed<'f>, progress: Progress) -> Result<Self> {
        let (links, directories) = (HashMap::new(), Vec::new());
        let (committer, staging) = (Committer::new(fs), Staging::new(fs)?);
        let (lost, copied) = (DamagedFiles::default(), 0);
        Ok(Self { fs, publisher, committer, staging, progress, links, directories, lost, copied })
    }

    fn named(&mut self, from: &VolumePath, place: TargetName, recursive: bool) -> Result<()> {
        let attr = inside::find(self.fs, from)?;
        if attr.kind == FileKind::Directory && !recursive {
            return Err(Error::IsADirectory(from.to_string()).into());
        }
        refuse_into_itself(from, &place)?;
        let mut todo = vec![(attr, place)];
        while let Some((attr, place)) = todo.pop() {
            if attr.kind == FileKind::Directory {
                let ino = self.directory(&attr, &place)?;
                for entry in entries(self.fs, attr.ino)? {
                    let path = place.path.join(&entry.name);
                    let place = TargetName { parent: ino, name: entry.name, path };
                    todo.push((self.fs.attr(entry.ino)?, place));
                }
            } else {
                // The rest of a directory is copied all the same.
                let (made, path) = (self.other(&attr, &place), place.path.to_string());
                made.or_else(|error| self.lost.take(path, error))?;
            }
            self.committer.changed();
            self.committer.commit_if_due()?;
        }
        Ok(())
    }

    fn directory(&mut self, attr: &Attr, place: &TargetName) -> Result<Ino> {
        let ino = match self.fs.lookup(place.parent, &place.name) {
            Ok(there) if there.kind == FileKind::Directory => there.ino,
            Ok(_) => return Err(Error::NotADirectory(place.path.to_string()).into()),
            Err(Error::NotFound(_)) => {
                let made = self.fs.mkdir(place.parent, &place.name, attr.into());
                made.map_err(|error| in_words_of(&place.path, error))?.ino
            }
            Err(error) => return Err(error.into()),
        };
        self.directories.push((ino, attributes(attr)));
        Ok(ino)
    }

    fn other(&mut self, attr: &Attr, place: &TargetName) -> Result<()> {
        let there = match self.fs.lookup(place.parent, &place.name) {
            Ok(there) if there.kind == FileKind::Directory => {
                let what = format!("{} is a directory", place.path);
                return Err(usage(what, "Remove it first, or choose another name."));
            }
            Ok(there) if there.ino == attr.ino => return Ok(()),
            Ok(_) => true,
            Err(Error::NotFound(_)) => false,
            Err(error) => return Err(error.into()),
        };
        if !self.committer.has_room(attr.size) {
            self.committer.commit()?;
        }
        let seen = self.fs.among_others().is_some();
        let staged = there || seen || attr.size > COMMIT_BYTES;
        let at = if staged { self.staging.fresh()? } else { (place.parent, place.name.clone()) };
        if let Err(error) = self.make(attr, &at, staged) {
            // Report the first failure.
            let _ = self.fs.unlink(at.0, &at.1);
            return Err(error.context(place.path.to_string()));
        }
        if staged { self.staging.place(&at, place.parent, &place.name) } else { Ok(()) }
    }

    fn make(&mut self, attr: &Attr, at: &(Ino, Vec<u8>), staged: bool) -> Result<()> {
        if let Some(&copied) = self.links.get(&attr.ino) {
            self.fs.link(copied, at.0, &at.1)?;
            return Ok(());
        }
        let made = match attr.kind {
            FileKind::Symlink => {
                let target = self.fs.read_link(attr.ino)?;
                self.fs.symlink(at.0, &at.1, &target, attr.into())?
            }
            FileKind::File | FileKind::Directory => self.content(attr, at, staged)?,
            special => self.fs.mknod(at.0, &at.1, special, attr.rdev, attr.into())?,
        };
        if attr.nlink > 1 {
            self.links.insert(attr.ino, made.ino);
        }
        self.copied += u64::from(attr.kind == FileKind::File);
        Ok(())
    }

    fn content(&mut self, attr: &Attr, at: &(Ino, Vec<u8>), staged: bool) -> Result<Attr> {
        let (fs, publisher) = (self.fs, self.publisher);
        let (made, id) = fs.create(at.0, &at.1, attr.into())?;
        let file = OpenFile::of(fs, id);
        publisher.ordinary(OrdinaryEvent::create(made.ino));
        let copied = each_piece(fs, publisher, attr, Holes::End, |offset, piece| {
            self.progress.add(piece.len() as u64);
            // A piece of a hole stays one.
            if piece.iter().any(|&byte| byte != 0) {
                file.write(offset, piece)?;
                let (ino, len) = (made.ino, piece.len() as u64);
                publisher.ordinary(OrdinaryEvent::write(ino, offset + len, offset, len));
                self.committer.wrote(piece.len() as u64);
            }
            // A file at its final name must not be committed before it is whole.
            if staged {
                self.committer.commit_if_due()?;
            }
            Ok(())
        });
        let set = SetAttr { size: Some(attr.size), ..attributes(attr) };
        let copied = copied.and_then(|()| Ok(fs.set_attr(made.ino, set)?));
        file.close()?;
        copied
    }

    fn finish(mut self) -> Result<()> {
        for (ino, set) in self.directories.drain(..).rev() {
            self.fs.set_attr(ino, set)?;
        }
        self.staging.finish()?;
        self.committer.changed();
        self.committer.commit()?;
        self.lost.finish(self.copied, "were copied")
    }
}

fn attributes(attr: &Attr) -> SetAttr {
    NewNode::from(attr).into()
}
