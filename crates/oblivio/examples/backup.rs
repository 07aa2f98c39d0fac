//! Copies what is new in a folder into a volume, which may be at any place: a folder, a bucket, an
//! account. Who keeps it sees how much was copied, and not what.
//!
//!     cargo run --example backup -- ~/letters /mnt/stick/vault
//!     cargo run --example backup --features online -- ~/letters s3://bucket/vault?region=...
//!     cargo run --example backup -- --sync ~/letters ~/Dropbox/vault     a sync client copies it
//!
//! The passphrase is the first line of standard input.
#![allow(clippy::print_stdout, reason = "it says what it did")]

use oblivio::{CreateOptions, Error, OpenOptions, Passphrase, Volume};
use std::error::Error as AnyError;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Copies the files of a folder that are younger than those in the volume. Says how many that were.
pub fn copy_new(folder: &Path, volume: &Volume) -> Result<u64, Box<dyn AnyError>> {
    let (mut copied, mut left) = (0, vec![PathBuf::new()]);
    while let Some(below) = left.pop() {
        let there = Path::new("/").join(&below);
        volume.create_dir_all(&there)?;
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let (kind, name) = (entry.file_type()?, below.join(entry.file_name()));
            if kind.is_dir() {
                left.push(name);
            } else if kind.is_file() && is_new(&entry.path(), volume, &Path::new("/").join(&name))?
            {
                copy(&entry.path(), volume, &Path::new("/").join(&name))?;
                copied += 1;
            }
        }
        // An online store lets other computers have the volume only if it is asked now and then.
        volume.idle()?;
    }
    volume.sync()?;
    Ok(copied)
}

fn is_new(file: &Path, volume: &Volume, there: &Path) -> Result<bool, Box<dyn AnyError>> {
    match volume.metadata(there) {
        Ok(copy) => {
            let found = fs::metadata(file)?;
            Ok(found.len() != copy.len() || found.modified()? > copy.modified())
        }
        Err(Error::NotFound(_)) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn copy(file: &Path, volume: &Volume, there: &Path) -> Result<(), Box<dyn AnyError>> {
    // Emptied or made: a file that is read meanwhile, here, is the old one or the new one.
    volume.write(there, b"")?;
    // The cost of an access hardly depends on its length.
    let mut into = BufWriter::with_capacity(1 << 20, volume.open_file(there)?);
    io::copy(&mut File::open(file)?, &mut into)?;
    into.into_inner()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn AnyError>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let sync = words.first().is_some_and(|word| word == "--sync");
    if sync {
        words.remove(0);
    }
    let [folder, place] = &words[..] else { return Err("[--sync] FOLDER PLACE".into()) };
    let mut passphrase = String::new();
    io::stdin().read_line(&mut passphrase)?;
    let secret = || Passphrase::from(passphrase.trim_end_matches('\n'));
    let volume = match OpenOptions::new().open(place, secret()) {
        Err(Error::NotFound(_) | Error::NotAVolume(_)) if sync => {
            CreateOptions::new().sync_folder().size(4 << 30).create(place, secret())?
        }
        Err(Error::NotFound(_) | Error::NotAVolume(_)) => Volume::create(place, secret())?,
        opened => opened?,
    };
    println!("{} files are new", copy_new(folder.as_ref(), &volume)?);
    Ok(volume.close()?)
}
