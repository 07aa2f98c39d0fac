//! Circles of modules: files each of which uses, in the end, itself.

use crate::finding::Finding;
use crate::modules::Modules;
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let crates: BTreeSet<&str> =
        sources.iter().filter_map(|source| Some(source.in_src()?.0)).collect();
    crates.into_iter().flat_map(|name| of_crate(name, sources)).collect()
}

fn of_crate(name: &str, sources: &[Source]) -> Vec<Finding> {
    let modules = Modules::of(name, sources);
    let uses = modules.uses();
    let circle = |files: BTreeSet<&str>| Finding {
        at: files.first().unwrap_or(&"").to_string(),
        what: format!("a circle of {} modules: {}", files.len(), arrows(&files, &uses)),
        advice: "Move what both need below them, or pass it in.",
    };
    circles(&uses).into_iter().map(circle).collect()
}

fn arrows(files: &BTreeSet<&str>, uses: &BTreeMap<&str, BTreeSet<&str>>) -> String {
    let short = |file: &str| file.split_once("/src/").map_or(file, |(_, path)| path).to_owned();
    let of = |file: &&str| {
        let used: Vec<String> = uses[file].intersection(files).map(|used| short(used)).collect();
        format!("{} -> {}", short(file), used.join(" "))
    };
    files.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// The sets of more than one file that all reach each other.
fn circles<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<BTreeSet<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|&from| (from, reached(from, uses))).collect();
    let mut found: Vec<BTreeSet<&str>> = Vec::new();
    for (&file, reached) in &reach {
        if !reached.contains(file) || found.iter().any(|circle| circle.contains(file)) {
            continue;
        }
        let back = |other: &&&str| reach.get(**other).is_some_and(|it| it.contains(file));
        found.push(reached.iter().filter(back).copied().collect());
    }
    found
}

fn reached<'a>(from: &str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = uses.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = next.pop() {
        if reached.insert(file) {
            next.extend(uses.get(file).into_iter().flatten());
        }
    }
    reached
}
