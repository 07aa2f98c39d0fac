//! Everything comes back, and a changed byte is refused.

use super::files::remote;
use super::stage::Stage;
use crate::human::{self, grouped, say};
use anyhow::{Context, Result, bail};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{Error, OpenOptions, Volume};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Bytes flipped, one after another, until one was in use.
const TRIES: u64 = 50;

/// Compares every file with its copy from the volume, byte by byte.
pub fn comes_back(stage: &Stage) -> Result<()> {
    let begun = Instant::now();
    let volume = stage.open(&stage.volume, OpenOptions::default())?;
    let fs = FileSystem::open(Box::new(volume))?;
    for (path, content) in &stage.source.files {
        let attr = crate::inside::find(&fs, &remote(path)?)?;
        let handle = fs.open_file(attr.ino)?;
        let back = fs.read(handle, 0, content.len() + 1)?;
        fs.close(handle)?;
        if back != *content {
            bail!("{} did not come back as it was", path.display());
        }
    }
    drop(fs.into_blocks()?);
    let (files, bytes) = (stage.source.files.len() as u64, stage.source.bytes());
    say("\n3. Everything comes back")?;
    say(format!(
        "   {}, {} bytes: byte for byte the same, in {:.1} s.",
        human::count(files, "file"),
        grouped(bytes),
        begun.elapsed().as_secs_f64()
    ))
}

/// Flips one byte of a copy of the volume, has it refused, puts it back.
pub fn flipped_byte(stage: &Stage) -> Result<()> {
    let copy = copy_volume(stage)?;
    let slab = File::options().read(true).write(true).open(copy.join("slab"))?;
    let len = slab.metadata()?.len();
    for attempt in 0..TRIES {
        // Spread over the file; some of it is spare room that is never read.
        let at = (attempt * 2 + 1) * len / (2 * TRIES);
        let whole = flip(&slab, at)?;
        let refused = verify(stage, &copy).err();
        slab.write_all_at(&[whole], at)?;
        let Some(error) = refused else { continue };
        let Some(Error::Tampered(why)) = error.downcast_ref() else { return Err(error) };
        say("\n4. Somebody changes one byte")?;
        say(format!(
            "   Byte {} of {} in the slab, flipped by one bit.",
            grouped(at),
            grouped(len)
        ))?;
        say(format!("   Refused: {}", human::plain(why)))?;
        let buckets = verify(stage, &copy).context("after the byte was put back")?;
        let buckets = human::count(buckets, "bucket");
        return say(format!("   The byte put back: all {buckets} are as they were written."));
    }
    bail!("none of {TRIES} flipped bytes was noticed")
}

fn flip(slab: &File, at: u64) -> Result<u8> {
    let mut byte = [0];
    slab.read_exact_at(&mut byte, at)?;
    slab.write_all_at(&[byte[0] ^ 1], at)?;
    Ok(byte[0])
}

fn copy_volume(stage: &Stage) -> Result<PathBuf> {
    let copy = stage.scratch.join("copy");
    std::fs::create_dir(&copy)?;
    for entry in stage.volume.read_dir()? {
        let entry = entry?;
        std::fs::copy(entry.path(), copy.join(entry.file_name()))?;
    }
    Ok(copy)
}

fn verify(stage: &Stage, folder: &Path) -> Result<u64> {
    let mut volume: Volume = stage.open(folder, OpenOptions::default())?;
    Ok(volume.verify(&mut |_, _| {})?)
}
