//! Files of remotes, good and bad.

use super::*;
use crate::secrets::Lookup;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

/// A home folder with this file of remotes.
fn home(text: &str, mode: u32) -> (tempfile::TempDir, Ambient) {
    let dir = tempfile::tempdir().unwrap();
    let env: Lookup = Arc::new(|_| None);
    let ambient = Ambient { env, home: dir.path().to_owned() };
    let file = Remotes::file(&ambient);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    (dir, ambient)
}

fn refused(text: &str) -> String {
    let (_dir, ambient) = home(text, 0o600);
    let error = Remotes::read(&ambient).unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(!text.contains("hunter2"), "{text}");
    text
}

#[test]
fn remotes_are_found_by_name_and_by_place() {
    let text = "[home]\nurl = \"webdavs://host/dav\"\nuser = \"alice\"\nsecret = \"hunter2\"\n\
        [other]\nurl = \"webdavs://host/dav/deep\"\nsecret_command = \"echo token\"\n";
    let (_dir, ambient) = home(text, 0o600);
    let remotes = Remotes::read(&ambient).unwrap();
    assert!(!format!("{remotes:?}").contains("hunter2"));
    assert_eq!(remotes.iter().map(|it| it.0).collect::<Vec<_>>(), ["home", "other"]);
    let secret = |url: &str| {
        let (place, remote) = remotes.find(&url.parse().unwrap(), &ambient).unwrap();
        let secret = remote.map(|it| it.secret.as_ref().unwrap().fetch().unwrap());
        (place.path, secret.map(|it| it.reveal().to_owned()))
    };
    assert_eq!(secret("home:a/b"), ("dav/a/b".to_owned(), Some("hunter2".to_owned())));
    assert_eq!(secret("webdavs://host/dav/a").1.as_deref(), Some("hunter2"));
    assert_eq!(secret("webdavs://host/dav/deep/a").1.as_deref(), Some("token"));
    // Its secret goes nowhere else.
    for elsewhere in ["webdavs://host/davos", "webdavs://host:444/dav", "webdav://host/dav"] {
        assert_eq!(secret(elsewhere).1, None, "{elsewhere}");
    }
    let unknown = remotes.find(&"nobody:a".parse().unwrap(), &ambient).unwrap_err();
    assert!(unknown.to_string().contains("[nobody]"), "{unknown}");
}

#[test]
fn no_file_is_no_remote_and_an_open_one_is_refused() {
    let (dir, ambient) = home("", 0o600);
    fs::remove_file(Remotes::file(&ambient)).unwrap();
    assert_eq!(Remotes::read(&ambient).unwrap().iter().count(), 0);
    drop(dir);
    for mode in [0o640, 0o604, 0o660, 0o644, 0o666, 0o700, 0o622] {
        let (_dir, ambient) = home("", mode);
        let error = Remotes::read(&ambient).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{mode:o}: {error}");
    }
    let (_dir, ambient) = home("", 0o400);
    assert!(Remotes::read(&ambient).is_ok());
}

#[test]
fn what_is_not_understood_is_named_by_its_line_only() {
    let line = refused("[home]\nurl = \"sftp://h\"\nsecret = hunter2\n");
    assert!(line.contains("line 3"), "{line}");
    assert!(refused("[home]\nurl = \"sftp://h\"\nsecert = \"hunter2\"\n").contains("line 3"));
    assert!(refused("[home]\nsecret = \"hunter2\"\n").contains("line"));
    assert!(refused("[home]\nurl = \"sftp://h\"\nsecret = [\"hunter2\"]\n").contains("line"));
    let both = "[home]\nurl = \"sftp://h\"\nsecret = \"hunter2\"\nsecret_file = \"x\"\n";
    assert!(refused(both).contains("one of secret"));
    assert!(refused("[home]\nurl = \"webdavs://a:hunter2@h/\"\n").contains("password"));
    assert!(refused("[home]\nurl = \"other:\"\n").contains("another remote"));
    assert!(refused("[\"a b\"]\nurl = \"sftp://h\"\n").contains("2 to 32"));
}

#[test]
fn a_secret_comes_from_a_private_file_or_a_command() {
    let (dir, _) = home("", 0o600);
    let file = dir.path().join("key");
    fs::write(&file, "hunter2\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let from = SecretFrom::File(file.clone());
    assert!(from.fetch().unwrap_err().to_string().contains("chmod 600"));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    assert_eq!(from.fetch().unwrap().reveal(), "hunter2");
    let run = |command: &str| SecretFrom::Command(command.to_owned()).fetch();
    assert_eq!(run("printf 'hun'; echo ter2").unwrap().reveal(), "hunter2");
    for bad in ["echo hunter2; exit 3", "true", "printf '\\377'", "no-such-program-here"] {
        let error = run(bad).unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[test]
fn the_file_is_in_the_folder_of_settings() {
    let home = tempfile::tempdir().unwrap();
    let at = |settings: &str| {
        let settings = settings.to_owned();
        let env: Lookup =
            Arc::new(move |name| (name == "XDG_CONFIG_HOME").then(|| settings.clone()));
        Remotes::file(&Ambient { env, home: home.path().to_owned() })
    };
    let (own, below) = (home.path().join("mine"), home.path().join(".config/oblivio/remotes.toml"));
    let own_file = own.join("oblivio/remotes.toml");
    assert_eq!(at(own.to_str().unwrap()), own_file);
    // Not set, or set to what the specification says to ignore.
    assert_eq!((at(""), at("relative")), (below.clone(), below.clone()));
    // One of before is found, until there is one in the right place.
    for (file, found) in [(&below, &below), (&own_file, &own_file)] {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
        assert_eq!(at(own.to_str().unwrap()), *found);
    }
}
