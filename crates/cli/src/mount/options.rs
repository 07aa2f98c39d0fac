//! `-o` and the form in which `mount` and `/etc/fstab` call us.

use crate::args::MountArgs;
use crate::exit::usage;
use crate::human::parse_size;
use anyhow::Result;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options that are not for us, or say what is so anyway.
const IGNORED: &[&str] = &[
    "rw",
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "async",
    "atime",
    "noatime",
    "diratime",
    "nodiratime",
    "relatime",
    "norelatime",
    "default_permissions",
    "nosuid",
    "nodev",
    "exec",
    "lazytime",
    "nolazytime",
    "remount",
];

/// Works what stands after `-o` into the arguments.
pub fn apply(args: &mut MountArgs) -> Result<()> {
    let lists = std::mem::take(&mut args.options);
    for option in lists.iter().flat_map(|list| list.split(',')).filter(|one| !one.is_empty()) {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        one(args, &name.replace('_', "-"), option, value)?;
    }
    Ok(())
}

fn one(args: &mut MountArgs, name: &str, option: &str, value: Option<&str>) -> Result<()> {
    let wants = |what: &str| usage(format!("the option {option} needs {what}"), "");
    match (name, value) {
        ("ro", None) => args.read_only = true,
        ("allow-other", None) => args.allow_other = true,
        ("nonempty", None) => args.nonempty = true,
        ("accept-rollback", None) => args.open.accept_rollback = true,
        ("suid", None) => args.look.suid = true,
        ("dev", None) => args.look.dev = true,
        ("noexec", None) => args.look.noexec = true,
        ("passphrase-file", Some(file)) => {
            args.open.passphrase.passphrase_file = Some(PathBuf::from(file));
        }
        ("memory", Some(size)) => {
            args.open.memory = Some(parse_size(size).map_err(|why| usage(why, ""))?);
        }
        ("commit-every" | "commit", Some(seconds)) => {
            args.commit_every = seconds.parse().map_err(|_| wants("a number of seconds"))?;
        }
        ("timeout", Some(seconds)) => {
            args.timeout = seconds.parse().map_err(|_| wants("a number of seconds"))?;
        }
        ("passphrase-file", None) => return Err(wants("a file, as in passphrase-file=/etc/pass")),
        ("comment" | "fsname" | "subtype", _) => {}
        _ if option.starts_with("x-") || IGNORED.contains(&option) => {}
        _ => {
            let hint = "`oblivio mount --help` tells what there is.";
            return Err(usage(format!("there is no mount option {option}"), hint));
        }
    }
    Ok(())
}

/// The arguments of the command when `mount` calls it as `mount.oblivio` or
/// `mount.fuse.oblivio`: `VOLUME DIR [-sfnvrw] [-t TYPE] [-o OPTIONS]`. They become those of
/// `oblivio mount --background --quiet`.
pub fn as_mount_helper(given: Vec<OsString>) -> Vec<OsString> {
    let called = given.first().map(Path::new).and_then(Path::file_name);
    if !called.is_some_and(|name| name.as_bytes().starts_with(b"mount.")) {
        return given;
    }
    let mut args: Vec<OsString> =
        ["oblivio", "mount", "--background", "--quiet"].map(Into::into).into();
    let mut rest = given.into_iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.as_bytes() {
            b"-t" => drop(rest.next()),
            b"-r" => args.push("--read-only".into()),
            b"-o" => {
                args.push(arg);
                args.extend(rest.next());
            }
            // Sloppy, fake, no mtab, verbose, read and write: nothing to us.
            flags
                if flags.len() > 1
                    && flags[0] == b'-'
                    && flags[1..].iter().all(|flag| b"sfnvw".contains(flag)) => {}
            _ => args.push(arg),
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn parse(words: &[&str]) -> Result<MountArgs> {
        let words = as_mount_helper(words.iter().map(Into::into).collect());
        match Cli::try_parse_from(words)?.command {
            Command::Mount(mut args) => {
                apply(&mut args)?;
                Ok(args)
            }
            _ => anyhow::bail!("not a mount"),
        }
    }

    #[test]
    fn fstab_lines_are_understood() -> Result<()> {
        let options = "rw,noauto,_netdev,x-systemd.automount,passphrase-file=/p,allow_other,\
                       commit=9,timeout=30,memory=64M";
        let args = parse(&["/sbin/mount.fuse.oblivio", "/v", "/m", "-n", "-o", options])?;
        assert!(args.background && args.allow_other && !args.read_only);
        assert_eq!(args.open.passphrase.passphrase_file, Some("/p".into()));
        assert_eq!((args.commit_every, args.timeout), (9, 30));
        assert_eq!(args.open.memory, Some(64 << 20));
        let args = parse(&["oblivio", "mount", "-o", "ro,nonempty", "/v", "/m"])?;
        assert!(args.read_only && args.nonempty && !args.background);
        Ok(())
    }

    #[test]
    fn unknown_options_are_refused() {
        for options in ["rw,colour=red", "timeout=soon", "passphrase_file", "memory=much"] {
            assert!(parse(&["oblivio", "mount", "-o", options, "/v", "/m"]).is_err(), "{options}");
        }
    }
}
