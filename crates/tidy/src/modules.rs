//! The modules of a crate: what each defines, what it shows again, and what it uses.

use crate::source::Source;
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// A path from the crate's root.
type Path = Vec<String>;

/// The modules of one crate. Modules within a file belong to the file.
#[derive(Default)]
pub(crate) struct Modules {
    modules: BTreeMap<Path, Module>,
}

/// A module in a file of its own.
#[derive(Default)]
struct Module {
    file: String,
    defined: BTreeSet<String>,
    /// Modules below this one, in files of their own.
    children: BTreeSet<String>,
    /// Names that are brought in, and the path each stands for.
    brought: BTreeMap<String, Path>,
    /// Modules all of whose names are brought in.
    globs: Vec<Path>,
    used: BTreeSet<Path>,
}

impl Modules {
    /// Those of the sources in a crate's `src`.
    pub(crate) fn of(name: &str, sources: &[Source]) -> Self {
        let mut modules = Self::default();
        for source in sources {
            let Some((_, path)) = source.in_src().filter(|(of, _)| *of == name) else { continue };
            let Some(file) = source.parsed() else { continue };
            let module = Module::new(&source.path, &path_of(path), file);
            modules.modules.insert(path_of(path), module);
        }
        modules
    }

    /// The files, and for each those whose names it uses.
    pub(crate) fn uses(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let of = |module: &Module| {
            let used = module.used.iter().filter_map(|path| self.owner(path, 0));
            used.filter(|file| *file != module.file).collect()
        };
        self.modules.values().map(|module| (&*module.file, of(module))).collect()
    }

    /// The file that defines what a path names.
    fn owner(&self, path: &[String], depth: usize) -> Option<&str> {
        // Names can be brought in in circles.
        if depth > 16 {
            return None;
        }
        let inside = (0..=path.len()).rev().find(|&len| self.modules.contains_key(&path[..len]))?;
        let module = &self.modules[&path[..inside]];
        let Some(name) = path.get(inside) else { return Some(&module.file) };
        if module.defined.contains(name) {
            return Some(&module.file);
        }
        if let Some(brought) = module.brought.get(name) {
            let further: Path = brought.iter().chain(&path[inside + 1..]).cloned().collect();
            return self.owner(&further, depth + 1).or(Some(&module.file));
        }
        let through = |glob: &Path| {
            let further: Path = glob.iter().chain(&path[inside..]).cloned().collect();
            self.owner(&further, depth + 1).filter(|file| *file != module.file)
        };
        module.globs.iter().find_map(through).or(Some(&module.file))
    }
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn path_of(path: &str) -> Path {
    let path = path.trim_end_matches(".rs");
    let parts = path.split('/').filter(|part| !["lib", "main", "mod"].contains(part));
    parts.map(str::to_owned).collect()
}

impl Module {
    fn new(file: &str, path: &[String], parsed: &syn::File) -> Self {
        let mut module = Self { file: file.into(), ..Self::default() };
        for item in &parsed.items {
            module.take(path, item);
        }
        let mut paths = Paths { module: &mut module, at: path };
        paths.visit_file(parsed);
        module
    }

    /// What an item of the file's own module defines.
    fn take(&mut self, path: &[String], item: &Item) {
        let name = match item {
            Item::Const(it) => &it.ident,
            Item::Enum(it) => &it.ident,
            Item::Fn(it) => &it.sig.ident,
            Item::Mod(it) if it.content.is_some() => &it.ident,
            Item::Mod(it) => {
                self.children.insert(it.ident.to_string());
                return;
            }
            Item::Static(it) => &it.ident,
            Item::Struct(it) => &it.ident,
            Item::Trait(it) => &it.ident,
            Item::Type(it) => &it.ident,
            Item::Union(it) => &it.ident,
            Item::Use(it) if !is_test(&it.attrs) => return self.bring(path, &[], &it.tree),
            _ => return,
        };
        self.defined.insert(name.to_string());
    }

    fn bring(&mut self, path: &[String], before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(it) => self.bring(path, &with(&it.ident), &it.tree),
            UseTree::Group(it) => it.items.iter().for_each(|tree| self.bring(path, before, tree)),
            UseTree::Name(it) if it.ident == "self" => {
                if let (Some(name), Some(to)) = (before.last(), absolute(path, before)) {
                    self.brought.insert(name.clone(), to);
                }
            }
            UseTree::Name(it) => {
                if let Some(to) = absolute(path, &with(&it.ident)) {
                    self.brought.insert(it.ident.to_string(), to);
                }
            }
            UseTree::Rename(it) => {
                if let Some(to) = absolute(path, &with(&it.ident)) {
                    self.brought.insert(it.rename.to_string(), to);
                }
            }
            UseTree::Glob(_) => self.globs.extend(absolute(path, before)),
        }
    }
}

/// A path from the root of the crate, if it leads into the crate: from a module of it, or from a
/// name beside it.
fn absolute(at: &[String], path: &[String]) -> Option<Path> {
    let mut at = at.to_vec();
    let mut rest = path;
    match rest.first()?.as_str() {
        "crate" => {
            at.clear();
            rest = &rest[1..];
        }
        "self" => rest = &rest[1..],
        // `super`, or a module below this one; what is neither has no file there.
        _ => {}
    }
    while rest.first().is_some_and(|part| part == "super") {
        at.pop();
        rest = &rest[1..];
    }
    at.extend_from_slice(rest);
    Some(at)
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|it| {
        it.path().is_ident("test")
            || it.path().is_ident("cfg")
                && it.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

/// Finds every path of a file, but for its tests.
struct Paths<'a> {
    module: &'a mut Module,
    at: &'a [String],
}

impl Paths<'_> {
    fn take(&mut self, path: &[String]) {
        let Some(first) = path.first() else { return };
        if ["crate", "super", "self"].contains(&&**first) {
            self.module.used.extend(absolute(self.at, path));
        } else if let Some(brought) = self.module.brought.get(first) {
            let whole = brought.iter().chain(&path[1..]).cloned().collect();
            self.module.used.insert(whole);
        } else if path.len() > 1 && self.module.children.contains(first) {
            self.module.used.extend(absolute(self.at, path));
        }
    }

    fn take_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(it) => self.take_tree(&with(&it.ident), &it.tree),
            UseTree::Group(it) => it.items.iter().for_each(|tree| self.take_tree(before, tree)),
            UseTree::Name(it) if it.ident == "self" => self.take(before),
            UseTree::Name(it) => self.take(&with(&it.ident)),
            UseTree::Rename(it) => self.take(&with(&it.ident)),
            UseTree::Glob(_) => self.take(before),
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(it) => &it.attrs,
            Item::Fn(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            Item::Use(it) => &it.attrs,
            _ => return visit::visit_item(self, item),
        };
        if is_test(attributes) {
            return;
        }
        match item {
            // What a module only shows again it does not use.
            Item::Use(it) if matches!(it.vis, syn::Visibility::Inherited) => {
                self.take_tree(&[], &it.tree);
            }
            Item::Use(_) => {}
            _ => visit::visit_item(self, item),
        }
    }

    // `pub(super)` uses nothing.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Path = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.take(&parts);
        visit::visit_path(self, path);
    }
}
