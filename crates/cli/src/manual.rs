//! `man`: the manual pages, from the same text as `--help`.

use crate::args::{Cli, ManArgs};
use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io::Write;
use std::path::Path;

/// What stands at the top of each page, in the middle.
const MANUAL: &str = "Oblivio";

/// Where secrets and settings come from: for the first page.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("OBLIVIO_PASSPHRASE", "The passphrase. The command takes it out of its environment at once."),
    ("OBLIVIO_NEW_PASSPHRASE", "A passphrase to add, or to change to."),
    ("XDG_STATE_HOME", "What this computer remembers of volumes is in the folder oblivio below."),
];

/// See [`ENVIRONMENT`].
const FILES: [(&str, &str); 2] = [
    ("~/.local/state/oblivio", "The last commit of each volume, by which rollbacks are found."),
    ("~/.config/oblivio/remotes.toml", "Servers of volumes and their secrets. Its mode is 0600."),
];

/// Runs `oblivio man`.
pub fn run(args: &ManArgs) -> Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    write_all(&command, &[], &args.dir)
}

/// Writes the pages of a command and of all below it. `above` are the names of those above it.
fn write_all(command: &Command, above: &[String], dir: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let path = dir.join(format!("{name}.1"));
    let page = page(command, above).with_context(|| format!("the page of {name}"))?;
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    let above = [above, &[name]].concat();
    let mut shown = command.get_subcommands().filter(|below| !below.is_hide_set());
    shown.try_for_each(|below| write_all(below, &above, dir))
}

fn page(command: &Command, above: &[String]) -> std::io::Result<Vec<u8>> {
    // What only `-h` leaves out for shortness is on the page.
    let whole = command.clone().mut_args(|arg| arg.hide_short_help(false));
    let usage = whole.clone().render_usage().to_string();
    let man = Man::new(whole);
    let mut page = Vec::new();
    top(&mut page, command)?;
    man.render_name_section(&mut page)?;
    let mut synopsis = Roff::default();
    synopsis.control("SH", ["SYNOPSIS"]);
    synopsis.text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let mut rest = Roff::default();
    if let Some(text) = command.get_after_help() {
        after_help(&mut rest, &text.to_string());
    }
    match above.is_empty() {
        true => {
            entries(&mut rest, "ENVIRONMENT", &ENVIRONMENT);
            entries(&mut rest, "FILES", &FILES);
        }
        false => see_also(&mut rest, above),
    }
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// The head and foot of each page. There is no date, so that the same program makes the same page.
/// Words are not parted at line ends: options and URLs are read and copied whole.
fn top(page: &mut Vec<u8>, command: &Command) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    writeln!(page, ".TH {name} 1 \"\" \"oblivio {}\" {MANUAL}", env!("CARGO_PKG_VERSION"))?;
    writeln!(page, ".nh\n.ad l")
}

/// The text below the options of `--help`, paragraph by paragraph: examples, exit codes, notes.
fn after_help(page: &mut Roff, text: &str) {
    let mut noted = false;
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        if first == "Example:" || first == "Examples:" {
            page.control("SH", ["EXAMPLES"]);
            page.control("nf", []);
            for line in rest.lines() {
                page.text([roman(line.trim_start())]);
            }
            page.control("fi", []);
            continue;
        }
        if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
            exit_codes(page, &codes.replace('\n', " "));
            continue;
        }
        match std::mem::replace(&mut noted, true) {
            true => page.control("PP", []),
            false => page.control("SH", ["NOTES"]),
        };
        for line in paragraph.lines() {
            page.text([roman(line)]);
        }
    }
}

/// `0 all went well, 1 failed`: an entry for each number.
fn exit_codes(page: &mut Roff, codes: &str) {
    page.control("SH", ["EXIT STATUS"]);
    let mut texts: Vec<String> = Vec::new();
    for part in codes.trim_end_matches('.').split(", ") {
        match (part.starts_with(|c: char| c.is_ascii_digit()), texts.last_mut()) {
            (false, Some(last)) => *last = format!("{last}, {part}"),
            _ => texts.push(part.to_owned()),
        }
    }
    for text in &texts {
        let (code, meaning) = text.split_once(' ').unwrap_or((text, ""));
        page.control("TP", []);
        page.text([bold(code)]);
        page.text([roman(meaning)]);
    }
}

fn entries(page: &mut Roff, heading: &str, entries: &[(&str, &str)]) {
    page.control("SH", [heading]);
    for (name, text) in entries {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text([roman(*text)]);
    }
}

fn see_also(page: &mut Roff, above: &[String]) {
    page.control("SH", ["SEE ALSO"]);
    let mut words = Vec::new();
    for name in above {
        words.extend([bold(name.as_str()), roman("(1), ")]);
    }
    words.pop();
    words.push(roman("(1)"));
    page.text(words);
}
