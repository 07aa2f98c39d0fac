//! `demo`: the whole story on real files, in under a minute.

mod files;
mod proof;
mod stage;
mod watch;

use crate::args::DemoArgs;
use crate::human::{self, say};
use anyhow::{Context, Result};
use oblivio_crypto::Passphrase;
use oblivio_volume::fs::FileSystem;
use stage::Stage;
use std::time::Instant;

/// Runs the command.
pub fn run(args: &DemoArgs) -> Result<()> {
    let begun = Instant::now();
    let room = tempfile::Builder::new().prefix("oblivio-demo-").tempdir()?;
    let picture = match &args.picture {
        Some(file) => file.clone(),
        None => std::env::temp_dir().join("oblivio-demo.svg"),
    };
    let source = files::find(args.files.as_deref())?;
    let stage = Stage {
        source,
        volume: room.path().join("volume"),
        scratch: room.path().to_owned(),
        passphrase: made_up_passphrase()?,
    };
    say("Oblivio: storage that does not learn what you touch. A demonstration.")?;
    say(format!("(in {}; all of it is removed at the end)", room.path().display()))?;
    store_files(&stage)?;
    watch::run(&stage, &picture)?;
    proof::comes_back(&stage)?;
    proof::flipped_byte(&stage)?;
    what_is_not_hidden()?;
    room.close().context("cleaning up")?;
    say(format!("\nDone in {:.0} s, and cleaned up.", begun.elapsed().as_secs_f64()))?;
    say(format!("The picture stays: {}", picture.display()))?;
    say("Your own volume: oblivio init FOLDER")
}

/// A random passphrase that nobody knows: the volume is gone when the demo ends.
fn made_up_passphrase() -> Result<Passphrase> {
    use std::io::Read;
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    std::fs::File::open("/dev/urandom")?.read_exact(&mut *bytes)?;
    Ok(Passphrase::new(bytes.to_vec()))
}

fn store_files(stage: &Stage) -> Result<()> {
    let begun = Instant::now();
    let source = &stage.source;
    let fs = FileSystem::format(Box::new(stage.create()?))?;
    fs.set_clock(Box::new(crate::open::now));
    source.put(&fs)?;
    drop(fs.into_blocks()?);
    let mut objects = Vec::new();
    let mut total = 0;
    for entry in stage.volume.read_dir()? {
        let entry = entry?;
        total += entry.metadata()?.len();
        objects.push(entry.file_name().to_string_lossy().into_owned());
    }
    objects.retain(|name| !name.starts_with('.'));
    objects.sort();
    say("\n1. A volume with real files in it")?;
    let (files, bytes) = (source.files.len() as u64, source.bytes());
    say(format!(
        "   {} ({}) of {} went in, in {:.1} s.",
        human::count(files, "file"),
        human::size(bytes),
        human::plain(&source.name),
        begun.elapsed().as_secs_f64()
    ))?;
    say(format!("   The storage holds {} in: {}.", human::size(total), objects.join(", ")))?;
    say("   No names, no sizes, no folders: sealed blocks, and nothing else.")
}

fn what_is_not_hidden() -> Result<()> {
    say("\n5. What this does not protect")?;
    say("   - When you work and how many accesses you make: reading a large file shows as more")?;
    say("     accesses than reading a small one.")?;
    say("   - The size class of the volume: how much is in it, to within a quarter.")?;
    say("   - Your own computer: whoever controls it sees the files as you do.")?;
    say("   - Speed: each access moves a path of blocks instead of one. If you only need")?;
    say("     encryption, other tools are faster.")
}
