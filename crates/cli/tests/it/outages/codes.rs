//! How commands end when the network or the service fails.

use crate::common::{comes, failed, until};
use crate::outages::{Rig, rig};
use oblivio_testkit::rigs::NetworkFault;

/// Seconds of patience in these tests.
const SECONDS: &str = "2";

fn ends_with(rig: &Rig, code: i32, advice: &str) {
    let mut ls = rig.command("one", &["ls"], &["/"]);
    ls.env("OBLIVIO_PATIENCE", SECONDS);
    let said = failed(code, comes(advice, move || ls.output().unwrap()));
    assert!(said.contains(advice), "{said}");
}

#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn offline_is_16_and_refused_is_13() {
    let Some(rig) = rig() else { return };
    for weather in [NetworkFault::Refuse, NetworkFault::CutAnswers(10), NetworkFault::Busy(1)] {
        rig.network.set(weather);
        ends_with(&rig, 16, "Check the network");
    }
    // A minute of 429 that the service announces is not waited for beyond the patience.
    rig.network.set(NetworkFault::Busy(600));
    ends_with(&rig, 16, "busy and asks to wait");
    rig.network.set(NetworkFault::Forbid);
    ends_with(&rig, 13, "Check the credentials");
    rig.network.set(NetworkFault::Fair);
    rig.good("one", &["ls"], &["/"]);
    if rig.checks_keys {
        let mut wrong = rig.command("one", &["ls"], &["/"]);
        failed(13, wrong.env("AWS_SECRET_ACCESS_KEY", "another").output().unwrap());
    }
    let mut odd = rig.command("one", &["ls"], &["/"]);
    let said = failed(2, odd.env("OBLIVIO_PATIENCE", "a while").output().unwrap());
    assert!(said.contains("no number of seconds"), "{said}");
}

/// Nobody listens there at all.
#[test]
#[ignore = "system: connects to a local port"]
fn an_unreachable_host_is_16() {
    let scratch = crate::common::Scratch::new();
    let url = "s3://bucket/vault?endpoint=http://127.0.0.1:9&region=us-east-1";
    let mut ls = scratch.command(["ls", url, "/"]);
    ls.env("HOME", scratch.path("home")).env("OBLIVIO_PATIENCE", "1");
    ls.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "key");
    let said = failed(16, ls.output().unwrap());
    assert!(said.contains("cannot be reached"), "{said}");
}

/// A short outage in the middle of a command costs time, and nothing else.
#[test]
#[ignore = "system: a server that speaks like S3, if it is installed"]
fn a_short_outage_passes_unseen() {
    let Some(rig) = rig() else { return };
    let data = crate::common::noise(2 << 20, 4);
    rig.scratch.write("noise", &data);
    rig.network.set(NetworkFault::Refuse);
    let put = rig.command("one", &["put"], &["noise", "/"]).spawn();
    // Each kind of it lasts until it has hit something.
    for weather in [NetworkFault::Refuse, NetworkFault::CutRequests(9000), NetworkFault::Busy(1)] {
        let hits = rig.network.hits();
        rig.network.set(weather);
        until(|| rig.network.hits() > hits);
    }
    rig.network.set(NetworkFault::Fair);
    assert!(put.unwrap().wait().unwrap().success());
    let back = rig.run("two", &["cat"], &["/noise"]);
    assert_eq!(back.stdout, data);
}
