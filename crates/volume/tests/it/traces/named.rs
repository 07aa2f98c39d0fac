//! The pages in docs/leakage name, for each line of their contracts, the test that holds it.

use std::path::Path;

/// The names in a text: `a/path.rs::test`, in backticks.
fn named(text: &str) -> Vec<(&str, &str)> {
    text.split('`').skip(1).step_by(2).filter_map(|code| code.split_once(".rs::")).collect()
}

fn contract() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = root.join("docs/leakage").read_dir().expect("the pages");
    let page = |page: std::fs::DirEntry| std::fs::read_to_string(page.path()).expect("a page");
    pages.map(|it| page(it.expect("a page"))).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn every_line_names_a_test_that_exists() {
    let text = contract();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = named(&text);
    assert!(names.len() > 60, "{}", names.len());
    for (file, test) in names {
        let source = std::fs::read_to_string(crates.join(file).with_extension("rs"));
        let source = source.unwrap_or_else(|error| panic!("{file}.rs: {error}"));
        let begins = format!("fn {test}(");
        let at = source.find(&begins).unwrap_or_else(|| panic!("{file}.rs has no {test}"));
        // A test's own attribute, or a property's.
        assert!(source[..at].trim_end().ends_with(']'), "{file}.rs: {test} is no test");
    }
    let tables = text.split("\n\n").filter(|part| part.contains("| held by |"));
    for row in tables.flat_map(|table| table.lines().filter(|line| line.starts_with('|')).skip(2)) {
        assert!(!named(row).is_empty(), "no test holds: {row}");
    }
    let ends = |line: &str| line.starts_with("- ") || line.is_empty() || line.starts_with('#');
    let mut points: Vec<String> = Vec::new();
    for line in text.lines() {
        match points.last_mut() {
            Some(point) if !ends(line) && point.starts_with("- ") => point.push_str(line),
            _ => points.push(line.to_owned()),
        }
    }
    let hidden = points.iter().filter(|point| point.starts_with("- ") && point.ends_with('.'));
    assert!(hidden.count() == 0, "a point ends with the test that holds it");
}
