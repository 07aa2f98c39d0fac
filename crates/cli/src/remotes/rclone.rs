//! What a remote of rclone is here. It is read only, and nothing of it is kept that is not needed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use oblivio_crypto::reveal_of_rclone;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// A section of rclone's file.
pub type Section = BTreeMap<String, Zeroizing<String>>;

/// A remote as it is here.
#[derive(Debug, Default)]
pub struct FoundRemote {
    pub url: String,
    pub user: Option<String>,
    pub secret: Option<Zeroizing<String>>,
    /// The secret is tokens, which change often.
    pub tokens: bool,
    /// A password goes over the network as it is.
    pub plain: bool,
}

/// Why it cannot be: what is wrong, and what to do.
pub type Refused = (String, String);

fn refused<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T, Refused> {
    Err((what.into(), hint.into()))
}

/// The sections of the file, by name.
pub fn parse(text: &str) -> Result<BTreeMap<String, Section>, Refused> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with(['#', ';'])).collect();
    if lines.first().is_some_and(|line| line.starts_with("RCLONE_ENCRYPT_")) {
        return refused(
            "rclone's file is encrypted",
            "Write this remote into a file of its own that only you can read: (umask 077; rclone \
             config show NAME > plain.conf). Import it with --config plain.conf, and delete that.",
        );
    }
    let (mut sections, mut name) = (BTreeMap::<String, Section>::new(), None);
    for line in lines {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.entry(title.to_owned()).or_default();
            name = Some(title.to_owned());
        } else if let (Some(name), Some((key, value))) = (&name, line.split_once('=')) {
            let value = Zeroizing::new(value.trim().to_owned());
            sections.entry(name.clone()).or_default().insert(key.trim().to_owned(), value);
        }
    }
    Ok(sections)
}

/// The remote that a section describes, and a path in it.
pub struct RcloneRemote<'a> {
    pub section: &'a Section,
    pub path: &'a str,
    pub region: Option<&'a str>,
}

