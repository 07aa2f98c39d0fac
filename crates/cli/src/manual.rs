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
    let source = format!("oblivio {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(whole).source(source).manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
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
    page.flush()?;
    Ok(page)
}

/// The text below the options of `--help`, paragraph by paragraph: examples, exit codes, notes.
fn after_help(page: &mut Roff, text: &str) {
    let mut section = "";
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        if first == "Example:" || first == "Examples:" {
            section = "EXAMPLES";
            page.control("SH", [section]);
            page.control("nf", []);
            rest.lines().for_each(|line| drop(page.text([roman(line.trim_start())])));
            page.control("fi", []);
            continue;
        }
        let (heading, text) = match paragraph.strip_prefix("Exit codes: ") {
            Some(codes) => ("EXIT STATUS", codes),
            None => ("NOTES", paragraph),
        };
        // A paragraph under the heading of the one before it needs a break only.
        page.control(if section == heading { "PP" } else { "SH" }, heading_of(section, heading));
        section = heading;
        text.lines().for_each(|line| drop(page.text([roman(line)])));
    }
}

fn heading_of<'h>(section: &str, heading: &'h str) -> Vec<&'h str> {
    if section == heading { Vec::new() } else { vec![heading] }
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
