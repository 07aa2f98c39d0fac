//! Table I: a disk, the same with encryption, the same with oblivious RAM.

use super::corpus::{Clock, Corpus, Times, name, timed};
use super::sizes::{draw, shuffle};
use crate::files::Plain;
use crate::report::{Report, Table, bytes, median};
use anyhow::{Context, Result, ensure};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::LocalStore;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A volume to measure.
struct Ours {
    name: &'static str,
    segment: usize,
    memory: usize,
}

const OURS: [Ours; 3] = [
    Ours { name: "Oblivio, 64 KiB, 8 MiB of memory", segment: 64 << 10, memory: 8 << 20 },
    Ours { name: "Oblivio, 16 KiB, 8 MiB of memory", segment: 16 << 10, memory: 8 << 20 },
    Ours { name: "Oblivio, defaults (16 KiB, 448 MiB)", segment: 16 << 10, memory: 0 },
];

/// Runs the experiment.
///
/// # Errors
/// Those of the disk and of the page.
pub fn run(dir: Option<&Path>, quick: bool, write: bool) -> Result<()> {
    let (files, rounds) = if quick { (20, 1) } else { (1000, 3) };
    let corpus = Corpus { sizes: draw(files, 1), round_to: None };
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_path_buf);
    let mut times: Vec<Vec<Times>> = vec![Vec::new(); 2 + OURS.len()];
    for round in 0..rounds {
        let scratch = tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())?;
        for (way, times) in times.iter_mut().enumerate() {
            let folder = scratch.path().join(way.to_string());
            let seen = match way {
                0 => plain(&corpus, &folder, None)?,
                1 => plain(&corpus, &folder, Some(Plain::new()))?,
                _ => ours(&corpus, &folder, &OURS[way - 2])?,
            };
            eprintln!("round {round}, way {way}: {:.1} MB/s", seen.rate(corpus.bytes()));
            times.push(seen);
        }
    }
    let mut report = Report::on("cloud-paper.md", "throughput", "Table I: the price of each step");
    report.text(&format!(
        "{files} files ({}) are written to a local disk with one sync at the end. The page cache \
         is dropped, then all are read in another order. Times are wall-clock, median of {rounds} \
         rounds of all ways by turns. Encryption is AES-256-GCM over chunks of 64 KiB. Oblivio's \
         volume is closed and opened in between. With its defaults the whole tree fits in memory \
         after it was read. With 8 MiB the store is read for every path, as in the paper. The \
         paper's column is its Python program on a disk of 2011, before its optimizations: \
         compare the ratios.",
        bytes(corpus.bytes())
    ));
    let mut table = Table::new([
        "way",
        "write MB/s",
        "read MB/s",
        "both MB/s",
        "disk / this",
        "encrypted / this",
        "the paper, MB/s",
    ]);
    let rate = |way: usize| -> f64 {
        median(&times[way].iter().map(|seen| seen.rate(corpus.bytes())).collect::<Vec<_>>())
    };
    for way in 0..times.len() {
        let one = |part: fn(&Times) -> f64| {
            let seconds: Vec<f64> = times[way].iter().map(part).collect();
            format!("{:.1}", corpus.bytes() as f64 / 1e6 / median(&seconds))
        };
        let (name, paper) = match way {
            0 => ("disk", "42.13"),
            1 => ("disk + encryption", "24.42"),
            2 => (OURS[0].name, "0.66"),
            _ => (OURS[way - 2].name, ""),
        };
        table.row([
            name.to_owned(),
            one(|times| times.write),
            one(|times| times.read),
            format!("{:.1}", rate(way)),
            format!("{:.1}", rate(0) / rate(way)),
            format!("{:.1}", rate(1) / rate(way)),
            paper.to_owned(),
        ]);
    }
    report.table(&table);
    report.text(&format!(
        "Encryption alone to oblivious RAM: the paper 24.42 / 0.66 = 37; Oblivio with the paper's \
         segments {:.0}, with its own {:.0}, with its defaults {:.0}.",
        rate(1) / rate(2),
        rate(1) / rate(3),
        rate(1) / rate(4)
    ));
    report.finish(write)
}

/// Drops a folder's files from the page cache.
fn forget(folder: &Path) -> Result<()> {
    syncfs(File::open(folder)?)?;
    for entry in std::fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        if file.metadata()?.is_file() {
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

fn plain(corpus: &Corpus, folder: &Path, mut sealer: Option<Plain>) -> Result<Times> {
    std::fs::create_dir(folder)?;
    let contents: Vec<_> = (0..corpus.sizes.len()).map(|file| corpus.content(file)).collect();
    let (write, ()) = timed(Clock::Wall, || {
        for (file, content) in contents.iter().enumerate() {
            let path = folder.join(name(file));
            match &mut sealer {
                None => std::fs::write(path, content)?,
                Some(sealer) => {
                    let mut sealed = Vec::with_capacity(content.len() + 4096);
                    sealer.seal_into(&mut content.as_slice(), &mut sealed)?;
                    std::fs::write(path, sealed)?;
                }
            }
        }
        Ok(syncfs(File::open(folder)?)?)
    })?;
    forget(folder)?;
    let mut order: Vec<usize> = (0..corpus.sizes.len()).collect();
    shuffle(&mut order, 3);
    let (read, ()) = timed(Clock::Wall, || {
        for file in order {
            let stored = std::fs::read(folder.join(name(file)))?;
            let content = match &mut sealer {
                None => stored,
                Some(sealer) => {
                    let mut content = Vec::with_capacity(stored.len());
                    sealer.open_into(&mut stored.as_slice(), &mut content)?;
                    content
                }
            };
            ensure!(content.len() as u64 == corpus.sizes[file], "file {file} came back changed");
        }
        Ok(())
    })?;
    Ok(Times { write, read })
}

fn ours(corpus: &Corpus, folder: &Path, ours: &Ours) -> Result<Times> {
    let passphrase = Passphrase::new("lab");
    let options = || OpenOptions { memory_bytes: ours.memory, ..OpenOptions::default() };
    let create = CreateOptions {
        block_bytes: ours.segment,
        kdf: KdfParams::TEST,
        ..CreateOptions::default()
    };
    let store = Arc::new(LocalStore::create(folder)?);
    let volume = Volume::create(store, &passphrase, create, options())?;
    let fs = FileSystem::format(Box::new(volume))?;
    let (write, ()) = timed(Clock::Wall, || {
        corpus.write(&fs)?;
        fs.into_blocks()?.finish()?;
        Ok(syncfs(File::open(folder)?)?)
    })?;
    forget(folder)?;
    let volume = Volume::open(Arc::new(LocalStore::open(folder)?), &passphrase, options())?;
    let fs = FileSystem::open(Box::new(volume))?;
    let (read, ()) = timed(Clock::Wall, || corpus.read(&fs, 3))?;
    Ok(Times { write, read })
}
