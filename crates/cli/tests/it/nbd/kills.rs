//! A killed server: flushed data survives.

use super::{ONE_FILE, Rig, SNAPSHOTS, TREE, run};

/// Runs qemu-io's commands; returns whether all succeeded.
fn io(rig: &Rig, commands: &[String]) -> bool {
    let uri = rig.uri();
    let mut args = vec!["-f", "raw", "-t", "writeback"];
    commands.iter().for_each(|command| args.extend(["-c", command.as_str()]));
    args.push(&uri);
    let said = run("qemu-io", &args);
    said.status.success() && !String::from_utf8_lossy(&said.stdout).contains("failed")
}

#[test]
#[ignore = "system: kills processes"]
fn what_was_flushed_survives_a_kill() {
    survives(TREE);
}

#[test]
#[ignore = "system: kills processes"]
fn against_snapshots_what_was_flushed_survives_a_kill() {
    survives(SNAPSHOTS);
}

#[test]
#[ignore = "system: kills processes"]
fn in_one_file_what_was_flushed_survives_a_kill() {
    survives(ONE_FILE);
}

fn survives(how: &[&str]) {
    let Some(mut rig) = Rig::with_disk(how, "16M", &["qemu-io"]) else { return };
    let mut flushed: Vec<String> = Vec::new();
    for round in 1..=6u64 {
        rig.serve(&[]);
        let still_there: Vec<_> = flushed
            .iter()
            .map(|what| what.replacen("write", "read", 1).replace(" -f", ""))
            .collect();
        assert!(still_there.is_empty() || io(&rig, &still_there), "round {round}: {still_there:?}");
        // One write that is flushed with all before it, one that is durable by itself, and one that
        // nobody waits for; sizes are no multiples of a block.
        let place = |part: u64| (round * 3 + part) * 300_000;
        let (a, b, c) = (place(0), place(1), place(2));
        let writes = [
            format!("write -P {round} {a} {}", 40_000 * round),
            "flush".into(),
            format!("write -f -P {} {b} 777", round + 100),
        ];
        assert!(io(&rig, &writes), "round {round}");
        flushed.extend([writes[0].clone(), writes[2].clone()]);
        // The server is at work, or has just been, when it dies.
        let uri = rig.uri();
        let mut last = std::process::Command::new("qemu-io")
            .args(["-f", "raw", "-c", &format!("write -P 99 {c} 200000"), &uri])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program runs");
        rig.kill();
        last.wait().expect("it ends");
        assert!(rig.socket().exists(), "a killed server leaves its socket, which is no obstacle");
    }
    rig.serve(&[]);
    let all: Vec<_> =
        flushed.iter().map(|what| what.replacen("write", "read", 1).replace(" -f", "")).collect();
    assert!(io(&rig, &all));
    assert_eq!(rig.end(), Some(0));
    assert!(rig.scratch.good(["check", "d"]).starts_with("clean: "));
}
