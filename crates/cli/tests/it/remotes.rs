//! `oblivio remote`: the file of remotes, log-ons, the keyring, and rclone's file.

use crate::common::{Scratch, failed, json, succeeded};
use crate::terminal::Terminal;
use oblivio_testkit::accounts::{Account, Kind, browse};
use oblivio_testkit::rigs::find_program;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// All secrets of these tests begin so.
const CANARY: &str = "canary";

/// The command on a computer of its own.
fn command(scratch: &Scratch, args: &[&str]) -> Command {
    let mut command = scratch.command(args);
    command.env("HOME", scratch.path("home")).env_remove("XDG_CONFIG_HOME");
    command.env_remove("RCLONE_CONFIG").env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

fn run(scratch: &Scratch, args: &[&str]) -> Output {
    let output = command(scratch, args).output().expect("the command runs");
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&all);
    assert!(!said.contains(CANARY), "{args:?}: {said}");
    output
}

fn good(scratch: &Scratch, args: &[&str]) -> String {
    succeeded(run(scratch, args))
}

fn bad(scratch: &Scratch, code: i32, args: &[&str]) -> String {
    let output = run(scratch, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
    error
}

fn remotes(scratch: &Scratch) -> PathBuf {
    scratch.path("home/.config/oblivio/remotes.toml")
}

fn private(path: &PathBuf) -> bool {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777 == 0o600
}

/// A file that only the user may read.
fn secret_file(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.write(name, text);
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn remotes_come_and_go_and_the_rest_of_the_file_stays() {
    let scratch = Scratch::new();
    let file = secret_file(&scratch, "password", "canary-1\n");
    assert_eq!(good(&scratch, &["remote", "list"]), "");
    let dav = "webdavs://cloud.example.org/dav";
    good(&scratch, &["remote", "add", "cloud", dav, "--user", "me", "--secret-file", &file]);
    assert!(private(&remotes(&scratch)));
    // The user writes there too.
    let comment = "# what I must not forget\n";
    let text = fs::read_to_string(remotes(&scratch)).unwrap();
    fs::write(remotes(&scratch), format!("{comment}{text}\n# at the end\n")).unwrap();
    let command = "printf canary-%s 2";
    let add = ["remote", "add", "work", "s3://bucket?region=x", "--user", "ID"];
    good(&scratch, &[&add[..], &["--secret-command", command]].concat());
    good(&scratch, &["remote", "add", "ssh", "sftp://me@host/srv"]);
    let text = fs::read_to_string(remotes(&scratch)).unwrap();
    assert!(text.starts_with(comment) && text.contains("# at the end"), "{text}");
    assert!(private(&remotes(&scratch)));

    let listed = json(&good(&scratch, &["remote", "list", "--json"]));
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["cloud", "ssh", "work"]);
    assert_eq!((&listed[0]["url"], &listed[0]["from"]), (&dav.into(), &file.as_str().into()));
    assert_eq!(
        (&listed[2]["secret"], &listed[2]["from"]),
        (&"secret_command".into(), &"printf".into())
    );
    let lines = good(&scratch, &["remote", "list"]);
    assert!(lines.contains(dav) && lines.lines().count() == 3, "{lines}");

    good(&scratch, &["remote", "remove", "cloud"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "canary-1\n", "the user's own file stays");
    let text = fs::read_to_string(remotes(&scratch)).unwrap();
    assert!(
        !text.contains("[cloud]") && text.contains("[work]") && text.contains("# at"),
        "{text}"
    );
    bad(&scratch, 3, &["remote", "remove", "cloud"]);
}

#[test]
fn what_cannot_be_a_remote_is_refused_and_changes_nothing() {
    let scratch = Scratch::new();
    let file = secret_file(&scratch, "password", "canary-1\n");
    let add = |code, args: &[&str]| bad(&scratch, code, &[&["remote", "add"], args].concat());
    let canary = ["sftp://me:canary@host/a", "s3://key:canary@bucket?region=x"];
    for url in canary {
        assert!(add(2, &["one", url, "--no-secret"]).contains("must not hold a password"));
    }
    add(2, &["x", "sftp://host/a"]);
    add(2, &["dropbox", "dropbox:/"]);
    add(2, &["one", "other:a"]);
    add(2, &["one", "ftp://host"]);
    add(2, &["one", "sftp://host/a", "--secret-file", &file]);
    add(2, &["one", "s3://bucket?region=x", "--secret-file", &file]);
    add(2, &["one", "sftp://host/a", "--client-id", "x"]);
    assert!(add(2, &["one", "dropbox:/"]).contains("--client-id"));
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    assert!(add(1, &["one", "webdavs://host/a", "--secret-file", &file]).contains("chmod 600"));
    assert!(!remotes(&scratch).exists());

    good(&scratch, &["remote", "add", "one", "sftp://host/a"]);
    let before = fs::read(remotes(&scratch)).unwrap();
    assert!(add(3, &["one", "sftp://host/b"]).contains("already"));
    fs::set_permissions(remotes(&scratch), Permissions::from_mode(0o644)).unwrap();
    assert!(add(1, &["two", "sftp://host/b"]).contains("chmod 600"));
    assert_eq!(fs::read(remotes(&scratch)).unwrap(), before);
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn without_a_terminal_nothing_is_asked() {
    let scratch = Scratch::new();
    let asks = ["remote", "add", "one", "webdavs://host/a", "--user", "me"];
    let mut alone = Command::new("setsid");
    alone.arg("--wait").arg(env!("CARGO_BIN_EXE_oblivio")).args(asks);
    let output = alone.env("HOME", scratch.path("home")).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--secret-file"));
    assert!(!remotes(&scratch).exists());
}

#[test]
#[ignore = "system: a terminal, and setsid"]
fn a_typed_secret_does_not_show() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::new();
    let args = ["remote", "add", "cloud", "webdavs://cloud.example.org/dav", "--user", "me"];
    let mut command = terminal.command(&scratch, &args);
    let mut child = command.env("HOME", scratch.path("home")).spawn().expect("it runs");
    terminal.expect("Password or key for cloud (empty for none): ");
    assert!(!terminal.echoes());
    terminal.say(b"canary \xc3\xa9\n");
    terminal.expect("Added cloud");
    assert!(child.wait().unwrap().success());
    assert!(!terminal.heard().contains(CANARY));
    let text = fs::read_to_string(remotes(&scratch)).unwrap();
    assert!(text.contains("secret = \"canary \u{e9}\"") && private(&remotes(&scratch)), "{text}");
}

/// The command at a log-on, as far as the page that it shows.
fn at_the_page(
    scratch: &Scratch,
    account: &Account,
    more: &[&str],
) -> (std::process::Child, BufReader<std::process::ChildStdout>, String) {
    let (id, secret) = account.client();
    let url = account.url("");
    let mut args = vec!["remote", "add", "mine", &url, "--client-id", id, "--port", "0"];
    let file = secret.map(|secret| secret_file(scratch, "client", secret));
    args.extend(file.iter().flat_map(|file| ["--client-secret-file", file.as_str()]));
    args.extend(more);
    let mut command = command(scratch, &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let (mut line, mut page) = (String::new(), None);
    while page.is_none() && said.read_line(&mut line).unwrap() > 0 {
        page = line.trim().starts_with("http://").then(|| line.trim().to_owned());
        line.clear();
    }
    (child, said, page.expect("a page"))
}

/// The end of the command, and all that it said since.
fn ended(mut child: std::process::Child, mut said: BufReader<std::process::ChildStdout>) -> Output {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    said.read_to_end(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    let all = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    assert!(!all.contains(CANARY), "{all}");
    Output { status: child.wait().unwrap(), stdout, stderr }
}

fn logs_on(kind: Kind) {
    let (scratch, account) = (Scratch::new(), Account::start(kind, 3));
    let (child, said, page) = at_the_page(&scratch, &account, &[]);
    // Nothing secret is in an argument.
    let line = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains(CANARY));
    let (status, back) = browse(&page);
    let back = back.expect("the service sends the browser back");
    assert_eq!(status, 302);
    // Somebody else on this computer, who knows the port but not the state.
    let (here, query) = back.split_once('?').unwrap();
    let state = query.split('&').find(|it| it.starts_with("state=")).unwrap();
    for wrong in [
        "?code=canary-other&state=other".into(),
        "?code=canary-other".into(),
        format!("favicon.ico?{state}"),
    ] {
        let (status, _) = browse(&format!("{here}{wrong}"));
        assert!(matches!(status, 400 | 404), "{wrong}");
    }
    assert_eq!(browse(&back).0, 200);
    succeeded(ended(child, said));
    let tokens = scratch.path("home/.config/oblivio/mine.json");
    assert!(private(&tokens) && private(&remotes(&scratch)));
    let stored = json(&fs::read_to_string(&tokens).unwrap());
    assert_eq!(stored["client_id"], account.client().0);
    assert!(stored["refresh_token"].as_str().unwrap().starts_with("canary-refresh"));
    assert!(stored["expires_at"].as_u64().unwrap() > 1_700_000_000);
    // They work, also once they have to be renewed.
    account.expire_tokens();
    bad(&scratch, 9, &["ls", "mine:nothing", "/"]);
    let said = good(&scratch, &["remote", "test", "mine", "--small-probe=3"]);
    assert!(said.contains("usable: "), "{said}");
    assert_eq!(account.wrong(), Vec::<String>::new());
    let renewed = fs::read_to_string(&tokens).unwrap();
    assert!(private(&tokens) && json(&renewed)["access_token"] != stored["access_token"]);

    good(&scratch, &["remote", "remove", "mine"]);
    assert!(!tokens.exists());
    // And the user who says no.
    account.deny_log_ons();
    let (child, said, page) = at_the_page(&scratch, &account, &[]);
    assert_eq!(browse(&browse(&page).1.unwrap()).0, 200);
    let said = failed(13, ended(child, said));
    assert!(said.contains("access_denied"), "{said}");
    assert!(!tokens.exists());
}

#[test]
#[ignore = "system: a service on a local port"]
fn a_browser_logs_on_to_dropbox() {
    logs_on(Kind::Dropbox);
}

#[test]
#[ignore = "system: a service on a local port"]
fn a_browser_logs_on_to_google_drive() {
    logs_on(Kind::GDrive);
}

#[test]
#[ignore = "system: a service on a local port"]
fn a_browser_logs_on_to_onedrive() {
    logs_on(Kind::OneDrive);
}

/// A keyring in a file, for the program that speaks to keyrings.
const SECRET_TOOL: &str = r#"#!/bin/sh
keep="$HOME/keyring"
for word; do case "$word" in *canary*) echo "a secret in an argument" >&2; exit 9;; esac; done
case "$1" in
store) cat > "$keep" ;;
lookup) [ "$2 $3 $4 $5" = "application oblivio remote mine" ] && cat "$keep" ;;
clear) rm -f "$keep" ;;
esac
"#;