impl RcloneRemote<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.section.get(key).map(|it| it.as_str()).filter(|it| !it.is_empty())
    }

    fn secret(&self, key: &str) -> Option<Zeroizing<String>> {
        self.get(key).map(|it| Zeroizing::new(it.to_owned()))
    }

    /// As it is here.
    pub fn found(&self) -> Result<FoundRemote, Refused> {
        match self.get("type").unwrap_or_default() {
            "s3" => self.s3(),
            "b2" => self.b2(),
            "webdav" => self.webdav(),
            "sftp" => self.sftp(),
            "dropbox" => self.account("dropbox"),
            "drive" => self.account("gdrive"),
            "onedrive" => self.account("onedrive"),
            kind @ ("crypt" | "alias" | "chunker" | "compress" | "hasher" | "cache") => refused(
                format!("it is a layer ({kind}) over {}", self.get("remote").unwrap_or("another")),
                "Import the remote below it: a volume seals everything by itself.",
            ),
            kind => refused(
                format!("its type {kind:?} is none that volumes can be on"),
                "Those are s3, b2, webdav, sftp, dropbox, drive and onedrive.",
            ),
        }
    }

    fn bucket(&self) -> Result<&str, Refused> {
        match self.path.trim_start_matches('/') {
            "" => refused(
                "a remote here is in a bucket, and rclone's file does not say in which",
                "Name it, as in NAME:bucket/folder.",
            ),
            path => Ok(path),
        }
    }

    fn s3(&self) -> Result<FoundRemote, Refused> {
        let bucket = self.bucket()?;
        let endpoint = self.get("endpoint").map(with_scheme);
        let host = endpoint.as_deref().and_then(|it| it.split("://").nth(1)).unwrap_or_default();
        let host = host.trim_end_matches('/');
        let r2 = host.strip_suffix(".r2.cloudflarestorage.com");
        let b2 = host.strip_prefix("s3.").and_then(|it| it.strip_suffix(".backblazeb2.com"));
        let region = self.region.or(self.get("region"));
        let url = match (r2, b2, &endpoint) {
            (Some(account), _, _) => format!("r2://{bucket}?account={account}"),
            (_, Some(region), _) => format!("b2://{bucket}?region={region}"),
            (_, _, Some(endpoint)) => {
                let endpoint = endpoint.trim_end_matches('/');
                format!(
                    "s3://{bucket}?endpoint={endpoint}&region={}",
                    region.unwrap_or("us-east-1")
                )
            }
            (_, _, None) => format!("s3://{bucket}?region={}", region.unwrap_or("us-east-1")),
        };
        if self.get("session_token").is_some() {
            return refused(
                "its keys are for a session, and expire",
                "Give the remote a key of its own, or leave its keys to the environment.",
            );
        }
        let user = self.get("access_key_id").map(str::to_owned);
        Ok(FoundRemote {
            url,
            user,
            secret: self.secret("secret_access_key"),
            ..FoundRemote::default()
        })
    }

    fn b2(&self) -> Result<FoundRemote, Refused> {
        let bucket = self.bucket()?;
        let Some(region) = self.region else {
            return refused(
                "rclone's file does not say in which region the bucket is",
                "Its page shows the endpoint, as s3.us-west-004.backblazeb2.com: add --region \
                 us-west-004. The key must be an application key, not the account's first one.",
            );
        };
        let user = self.get("account").map(str::to_owned);
        let url = format!("b2://{bucket}?region={region}");
        Ok(FoundRemote { url, user, secret: self.secret("key"), ..FoundRemote::default() })
    }

    fn webdav(&self) -> Result<FoundRemote, Refused> {
        let url = self.get("url").unwrap_or_default();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let scheme = match scheme {
            "https" => "webdavs",
            "http" => "webdav",
            _ => return refused("its url is none", "It begins with https://."),
        };
        if rest.contains('@') {
            return refused("its url holds a user", "Put it into `user` of rclone's file first.");
        }
        let secret = match (self.get("pass"), self.secret("bearer_token")) {
            (Some(hidden), _) => Some(revealed(hidden)?),
            (None, token) => token,
        };
        let url = joined(&format!("{scheme}://{rest}"), self.path);
        let user = self.get("user").map(str::to_owned);
        let plain = scheme == "webdav" && secret.is_some();
        Ok(FoundRemote { url, user, secret, plain, tokens: false })
    }

    fn sftp(&self) -> Result<FoundRemote, Refused> {
        for key in ["pass", "key_pem", "key_file_pass"] {
            if self.get(key).is_some() {
                return refused(
                    format!("it logs on with {key}, and volumes take the keys of `ssh`"),
                    "Make a key (ssh-keygen), give it to the server (ssh-copy-id), and try `ssh` by \
                     hand; then: oblivio remote add NAME sftp://user@host/path",
                );
            }
        }
        if !self.path.starts_with('/') {
            return refused(
                "a path without a slash before it begins in the home folder there",
                "Name the whole path, as in NAME:/home/me/folder.",
            );
        }
        let Some(host) = self.get("host") else {
            return refused("it names no host", "Add `host` in rclone's file.");
        };
        let user = self.get("user").map(|user| format!("{user}@")).unwrap_or_default();
        let port = self.get("port").map(|port| format!(":{port}")).unwrap_or_default();
        let key = self.get("key_file").map(|key| format!("?key={key}")).unwrap_or_default();
        let path = self.path.trim_end_matches('/');
        Ok(FoundRemote {
            url: format!("sftp://{user}{host}{port}{path}{key}"),
            ..FoundRemote::default()
        })
    }

    fn account(&self, scheme: &str) -> Result<FoundRemote, Refused> {
        let Some(client) = self.get("client_id") else {
            return refused(
                "its log-on is for rclone's own program, and a token works for that one only",
                format!("Log on: oblivio remote add NAME {scheme}:/ --client-id ID"),
            );
        };
        let shared = self.get("team_drive").is_some()
            || self.get("root_folder_id").is_some()
            || self.get("drive_type").is_some_and(|it| it == "documentLibrary");
        if shared {
            return refused(
                "it is a shared drive, or a folder of one",
                "Volumes are in folders of an account's own drive.",
            );
        }
        let token: Value = serde_json::from_str(self.get("token").unwrap_or_default())
            .map_err(|_| ("its token is not understood".to_owned(), RECONNECT.to_owned()))?;
        let Some(refresh) = token["refresh_token"].as_str().filter(|it| !it.is_empty()) else {
            return refused("its token cannot be renewed", RECONNECT);
        };
        // Without an access token the first request fetches one.
        let mut tokens = json!({ "client_id": client, "refresh_token": refresh });
        if let Some(secret) = self.get("client_secret") {
            tokens["client_secret"] = json!(secret);
        }
        let url = format!("{scheme}:/{}", self.path.trim_matches('/'));
        let secret = Some(Zeroizing::new(tokens.to_string()));
        Ok(FoundRemote { url, secret, tokens: true, ..FoundRemote::default() })
    }
}

const RECONNECT: &str = "Log on anew with `rclone config reconnect NAME:`, and try again.";

fn with_scheme(endpoint: &str) -> String {
    if endpoint.contains("://") { endpoint.to_owned() } else { format!("https://{endpoint}") }
}

fn joined(url: &str, path: &str) -> String {
    match path.trim_matches('/') {
        "" => url.trim_end_matches('/').to_owned(),
        path => format!("{}/{path}", url.trim_end_matches('/')),
    }
}

