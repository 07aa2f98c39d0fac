//! A disk image of which any part can be read and changed, and nobody sees which.
//!
//!     cargo run --example image -- DISK store IMAGE          makes a disk from a file
//!     cargo run --example image -- DISK show OFFSET LENGTH   writes a part to standard output
//!     cargo run --example image -- DISK change OFFSET TEXT   writes into it
//!
//! The passphrase is the first line of standard input. `oblivio nbd DISK` serves the same disk.

use oblivio::{CreateOptions, Disk, OpenOptions, Passphrase};
use std::error::Error;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes that are written together: an access costs about the same for one as for many.
const PIECE: usize = 1 << 20;
/// A disk's size is a multiple of this.
const SECTOR: u64 = 512;

/// Makes a disk with this content; what is zero takes no space.
pub fn store(
    from: &mut impl Read,
    len: u64,
    place: &Path,
    passphrase: Passphrase,
    options: CreateOptions,
) -> Result<Disk, Box<dyn Error>> {
    let disk = options.create_disk(place, passphrase, len.next_multiple_of(SECTOR))?;
    let mut at = 0;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        from.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
        if piece.is_empty() {
            break;
        }
        if piece.iter().any(|&byte| byte != 0) {
            disk.write_at(at, &piece)?;
        }
        at += piece.len() as u64;
    }
    disk.sync()?;
    Ok(disk)
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut passphrase = String::new();
    io::stdin().read_line(&mut passphrase)?;
    let secret = Passphrase::from(passphrase.trim_end_matches('\n'));
    let disk = match words[..] {
        [place, "store", image] => {
            let mut image = std::fs::File::open(image)?;
            let len = image.metadata()?.len();
            store(&mut image, len, place.as_ref(), secret, CreateOptions::new())?
        }
        [place, "show", offset, len] => {
            let disk = OpenOptions::new().open_disk(place, secret)?;
            io::stdout().write_all(&disk.read_at(offset.parse()?, len.parse()?)?)?;
            disk
        }
        [place, "change", offset, text] => {
            let disk = OpenOptions::new().open_disk(place, secret)?;
            disk.write_at(offset.parse()?, text.as_bytes())?;
            disk
        }
        _ => return Err("DISK store IMAGE | show OFFSET LENGTH | change OFFSET TEXT".into()),
    };
    Ok(disk.close()?)
}
