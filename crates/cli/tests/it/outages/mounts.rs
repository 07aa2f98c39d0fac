//! A mount while the network fails: errors in stated time, then all works again, and nothing is
//! lost.

use crate::common::{Notes, comes, until};
use crate::outages::{Rig, mounted, rig};
use oblivio_testkit::campaign::scaled;
use oblivio_testkit::rigs::NetworkFault;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::process::Child;
use std::time::Instant;

/// Seconds without any answer after which the mount answers with an error.
const STATED: u64 = 2;

/// How long each outage lasts: until this many calls have failed, or, where calls outlast it, until
/// it has hit so often.
fn outage() -> u64 {
    scaled(2)
}

/// Whether calls outlast it, for something gets through.
fn is_leaky(weather: NetworkFault) -> bool {
    matches!(weather, NetworkFault::CutAnswers(_) | NetworkFault::CutRequests(_))
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
        let (path, written) = (self.rig.scratch.path("m").join(name), data.clone());
        let done = comes(name, move || {
            let mut file = File::create(&path)?;
            file.write_all(&written)?;
            file.sync_all()
        });
        if done.is_ok() {
            self.safe.insert(name.to_owned(), data);
        }
        done
    }

    /// The network fails for a while.
    fn suffer(&mut self, weather: NetworkFault) {
        let (hits, leaky) = (self.rig.network.hits(), is_leaky(weather));
        self.rig.network.set(weather);
        let mut errors = 0;
        loop {
            let name = format!("during-{}", self.step);
            let done = self.write(&name);
            // If one could succeed where nothing gets through, then this would never end.
            assert!(leaky || done.is_err(), "{weather:?}: a sync cannot have succeeded");
            if let Err(error) = done {
                assert_eq!(error.raw_os_error(), Some(5), "EIO, and not {error}");
                errors += 1;
            }
            let enough = if leaky { self.rig.network.hits() - hits } else { errors };
            if enough >= outage() {
                break;
            }
        }
        self.rig.network.set(NetworkFault::Fair);
        if weather != NetworkFault::Stall {
            assert!(self.rig.network.hits() > hits, "{weather:?} hit nothing");
        }
    }

    /// Without a remount, everything works again.
    fn recover(&mut self, weather: NetworkFault) {
        let begun = Instant::now();
        let name = format!("after-{}", self.step);
        until(|| self.write(&name).is_ok());
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
#[ignore = "system: mounts through FUSE"]
fn a_mount_outlives_every_outage_and_loses_nothing() {
    let Some(mut life) = life() else { return };
    // Larger than what stays in memory, so that reads need the network too.
    for name in ["before-1", "before-2", "before-3"] {
        life.write(name).expect("fair weather");
    }
    for weather in [
        NetworkFault::Refuse,
        NetworkFault::Stall,
        NetworkFault::Busy(1),
        NetworkFault::Busy(0),
        NetworkFault::Forbid,
        NetworkFault::CutAnswers(100),
        NetworkFault::CutRequests(2000),
    ] {
        // Written and not synced: it is in the mount's memory when the outage begins.
        let kept = format!("unsynced-{}", life.step);
        let data = crate::common::noise(30_000, life.step + 500);
        fs::write(life.rig.scratch.path("m").join(&kept), &data).expect("accepted");
        life.safe.insert(kept, data);
        life.suffer(weather);
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
#[ignore = "system: mounts through FUSE"]
fn a_take_over_during_an_outage_is_told() {
    let Some(mut life) = life() else { return };
    life.write("before").expect("fair weather");
    life.rig.network.set(NetworkFault::Refuse);
    life.write("lost").expect_err("no network");
    life.rig.good("two", &["mkdir", "--take-over"], &["/taken"]);
    life.rig.network.set(NetworkFault::Fair);
    // The mount looks before anything else, and finds the other session.
    let mut notes = Notes::of(&mut life.child);
    let mut late = |when: &str| assert!(life.write("late").is_err(), "{when} it says so");
    late("before");
    notes.until("another computer took the volume over");
    late("after");
    life.rig.scratch.run(["umount", "--lazy", "m"]);
    let said = notes.end();
    assert_eq!(life.child.wait().unwrap().code(), Some(12), "{said}");
    assert!(!mounted(&life.rig.scratch.path("m")));
    let listed = life.rig.good("two", &["ls"], &["/"]);
    assert!(listed.contains("before") && listed.contains("taken"), "{listed}");
}
