//! Documents: lengths of sentences, of cells and of lines.

use crate::finding::Finding;
use crate::limits::{
    CELL_CHARACTERS, DOCUMENT_COLUMNS, LONG_SENTENCE, LONG_SENTENCES_PERCENT, MEDIAN_SENTENCE,
};
use crate::source::Source;

/// Fewer words are a label or a figure, not a sentence.
const LEAST_WORDS: usize = 4;

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    sources.iter().filter(|source| source.path.ends_with(".md")).flat_map(document).collect()
}

fn document(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reader = Reader::default();
    for (at, line) in source.text.lines().enumerate() {
        let mut find = |what, advice| {
            findings.push(Finding { at: format!("{}:{}", source.path, at + 1), what, advice });
        };
        let Some(kind) = reader.line(line) else { continue };
        match kind {
            Line::Row => {
                let longest = cells(line).map(|cell| cell.chars().count()).max().unwrap_or(0);
                if longest > CELL_CHARACTERS {
                    let what = format!("a cell of {longest} characters, at most {CELL_CHARACTERS}");
                    find(what, "Make it several rows, or a note below the table.");
                }
            }
            Line::Prose if line.chars().count() > DOCUMENT_COLUMNS => {
                let what = format!("a line of more than {DOCUMENT_COLUMNS} columns");
                find(what, "Break it.");
            }
            Line::Prose => {}
        }
    }
    findings.extend(sentences(&source.path, &reader.finish()));
    findings
}

fn sentences(path: &str, paragraphs: &[String]) -> Vec<Finding> {
    let mut words: Vec<usize> =
        paragraphs.iter().flat_map(|text| split(text)).filter(|&n| n >= LEAST_WORDS).collect();
    words.sort_unstable();
    let finding = |what, advice| Finding { at: path.into(), what, advice };
    let mut findings = Vec::new();
    let long = words.iter().filter(|&&n| n > LONG_SENTENCE).count();
    // A single one in a short document is no habit.
    if long > 1 && long * 100 > words.len() * LONG_SENTENCES_PERCENT {
        let what = format!("{long} of {} sentences over {LONG_SENTENCE} words", words.len());
        findings.push(finding(what, "Make two of each: the subject first, one thought in each."));
    }
    let median = words.get(words.len() / 2).copied().unwrap_or(0);
    if median > MEDIAN_SENTENCE {
        let what = format!("the median sentence has {median} words, at most {MEDIAN_SENTENCE}");
        findings.push(finding(what, "Shorter sentences."));
    }
    findings
}

enum Line {
    Row,
    Prose,
}

/// Puts lines together to paragraphs.
#[derive(Default)]
struct Reader {
    paragraphs: Vec<String>,
    paragraph: String,
    in_code: bool,
}

impl Reader {
    /// What a line is; none if it is code, a heading or empty.
    fn line(&mut self, line: &str) -> Option<Line> {
        if line.starts_with("```") {
            self.in_code = !self.in_code;
            self.end();
            return None;
        }
        let indented = line.starts_with("    ") && self.paragraph.is_empty();
        if self.in_code || indented || line.starts_with('#') || line.trim().is_empty() {
            self.end();
            return None;
        }
        if line.starts_with('|') {
            self.end();
            self.paragraphs.extend(cells(line).map(str::to_owned));
            return Some(Line::Row);
        }
        let text = line.trim_start();
        if text.starts_with("- ") || text.starts_with("* ") {
            self.end();
        }
        self.paragraph.push_str(text);
        self.paragraph.push(' ');
        Some(Line::Prose)
    }

    fn end(&mut self) {
        if !self.paragraph.is_empty() {
            self.paragraphs.push(std::mem::take(&mut self.paragraph));
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.end();
        self.paragraphs
    }
}

fn cells(row: &str) -> impl Iterator<Item = &str> {
    row.trim().trim_matches('|').split('|').map(str::trim)
}

/// The numbers of words of a text's sentences. What stands in backticks is one word.
fn split(text: &str) -> Vec<usize> {
    let mut plain = String::new();
    for (at, part) in text.split('`').enumerate() {
        plain.push_str(if at % 2 == 0 { part } else { "code" });
    }
    let mut counts = vec![0];
    for word in plain.split_whitespace() {
        let last = counts.len() - 1;
        counts[last] += usize::from(word.chars().any(char::is_alphanumeric));
        let bare = word.trim_end_matches(['"', '”', ')', '*', '_']);
        if bare.ends_with(['.', '!', '?', ':']) && bare.len() > 2 {
            counts.push(0);
        }
    }
    counts
}
