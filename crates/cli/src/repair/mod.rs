//! `repair`: makes a damaged volume one that is whole, with everything in it that can be proved.

mod backup;
mod consent;
mod disk;
mod metadata;
mod outcome;

use crate::args::RepairArgs;
use crate::check;
use crate::exit::{Code, fault};
use crate::open;
use crate::passphrase;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::unobserved::refuse_changes;
use anyhow::{Context, Result};
use backup::{Backup, FromBackup};
use consent::Talk;
use metadata::{LostMetadata, SalvageOutcome, volume_in};
use oblivio_serve::watch::Publisher;
use oblivio_store::AnyStore;
use oblivio_volume::fs::{self, CheckReport};
use oblivio_volume::{BlockSpace, Volume, read_header};
use outcome::{not_done, nothing, show, summary, with_lost_bytes};

/// Runs the command.
pub fn run(args: &RepairArgs) -> Result<()> {
    if !args.dry_run {
        refuse_changes(&args.open)?;
    }
    let recorder = Recorder::of(&args.open)?;
    let done = repair(args, recorder.as_ref());
    Recorder::finish_after(recorder, done)
}

fn repair(args: &RepairArgs, recorder: Option<&Recorder>) -> Result<()> {
    let store = open::store(&args.volume)?;
    refuse_other_engines(&store, args)?;
    let store = Recorder::under(store, recorder);
    let backup = match args.from.as_deref() {
        Some(folder) => Some((folder, open::store(folder)?)),
        None => None,
    };
    let passphrase = passphrase::known(&args.open.passphrase)?;
    let by = (&args.open, Some(&passphrase));
    let (mut volume, publisher) = open::volume_by(store, &args.volume, by, recorder, false)?;
    let of = volume.known().volume;
    let (parts, lost) = check::inspect(&mut volume, None, args.open.quiet)?;
    let backup = match backup {
        Some(place) => Some(Backup::open(place, of, (&args.open, &passphrase))?),
        None => None,
    };
    let talk = Talk::new(args, &parts);
    if oblivio_volume::disk::size_in(volume.root())?.is_some() {
        return disk::repair(args, volume, talk, (lost, backup));
    }
    let lacks = parts.damaged > 0 || !lost.is_empty();
    repair_files(args, (Box::new(volume), publisher), talk, (backup, lacks))
}

/// Refuses, before it asks or changes anything, what the engine cannot do.
fn refuse_other_engines(store: &AnyStore, args: &RepairArgs) -> Result<()> {
    let header = read_header(store).with_context(|| args.volume.display().to_string())?;
    if header.engine.repairs {
        return Ok(());
    }
    Err(fault(
        Code::General,
        "a volume in a synced folder is not repaired in place",
        "A computer that holds what is damaged puts it back: run `oblivio check` there. Otherwise bring \
         out what is whole with `oblivio get -r --incomplete`, and make a new volume of that.",
    ))
}

/// `lacks` says whether anything that is stored is damaged or lost: then blocks of the backup may
/// help, and else only its files.
fn repair_files(
    args: &RepairArgs,
    (mut volume, mut publisher): (Box<Volume>, Publisher),
    mut talk: Talk<'_>,
    (mut backup, lacks): (Option<Backup>, bool),
) -> Result<()> {
    let mut taken = FromBackup::default();
    if let Some(backup) = backup.as_mut().filter(|_| lacks) {
        let seen = look(args, (volume, publisher))?;
        (volume, publisher) = (seen.volume, seen.publisher);
        if !agreed_to_blocks(args, &mut volume, backup, (&mut talk, &seen.found))? {
            volume.end()?;
            return not_done(args, talk.parts, &seen.found.report, seen.found.metadata.report());
        }
        taken.put_back(backup, &mut volume, args.open.quiet)?;
    }
    let (volume, salvaged) = match metadata::salvage(args, volume, &mut talk)? {
        SalvageOutcome::Whole(volume) => (volume, None),
        SalvageOutcome::Salvaged(volume, report) => (volume, Some(report)),
        SalvageOutcome::Refused(report) => {
            let found = CheckReport { lost: report.lost.clone(), ..CheckReport::default() };
            return not_done(args, talk.parts, &found, Some(&report));
        }
    };
    let session = open::file_system((*volume, publisher), 0)?;
    let found = check_files(args, &session.fs)?;
    show(args, &mut talk, &found, backup.is_some())?;
    let asks_backup = backup.is_some() && !found.holes.is_empty();
    let clean = talk.parts.damaged == 0 && found.is_clean() && !asks_backup;
    if clean && !taken.is_rewritten && salvaged.is_none() {
        session.fs.into_blocks()?;
        return nothing(args, talk.parts);
    }
    // What was salvaged is stored by now, and what goes with it was accepted.
    if salvaged.is_none() && !talk.goes_on(found.lost.is_empty())? {
        session.fs.into_blocks()?;
        return not_done(args, talk.parts, &found, None);
    }
    let lost = with_lost_bytes(&found);
    if let Some(backup) = backup.filter(|_| !lost.is_empty()) {
        backup.files()?.restore(&session.fs, &lost, &mut taken)?;
    }
    fs::repair(&session.fs, args.zeros, &mut |_, _| {})?;
    taken.rewrite(volume_in(session.fs.into_blocks()?)?, args.open.quiet)?;
    summary(args, talk.parts, (&found, salvaged.as_ref()), &taken)
}

/// What a look at the files found.
struct Found {
    report: CheckReport,
    metadata: LostMetadata,
}

struct Seen {
    volume: Box<Volume>,
    publisher: Publisher,
    found: Found,
}

/// Looks at the files as they are without a backup.
fn look(args: &RepairArgs, (volume, publisher): (Box<Volume>, Publisher)) -> Result<Seen> {
    let (volume, metadata) = metadata::look(volume)?;
    if !matches!(metadata, LostMetadata::Nothing) {
        let lost = metadata.report().map(|report| report.lost.clone()).unwrap_or_default();
        let report = CheckReport { lost, ..CheckReport::default() };
        return Ok(Seen { volume, publisher, found: Found { report, metadata } });
    }
    let session = open::file_system((*volume, publisher), 0)?;
    let report = check_files(args, &session.fs)?;
    let volume = volume_in(session.fs.into_blocks()?)?;
    Ok(Seen { volume, publisher: session.publisher, found: Found { report, metadata } })
}

fn check_files(args: &RepairArgs, fs: &fs::FileSystem) -> Result<CheckReport> {
    let mut progress = Progress::steps(args.open.quiet, "blocks");
    Ok(fs.check_with(true, &mut |done, all| progress.at(done, all))?)
}

/// Finds the blocks that the backup has in the version that is lost, says what is lost without
/// them, and asks. Nothing is written before.
fn agreed_to_blocks(
    args: &RepairArgs,
    volume: &mut Volume,
    backup: &mut Backup,
    (talk, found): (&mut Talk<'_>, &Found),
) -> Result<bool> {
    backup.find_blocks(volume, args.open.quiet)?;
    match &found.metadata {
        LostMetadata::Nothing => show(args, talk, &found.report, true)?,
        LostMetadata::Some(report) => {
            talk.places()?;
            metadata::show(args, report)?;
        }
        LostMetadata::Beginning => {
            talk.places()?;
            outcome::say_beginning(args)?;
        }
    }
    outcome::say_same(args, backup.same())?;
    talk.goes_on(found.report.lost.is_empty() && found.metadata.is_harmless())
}
