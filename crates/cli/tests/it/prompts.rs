//! The terminal is restored, whatever ends a prompt.

use crate::common::{Scratch, fifo, until};
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// Every command that asks, and its first prompt.
const ASKING: [(&[&str], &str); 4] = [
    (&["ls", "v"], "Passphrase: "),
    (&["init", "--seen-by", "storage", "w"], "Passphrase for the new volume: "),
    (&["passphrase", "change", "v"], "Passphrase: "),
    (&["nbd", "v", "--background", "--socket", "s"], "Passphrase: "),
];

fn has_setsid() -> bool {
    let command = ["--default-signal", "setsid", "--version"];
    let found = Command::new("env").args(command).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no setsid, or an env that does not set signals back");
    }
    found
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn a_signal_at_a_prompt_leaves_the_terminal_as_it_was() {
    if !has_setsid() {
        return;
    }
    let scratch = Scratch::with_volume();
    let signals =
        [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT, Signal::ALARM, Signal::USR1];
    for (number, signal) in signals.into_iter().enumerate() {
        let mut terminal = Terminal::new();
        let found = terminal.modes();
        let (args, question) = ASKING[number % ASKING.len()];
        let mut child = terminal.command(&scratch, args).spawn().expect("it runs");
        terminal.expect(question);
        assert!(!terminal.echoes(), "what is typed does not show");
        terminal.say(b"half of it");
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "it ends as others do");
        assert_eq!(terminal.modes(), found, "{args:?} {signal:?}");
    }
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn ctrl_c_at_every_prompt_leaves_the_terminal_as_it_was() {
    if !has_setsid() {
        return;
    }
    let scratch = Scratch::with_volume();
    for (args, question) in ASKING {
        let mut terminal = Terminal::new();
        let found = terminal.modes();
        let mut child = terminal.command(&scratch, args).spawn().expect("it runs");
        terminal.expect(question);
        terminal.say(b"\x03");
        let status = child.wait().expect("it ends");
        assert_eq!(status.signal(), Some(Signal::INT.as_raw()), "{args:?}");
        assert_eq!(terminal.modes(), found, "{args:?}");
    }
    // Also at the second question; and a command that goes on after an answer ends as ever.
    let mut terminal = Terminal::new();
    let found = terminal.modes();
    let args = ["passphrase", "add", "v"];
    let mut child = terminal.command(&scratch, &args).spawn().expect("it runs");
    terminal.expect("Passphrase: ");
    terminal.say(b"secret\n");
    terminal.expect("New passphrase: ");
    terminal.say(b"another\n");
    terminal.expect("The same again: ");
    terminal.say(b"\x03");
    assert_eq!(child.wait().expect("it ends").signal(), Some(Signal::INT.as_raw()));
    assert_eq!(terminal.modes(), found);
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn an_answer_opens_and_the_terminal_is_as_it_was() {
    if !has_setsid() {
        return;
    }
    let scratch = Scratch::with_volume();
    let mut terminal = Terminal::new();
    let found = terminal.modes();
    let mut child = terminal.command(&scratch, &["info", "v"]).spawn().expect("it runs");
    terminal.expect("Passphrase: ");
    terminal.say(b"secret\n");
    terminal.expect("may grow to");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(terminal.modes(), found);
    let mut child = terminal.command(&scratch, &["info", "v"]).spawn().expect("it runs");
    terminal.expect("Passphrase: ");
    terminal.say(b"wrong\n");
    terminal.expect("wrong passphrase");
    assert_eq!(child.wait().expect("it ends").code(), Some(4));
    assert_eq!(terminal.modes(), found);
}

/// After a prompt, a signal has its default effect again.
#[test]
#[ignore = "system: a terminal, and setsid"]
fn signals_end_what_follows_a_prompt() {
    if !has_setsid() {
        return;
    }
    let scratch = Scratch::with_volume();
    fifo(&scratch, "pipe");
    // Opening waits for a writer.
    let args = ["put", "v", "pipe", "/stored"];
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut terminal = Terminal::new();
        let mut child = terminal.command(&scratch, &args).spawn().expect("it runs");
        terminal.expect("Passphrase: ");
        terminal.say(b"secret\n");
        until(|| terminal.echoes());
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        assert_eq!(child.wait().expect("it ends").signal(), Some(signal.as_raw()));
    }
    // Some signals end a server in order, others as ever.
    scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "--disk", "1M", "d"]);
    for (signal, code) in [(Signal::TERM, Some(0)), (Signal::USR1, None)] {
        let mut terminal = Terminal::new();
        let args = ["nbd", "d", "--socket", "s"];
        let mut child = terminal.command(&scratch, &args).spawn().expect("it runs");
        terminal.expect("Passphrase: ");
        terminal.say(b"secret\n");
        terminal.expect("Serving");
        kill_process(Pid::from_child(&child), signal).expect("it is there");
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), code, "{signal:?}: {status:?}");
    }
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn a_prompt_that_is_stopped_gives_the_terminal_back_and_asks_again() {
    if !has_setsid() {
        return;
    }
    let scratch = Scratch::with_volume();
    let mut terminal = Terminal::new();
    let found = terminal.modes();
    // A shell with job control: it goes on when the command is stopped, and continues the command
    // later.
    let script = format!(
        "set -m; {} du v; echo stopped; read line; fg; echo ended $?",
        env!("CARGO_BIN_EXE_oblivio")
    );
    let mut shell = terminal.program(&scratch, "bash", &["-c", &script]);
    let Ok(mut shell) = shell.spawn() else { return eprintln!("skipped: there is no bash") };
    terminal.expect("Passphrase: ");
    assert!(!terminal.echoes());
    terminal.say(b"\x1a");
    terminal.expect("stopped");
    assert_eq!(terminal.modes(), found, "as it was found");
    terminal.say(b"go on\n");
    terminal.expect("Passphrase: ");
    until(|| !terminal.echoes());
    terminal.say(b"secret\n");
    terminal.expect("ended 0");
    shell.wait().expect("it ends");
    assert_eq!(terminal.modes(), found);
}
