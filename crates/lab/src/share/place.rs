//! A shared volume in a folder: filled without a server, then served by the real one, far away.

use super::process::Used;
use super::proxy::Proxy;
use crate::report::count;
use crate::tool::Tool;
use anyhow::{Context, Result, ensure};
use oblivio_client::{Client, ClientOptions, Keyed, NewShared, Unremembered, create, unlock};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::Action;
use oblivio_engine::BlockId;
use oblivio_engine::pyramid::share::Ask;
use oblivio_engine::pyramid::{Name, Operation, PyramidConfig};
use oblivio_share::StoredShare;
use oblivio_share::{
    AdminRequest, KnownDevice, LinePatience, RemoteShare, ShareAddress, Token, admit, wish,
};
use oblivio_store::share::Share;
use oblivio_testkit::SplitMix64;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The page of all tables.
pub const PAGE: &str = "share-benchmarks.md";
/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// The volume's name at its server.
pub const VOLUME: &str = "team";
/// Its passphrase.
pub const PASSPHRASE: &str = "lab";
/// Transactions that a thread has under way while it fills.
const AT_ONCE: usize = 128;
/// Threads that fill, half of them at a client each.
const FILLERS: u64 = 4;

/// Which volume.
#[derive(clap::Args, Debug)]
pub struct Which {
    #[command(flatten)]
    pub tool: Tool,
    /// The most blocks, as a logarithm
    #[arg(long, default_value_t = 20)]
    pub log: u32,
    /// How many of them exist, in percent
    #[arg(long, default_value_t = 97, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub fill: u64,
    /// Where the server's folder is made; by default where the system has temporary files
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// A server's folder to keep, filled if it is new; it serves later runs too
    #[arg(long, conflicts_with = "dir")]
    pub keep: Option<PathBuf>,
}

impl Which {
    /// Blocks that exist.
    pub fn blocks(&self) -> u64 {
        ((1 << self.log) * self.fill / 100).max(1)
    }
}

/// The content of a block.
pub fn content(block: u64) -> Vec<u8> {
    let mut content = block.to_le_bytes().to_vec();
    content.resize(BLOCK, block as u8);
    content
}

/// An ask for a block, with the answer what it was.
pub fn ask(block: u64, writes: bool) -> Ask {
    let action = if writes { Action::Write(content(block)) } else { Action::Read };
    Ask::new(Name::from(BlockId(block)), Operation { action, and_read: true })
}

/// A filled volume in a server's folder.
pub struct Place {
    pub folder: PathBuf,
    pub config: PyramidConfig,
    /// How it was filled, for the page.
    pub told: String,
    keyed: Keyed,
    _scratch: Option<tempfile::TempDir>,
}

impl Place {
    /// Makes it, unless it is kept from an earlier run.
    ///
    /// # Errors
    /// Those of storage and of the client.
    pub fn prepare(args: &Which) -> Result<Self> {
        let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
        let (folder, scratch) = match &args.keep {
            Some(folder) => (folder.clone(), None),
            None => {
                let scratch = tempfile::tempdir_in(&dir).context(dir.display().to_string())?;
                (scratch.path().join("server"), Some(scratch))
            }
        };
        let (volume, passphrase) =
            (folder.join("volumes").join(VOLUME), Passphrase::new(PASSPHRASE));
        let (is_new, filled) = (!volume.is_dir(), folder.join("filled"));
        std::fs::create_dir_all(&volume)?;
        let begin = Instant::now();
        let share = Arc::new(StoredShare::open(&volume, Arc::new(move || begin.elapsed()))?);
        let keyed = if is_new {
            let capacity_bytes = BLOCK as u64 * (1 << args.log);
            let new = NewShared { block_bytes: BLOCK, capacity_bytes, kdf: KdfParams::TEST };
            let keyed = create(&share, &new, &passphrase)?;
            fill(&share, &keyed, args.blocks())?;
            let (blocks, cycle) = (args.blocks(), keyed.config().blocks() / 2);
            let told = format!(
                "The lab filled the volume in the server's folder, without TLS and without delay: \
                 it wrote {} blocks once, and then read {} at random, which is a cycle of all \
                 bases. It took {} s.",
                count(blocks as f64),
                count(cycle as f64),
                count(begin.elapsed().as_secs_f64())
            );
            std::fs::write(&filled, told)?;
            keyed
        } else {
            unlock(&share, &passphrase)?
        };
        let told = std::fs::read_to_string(&filled)
            .context("the volume kept was not filled to its end; remove it")?;
        let config = keyed.config();
        ensure!(
            config.log_blocks == args.log,
            "the volume kept has 2^{} blocks",
            config.log_blocks
        );
        Ok(Self { folder, config, told, keyed, _scratch: scratch })
    }
}

