//! `-o` and the command lines of `mount` and `/etc/fstab`.

use crate::args::MountArgs;
use crate::exit::{Code, fault, usage};
use crate::human::parse_size;
use anyhow::Result;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Options that are meant for others, or that state the default.
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
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "remount",
];

/// Options that `mount` repeats from an existing mount for a remount.
const REPEATED: &[&str] = &["user-id", "group-id", "max-read", "blksize", "rootmode", "fd"];

/// The defaults of `mount`.
const DEFAULTS: &str = "suid,dev,exec";

/// Applies the options after `-o` to the arguments.
pub fn apply(args: &mut MountArgs) -> Result<()> {
    let lists = std::mem::take(&mut args.options);
    let options: Vec<String> = lists.iter().flat_map(|list| split(list)).collect();
    args.remount = options.iter().any(|option| option == "remount");
    if args.remount {
        args.look = oblivio_serve::mount::current(&args.dir)?.ok_or_else(|| {
            let shown = args.dir.display();
            let what = format!("no volume is mounted on {shown}, so there is nothing to remount");
            fault(Code::Path, what, "`findmnt -t fuse.oblivio` lists what is.")
        })?;
        args.read_only |= args.look.read_only;
    }
    for option in &options {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option.as_str(), None),
        };
        one(args, &name.replace('_', "-"), option, value)?;
    }
    Ok(())
}

/// The options of a list. As in `mount` and `fusermount3`, a backslash makes the next comma or
/// backslash part of an option.
fn split(list: &str) -> Vec<String> {
    let (mut options, mut option) = (Vec::new(), String::new());
    let mut rest = list.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => option.push(rest.next_if(|escaped| ",\\".contains(*escaped)).unwrap_or(next)),
            ',' => options.push(std::mem::take(&mut option)),
            _ => option.push(next),
        }
    }
    options.push(option);
    options.retain(|option| !option.is_empty());
    options
}

fn one(args: &mut MountArgs, name: &str, option: &str, value: Option<&str>) -> Result<()> {
    let wants = |what: &str| usage(format!("the option {option} needs {what}"), "");
    match (name, value) {
        ("ro", None) => args.read_only = true,
        ("allow-other", None) => args.allow_other = true,
        ("nonempty", None) => args.nonempty = true,
        ("accept-rollback", None) => args.open.accept_rollback = true,
        // The last of two contradicting options counts.
        ("suid" | "nosuid", None) => args.look.suid = name == "suid",
        ("dev" | "nodev", None) => args.look.dev = name == "dev",
        ("exec" | "noexec", None) => args.look.noexec = name == "noexec",
        ("rw", None) if args.remount => args.read_only = false,
        ("strict", None) => args.open.strict = true,
        ("token-file", Some(file)) => args.open.token_file = Some(PathBuf::from(file)),
        ("passphrase-file", Some(file)) => {
            args.open.passphrase.passphrase_file = Some(PathBuf::from(file));
        }
        ("memory", Some(size)) => {
            args.open.memory = Some(parse_size(size).map_err(|why| usage(why, ""))?);
        }
        ("scrub", Some(rate)) => {
            args.scrub = Some(parse_size(rate).map_err(|why| usage(why, ""))?);
        }
        ("cover", Some(seconds)) => {
            let seconds: u64 = seconds.parse().map_err(|_| wants("a number of seconds"))?;
            let most = (1..=86_400).contains(&seconds);
            args.cover = Some(most.then_some(seconds).ok_or_else(|| wants("1 to 86400 seconds"))?);
        }
        ("commit-every" | "commit", Some(seconds)) => {
            args.commit_every = seconds.parse().map_err(|_| wants("a number of seconds"))?;
        }
        ("timeout", Some(seconds)) => {
            args.timeout = Some(seconds.parse().map_err(|_| wants("a number of seconds"))?);
        }
        ("passphrase-file", None) => return Err(wants("a file, as in passphrase-file=/etc/pass")),
        ("comment" | "fsname" | "subtype", _) => {}
        (repeated, Some(_)) if args.remount && REPEATED.contains(&repeated) => {}
        ("strictatime", None) => {
            let what = "strictatime cannot be kept: reading a file does not change its access time";
            return Err(usage(what, "Leave it out. Access times change only when they are set."));
        }
        // `mount` names the user who may unmount.
        ("user", Some(_)) => {}
        _ if args.sloppy || option.starts_with("x-") || IGNORED.contains(&option) => {}
        _ => {
            let hint = "`oblivio mount --help` tells what there is.";
            return Err(usage(format!("there is no mount option {option}"), hint));
        }
    }
    Ok(())
}

