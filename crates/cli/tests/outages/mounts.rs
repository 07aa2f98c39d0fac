//! A mount while the network fails: errors in stated time, then all works again, and nothing is
//! lost.

use crate::{Rig, mounted, rig};
use oblivio_testkit::rigs::Weather;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::process::Child;
use std::time::{Duration, Instant};

/// Seconds without any answer after which the mount answers with an error.
const STATED: u64 = 2;

/// How long each outage lasts.
fn outage() -> Duration {
    let seconds = std::env::var("OBLIVIO_OUTAGE_SECONDS").ok();
    Duration::from_secs(seconds.and_then(|it| it.parse().ok()).unwrap_or(6))
}

/// A mount, and what was acknowledged to its programs.
struct Life {
    rig: Rig,
    child: Child,
    safe: BTreeMap<String, Vec<u8>>,
    step: u64,
}

impl Life {
    /// Writes a file and syncs it; if that was acknowledged, it counts. An error must come in time.
    fn write(&mut self, name: &str) -> io::Result<()> {
        self.step += 1;
        let data = crate::common::noise(20_000 + 1000 * self.step as usize, self.step);
        let (path, begun) = (self.rig.scratch.path("m").join(name), Instant::now());
        let written = || {
            let mut file = File::create(&path)?;
            file.write_all(&data)?;
            file.sync_all()
        };
        let done = written();
        if done.is_ok() {
            self.safe.insert(name.to_owned(), data);
        } else {
            // Each of three requests may take the stated time; and a generous machine's share.
            let most = Duration::from_secs(3 * 3 * STATED + 10);
            assert!(begun.elapsed() < most, "{name}: {done:?} after {:?}", begun.elapsed());
        }
        done
    }

    /// The network fails for a while. Returns how many operations failed.
    fn suffer(&mut self, weather: Weather) -> u32 {
        let (hits, begun) = (self.rig.network.hits(), Instant::now());
        self.rig.network.set(weather);
        let mut errors = 0;
        while begun.elapsed() < outage() {
            let name = format!("during-{}", self.step);
            if let Err(error) = self.write(&name) {
                assert_eq!(error.raw_os_error(), Some(5), "EIO, and not {error}");
                errors += 1;
            }
        }
        self.rig.network.set(Weather::Fair);
        if weather != Weather::Stall {
            assert!(self.rig.network.hits() > hits, "{weather:?} hit nothing");
        }
        errors
    }

    /// Without a remount, everything works again.
    fn recover(&mut self, weather: Weather) {
        let begun = Instant::now();
        let name = format!("after-{}", self.step);
        while let Err(error) = self.write(&name) {
            let most = Duration::from_secs(150) + outage();
            assert!(begun.elapsed() < most, "{weather:?}: still {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
        eprintln!("{weather:?}: well again after {:?}", begun.elapsed());
    }

    fn said(mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

fn life() -> Option<Life> {
    let rig = rig()?;
    let child = rig.mount(&["--timeout", &STATED.to_string(), "--disk-cache", "0"])?;
    Some(Life { rig, child, safe: BTreeMap::new(), step: 0 })
}

#[test]
fn a_mount_outlives_every_outage_and_loses_nothing() {
    let Some(mut life) = life() else { return };
    // Larger than what stays in memory, so that reads need the network too.
    for name in ["before-1", "before-2", "before-3"] {
        life.write(name).expect("fair weather");
    }
    for weather in [
        Weather::Refuse,
        Weather::Stall,
        Weather::Busy(1),
        Weather::Busy(0),
        Weather::Forbid,
        Weather::CutAnswers(100),
        Weather::CutRequests(2000),
    ] {
        // Written and not synced: it is in the mount's memory when the outage begins.
        let kept = format!("unsynced-{}", life.step);
        let data = crate::common::noise(30_000, life.step + 500);
        fs::write(life.rig.scratch.path("m").join(&kept), &data).expect("accepted");
        life.safe.insert(kept, data);
        let errors = life.suffer(weather);
        if !matches!(weather, Weather::CutAnswers(_) | Weather::CutRequests(_)) {
            assert!(errors > 0, "{weather:?}: a sync cannot have succeeded");
        }
        life.recover(weather);
    }
    for (name, data) in &life.safe {
        let found = fs::read(life.rig.scratch.path("m").join(name));
        assert!(found.is_ok_and(|found| found == *data), "{name} in the mount");
    }
    life.rig.scratch.good(["umount", "m"]);
    assert!(life.child.wait().unwrap().code().is_some_and(|code| code <= 1));
    // From another computer, which knows nothing of all that.
    for (name, data) in &life.safe {
        let found = life.rig.run("two", &["cat"], &[&format!("/{name}")]);
        assert!(found.stdout == *data, "{name}: {}", String::from_utf8_lossy(&found.stderr));
    }
    assert!(life.rig.good("two", &["check"], &[]).starts_with("clean"));
    eprintln!("{} files were acknowledged, and all are there", life.safe.len());
    let said = life.said();
    assert!(said.contains("trying again until it works"), "{said}");
    assert!(said.contains("the store works again"), "{said}");
}

/// The other computer goes on from what was synced, and this one says so and reads nothing more.
#[test]
fn a_take_over_during_an_outage_is_told() {
    let Some(mut life) = life() else { return };
    life.write("before").expect("fair weather");
    life.rig.network.set(Weather::Refuse);
    life.write("lost").expect_err("no network");
    life.rig.good("two", &["mkdir", "--take-over"], &["/taken"]);
    life.rig.network.set(Weather::Fair);
    let begun = Instant::now();
    // The mount looks before anything else, and finds the other session.
    let mut child = life.child;
    let umount = || life.rig.scratch.run(["umount", "--lazy", "m"]);
    while begun.elapsed() < Duration::from_secs(5) {
        let late = File::create(life.rig.scratch.path("m").join("late"));
        let late = late.and_then(|mut file| file.write_all(b"x").and_then(|()| file.sync_all()));
        assert!(late.is_err(), "a sync after another computer took over");
        std::thread::sleep(Duration::from_millis(50));
    }
    umount();
    let code = child.wait().unwrap().code();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("another computer took the volume over"), "{said}");
    assert_eq!(code, Some(12), "{said}");
    assert!(!mounted(&life.rig.scratch.path("m")));
    let listed = life.rig.good("two", &["ls"], &["/"]);
    assert!(listed.contains("before") && listed.contains("taken"), "{listed}");
}
