//! What is planted is found, and the finding says what to do.

use oblivio_tidy::{Finding, Source, findings};

fn found(path: &str, text: &str) -> Vec<Finding> {
    findings(&[Source::new(path, text)])
}

fn one(findings: &[Finding], what: &str) {
    let said: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 1, "{said:?}");
    assert!(findings[0].what.contains(what), "{said:?}");
    assert!(!findings[0].advice.is_empty());
}

#[test]
fn a_key_in_the_store() {
    let text = "[dependencies]\noblivio-crypto.workspace = true\n";
    one(&found("crates/store/Cargo.toml", text), "store depends on crypto");
    let text = "[dev-dependencies]\noblivio-crypto.workspace = true\n";
    assert!(found("crates/store/Cargo.toml", text).is_empty(), "tests may");
}

#[test]
fn an_upward_arrow() {
    let text = "[dependencies]\noblivio = { path = \"../oblivio\" }\n";
    one(&found("crates/volume/Cargo.toml", text), "volume depends on oblivio");
}

#[test]
fn a_crate_without_a_place() {
    one(&found("crates/new/Cargo.toml", "[package]\n"), "no place among the layers");
}

#[test]
fn a_circle_of_modules() {
    let circle = |back: &str| {
        findings(&[
            Source::new("crates/new/src/lib.rs", "mod a; mod b; mod c;"),
            Source::new("crates/new/src/a.rs", "use crate::b::B; pub struct A(B);"),
            Source::new("crates/new/src/b.rs", "pub struct B(crate::c::C);"),
            Source::new("crates/new/src/c.rs", back),
        ])
    };
    one(&circle("use super::a::A; pub struct C(Box<A>);"), "a circle of 3 modules");
    assert!(circle("pub struct C;").is_empty());
    let tests = "pub struct C; #[cfg(test)] mod tests { use crate::a::A; }";
    assert!(circle(tests).is_empty(), "tests may");
}

#[test]
fn a_circle_through_a_name_that_is_shown_again() {
    let sources = [
        Source::new("crates/new/src/lib.rs", "mod a; mod b; pub use a::A;"),
        Source::new("crates/new/src/a.rs", "use crate::b::B; pub struct A(B);"),
        Source::new("crates/new/src/b.rs", "use crate::A; pub struct B(Box<A>);"),
    ];
    one(&findings(&sources), "a circle of 2 modules: a.rs -> b.rs; b.rs -> a.rs");
}

#[test]
fn a_circle_through_a_path_to_a_child() {
    let sources = [
        Source::new("crates/new/src/lib.rs", "mod a;"),
        Source::new("crates/new/src/a.rs", "mod b; pub struct A; pub fn f() { b::g(); }"),
        Source::new("crates/new/src/a/b.rs", "use super::A; pub fn g() -> A { A }"),
    ];
    one(&findings(&sources), "a circle of 2 modules: a.rs -> a/b.rs; a/b.rs -> a.rs");
}

#[test]
fn a_long_file_and_a_long_function() {
    one(&found("crates/new/src/a.rs", &"const A: u8 = 0;\n".repeat(451)), "451 lines");
    let body = "    let _ = 0;\n".repeat(80);
    one(&found("crates/new/src/a.rs", &format!("fn long() {{\n{body}}}\n")), "long has 82 lines");
}

#[test]
fn an_engine_that_the_command_names() {
    let text = "use oblivio_volume::tree::TreeVolume;\n";
    let registry = "static ENGINES: &[&EngineEntry] = &[&tree::ENGINE];\n";
    let with_registry = |path: &str| {
        findings(&[Source::new(path, text), Source::new("crates/volume/src/registry.rs", registry)])
    };
    one(&with_registry("crates/cli/src/a.rs"), "an engine is named: TreeVolume");
    assert!(with_registry("crates/cli/src/engines/tree.rs").is_empty(), "its own folder may");
    assert!(with_registry("crates/volume/src/tree/a.rs").is_empty(), "its own folder may");
    one(&found("crates/volume/src/registry.rs", text), "the list of engines is not found");
}

#[test]
fn a_struct_that_shows_too_much() {
    let field = |at: usize| format!("    pub f{at}: u8,\n");
    let fields: String = (0..13).map(field).collect();
    let text = format!("pub struct S {{\n{fields}    own: u8,\n}}\n");
    one(&found("crates/new/src/a.rs", &text), "S shows 13 fields");
    let record = format!("pub struct S {{\n{fields}}}\n");
    assert!(found("crates/new/src/a.rs", &record).is_empty(), "a record may");
}

#[test]
fn a_wide_comment() {
    let text = format!("// {}\n", "a word ".repeat(20));
    one(&found("crates/new/src/a.rs", &text), "more than 100 columns");
}

#[test]
fn words_that_stand_for_clearer_ones() {
    let text = "// Whoever is told so much.\n".repeat(11);
    one(&found("crates/new/src/a.rs", &text), "33 of");
}

#[test]
fn a_cell_that_is_an_essay() {
    let text = format!("| a | b |\n|---|---|\n| {} | b |\n", "Short words. ".repeat(30));
    one(&found("docs/new.md", &text), "a cell of");
}

#[test]
fn long_sentences() {
    let long = format!("It {} ends. ", "goes on ".repeat(25)).repeat(2);
    let text = format!("{}{long}", "It is short here. ".repeat(30)).replace(". ", ".\n");
    let text = text.replace(&"goes on ".repeat(10), &format!("{}\n", "goes on ".repeat(10)));
    one(&found("docs/new.md", &text), "2 of 32");
    let middling = format!("It {} ends. ", "goes on ".repeat(10)).repeat(20);
    let findings = found("docs/new.md", &middling.replace(". ", ".\n"));
    one(&findings, "the median sentence has 22 words");
}

#[test]
fn a_name_of_two_public_types() {
    let two = |text: &str| {
        findings(&[
            Source::new("crates/new/src/a.rs", text),
            Source::new("crates/newer/src/b.rs", text),
        ])
    };
    one(&two("pub struct Shape;\n"), "the name Shape stands for 2 public types");
    assert!(two("struct Shape;\n").is_empty(), "one that nobody sees may");
    assert!(two("#[cfg(test)]\npub struct Shape;\n").is_empty(), "one of tests may");
}

#[test]
fn a_type_with_too_many_methods() {
    let methods: String = (0..41).map(|at| format!("    fn f{at}() {{}}\n")).collect();
    one(&found("crates/new/src/a.rs", &format!("impl S {{\n{methods}}}\n")), "S has 41 methods");
    let of_trait = format!("impl T for S {{\n{methods}}}\n");
    assert!(found("crates/new/src/a.rs", &of_trait).is_empty(), "those of a trait are not counted");
}

#[test]
fn a_second_latch() {
    let latches = "pub(crate) struct Latch;\nmod b { struct Latch; }\n";
    let found = found("crates/new/src/a.rs", latches);
    assert!(found.iter().any(|it| it.to_string().contains("is 2 types of the name Latch")));
}

#[test]
fn a_wide_line_of_a_document() {
    let text = "Words of one line. ".repeat(8);
    one(&found("docs/new.md", &text), "more than 130 columns");
    assert!(found("docs/new.md", &format!("    {text}")).is_empty(), "code may be wide");
}
