//! Tokens: what is read, renewed and written back.

use super::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex as Seen;

const TOKENS: &str = r#"{"client_id": "us", "refresh_token": "canary-refresh-1",
    "access_token": "canary-access-1", "expires_at": 1}"#;

/// A file that only its owner may read, or it is refused.
fn keep(file: &std::path::Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

fn answer(text: &str) -> Answer {
    Answer { status: 200, location: None, body: text.as_bytes().to_vec() }
}

fn tokens(text: &str, file: Option<PathBuf>) -> Result<Tokens, &'static str> {
    let from = file.map(SecretFrom::File);
    Tokens::new(&StoreSecret::new(text.to_owned()), from, "https://host/token".to_owned())
}

#[test]
fn an_old_token_is_renewed_once_and_written_back_for_its_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens.json");
    keep(&file, TOKENS);
    let tokens = tokens(TOKENS, Some(file.clone())).unwrap();
    let asked = Seen::new(Vec::new());
    let send = |ask: Ask| {
        asked.lock().unwrap().push(String::from_utf8(ask.body.to_vec()).unwrap());
        async {
            Ok(answer(r#"{"access_token": "canary-2", "refresh_token": "r2", "expires_in": 3600}"#))
        }
    };
    assert_eq!(run(tokens.current(send)).unwrap().reveal(), "canary-2");
    assert_eq!(run(tokens.current(send)).unwrap().reveal(), "canary-2");
    let body = "grant_type=refresh_token&refresh_token=canary-refresh-1&client_id=us";
    assert_eq!(*asked.lock().unwrap(), [body]);
    let stored = Stored::parse(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(stored.refresh_token.unwrap().reveal(), "r2");
    assert!(stored.expires_at > now() + 3000);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no part is left");
}

#[test]
fn who_was_refused_takes_what_another_process_has_got() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens.json");
    let tokens = tokens(TOKENS, Some(file.clone())).unwrap();
    keep(&file, &TOKENS.replace("access-1", "theirs").replace(": 1}", ": 0}"));
    let send = |_: Ask| async { Err(Fault::Ended) };
    let token = run(tokens.renew(&StoreSecret::new("canary-access-1".to_owned()), send)).unwrap();
    assert_eq!(token.reveal(), "canary-theirs");
}

#[test]
fn who_comes_second_with_a_token_that_is_good_for_once_takes_the_first_ones() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tokens.json");
    keep(&file, TOKENS);
    let tokens = tokens(TOKENS, Some(file.clone())).unwrap();
    let send = |_: Ask| {
        let newer = TOKENS.replace("access-1", "theirs").replace(": 1}", ": 0}");
        keep(&file, &newer);
        async { Err(Fault::of(Kind::LoggedOut)) }
    };
    assert_eq!(run(tokens.current(send)).unwrap().reveal(), "canary-theirs");
}

#[test]
fn what_cannot_be_tokens_is_refused_and_a_bare_one_is_not_renewed() {
    for bad in ["{", r#"{"refresh_token": "canary"}"#, "{}", r#"{"access_token": ["canary"]}"#] {
        let error = tokens(bad, None).map(drop).unwrap_err();
        assert!(!error.contains("canary"), "{error}");
    }
    let bare = tokens("canary-bare\n", None).unwrap();
    let send = |_: Ask| async { Ok(answer("{}")) };
    let token = run(bare.current(send)).unwrap();
    assert_eq!(token.reveal(), "canary-bare");
    assert!(run(bare.renew(&token, send)).unwrap_err().is_logged_out());
}