/// Where `secret-tool` is looked for: a fake one of this test.
fn with_keyring(scratch: &Scratch) -> std::ffi::OsString {
    let program = scratch.write("bin/secret-tool", SECRET_TOOL);
    fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
    let mut path = scratch.path("bin").into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    path
}

#[test]
#[ignore = "system: a service on a local port"]
fn tokens_are_kept_and_renewed_in_a_keyring() {
    let (scratch, account) = (Scratch::new(), Account::start(Kind::OneDrive, 3));
    fs::create_dir_all(scratch.path("home")).unwrap();
    let path = with_keyring(&scratch);
    let run = |args: &[&str]| command(&scratch, args).env("PATH", &path).output().unwrap();
    let tokens = account.tokens();
    let file = secret_file(&scratch, "tokens", &tokens);
    let url = account.url("");
    let added = run(&["remote", "add", "mine", &url, "--secret-file", &file, "--keyring"]);
    succeeded(added);
    let kept = scratch.path("home/keyring");
    assert_eq!(
        fs::read_to_string(&kept).unwrap(),
        account.tokens().replace("refresh-2", "refresh-1")
    );
    assert!(!fs::read_to_string(remotes(&scratch)).unwrap().contains(CANARY));
    let listed = json(&succeeded(run(&["remote", "list", "--json"])));
    assert_eq!(listed[0]["secret"], "keyring");
    // Each refresh token of this account is good for once: what is renewed must be kept.
    for _ in 0..2 {
        account.expire_tokens();
        let output = run(&["ls", "mine:nothing", "/"]);
        assert_eq!(output.status.code(), Some(9), "{}", String::from_utf8_lossy(&output.stderr));
    }
    succeeded(run(&["remote", "remove", "mine"]));
    assert!(!kept.exists());
}

