//! A volume as a block device of this computer.

use super::serve::ServeArgs;
use clap::Args;

/// Make a volume that holds a disk a block device of this computer
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  oblivio init --disk 20G ~/disk
  sudo -E oblivio ublk ~/disk            /dev/ublkb0 until Ctrl-C
  sudo -E oblivio ublk -b -q ~/disk      in the background, until it gets SIGTERM
  sudo mkfs.ext4 /dev/ublkb0 && sudo mount /dev/ublkb0 /mnt

It needs Linux 6.0 or later with the ublk driver (modprobe ublk_drv) and the rights of root. What is
flushed is safe; everything else is committed every few seconds and at the end. docs/ublk.md tells
more.")]
pub struct UblkArgs {
    /// The smallest read or write, in bytes: 512 to 4096 [default: 4096, if the size allows it]
    #[arg(long, value_name = "BYTES")]
    pub block_size: Option<u32>,
    #[command(flatten)]
    pub serve: ServeArgs,
}
