//! Fields that other files touch.

use crate::finding::Finding;
use crate::limits::TOUCHED_FIELDS;
use crate::source::Source;
use syn::Visibility;
use syn::visit::{self, Visit};

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let production = sources.iter().filter(|source| {
        source.in_src().is_some_and(|(name, _)| name != "lab" && name != "testkit")
    });
    production.flat_map(file).collect()
}

fn file(source: &Source) -> Vec<Finding> {
    let mut structs = Structs { path: &source.path, findings: Vec::new() };
    if let Some(parsed) = source.parsed() {
        structs.visit_file(parsed);
    }
    structs.findings
}

struct Structs<'a> {
    path: &'a str,
    findings: Vec<Finding>,
}

impl<'ast> Visit<'ast> for Structs<'_> {
    fn visit_item_struct(&mut self, it: &'ast syn::ItemStruct) {
        let shown = |field: &&syn::Field| !matches!(field.vis, Visibility::Inherited);
        let (all, touched) = (it.fields.len(), it.fields.iter().filter(shown).count());
        // One that shows all its fields is a record: it keeps nothing in order.
        if touched > TOUCHED_FIELDS && touched < all {
            self.findings.push(Finding {
                at: format!("{}:{}", self.path, it.ident.span().start().line),
                what: format!("{} shows {touched} fields, at most {TOUCHED_FIELDS}", it.ident),
                advice: "Give fields that change together a struct of their own.",
            });
        }
        visit::visit_item_struct(self, it);
    }
}
