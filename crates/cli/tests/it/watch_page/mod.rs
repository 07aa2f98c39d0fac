//! The page of `oblivio watch` in a real browser, while real commands run. Skipped without chromium
//! and its chromedriver. With `OBLIVIO_SCREENSHOTS=DIR` the pictures of docs/watch.md are drawn
//! again.

mod browser;
mod disk;

use crate::common::{Scratch, noise};
use crate::watching::Watching;
use browser::Browser;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Little memory, to make nearly every access reach the storage.
const MEMORY: &str = "2M";
const FILES: usize = 40;

fn number(browser: &Browser, panel: &str, name: &str) -> u64 {
    let text = browser.text(&format!("#{panel} [data-is={name}]"));
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// A volume with some files of a few blocks each.
fn volume() -> Scratch {
    let scratch = Scratch::new();
    scratch.good(["init", "--kdf-memory", "32K", "--kdf-passes", "1", "vault"]);
    for at in 0..FILES {
        scratch.write(&format!("files/{at:02}"), noise(60_000 + 20_000 * (at % 7), at as u64 + 1));
    }
    scratch.write("new", noise(90_000, 99));
    scratch.good(["put", "-r", "vault", "files", "/"]);
    scratch
}

fn read(scratch: &Scratch, file: usize) {
    let path = format!("/files/{file:02}");
    scratch.good(["get", "--quiet", "--force", "--memory", MEMORY, "vault", &path, "back"]);
}

/// One favourite among many: ordinary encryption reveals it.
fn favourite(scratch: &Scratch, times: usize) {
    for at in 0..times {
        read(scratch, if at % 3 == 2 { at * 7 % FILES } else { 7 });
    }
}

fn nothing_is_wider_than_the_window(browser: &Browser, what: &str) {
    let wide = browser.value("document.documentElement.scrollWidth - window.innerWidth");
    assert!(wide.as_i64() <= Some(0), "{what}: {wide} pixels too wide");
}

fn nothing_was_said(browser: &Browser) {
    assert_eq!(browser.console(), Vec::<serde_json::Value>::new());
}

#[test]
#[ignore = "system: a browser"]
fn the_page_shows_what_commands_do() {
    let browser = match Browser::begin() {
        Ok(browser) => browser,
        Err(why) => return eprintln!("skipped: {why}"),
    };
    let scratch = volume();
    let watching = Watching::of(&scratch, "vault");
    let temporary = tempfile::tempdir().expect("a folder");
    let shots = shots(&temporary);
    browser.resize(1280, 800, 1);
    browser.prefer("light", "no-preference");
    browser.visit(&watching.url);

    waits_for_work(&browser);
    counts(&browser, &scratch);
    pauses(&browser, &scratch);
    shows_tables(&browser);
    keys_reach_everything(&browser);
    loads_nothing_from_elsewhere(&browser, &watching);
    fits(&browser);
    less_motion(&browser);
    take_pictures(&browser, &scratch, &shots);
    nothing_was_said(&browser);

    assert_eq!(watching.stop(), Some(0));
    browser.wait("document.querySelector('#status').innerText.includes('No connection')");
}

/// Where pictures go.
fn shots(temporary: &tempfile::TempDir) -> PathBuf {
    std::env::var_os("OBLIVIO_SCREENSHOTS")
        .map_or_else(|| temporary.path().to_owned(), PathBuf::from)
}

fn waits_for_work(browser: &Browser) {
    browser.wait("document.querySelector('#status').innerText.includes('Waiting')");
    assert_eq!(browser.text("h1"), "vault");
    assert_eq!(number(browser, "left", "requests"), 0);
    assert_eq!(number(browser, "right", "requests"), 0);
}

fn counts(browser: &Browser, scratch: &Scratch) {
    scratch.good(["put", "--memory", MEMORY, "vault", "new", "/files"]);
    browser.wait("document.querySelector('#left [data-is=requests]').innerText !== '0'");
    // It is created, and written in one piece.
    browser.wait("document.querySelector('#right [data-is=requests]').innerText === '2'");
    assert!(browser.text("#right [data-is=written]").contains("KiB"));
    let before = number(browser, "right", "requests");
    favourite(scratch, 6);
    let six = format!(
        "Number(document.querySelector('#right [data-is=requests]').innerText) === {}",
        before + 6
    );
    browser.wait(&six);
    assert!(browser.text("#right [data-is=says]").contains("has"));
    assert!(browser.text("#fact-class").contains("iB"));
    assert!(browser.text("#fact-depth").contains("levels"));
    assert!(browser.text("#fact-stored").contains("MiB"));
    let rows = browser.value("document.querySelectorAll('#last-right tbody tr').length");
    assert!(rows.as_u64() >= Some(8) && rows.as_u64() <= Some(20), "{rows}");
    // Every picture has something drawn on it.
    let inked = "[...document.querySelectorAll('canvas')].every((canvas) => canvas.getContext('2d') \
                 .getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte > 0))";
    browser.wait(inked);
    nothing_was_said(browser);
}

fn pauses(browser: &Browser, scratch: &Scratch) {
    browser.click("#pause");
    browser.wait("document.querySelector('#status').innerText.startsWith('Paused')");
    assert_eq!(browser.value("document.querySelector('#pause').ariaPressed"), json!("true"));
    let before = number(browser, "right", "requests");
    read(scratch, 3);
    // All that the command did has come and waits, and the page has shown what it shows.
    browser.wait("held.length > 0 && state.status.users.length === 0 && changed === false");
    browser.wait("document.querySelector('#status').innerText.includes('waiting')");
    assert_eq!(number(browser, "right", "requests"), before);
    browser.click("#pause");
    let after = format!(
        "Number(document.querySelector('#right [data-is=requests]').innerText) === {}",
        before + 1
    );
    browser.wait(&after);
}

fn shows_tables(browser: &Browser) {
    let visible = |selector: &str| {
        let found =
            browser.value(&format!("document.querySelector('{selector}').checkVisibility()"));
        found == json!(true)
    };
    assert!(visible("#left canvas") && !visible("#left .as-table"));
    browser.click("#tables");
    browser.wait("document.querySelectorAll('#right .as-table tbody tr').length > 6");
    assert!(!visible("#left canvas") && visible("#left .as-table") && visible("#right .as-table"));
    assert!(browser.text("#right .as-table").contains("The busiest files"));
    browser.resize(360, 740, 2);
    nothing_is_wider_than_the_window(browser, "tables");
    browser.resize(1280, 800, 1);
    browser.click("#tables");
    assert!(visible("#left canvas") && !visible("#left .as-table"));
}

fn keys_reach_everything(browser: &Browser) {
    let without_name = "[...document.querySelectorAll('button, canvas, [tabindex], table')].filter(\
        (each) => !(each.innerText || each.getAttribute('aria-label') || \
        each.getAttribute('aria-labelledby'))).length";
    assert_eq!(browser.value(without_name), json!(0));
    let out_of_reach = "document.querySelectorAll('[tabindex=\"-1\"], a:not([href])').length";
    assert_eq!(browser.value(out_of_reach), json!(0));
    assert_eq!(browser.value("document.documentElement.lang"), json!("en"));
    assert_eq!(
        browser.value("document.querySelector('#status').getAttribute('role')"),
        json!("status")
    );
}

fn loads_nothing_from_elsewhere(browser: &Browser, watching: &Watching) {
    let loaded = browser.value("performance.getEntriesByType('resource').map((each) => each.name)");
    let own = format!("{}events", watching.url);
    for name in loaded.as_array().expect("a list") {
        let name = name.as_str().expect("a name");
        assert!(name == own || name.starts_with("data:"), "{name}");
    }
}

fn fits(browser: &Browser) {
    for (width, height) in [(360, 740), (390, 844), (768, 1024), (1280, 800), (2000, 1200)] {
        for scheme in ["light", "dark"] {
            browser.resize(width, height, 1);
            browser.prefer(scheme, "no-preference");
            nothing_is_wider_than_the_window(browser, &format!("{scheme} at {width}"));
            let poor = browser.value(&format!("({CONTRAST})()"));
            assert_eq!(poor, json!([]), "{scheme} at {width}");
        }
    }
    nothing_was_said(browser);
}

/// Texts whose contrast with their background is below 4.5 to 1.
const CONTRAST: &str = "() => {
    const parts = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parts(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const element of document.querySelectorAll('body *')) {
        const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!text || !element.checkVisibility() || element.closest('script, style')) continue;
        const [a, b] = [light(parts(getComputedStyle(element).color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) poor.push([element.tagName, element.innerText.slice(0, 40), ratio]);
    }
    return poor;
}";

fn less_motion(browser: &Browser) {
    browser.prefer("light", "reduce");
    let running = browser.value("document.getAnimations().length");
    assert_eq!(running, json!(0));
    assert_eq!(
        browser.value("matchMedia('(prefers-reduced-motion: reduce)').matches"),
        json!(true)
    );
    browser.prefer("light", "no-preference");
}

fn take_pictures(browser: &Browser, scratch: &Scratch, shots: &Path) {
    std::fs::create_dir_all(shots).expect("a folder");
    // For docs: a minute of work, to fill the pictures.
    if std::env::var_os("OBLIVIO_SCREENSHOTS").is_some() {
        for at in 0..50 {
            match at % 9 {
                2 | 5 | 6 => read(scratch, at * 11 % FILES),
                8 => drop(scratch.good(["put", "--memory", MEMORY, "vault", "new", "/files"])),
                _ => read(scratch, 7),
            }
            std::thread::sleep(Duration::from_millis(700 + (at as u64 * 373) % 800));
        }
    }
    favourite(scratch, 3);
    // A command that runs while the pictures are taken.
    let mut command =
        scratch.command(["put", "--quiet", "--memory", MEMORY, "vault", "-", "/live"]);
    let mut at_work = command.stdin(Stdio::piped()).spawn().expect("the command runs");
    browser.wait("document.querySelector('#status').innerText.includes('oblivio put')");
    pictures_of(
        browser,
        shots,
        &[
            ("watch-desktop.png", 1280, 800, 1, "light"),
            ("watch-dark.png", 1280, 800, 1, "dark"),
            ("watch-phone.png", 390, 844, 2, "light"),
        ],
    );
    drop(at_work.stdin.take());
    assert!(at_work.wait().expect("its end").success());
}

/// Pictures with these names, widths, heights and pixel ratios.
fn pictures_of(browser: &Browser, shots: &Path, pictures: &[(&str, u32, u32, u32, &str)]) {
    // Away from the buttons.
    let away = json!({ "type": "mouseMoved", "x": 0, "y": 0 });
    browser.tool("Input.dispatchMouseEvent", away);
    for &(name, width, height, ratio, scheme) in pictures {
        browser.resize(width, height, ratio);
        browser.prefer(scheme, "no-preference");
        browser.value("window.scrollTo(0, 0)");
        browser.draws(width);
        browser.picture(&shots.join(name));
        let len = std::fs::metadata(shots.join(name)).expect("a picture").len();
        assert!(len > 10_000, "{name}: {len}");
    }
}
