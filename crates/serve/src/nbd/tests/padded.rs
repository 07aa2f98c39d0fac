//! With padding the store sees the same of two clients with equal requests at other offsets.
//! Recorded at the store; `just padded-pairs` compares more pairs.

use super::*;
use crate::paired::pairs::{Session, compare_pairs, padded};
use oblivio_testkit::Dice;
use oblivio_volume::BlockSpace;
use std::sync::LazyLock;

/// Existing bytes of the disk, in the middle of a size class.
const LIVE: u64 = 720 * BLOCK as u64;

static FILLED: LazyLock<Arc<MemoryStore>> = LazyLock::new(|| {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: SIZE, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &Session::secret(), create, OpenOptions::default());
    let mut disk = Disk::format(Box::new(volume.expect("empty")), SIZE).expect("a disk");
    disk.write(0, &vec![7; LIVE as usize]).expect("room");
    drop(disk.into_blocks().expect("memory"));
    store
});

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const ZEROES: u16 = 6;

fn any_request(dice: &mut Dice) -> (u16, u32) {
    let sectors = |dice: &mut Dice, most: u64| 512 * (1 + dice.below(most) as u32);
    match dice.below(10) {
        0..3 => (READ, sectors(dice, 60)),
        3..7 => (WRITE, sectors(dice, 60)),
        7 => (TRIM, BLOCK as u32 * (1 + dice.below(3) as u32)),
        8 => (ZEROES, sectors(dice, 5)),
        _ => (FLUSH, 0),
    }
}

/// A connection to a server in memory, with one request at a time.
struct Asking {
    stream: UnixStream,
    queue: Arc<DiskQueue>,
    server: JoinHandle<()>,
}

impl Asking {
    fn new(volume: Volume) -> Self {
        let disk = Disk::open(Box::new(volume) as Box<dyn BlockSpace>).expect("a disk");
        let queue = queue();
        let server = DiskServer::new(disk, Arc::clone(&queue), settings());
        let server = thread::spawn(move || server.run().expect("memory"));
        let (stream, _) = connected(&queue, EXPORT, PLAIN);
        Self { stream, queue, server }
    }

    fn ask(&mut self, command: u16, offset: u64, len: u32, data: &[u8]) {
        let request = request(0, command, 7, offset, len);
        self.stream.write_all(&[&request[..], data].concat()).expect("the server reads");
        let head: [u8; 16] = read_array(&mut self.stream).expect("a reply");
        assert_eq!(head[4..8], [0; 4], "no error");
        if command == READ {
            self.stream.read_exact(&mut vec![0; len as usize]).expect("data");
        }
    }

    fn end(self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.queue.close();
        self.server.join().expect("no panic");
    }
}

#[test]
fn pairs_of_clients_look_the_same() {
    compare_pairs("nbd", 12, |public, hidden| {
        let requests: Vec<_> = (0..10 + public.below(30)).map(|_| any_request(public)).collect();
        let (session, volume) = Session::open(&FILLED, padded());
        session.seen();
        let (same, place) = (hidden.below(2) == 0, hidden.next_u64());
        let mut client = Asking::new(volume);
        for (command, len) in requests {
            let at = if same { place } else { hidden.next_u64() } % (LIVE - u64::from(len));
            let (offset, data) = match command {
                FLUSH => (0, Vec::new()),
                TRIM => (at / BLOCK as u64 * BLOCK as u64, Vec::new()),
                WRITE => (at / 512 * 512, vec![hidden.next_u64() as u8; len as usize]),
                _ => (at / 512 * 512, Vec::new()),
            };
            client.ask(command, offset, len, &data);
        }
        client.end();
        session.seen()
    });
}
