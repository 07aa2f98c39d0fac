//! The files that are looked at.

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::path::Path;

/// A file of the repository.
pub struct Source {
    /// From the root of the repository, with `/`.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Several checks look at it: parsing is most of their time.
    parsed: OnceCell<Option<syn::File>>,
}

impl Source {
    /// A file of this name.
    pub fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into(), parsed: OnceCell::new() }
    }

    /// Its items, if it is Rust that can be parsed.
    pub(crate) fn parsed(&self) -> Option<&syn::File> {
        self.parsed.get_or_init(|| syn::parse_file(&self.text).ok()).as_ref()
    }

    /// The crate and the path below its folder, of a file in `crates`.
    pub(crate) fn in_crate(&self) -> Option<(&str, &str)> {
        self.path.strip_prefix("crates/")?.split_once('/')
    }

    /// The crate and the path below `src`, of Rust that is compiled outside of tests.
    pub(crate) fn in_src(&self) -> Option<(&str, &str)> {
        let (name, path) = self.in_crate()?;
        let path = path.strip_prefix("src/")?;
        let tests = path.starts_with("tests/") || path.contains("/tests/");
        let test = path == "tests.rs" || path.ends_with("/tests.rs");
        (path.ends_with(".rs") && !tests && !test).then_some((name, path))
    }
}

/// All Rust, manifests and documents below a folder.
///
/// # Errors
/// Those of reading it.
pub fn read(root: &Path) -> io::Result<Vec<Source>> {
    let mut sources = Vec::new();
    for folder in ["crates", "fuzz", "python", "docs"] {
        below(root, folder, &mut sources)?;
    }
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            sources.push(Source::new(&name, &fs::read_to_string(root.join(&name))?));
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn below(root: &Path, folder: &str, sources: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        if entry.file_type()?.is_dir() {
            if !["target", "corpus", "artifacts", "seeds", "regressions", "venv", "dist"]
                .contains(&&*name)
            {
                below(root, &path, sources)?;
            }
        } else if [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end)) {
            sources.push(Source::new(&path, &fs::read_to_string(entry.path())?));
        }
    }
    Ok(())
}
