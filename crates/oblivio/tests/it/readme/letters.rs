// The example of the README. A test compares the two, and runs this file.

use oblivio::{Error, Volume};
use std::io::{Read, Seek, SeekFrom};

fn main() -> Result<(), Error> {
    let volume = Volume::create("vault", "correct horse battery staple")?;
    volume.create_dir("/letters")?;
    volume.write("/letters/alice.txt", b"See you on Sunday.")?;
    volume.close()?; // everything is durable, or this says why not

    let volume = Volume::open("vault", "correct horse battery staple")?;
    for letter in volume.list("/letters")? {
        assert_eq!(volume.metadata(letter?.path())?.len(), 18);
    }
    let mut file = volume.open_file("/letters/alice.txt")?;
    let mut day = String::new();
    file.seek(SeekFrom::Start(11)).and_then(|_| file.read_to_string(&mut day)).expect("text");
    assert_eq!(day, "Sunday.");
    drop(file);
    volume.close()?;

    match Volume::open("vault", "a guess") {
        Err(Error::WrongPassphrase) => Ok(()), // others: RolledBack, Tampered, Busy, Full ...
        _ => panic!("nobody else gets in"),
    }
}
