//! Refusals, and objects in pieces.

use super::super::account::Shared;
use super::super::tokens::Tokens;
use super::*;
use crate::driver::Driver;
use crate::secrets::StoreSecret;
use oblivio_testkit::accounts::{Account as Fake, Kind as Service};

fn kind(status: u16, summary: &str) -> Kind {
    let body = json!({ "error_summary": summary }).to_string().into_bytes();
    judge(&Refusal { status, wait: None, body }).kind
}

#[test]
fn refusals_are_understood() {
    use io::ErrorKind as Io;
    assert_eq!(kind(409, "path/not_found/.."), Kind::Missing);
    assert_eq!(kind(409, "path/conflict/file/..."), Kind::Exists);
    assert_eq!(kind(409, "path/insufficient_space/."), Kind::Full);
    assert_eq!(kind(409, "path/too_many_write_operations/"), Kind::Io(Io::ResourceBusy));
    assert_eq!(kind(429, "too_many_requests/.."), Kind::Io(Io::ResourceBusy));
    assert_eq!(kind(401, "expired_access_token/"), Kind::LoggedOut);
    assert_eq!(kind(409, "path/malformed_path/"), Kind::Io(Io::InvalidInput));
    assert_eq!(kind(500, ""), Kind::Io(Io::ConnectionReset));
    assert_eq!(kind(400, ""), Kind::Io(Io::InvalidInput));
}

#[test]
fn outcomes_of_one_of_many_are_understood() {
    let one = |failure: Value| judge_one(&json!({ ".tag": "failure", "failure": failure }));
    assert!(judge_one(&json!({ ".tag": "success", "name": "a" })).is_ok());
    let gone = json!({ ".tag": "path_lookup", "path_lookup": { ".tag": "not_found" } });
    assert!(one(gone).unwrap_err().is_missing());
    let taken = json!({ ".tag": "path", "path":
        { ".tag": "conflict", "conflict": { ".tag": "file" } } });
    assert!(one(taken).unwrap_err().is_taken());
    assert!(one(json!({ ".tag": "too_many_write_operations" })).unwrap_err().wait().is_some());
    let lost = json!({ ".tag": "lookup_failed", "lookup_failed": { ".tag": "not_found" } });
    assert!(!one(lost).unwrap_err().is_missing());
    assert!(judge_one(&json!({})).is_err());
}

#[test]
fn headers_are_ascii() {
    assert_eq!(plain(&json!({ "path": "/é😀 a" })), r#"{"path":"/\u00e9\ud83d\ude00 a"}"#);
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
}

/// A driver on an account that takes so few bytes in a request, and knows of it.
fn in_pieces_of(account: &Fake, bytes: usize) -> Shared<Dropbox> {
    account.takes_at_most(bytes);
    let secret = StoreSecret::new(account.tokens());
    let tokens = Tokens::new(&secret, None, format!("{}/oauth2/token", account.endpoint()));
    let http = reqwest::Client::builder().user_agent("oblivio").build().unwrap();
    let client = Client::new(http, tokens.unwrap(), AT_ONCE, judge);
    let addresses = [account.endpoint(), account.endpoint()];
    Shared::new(Dropbox { longest: bytes, ..Dropbox::new(client, addresses, "f") })
}

#[test]
fn what_is_longer_than_a_request_goes_up_in_pieces() {
    let account = Fake::start(Service::Dropbox, 5);
    let driver = in_pieces_of(&account, 1000);
    let bytes =
        |len: usize, seed: u8| -> Vec<u8> { (0..len).map(|at| (at % 251) as u8 ^ seed).collect() };
    for (len, requests) in [(999, 1), (1000, 1), (1001, 3), (2000, 3), (2001, 4), (5500, 7)] {
        for (mode, name) in [(PutMode::IfAbsent, "add"), (PutMode::Replace, "over")] {
            let (name, data) = (format!("{name}-{len}"), bytes(len, 0));
            let before = account.seen().len();
            run(driver.put(&name, Buffer::from(data.clone()), mode)).unwrap();
            assert_eq!(account.seen().len() - before, requests, "{name}");
            let read = run(driver.get(&name, 0..len as u64)).unwrap();
            assert_eq!(read.to_vec(), data, "{name}");
        }
        let taken = run(driver.put(&format!("add-{len}"), bytes(len, 0).into(), PutMode::IfAbsent));
        assert!(taken.unwrap_err().is_taken(), "{len}");
    }
    // The account itself refuses more: this is no limit of ours.
    let whole = in_pieces_of(&account, 4000);
    account.takes_at_most(1000);
    assert!(run(whole.put("whole", bytes(1001, 0).into(), PutMode::Replace)).is_err());
    assert_eq!(account.wrong(), Vec::<String>::new());
}

#[test]
fn a_lost_answer_to_a_piece_is_an_outage_and_the_next_try_stores_all() {
    let account = Fake::start(Service::Dropbox, 6);
    let driver = in_pieces_of(&account, 1000);
    let data: Vec<u8> = (0..3500).map(|at| (at % 241) as u8).collect();
    for lost in ["upload_session/start", "upload_session/append_v2", "finish_batch_v2"] {
        account.lose_next(lost);
        let first = run(driver.put("a", Buffer::from(data.clone()), PutMode::Replace));
        assert!(first.is_err(), "{lost}");
        run(driver.put("a", Buffer::from(data.clone()), PutMode::Replace)).unwrap();
        assert_eq!(run(driver.get("a", 0..3500)).unwrap().to_vec(), data, "{lost}");
    }
}