/// Writes all blocks once, and goes on for a cycle of all bases.
fn fill(share: &Arc<StoredShare>, keyed: &Keyed, blocks: u64) -> Result<()> {
    let options =
        |scribe| ClientOptions { timeout: Duration::from_secs(600), scribe, notices: false };
    let open = |scribe| {
        let share: Box<dyn Share> = Box::new(Arc::clone(share));
        Client::open(share, keyed.clone(), Box::new(Unremembered::default()), options(scribe))
    };
    let (total, next) = (blocks + keyed.config().blocks() / 2, AtomicU64::new(0));
    let clients = [open(true)?, open(false)?];
    thread::scope(|scope| -> Result<()> {
        let run = |number: u64| {
            let (client, next) = (&clients[number as usize % clients.len()], &next);
            move || fill_part(client, next, blocks, total)
        };
        let threads: Vec<_> = (0..FILLERS).map(|number| scope.spawn(run(number))).collect();
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread that fills panicked"))??;
        }
        Ok(())
    })?;
    let [scribe, other] = clients;
    other.close()?;
    Ok(scribe.close()?)
}

fn fill_part(client: &Client, next: &AtomicU64, blocks: u64, total: u64) -> Result<()> {
    let mut random = SplitMix64::new(1);
    loop {
        let from = next.fetch_add(AT_ONCE as u64, Ordering::Relaxed);
        if from >= total {
            return Ok(());
        }
        if from.is_multiple_of(1 << 16) {
            eprintln!("filling: {from} of {total} asks");
        }
        let one = |at: u64| match at < blocks {
            true => vec![ask(at, true)],
            false => vec![ask(random.below(blocks), false)],
        };
        let asks: Vec<Vec<Ask>> = (from..from + AT_ONCE as u64).map(one).collect();
        client.carry_out_many(&asks)?;
    }
}

/// The real server of a place, and the line to it.
pub struct Served<'p> {
    place: &'p Place,
    server: Child,
    pub proxy: Proxy,
}

impl<'p> Served<'p> {
    /// Starts them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(place: &'p Place, tool: &Path, round_trip: Duration) -> Result<Self> {
        let mut command = Command::new(tool);
        command.args(["share", "serve"]).arg(&place.folder).args(["--listen", "127.0.0.1:0"]);
        let mut server = command.args(["--volume", VOLUME]).stdout(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(server.stdout.take().context("no pipe")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        said.read_line(&mut String::new())?;
        let address = line.trim_end().trim_end_matches('.').rsplit(' ').next();
        let address: Option<SocketAddr> = address.and_then(|address| address.parse().ok());
        let Some(address) = address else {
            let _ = server.kill();
            anyhow::bail!("the server did not start: {line}");
        };
        let proxy = Proxy::start(address, round_trip / 2)?;
        Ok(Self { place, server, proxy })
    }

    /// A token for a new device, which reaches the server by the line.
    ///
    /// # Errors
    /// Those of the server.
    pub fn token(&self, device: &str) -> Result<Token> {
        let device = KnownDevice { volume: VOLUME.into(), name: device.into() };
        // A folder that is kept knows the devices of the runs before.
        let _ = wish(&self.place.folder, &AdminRequest::Revoke(device.clone()));
        let (host, port) = (self.proxy.address.ip().to_string(), self.proxy.address.port());
        let address = ShareAddress { host, port, volume: VOLUME.into() };
        Ok(admit(&self.place.folder, &device.name, address)?)
    }

    /// A device's way to the volume.
    ///
    /// # Errors
    /// Those of the server.
    pub fn line(&self, device: &str) -> Result<RemoteShare> {
        Ok(RemoteShare::new(self.token(device)?, LinePatience::default())?)
    }

    /// A client on such a way.
    ///
    /// # Errors
    /// Those of the client.
    pub fn client(&self, share: Box<dyn Share>, scribe: bool) -> Result<Client> {
        let options = ClientOptions { timeout: Duration::from_secs(120), scribe, notices: false };
        let known = Box::new(Unremembered::default());
        Ok(Client::open(share, self.place.keyed.clone(), known, options)?)
    }

    /// What the server used of the processors.
    ///
    /// # Errors
    /// It is gone.
    pub fn used(&self) -> Result<Used> {
        Used::of(self.server.id())
    }

    /// The process.
    pub fn process(&self) -> u32 {
        self.server.id()
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