fn revealed(hidden: &str) -> Result<Zeroizing<String>, Refused> {
    let bytes = URL_SAFE_NO_PAD.decode(hidden).map(Zeroizing::new);
    let plain = bytes.ok().and_then(|bytes| reveal_of_rclone(&bytes));
    plain.ok_or_else(|| {
        let hint = "Set it anew with `rclone config password NAME pass PASSWORD`.";
        ("its password is not as rclone writes them".to_owned(), hint.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\n[work]\ntype = s3\nprovider = AWS\naccess_key_id = KEY\n\
        secret_access_key = canary\nregion = eu-central-1\n\n[flare]\ntype = s3\n\
        provider = Cloudflare\nendpoint = https://0123.r2.cloudflarestorage.com\n\
        [minio]\ntype = s3\nendpoint = http://127.0.0.1:9000/\naccess_key_id = KEY\n\
        [wasabi]\ntype=s3\nprovider=Wasabi\nendpoint=s3.eu-central-1.wasabisys.com\n\
        [blaze]\ntype = s3\nendpoint = s3.us-west-004.backblazeb2.com\n\
        [native]\ntype = b2\naccount = ID\nkey = canary\n\
        [cloud]\ntype = webdav\nurl = https://cloud.example.org/dav/files/me/\nvendor = nextcloud\n\
        user = me\npass = YWFhYWFhYWFhYWFhYWFhYXMaGgIlEQ\n\
        [near]\ntype = webdav\nurl = http://nas/dav\nbearer_token = canary\n\
        [ssh]\ntype = sftp\nhost = host\nuser = me\nport = 2222\nkey_file = ~/.ssh/id\n\
        [drop]\ntype = dropbox\nclient_id = mine\nclient_secret = canary-s\n\
        token = {\"access_token\":\"a\",\"refresh_token\":\"canary-r\",\"expiry\":\"2020\"}\n\
        [theirs]\ntype = drive\ntoken = {\"refresh_token\":\"canary-r\"}\n\
        [team]\ntype = drive\nclient_id = mine\nteam_drive = x\n\
        [secret]\ntype = crypt\nremote = drop:sealed\n[old]\ntype = ftp\n\
        [pass]\ntype = sftp\nhost = host\npass = x\n";

    fn found(name: &str, path: &str, region: Option<&str>) -> Result<FoundRemote, Refused> {
        let sections = parse(FILE).expect("it parses");
        RcloneRemote { section: &sections[name], path, region }.found()
    }

    #[test]
    fn remotes_are_understood() {
        for (name, path, url) in [
            ("work", "bucket/a", "s3://bucket/a?region=eu-central-1"),
            ("flare", "bucket", "r2://bucket?account=0123"),
            ("minio", "/b", "s3://b?endpoint=http://127.0.0.1:9000&region=us-east-1"),
            (
                "wasabi",
                "b",
                "s3://b?endpoint=https://s3.eu-central-1.wasabisys.com&region=us-east-1",
            ),
            ("blaze", "bucket", "b2://bucket?region=us-west-004"),
            ("cloud", "vault", "webdavs://cloud.example.org/dav/files/me/vault"),
            ("near", "", "webdav://nas/dav"),
            ("ssh", "/srv/x/", "sftp://me@host:2222/srv/x?key=~/.ssh/id"),
            ("drop", "a/b", "dropbox:/a/b"),
        ] {
            let found = found(name, path, None).expect(name);
            assert_eq!(found.url, url);
        }
        let cloud = found("cloud", "", None).expect("cloud");
        assert_eq!((cloud.user.as_deref(), cloud.plain), (Some("me"), false));
        assert_eq!(cloud.secret.as_deref().map(String::as_str), Some("potato"));
        let native = found("native", "b", Some("us-west-004")).expect("native");
        assert_eq!(
            (native.url.as_str(), native.user.as_deref()),
            ("b2://b?region=us-west-004", Some("ID"))
        );
        let tokens = found("drop", "", None).expect("drop").secret.expect("tokens");
        let tokens: Value = serde_json::from_str(&tokens).expect("JSON");
        assert_eq!(
            tokens,
            json!({ "client_id": "mine", "client_secret": "canary-s",
            "refresh_token": "canary-r" })
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_advice_and_no_secret() {
        for (name, path, advice) in [
            ("work", "", "NAME:bucket/folder"),
            ("native", "bucket", "--region"),
            ("ssh", "relative", "whole path"),
            ("theirs", "", "remote add NAME gdrive:/"),
            ("team", "", "own drive"),
            ("secret", "", "remote below it"),
            ("old", "", "s3, b2"),
            ("pass", "/a", "ssh-keygen"),
        ] {
            let (what, hint) = found(name, path, None).expect_err(name);
            assert!(hint.contains(advice), "{name}: {what}: {hint}");
            assert!(!format!("{what}{hint}").contains("canary"), "{what}: {hint}");
        }
        let sealed = "# Encrypted rclone configuration File\n\nRCLONE_ENCRYPT_V0:\ncanary";
        assert!(parse(sealed).expect_err("encrypted").1.contains("rclone config show"));
        assert!(revealed("%").is_err() && revealed("short").is_err());
    }
}