#[test]
fn without_a_keyring_it_says_what_is_missing() {
    let scratch = Scratch::new();
    let file = secret_file(&scratch, "password", "canary-1\n");
    let args = ["remote", "add", "mine", "webdavs://host/a", "--secret-file", &file, "--keyring"];
    let output = command(&scratch, &args).env("PATH", scratch.path("nothing")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("libsecret-tools") && !said.contains(CANARY), "{said}");
    assert!(!remotes(&scratch).exists());
}

/// The keyring of a desktop, in a session of its own, if its programs are there.
#[test]
#[ignore = "system: a keyring, if it is installed"]
fn a_secret_is_kept_in_a_real_keyring() {
    for program in ["secret-tool", "gnome-keyring-daemon", "dbus-run-session"] {
        if let Err(why) = find_program(program) {
            return eprintln!("skipped: a_secret_is_kept_in_a_real_keyring: {why}");
        }
    }
    let scratch = Scratch::new();
    let file = secret_file(&scratch, "password", "canary-1\n");
    let script = format!(
        "mkdir -p \"$HOME\" && printf pass | gnome-keyring-daemon --unlock --components=secrets \
         >/dev/null && O={} && $O remote add mine webdavs://host/a --user me --secret-file {file} \
         --keyring && secret-tool lookup application oblivio remote mine && $O remote remove mine && \
         ! secret-tool lookup application oblivio remote mine",
        env!("CARGO_BIN_EXE_oblivio")
    );
    let ours = command(&scratch, &[]);
    let mut session = Command::new("dbus-run-session");
    for (name, value) in ours.get_envs() {
        value.map(|value| session.env(name, value));
    }
    session.args(["--", "sh", "-c", &script]).current_dir(scratch.path(""));
    session.env("XDG_RUNTIME_DIR", scratch.path("")).env("XDG_DATA_HOME", scratch.path("data"));
    let said = succeeded(session.output().unwrap());
    assert!(said.contains("canary-1"), "{said}");
}

