//! Tables, the machine they were made on, and the page that keeps them.

use crate::plot::Chart;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// A table in Markdown, also readable as plain text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self { head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row, which must have as many cells as the table has columns.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.head.len(), "as many cells as columns");
        self.rows.push(cells);
    }

    /// The table as text.
    pub fn render(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&self.head]);
            cells.map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let mut text = line(&self.head, &widths);
        for (column, width) in widths.iter().enumerate() {
            // Text to the left, numbers to the right.
            let end = if column == 0 { "-" } else { ":" };
            let _ = write!(text, "|{}{end}", "-".repeat(width + 1));
        }
        text.push_str("|\n");
        for row in &self.rows {
            text.push_str(&line(row, &widths));
        }
        text
    }
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(width - cell.chars().count());
        let _ = if column == 0 {
            write!(text, "| {cell}{pad} ")
        } else {
            write!(text, "| {pad}{cell} ")
        };
    }
    text.push_str("|\n");
    text
}

/// The result of an experiment: a title, text and tables in order.
#[derive(Debug)]
pub struct Report {
    page: &'static str,
    name: &'static str,
    body: String,
    pictures: Vec<(String, Result<String>)>,
}

impl Report {
    /// A report with the section `name` in the page.
    pub fn new(name: &'static str, title: &str) -> Self {
        Self::on("benchmarks.md", name, title)
    }

    /// As [`Self::new`], for another page of `docs`.
    pub fn on(page: &'static str, name: &'static str, title: &str) -> Self {
        println!("\n{title}\n");
        Self { page, name, body: format!("## {title}\n\n"), pictures: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn text(&mut self, text: &str) {
        println!("{text}\n");
        let _ = write!(self.body, "{}\n\n", broken(text, "\n"));
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        let text = table.render();
        println!("{text}");
        let _ = writeln!(self.body, "{text}");
    }

    /// Adds a chart, which is kept as `docs/pictures/file`.
    pub fn picture(&mut self, file: &str, chart: &Chart) {
        let _ = write!(self.body, "![{}](pictures/{file})\n\n", chart.title());
        self.pictures.push((file.into(), chart.svg()));
    }

    /// Adds the machine, the date and the command; with `write` puts everything into its page.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(mut self, write: bool) -> Result<()> {
        let command = broken(&command(), " \\\n        ");
        let _ = writeln!(self.body, "{}\n\n    {command}", broken(&machine(), "\n"));
        if write {
            let docs = docs()?;
            let path = docs.join(self.page);
            let old = match std::fs::read_to_string(&path) {
                Ok(old) => old,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    format!("# {}\n\n{HEAD}", self.page.trim_end_matches(".md"))
                }
                Err(error) => return Err(error).context(path.display().to_string()),
            };
            let new = replace_section(&old, self.name, &self.body);
            std::fs::write(&path, new).with_context(|| path.display().to_string())?;
            std::fs::create_dir_all(docs.join("pictures"))?;
            for (file, svg) in self.pictures {
                let path = docs.join("pictures").join(file);
                std::fs::write(&path, svg?).with_context(|| path.display().to_string())?;
            }
            println!("written to {}", path.display());
        }
        Ok(())
    }
}

/// The beginning of a new page.
const HEAD: &str = "Each section was written by the command that it names; run it \
again with `--write` to replace it.\nTimes depend on the machine; counted bytes do not.\n";

/// Columns of a line in a page.
const COLUMNS: usize = 110;

/// A text in lines of a page, with `between` them. None begins like a list item.
fn broken(text: &str, between: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let long = word.chars().count();
        if column > 0 && column + 1 + long > COLUMNS && !matches!(word, "+" | "-" | "*") {
            lines.push_str(between);
            column = 0;
        } else if column > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += long;
    }
    lines
}

/// Replaces the text between the markers of `name`, or adds it at the end.
fn replace_section(page: &str, name: &str, body: &str) -> String {
    let (begin, end) = (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"));
    let section = format!("{begin}\n{}\n{end}", body.trim_end());
    let found = page.find(&begin).and_then(|from| {
        let to = page[from..].find(&end)?;
        Some((from, from + to + end.len()))
    });
    match found {
        Some((from, to)) => format!("{}{section}{}", &page[..from], &page[to..]),
        None => format!("{}\n\n{section}\n", page.trim_end()),
    }
}

/// The folder of the repository's pages, also for plots.
///
/// # Errors
/// Outside of the repository.
fn docs() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let root = here.ancestors().find(|folder| folder.join("crates/lab").is_dir());
    let docs = root.context("run this inside the repository to use --write")?.join("docs");
    std::fs::create_dir_all(&docs)?;
    Ok(docs)
}

/// The machine in a sentence.
fn machine() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split(':').nth(1)?.trim().to_owned())
    };
    let model = field(&cpu, "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = field(&memory, "MemTotal").unwrap_or_default();
    let kilobytes = memory.trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0);
    let gib = kilobytes / (1 << 20) as f64;
    let (kernel, rustc) = (output("uname", &["-sr"]), output("rustc", &["--version"]));
    let (date, commit) =
        (output("date", &["-u", "+%Y-%m-%d"]), output("git", &["rev-parse", "--short", "HEAD"]));
    format!("{date}, commit {commit}: {model}, {cores} cores, {gib:.0} GiB, {kernel}, {rustc}:")
}

fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| format!("({program} unknown)"))
}

/// The command to repeat this run.
fn command() -> String {
    let features = if cfg!(feature = "rivals") { " --features rivals" } else { "" };
    let args: Vec<String> = std::env::args().skip(1).collect();
    format!("cargo run --profile dist -p oblivio-lab{features} -- {}", args.join(" "))
}

/// Bytes for people: `4 KiB`, `1.5 GiB`.
pub fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value.fract() == 0.0 || value >= 100.0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// A number with separators: `1,234,567`.
pub fn count(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

/// The median of some measurements.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_replaced_in_place() {
        let page = replace_section("# B\n", "x", "one\n");
        let page = replace_section(&page, "y", "two");
        let page = replace_section(&page, "x", "three\n\n");
        assert_eq!(
            page,
            "# B\n\n<!-- begin x -->\nthree\n<!-- end x -->\n\n<!-- begin y -->\ntwo\n<!-- end y -->\n"
        );
    }

    #[test]
    fn paragraphs_are_wrapped() {
        let text = "a few words ".repeat(40);
        let page = broken(text.trim_end(), "\n");
        assert!(page.lines().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(page.replace('\n', " "), text.trim_end());
        let sum = format!("{} + 1", "x".repeat(COLUMNS));
        assert_eq!(broken(&sum, "\n"), sum.replace(" 1", "\n1"));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(12.0), "12");
        assert_eq!(bytes(4096), "4 KiB");
        assert_eq!(bytes(1536 << 20), "1.5 GiB");
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
    }
}
