//! Lengths of files and functions.

use crate::finding::Finding;
use crate::limits::{FILE_LINES, FUNCTION_LINES, LONG_FILES};
use crate::source::Source;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    sources.iter().filter(|source| source.in_src().is_some()).flat_map(file).collect()
}

fn file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.split("#[cfg(test)]\nmod ").next().unwrap_or("").lines().count();
    if lines > FILE_LINES && !LONG_FILES.contains(&&*source.path) {
        findings.push(Finding {
            at: source.path.clone(),
            what: format!("{lines} lines, at most {FILE_LINES}"),
            advice: "Find the second idea in it and give it a file of its own.",
        });
    }
    if source.path.starts_with("crates/lab/") {
        return findings;
    }
    let Some(parsed) = source.parsed() else { return findings };
    let mut functions = Functions { path: &source.path, findings: &mut findings };
    functions.visit_file(parsed);
    findings
}

struct Functions<'a> {
    path: &'a str,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn look(&mut self, name: &syn::Ident, block: &syn::Block) {
        let (begin, end) = (name.span().start().line, block.span().end().line);
        if end - begin >= FUNCTION_LINES {
            self.findings.push(Finding {
                at: format!("{}:{begin}", self.path),
                what: format!("{name} has {} lines, at most {FUNCTION_LINES}", end - begin + 1),
                advice: "Split it where its next thought begins: it must fit a screen.",
            });
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.look(&it.sig.ident, &it.block);
        visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        self.look(&it.sig.ident, &it.block);
        visit::visit_impl_item_fn(self, it);
    }
}
