//! Names of public types: one name is one thing in all that ships. And how much one type does.

use crate::finding::Finding;
use crate::limits::{DUTIES, MANY_METHODS, METHODS, SHARED_NAMES, SHARED_NAMES_AT_MOST};
use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Ident, Item, Type, Visibility};

/// Crates that nobody installs.
const APART: [&str; 4] = ["lab", "testkit", "tidy", "tracer"];

pub(crate) fn findings(sources: &[Source]) -> Vec<Finding> {
    let mut house = House::default();
    let tests: Vec<String> = sources.iter().flat_map(modules_for_tests).collect();
    for source in sources {
        if tests.iter().any(|of| source.path.starts_with(of)) {
            continue;
        }
        let Some((name, _)) = source.in_src().filter(|(name, _)| !APART.contains(name)) else {
            continue;
        };
        if let Some(file) = source.parsed() {
            house.items(name, &source.path, &file.items);
        }
    }
    let mut findings = house.shared_names();
    findings.extend(house.many_methods());
    findings.extend(house.duties());
    findings
}

#[derive(Default)]
struct House<'a> {
    /// The files of each public type's name.
    types: BTreeMap<String, BTreeSet<&'a str>>,
    /// How often each name of [`DUTIES`] is a type, shown or not.
    duties: BTreeMap<&'static str, usize>,
    /// The methods of each type of a crate, those of traits left out.
    methods: BTreeMap<(&'a str, String), usize>,
}

impl<'a> House<'a> {
    fn items(&mut self, name: &'a str, path: &'a str, items: &[Item]) {
        for item in items {
            match item {
                Item::Struct(it) => self.see(path, &it.vis, &it.ident, &it.attrs),
                Item::Enum(it) => self.see(path, &it.vis, &it.ident, &it.attrs),
                Item::Trait(it) => self.see(path, &it.vis, &it.ident, &it.attrs),
                Item::Type(it) => self.see(path, &it.vis, &it.ident, &it.attrs),
                Item::Mod(it) if !is_for_tests(&it.attrs) => {
                    let items = it.content.as_ref().map(|(_, items)| &items[..]);
                    self.items(name, path, items.unwrap_or_default());
                }
                Item::Impl(it) if it.trait_.is_none() => {
                    let functions = it.items.iter().filter(|it| matches!(it, syn::ImplItem::Fn(_)));
                    if let Some(of) = last_segment(&it.self_ty) {
                        *self.methods.entry((name, of)).or_default() += functions.count();
                    }
                }
                _ => {}
            }
        }
    }

    fn see(&mut self, path: &'a str, visibility: &Visibility, ident: &Ident, attrs: &[Attribute]) {
        if is_for_tests(attrs) {
            return;
        }
        if let Some((duty, _)) = DUTIES.iter().find(|(duty, _)| ident == duty) {
            *self.duties.entry(duty).or_default() += 1;
        }
        if matches!(visibility, Visibility::Public(_)) {
            self.types.entry(ident.to_string()).or_default().insert(path);
        }
    }

    fn shared_names(&self) -> Vec<Finding> {
        let shared = self.types.iter().filter(|(_, files)| files.len() > 1);
        let news = shared.clone().filter(|(name, _)| !SHARED_NAMES.contains(&name.as_str()));
        let mut findings: Vec<Finding> = news
            .map(|(name, files)| Finding {
                at: files.first().unwrap_or(&"").to_string(),
                what: format!("the name {name} stands for {} public types: {files:?}", files.len()),
                advice: "Give each the noun that only it is; crates/tidy/src/limits.rs lists exceptions.",
            })
            .collect();
        if shared.count() > SHARED_NAMES_AT_MOST {
            findings.push(Finding {
                at: "crates/tidy/src/limits.rs".into(),
                what: format!("more than {SHARED_NAMES_AT_MOST} exceptions"),
                advice: "A name is used for one thing.",
            });
        }
        findings
    }

    /// In a house without any of them there is nothing to count.
    fn duties(&self) -> Vec<Finding> {
        let wrong = DUTIES.iter().filter(|_| !self.duties.is_empty()).filter_map(|(name, what)| {
            let times = self.duties.get(name).copied().unwrap_or(0);
            (times != 1).then(|| Finding {
                at: "crates/tidy/src/limits.rs".into(),
                what: format!("{what} is {times} types of the name {name}"),
                advice: "One duty, one place: widen the type that does it.",
            })
        });
        wrong.collect()
    }

    fn many_methods(&self) -> Vec<Finding> {
        let many = self.methods.iter().filter_map(|((name, of), methods)| {
            let known = MANY_METHODS.iter().find(|(known, _)| *known == format!("{name}::{of}"));
            let most = known.map_or(METHODS, |(_, most)| *most);
            (*methods > most).then(|| Finding {
                at: format!("crates/{name}"),
                what: format!("{of} has {methods} methods, at most {most}"),
                advice: "Give what changes together a type of its own.",
            })
        });
        many.collect()
    }
}

/// How the paths of a file's modules begin that are compiled for tests only.
fn modules_for_tests(source: &Source) -> Vec<String> {
    let folder = match source.path.strip_suffix(".rs") {
        Some(stem) => stem.trim_end_matches("/mod").trim_end_matches("/lib"),
        None => return Vec::new(),
    };
    let items = source.parsed().map(|file| &file.items[..]).unwrap_or_default();
    let of = |item: &Item| match item {
        Item::Mod(it) if it.content.is_none() && is_for_tests(&it.attrs) => {
            Some([".rs", "/"].map(|end| format!("{folder}/{}{end}", it.ident)))
        }
        _ => None,
    };
    items.iter().filter_map(of).flatten().collect()
}

fn last_segment(of: &Type) -> Option<String> {
    let Type::Path(path) = of else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

fn is_for_tests(attrs: &[Attribute]) -> bool {
    let test = |attr: &&Attribute| {
        let of = attr.path().is_ident("cfg");
        of && attr.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    };
    attrs.iter().find(test).is_some()
}