/// The arguments of the command when `mount` calls it as `mount.oblivio` or
/// `mount.fuse.oblivio`: `VOLUME DIR [-sfnvrw] [-t TYPE] [-o OPTIONS]`. They become those of
/// `oblivio mount --background --quiet`. `mount` never passes on the opposites of `nosuid`, `nodev`
/// and `noexec`: for each that it does not name, the opposite is set.
pub fn as_mount_helper(given: Vec<OsString>) -> Vec<OsString> {
    let called = given.first().map(Path::new).and_then(Path::file_name);
    if !called.is_some_and(|name| name.as_bytes().starts_with(b"mount.")) {
        return given;
    }
    let mut args: Vec<OsString> =
        ["oblivio", "mount", "--background", "-o", DEFAULTS].map(Into::into).into();
    let mut verbose = false;
    let mut rest = given.into_iter().skip(1);
    while let Some(arg) = rest.next() {
        match arg.as_bytes() {
            b"-t" => drop(rest.next()),
            b"-o" => {
                args.push(arg);
                args.extend(rest.next());
            }
            [b'-', flags @ ..]
                if !flags.is_empty() && flags.iter().all(|flag| b"sfnvrw".contains(flag)) =>
            {
                verbose |= flags.contains(&b'v');
                // No mtab, and read and write: ignored.
                let known = [(b's', "--sloppy"), (b'f', "--fake"), (b'r', "--read-only")];
                let named = known.iter().filter(|(flag, _)| flags.contains(flag));
                args.extend(named.map(|(_, word)| OsString::from(word)));
            }
            _ => args.push(arg),
        }
    }
    if !verbose {
        args.insert(2, "--quiet".into());
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
                       commit=9,timeout=30,memory=64M,scrub=5M";
        let args = parse(&["/sbin/mount.fuse.oblivio", "/v", "/m", "-n", "-o", options])?;
        assert!(args.background && args.allow_other && !args.read_only);
        assert_eq!(args.open.passphrase.passphrase_file, Some("/p".into()));
        assert_eq!((args.commit_every, args.timeout), (9, Some(30)));
        assert_eq!((args.open.memory, args.scrub), (Some(64 << 20), Some(5 << 20)));
        let args = parse(&["oblivio", "mount", "-o", "ro,nonempty", "/v", "/m"])?;
        assert!(args.read_only && args.nonempty && !args.background);
        Ok(())
    }

    #[test]
    fn the_flags_of_mount_are_understood() -> Result<()> {
        let args = parse(&["/sbin/mount.oblivio", "/v", "/m", "-sn", "-o", "ro,colour=red"])?;
        assert!(args.sloppy && args.open.quiet && !args.fake && args.read_only);
        let args = parse(&["mount.oblivio", "/v", "/m", "-fv", "-r", "-t", "oblivio"])?;
        assert!(args.fake && !args.open.quiet && args.read_only && !args.sloppy);
        assert_eq!((args.volume, args.dir), ("/v".into(), "/m".into()));
        let url = "s3://bucket/vol?region=eu-central-1";
        let options = "rw,passphrase_file=/etc/p,_netdev,nofail,user=me";
        let args = parse(&["/usr/sbin/mount.oblivio", url, "/m", "-o", options])?;
        assert_eq!(args.volume, PathBuf::from(url));
        assert_eq!(args.open.passphrase.passphrase_file, Some("/etc/p".into()));
        assert!(parse(&["mount.oblivio", "/v", "/m", "-fx"]).is_err(), "no flag of mount");
        Ok(())
    }

    #[test]
    fn what_mount_does_not_name_is_as_mount_has_it() -> Result<()> {
        let look = |options| {
            let look = parse(&["/sbin/mount.fuse.oblivio", "/v", "/m", "-o", options])?.look;
            Ok::<_, anyhow::Error>((look.suid, look.dev, look.noexec))
        };
        assert_eq!(look("rw,allow_other")?, (true, true, false));
        assert_eq!(look("rw,nosuid,nodev,noexec")?, (false, false, true));
        let look = parse(&["oblivio", "mount", "/v", "/m"])?.look;
        assert!(!look.suid && !look.dev, "by hand they are asked for");
        Ok(())
    }

    #[test]
    fn a_comma_behind_a_backslash_is_part_of_an_option() -> Result<()> {
        for (written, file) in [
            (r"ro,passphrase-file=/p\,q,nonempty", "/p,q"),
            (r"ro,passphrase-file=/p\\,nonempty", r"/p\"),
            (r"nonempty,ro,passphrase-file=/a\b\,", r"/a\b,"),
        ] {
            let args = parse(&["oblivio", "mount", "-o", written, "/v", "/m"])?;
            assert_eq!(args.open.passphrase.passphrase_file, Some(file.into()), "{written}");
            assert!(args.read_only && args.nonempty, "{written}");
        }
        Ok(())
    }

    #[test]
    fn the_last_of_two_that_contradict_each_other_counts() -> Result<()> {
        let args = parse(&["oblivio", "mount", "-o", "suid,nosuid,nodev,dev,noexec", "/v", "/m"])?;
        assert!(!args.look.suid && args.look.dev && args.look.noexec);
        Ok(())
    }

    #[test]
    fn strictatime_is_refused_by_its_name() {
        let refused = parse(&["oblivio", "mount", "-o", "strictatime", "/v", "/m"]);
        assert!(refused.expect_err("refused").to_string().contains("access time"));
    }

    #[test]
    fn unknown_options_are_refused() {
        for options in [
            "rw,colour=red",
            "timeout=soon",
            "passphrase_file",
            "memory=much",
            "scrub",
            "user_id=0",
        ] {
            assert!(parse(&["oblivio", "mount", "-o", options, "/v", "/m"]).is_err(), "{options}");
        }
    }
}