#[test]
fn remotes_of_rclone_are_taken_over() {
    let scratch = Scratch::new();
    let conf = secret_file(
        &scratch,
        "rclone.conf",
        "[cloud]\ntype = webdav\nurl = https://cloud.example.org/dav\nvendor = nextcloud\nuser = me\n\
         pass = YWFhYWFhYWFhYWFhYWFhYXMaGgIlEQ\n[work]\ntype = s3\nprovider = AWS\n\
         access_key_id = ID\nsecret_access_key = canary-s3\nregion = eu-central-1\n\
         [drop]\ntype = dropbox\nclient_id = mine\ntoken = {\"refresh_token\":\"canary-r\"}\n\
         [theirs]\ntype = dropbox\ntoken = {\"refresh_token\":\"canary-r\"}\n\
         [sealed]\ntype = crypt\nremote = drop:x\npassword = canary\n",
    );
    let import = |name: &str| -> Vec<String> {
        ["remote", "import-rclone", name, "--config", &conf].map(str::to_owned).to_vec()
    };
    let take = |name: &str| {
        let args = import(name);
        run(&scratch, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    succeeded(take("cloud"));
    succeeded(take("work:bucket/a"));
    succeeded(take("drop"));
    let text = fs::read_to_string(remotes(&scratch)).unwrap();
    for part in
        ["secret = \"potato\"", "user = \"me\"", "s3://bucket/a?region=eu-central-1", "canary-s3"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(private(&remotes(&scratch)));
    let tokens = scratch.path("home/.config/oblivio/drop.json");
    assert!(private(&tokens) && fs::read_to_string(tokens).unwrap().contains("canary-r"));
    for (name, code, advice) in [
        ("theirs", 2, "--client-id"),
        ("sealed", 2, "remote below it"),
        ("work", 2, "NAME:bucket"),
        ("nobody", 3, "It has: cloud, drop"),
        ("cloud", 3, "remote remove"),
    ] {
        let output = take(name);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(advice), "{name}: {said}");
    }
}
