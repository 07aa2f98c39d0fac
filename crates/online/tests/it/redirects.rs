//! A store that sends us to another host: nothing of ours comes there.

use crate::Home;
use crate::requests::{CANARY, Listener};
use oblivio_store::{Held, Objects, PutMode, ReadAt, StoreError};
use std::net::SocketAddr;

/// A volume's place at each service, with what opens it.
fn services(at: SocketAddr) -> Vec<(&'static str, Home)> {
    let url = |of: &str| -> &'static str { format!("{of}endpoint=http://{at}").leak() };
    let keys = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", CANARY)];
    let session = [&keys[..], &[("AWS_SESSION_TOKEN", CANARY)]].concat();
    let mut all = vec![
        (url("s3://bucket/in?region=r&"), Home::new(&session, "")),
        (url("r2://bucket/in?account=a&"), Home::new(&keys, "")),
        (url("b2://bucket/in?region=r&"), Home::new(&keys, "")),
    ];
    if cfg!(feature = "gcs") {
        all.push((url("gs://bucket/in?"), Home::new(&[], "")));
    }
    if cfg!(feature = "azure") {
        let sas: &str = format!("sv=2022&sig={CANARY}").leak();
        let home = Home::new(&[("AZURE_STORAGE_SAS_TOKEN", sas)], "");
        all.push((url("az://container/in?account=me&"), home));
    }
    let remote = format!("[dav]\nurl = \"webdav://{at}\"\nuser = \"me\"\nsecret = \"{CANARY}\"\n");
    all.push(("dav:in", Home::new(&[], &remote)));
    all
}

#[test]
#[ignore = "system: listens on the loopback"]
fn nothing_follows_a_redirection() {
    for status in [301, 302, 303, 307, 308] {
        let other = Listener::new(|_, _| (200, Vec::new()));
        let to = format!("http://{}/elsewhere?and=more", other.address);
        let one = Listener::new(move |_, _| (status, to.clone().into_bytes()));
        for (url, home) in services(one.address) {
            let store = home.open(url);
            let mut buf = [0; 4];
            let refused = |what: &str, done: Result<(), StoreError>| {
                let error = done.expect_err(&format!("{url}: {what}, {status}"));
                assert!(!error.may_pass(), "{url}: {what}, {status}: {error}");
                let text = format!("{error} {error:?}");
                assert!(
                    text.contains(&other.address.to_string()),
                    "{url}: {what}, {status}: {text}"
                );
                assert!(!text.contains(CANARY) && !text.contains("and=more"), "{url}: {text}");
            };
            refused("put", store.put("a", b"first", PutMode::Replace));
            refused("read", store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut buf }]));
            refused("length", store.len("a").map(drop));
            refused("list", store.list_under("").map(drop));
        }
        assert!(one.seen().len() >= 12);
        assert_eq!(other.seen().len(), 0, "{:?}", other.seen());
    }
}
