//! The effect of mount options, and their refusals.

use crate::mount::rig;
use rustix::fs::StatVfsMountFlags;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The call by `mount -o remount,...`, with the options that it repeats from our mount.
fn remount(rig: &crate::mount::Rig, options: &str) -> Output {
    let helper = rig.scratch.path("mount.fuse.oblivio");
    if !helper.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_oblivio"), &helper).expect("a link");
    }
    let repeated = "nosuid,nodev,noatime,user_id=0,group_id=0,default_permissions,max_read=1048576";
    let options = format!("{options},{repeated}");
    let mut command = Command::new(helper);
    command.current_dir(rig.scratch.path(".")).env("XDG_STATE_HOME", rig.scratch.path("state"));
    command.args(["v", "m", "-o", &options]).output().expect("it runs")
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_mount_becomes_read_only_and_writable_again() {
    let Some(rig) = rig() else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may remount");
    }
    rig.scratch.bad(3, ["mount", "-o", "remount,ro", "v", "m"]);
    let child = rig.child(&["--commit-every", "3600"]);
    fs::write(rig.path("f"), "before").expect("written");
    let flags = || rustix::fs::statvfs(&rig.dir).expect("the mount").f_flag;
    let kept = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV | StatVfsMountFlags::NOATIME;

    let open = File::create(rig.path("open")).expect("made");
    let refused = remount(&rig, "remount,ro");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("open for writing"), "{said}");
    drop(open);

    let done = remount(&rig, "remount,ro");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(flags().contains(kept | StatVfsMountFlags::RDONLY), "{:?}", flags());
    let refused = fs::write(rig.path("g"), "").expect_err("read-only");
    assert_eq!(refused.raw_os_error(), Some(30));
    assert_eq!(fs::read(rig.path("f")).expect("read"), b"before");

    let done = remount(&rig, "remount,rw,noexec");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(flags().contains(kept | StatVfsMountFlags::NOEXEC), "{:?}", flags());
    fs::write(rig.path("g"), "after").expect("writable again");
    let done = remount(&rig, "remount,ro,exec");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(!flags().contains(StatVfsMountFlags::NOEXEC), "{:?}", flags());

    // Earlier writes are safe by then.
    let mut child = child;
    child.kill().expect("killed");
    child.wait().expect("it ends");
    rig.umount();
    assert_eq!(rig.scratch.good(["cat", "v", "/g"]), "after");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_passphrase_file_may_have_commas_and_should_be_private() {
    let Some(rig) = rig() else { return };
    let file = rig.scratch.write("my,pass", "secret\n");
    let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("a mode");
    mode(0o644);
    let list = [r"ro,passphrase-file=my\,pass,commit=3"];
    let mount = |list: [&str; 1]| {
        let mut command = rig.scratch.command(["mount", "-b", "-o", list[0], "v", "m"]);
        let output = command.env_remove("OBLIVIO_PASSPHRASE").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        rig.umount();
        said
    };
    let said = mount(list);
    assert!(said.contains("warning") && said.contains("chmod 600"), "{said}");
    mode(0o600);
    let said = mount(list);
    assert!(!said.contains("warning"), "{said}");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_cannot_be_kept_is_refused_by_its_name() {
    let Some(rig) = rig() else { return };
    let said = rig.scratch.bad(2, ["mount", "-b", "-o", "strictatime", "v", "m"]);
    assert!(said.contains("strictatime") && said.contains("access time"), "{said}");
    assert!(!rig.mounted());
}

/// A container that has the device but may not use it.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_device_that_is_refused_is_named() {
    let Some(rig) = rig() else { return };
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/unshare").exists() {
        return eprintln!("skipped: neither root nor unshare");
    }
    let script = "mount --bind /dev/fuse /dev/fuse && mount -o remount,bind,nodev /dev/fuse || \
                  exit 77; exec \"$0\" mount -b v m";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_oblivio")])
        .current_dir(rig.scratch.path("."))
        .env("XDG_STATE_HOME", rig.scratch.path("state"))
        .env("OBLIVIO_PASSPHRASE", "secret")
        .output()
        .expect("it runs");
    if output.status.code() == Some(77) {
        return eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("/dev/fuse: Permission denied"), "{said}");
    assert!(said.contains("--device /dev/fuse"), "{said}");
}
