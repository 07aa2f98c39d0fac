//! Jobs of fio on a mounted folder.

use crate::report::count;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// How much work they are.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct FioWork {
    /// MiB of the file that the jobs work on
    #[arg(long, default_value_t = 1024)]
    pub mib: u64,
    /// Seconds of a random job
    #[arg(long, default_value_t = 6)]
    pub seconds: u64,
    /// Rounds, with alternating file systems; the table shows the median
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
}

/// One of them: its name, fio's options, which side of fio's answer counts, and the unit.
pub struct FioJob {
    pub name: &'static str,
    options: &'static [&'static str],
    side: &'static str,
    in_bytes: bool,
}

pub const JOBS: [FioJob; 5] = [
    FioJob {
        name: "sequential write, one fsync",
        options: &["--rw=write", "--bs=1m", "--end_fsync=1"],
        side: "write",
        in_bytes: true,
    },
    FioJob {
        name: "sequential read",
        options: &["--rw=read", "--bs=1m"],
        side: "read",
        in_bytes: true,
    },
    FioJob {
        name: "random reads of 4 KiB",
        options: &["--rw=randread", "--bs=4k", "--time_based"],
        side: "read",
        in_bytes: false,
    },
    FioJob {
        name: "random reads of 4 KiB, 8 at a time",
        options: &["--rw=randread", "--bs=4k", "--time_based", "--numjobs=8"],
        side: "read",
        in_bytes: false,
    },
    FioJob {
        name: "random writes of 4 KiB, each fsynced",
        options: &["--rw=randwrite", "--bs=4k", "--time_based", "--fsync=1"],
        side: "write",
        in_bytes: false,
    },
];

impl FioJob {
    /// A rate in its unit.
    pub fn shown(&self, rate: f64) -> String {
        match self.in_bytes {
            true => format!("{:.0} MB/s", rate / 1e6),
            false => format!("{}/s", count(rate)),
        }
    }
}

/// Bytes or operations a second of a job in a folder.
///
/// # Errors
/// Those of fio.
pub fn measure(dir: &Path, work: &FioWork, job: &FioJob) -> Result<f64> {
    rustix::fs::sync();
    // Needs root; other users measure warm.
    std::fs::write("/proc/sys/vm/drop_caches", "3").ok();
    let mut fio = Command::new("fio");
    // The directory first: fio applies it to the names after it.
    fio.args(["--name=job", &format!("--directory={}", dir.display()), "--filename=data"]);
    fio.args(["--group_reporting", "--output-format=json"]);
    fio.arg(format!("--size={}m", work.mib)).arg(format!("--runtime={}", work.seconds));
    if !job.options.contains(&"--time_based") {
        fio.arg("--runtime=600");
    }
    let output = fio.args(job.options).stderr(Stdio::inherit()).output().context("fio")?;
    ensure!(output.status.success(), "fio failed");
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    let field = if job.in_bytes { "bw_bytes" } else { "iops" };
    let rate = answer["jobs"][0][job.side][field].as_f64();
    ensure!(dir.join("data").exists(), "fio worked somewhere else");
    rate.context("fio gave no rate")
}
