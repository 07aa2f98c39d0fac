//! The same fio jobs on a mounted volume and, where it is installed, on gocryptfs.

mod jobs;
mod syncs;

use crate::hold;
use crate::report::{Report, Table, median};
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use jobs::{FioJob, FioWork, JOBS, measure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What to measure.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    tool: Tool,
    /// A directory on the disk to measure; by default the system's for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    #[command(flatten)]
    work: FioWork,
    /// Only volumes, on disks whose syncs take longer: by these times, in milliseconds
    #[arg(long, value_delimiter = ',')]
    sync_delay: Vec<f64>,
    #[command(flatten)]
    hold: hold::Args,
}

/// Runs the experiment.
///
/// # Errors
/// Those of fio, the mounts and the page.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let _held = args.hold.hold()?;
    let scratch = tempfile::tempdir_in(&dir).with_context(|| dir.display().to_string())?;
    if !args.sync_delay.is_empty() {
        return syncs::run(&args.work, scratch.path(), &args.sync_delay, write);
    }
    let ours = Mount::oblivio(scratch.path(), args.tool.path()?)?;
    let theirs = match Mount::gocryptfs(scratch.path()) {
        Ok(mount) => Some(mount),
        Err(error) => {
            eprintln!("without gocryptfs: {error:#}");
            None
        }
    };
    let mut report = Report::new("mounted", "A mounted volume, beside gocryptfs");
    report.text(&format!(
        "fio on a file of {} MiB in an oblivio mount and in a gocryptfs mount, on the same disk, \
         default settings both, by turns. The page cache is dropped before each job. Median of {} \
         rounds. The random jobs run {} seconds.{}",
        args.work.mib,
        args.work.rounds,
        args.work.seconds,
        args.hold.told()
    ));
    let mut table = Table::new(["job", "oblivio", "gocryptfs", "gocryptfs / oblivio"]);
    for job in &JOBS {
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..args.work.rounds {
            rates[0].push(ours.measure(args, job)?);
            if let Some(theirs) = &theirs {
                rates[1].push(theirs.measure(args, job)?);
            }
        }
        let shown = |rate: f64| job.shown(rate);
        let [ours, theirs] = rates.map(|rates| median(&rates));
        let none = || "-".to_owned();
        let cells = [
            job.name.to_owned(),
            shown(ours),
            if theirs.is_nan() { none() } else { shown(theirs) },
            if theirs.is_nan() { none() } else { format!("{:.1}", theirs / ours) },
        ];
        eprintln!("{}", cells.join(" | "));
        table.row(cells);
    }
    report.table(&table);
    report.finish(write)
}

/// A mounted file system, unmounted when dropped.
struct Mount {
    dir: PathBuf,
    unmount: Vec<String>,
}

impl Mount {
    fn oblivio(scratch: &Path, tool: PathBuf) -> Result<Self> {
        let (volume, dir) = (scratch.join("volume"), scratch.join("mount"));
        std::fs::create_dir(&dir)?;
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&tool);
            command.args(arguments).env("OBLIVIO_PASSPHRASE", "lab");
            done(command.env("XDG_STATE_HOME", scratch.join("state")))
        };
        run(&["init", "--quiet", text(&volume)])?;
        run(&["mount", "--quiet", "--background", text(&volume), text(&dir)])?;
        let unmount = [text(&tool), "umount", text(&dir)].map(str::to_owned).to_vec();
        Ok(Self { dir, unmount })
    }

    fn gocryptfs(scratch: &Path) -> Result<Self> {
        let (sealed, dir, pass) =
            (scratch.join("sealed"), scratch.join("plain"), scratch.join("pass"));
        std::fs::write(&pass, "lab\n")?;
        for folder in [&sealed, &dir] {
            std::fs::create_dir(folder)?;
        }
        let run = |arguments: &[&str]| {
            let mut command = Command::new("gocryptfs");
            done(command.args(["-q", "-passfile", text(&pass)]).args(arguments))
        };
        run(&["-init", text(&sealed)])?;
        run(&[text(&sealed), text(&dir)])?;
        let unmount = ["umount", text(&dir)].map(str::to_owned).to_vec();
        Ok(Self { dir, unmount })
    }

    fn measure(&self, args: &Args, job: &FioJob) -> Result<f64> {
        measure(&self.dir, &args.work, job)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut command = Command::new(&self.unmount[0]);
        if let Err(error) = done(command.args(&self.unmount[1..])) {
            eprintln!("{} stays mounted: {error:#}", self.dir.display());
        }
    }
}

fn done(command: &mut Command) -> Result<()> {
    let shown = command.get_program().to_string_lossy().into_owned();
    let status = command.stdout(Stdio::null()).status().with_context(|| shown.clone())?;
    ensure!(status.success(), "{shown} failed");
    Ok(())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}
