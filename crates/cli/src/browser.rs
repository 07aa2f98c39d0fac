//! The user's browser.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// Opens a page. Other users can read the command lines of this computer's programs. So the browser
/// gets a file that only this user can read, and the file leads to the page.
pub fn open(launcher: &Path, url: &str, what: &str) {
    let opened = write_launcher(launcher, url, what).and_then(|()| {
        let mut command = Command::new("xdg-open");
        command.arg(launcher).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(feature = "online")]
        oblivio_app::remotes::keep_from(&mut command);
        command.spawn()
    });
    let fail = || eprintln!("oblivio: no browser could be started; open the address yourself");
    let Ok(mut child) = opened else { return fail() };
    // It may run as long as the browser does.
    let wait = move || match child.wait() {
        Ok(status) if status.success() => {}
        _ => fail(),
    };
    let _ = thread::Builder::new().name("browser".into()).spawn(wait);
}

fn write_launcher(path: &Path, url: &str, what: &str) -> std::io::Result<()> {
    // A killed command's file leads nowhere.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let url = url.replace('&', "&amp;");
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\
         <title>Oblivio</title><meta http-equiv=refresh content=\"0; url={url}\">\
         <a href=\"{url}\">{what}</a>"
    )
}
