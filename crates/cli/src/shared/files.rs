//! Files of a shared volume for commands.

use super::line::{line, open};
use crate::args::OpenArgs;
use crate::exit::usage;
use crate::passphrase;
use anyhow::Result;
use oblivio_app::shared::{SharedFiles, TIMEOUT};
use oblivio_app::walk::WriteFiles;
use oblivio_client::unlock;
use oblivio_share::ShareAddress;

/// Runs a command on the files of a shared volume, and ends the session after it.
pub fn with<T>(
    address: &ShareAddress,
    args: &OpenArgs,
    work: impl FnOnce(&dyn WriteFiles) -> Result<T>,
) -> Result<T> {
    let others = args.unobserved || args.older || args.only_looks() || args.take_over;
    let others = others || args.strict;
    if args.pad || args.pace.is_some() || args.trace_out.is_some() || others {
        let what = "a shared volume has no --pad, --pace, --strict, --trace-out, --unobserved, --older, \
                    --history, --incomplete or --take-over here";
        return Err(usage(what, "Leave that option out."));
    }
    let line = line(address, args.token_file.as_deref())?;
    let keyed = unlock(&line, &passphrase::known(&args.passphrase)?)?;
    let files = SharedFiles::open(open(line, keyed, address, args, TIMEOUT)?)?;
    let done = work(&files);
    let closed = files.end();
    let value = done?;
    closed?;
    Ok(value)
}
