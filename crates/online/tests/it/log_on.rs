//! Log-ons to accounts, where the service must say no.

use crate::Home;
use oblivio_online::{AccountClient, LogOn, LogOnError, OnlinePlace, Proof, StoreSecret, Url};
use oblivio_testkit::accounts::{Account, Kind, browse};
use std::net::TcpListener;
use std::time::Duration;

/// A hash that is none. The service, which knows S256 only, takes no verifier of its challenges.
fn no_hash(_: &[u8]) -> [u8; 32] {
    [7; 32]
}

fn begin(account: &Account, proof: Proof, port: u16) -> Result<LogOn, LogOnError> {
    let Url::Place(place) = account.url("").parse().unwrap() else { panic!("a place") };
    let (id, secret) = account.client();
    let secret = secret.map(|it| StoreSecret::new(it.to_owned()));
    LogOn::begin(&place, AccountClient { id: id.to_owned(), secret }, proof, port)
}

#[test]
#[ignore = "system: listens on the loopback"]
fn who_has_another_verifier_gets_no_tokens() {
    let home = Home::new(&[], "");
    for kind in [Kind::Dropbox, Kind::GDrive, Kind::OneDrive] {
        let account = Account::start(kind, 1);
        let log_on = begin(&account, Proof::new(&[9; 48], no_hash), 0).unwrap();
        let back = browse(log_on.address()).1.unwrap();
        let waiting = std::thread::spawn(move || browse(&back).0);
        let error = log_on.finish(&home.runtime, Duration::from_secs(20)).unwrap_err();
        assert_eq!(waiting.join().unwrap(), 200);
        assert!(matches!(&error, LogOnError::Refused(why) if why == "invalid_grant"), "{error}");
        assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    }
}

/// The verifier of RFC 7636, appendix B, as bytes, and its hash.
const VERIFIER: [u8; 32] = [
    116, 24, 223, 180, 151, 153, 224, 37, 79, 250, 96, 125, 216, 173, 187, 186, 22, 212, 37, 77,
    105, 214, 191, 240, 91, 88, 5, 88, 83, 132, 141, 121,
];
const HASH: [u8; 32] = [
    19, 211, 30, 150, 26, 26, 216, 236, 47, 22, 177, 12, 76, 152, 46, 8, 118, 168, 120, 173, 109,
    241, 68, 86, 110, 225, 137, 74, 203, 112, 249, 195,
];

#[test]
#[ignore = "system: listens on the loopback"]
fn a_code_is_good_for_once() {
    let home = Home::new(&[], "");
    let account = Account::start(Kind::Dropbox, 1);
    let mut random = [9; 48];
    random[..32].copy_from_slice(&VERIFIER);
    let proof = || {
        Proof::new(&random, |verifier| {
            assert_eq!(verifier, b"dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
            HASH
        })
    };
    let first = begin(&account, proof(), 0).unwrap();
    let port = first.redirect().trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let back = browse(first.address()).1.unwrap();
    let come_back = || {
        let back = back.clone();
        std::thread::spawn(move || browse(&back).0)
    };
    let waiting = come_back();
    let tokens = first.finish(&home.runtime, Duration::from_secs(20)).unwrap();
    assert_eq!(waiting.join().unwrap(), 200);
    assert!(tokens.reveal().contains("canary-refresh-1"));
    assert!(!tokens.reveal().contains("canary-code"));
    // Somebody saw the address at which the browser came back.
    let again = begin(&account, proof(), port).unwrap();
    let waiting = come_back();
    let error = again.finish(&home.runtime, Duration::from_secs(20)).unwrap_err();
    assert_eq!(waiting.join().unwrap(), 200);
    assert!(matches!(&error, LogOnError::Refused(why) if why == "invalid_grant"), "{error}");
}

#[test]
#[ignore = "system: listens on the loopback"]
fn nobody_waits_for_ever_and_a_port_is_taken_once() {
    let home = Home::new(&[], "");
    let account = Account::start(Kind::Dropbox, 1);
    let log_on = begin(&account, Proof::new(&[9; 48], no_hash), 0).unwrap();
    assert!(!format!("{log_on:?}").contains("CQkJ"), "neither verifier nor state print");
    let error = log_on.finish(&home.runtime, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, LogOnError::TimedOut), "{error}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = begin(&account, Proof::new(&[9; 48], no_hash), port).unwrap_err();
    assert!(matches!(error, LogOnError::Port(of, _) if of == port), "{error}");
}

#[test]
#[ignore = "system: listens on the loopback"]
fn only_accounts_have_a_log_on_and_only_over_tls() {
    for (url, advice) in
        [("sftp://host/a", "only dropbox"), ("dropbox:/?endpoint=http://example.org", "https://")]
    {
        let Url::Place(place) = url.parse().unwrap() else { panic!("a place") };
        let place: OnlinePlace = place;
        let client = AccountClient { id: "x".to_owned(), secret: None };
        let error = LogOn::begin(&place, client, Proof::new(&[9; 48], no_hash), 0).unwrap_err();
        assert!(error.to_string().contains(advice), "{error}");
    }
}
