//! Comments: how wide, and in which words.

use crate::finding::Finding;
use crate::limits::{COMMENT_COLUMNS, SHUNNED, SHUNNED_AT_MOST};
use crate::source::Source;

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut shunned = Vec::new();
    for source in sources.iter().filter(|source| source.path.ends_with(".rs")) {
        for (at, line) in source.text.lines().enumerate() {
            let Some(comment) = comment(line) else { continue };
            let place = || format!("{}:{}", source.path, at + 1);
            if line.chars().count() > COMMENT_COLUMNS {
                findings.push(Finding {
                    at: place(),
                    what: format!("a comment of more than {COMMENT_COLUMNS} columns"),
                    advice: "Break the line, or say it shorter.",
                });
            }
            let words =
                SHUNNED.iter().flat_map(|word| std::iter::repeat_n(*word, count(comment, word)));
            shunned.extend(words.map(|word| (place(), word)));
        }
    }
    if shunned.len() > SHUNNED_AT_MOST {
        let last = shunned.last().map_or("", |(at, _)| at);
        findings.push(Finding {
            at: last.into(),
            what: format!("{} of {SHUNNED:?} in comments, at most {SHUNNED_AT_MOST}", shunned.len()),
            advice: "Name the thing: \"a passphrase holder\", \"128 blocks\", \"the kernel learns\".",
        });
    }
    findings
}

fn comment(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("//")
}

/// How often a word stands in a text, whole.
fn count(text: &str, word: &str) -> usize {
    let text = text.to_ascii_lowercase();
    let whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        ![before, after].into_iter().flatten().any(char::is_alphanumeric)
    };
    text.match_indices(word).filter(|(at, _)| whole(*at)).count()
}
