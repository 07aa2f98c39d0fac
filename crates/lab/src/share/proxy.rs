//! A line that is far away: a process that passes bytes on after a fixed time.
//!
//! It delays bytes and does not hold up later ones: as much is under way as is sent. It is a
//! process of its own, so that its time is not counted as that of clients or server.

use super::process::Used;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;
/// The stack of a thread, of which there are four for each connection.
const STACK: usize = 128 << 10;

/// The process's arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Where the server is
    #[arg(long)]
    to: SocketAddr,
    /// Microseconds each way
    #[arg(long)]
    each_way_us: u64,
}

/// What passed: bytes to the server and from it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// To the server.
    pub up: u64,
    /// From it.
    pub down: u64,
}

/// Passes bytes on until its parent is gone. It says its address first, and then, for each line
/// that it reads, how many bytes passed.
///
/// # Errors
/// Those of the network.
pub fn run(args: &Args) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    stdout().flush()?;
    let passed: Arc<[AtomicU64; 2]> = Arc::default();
    let (to, delay, counted) = (args.to, Duration::from_micros(args.each_way_us), passed.clone());
    thread::spawn(move || {
        for near in listener.incoming().flatten() {
            if let Err(error) = connect(near, to, delay, &counted) {
                eprintln!("a connection to the server: {error:#}");
            }
        }
    });
    for line in stdin().lines() {
        line?;
        println!("{} {}", passed[0].load(Ordering::Relaxed), passed[1].load(Ordering::Relaxed));
        stdout().flush()?;
    }
    Ok(())
}

fn connect(
    near: TcpStream,
    to: SocketAddr,
    delay: Duration,
    passed: &Arc<[AtomicU64; 2]>,
) -> Result<()> {
    let far = TcpStream::connect(to)?;
    for stream in [&near, &far] {
        stream.set_nodelay(true)?;
    }
    let (near_again, far_again) = (near.try_clone()?, far.try_clone()?);
    pass(near, far, delay, Arc::clone(passed), 0)?;
    pass(far_again, near_again, delay, Arc::clone(passed), 1)
}

/// Passes one direction on: a thread reads, another one writes when the time has come.
fn pass(
    mut from: TcpStream,
    to: TcpStream,
    delay: Duration,
    passed: Arc<[AtomicU64; 2]>,
    direction: usize,
) -> Result<()> {
    let (send, pieces) = channel();
    let thread = || thread::Builder::new().stack_size(STACK);
    thread().spawn(move || write(to, &pieces))?;
    thread().spawn(move || {
        let mut piece = vec![0; PIECE];
        while let Ok(came @ 1..) = from.read(&mut piece) {
            passed[direction].fetch_add(came as u64, Ordering::Relaxed);
            if send.send((Instant::now() + delay, piece[..came].to_vec())).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Read);
    })?;
    Ok(())
}

fn write(mut to: TcpStream, pieces: &Receiver<(Instant, Vec<u8>)>) {
    for (due, piece) in pieces {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// The process, for an experiment. It ends with it.
pub struct Proxy {
    child: Child,
    ask: ChildStdin,
    said: BufReader<ChildStdout>,
    /// Where clients connect to.
    pub address: SocketAddr,
}

impl Proxy {
    /// Starts one before a server.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(to: SocketAddr, each_way: Duration) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["share", "proxy", "--to", &to.to_string()]);
        command.args(["--each-way-us", &each_way.as_micros().to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let ask = child.stdin.take().context("no pipe")?;
        let mut said = BufReader::new(child.stdout.take().context("no pipe")?);
        let mut line = String::new();
        said.read_line(&mut line)?;
        let address = line.trim().parse().context("the line did not start")?;
        Ok(Self { child, ask, said, address })
    }

    /// What passed so far.
    ///
    /// # Errors
    /// It has ended.
    pub fn passed(&mut self) -> Result<Passed> {
        writeln!(self.ask)?;
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        let (up, down) = line.trim().split_once(' ').context("the line ended")?;
        Ok(Passed { up: up.parse()?, down: down.parse()? })
    }

    /// What it used of the processors.
    ///
    /// # Errors
    /// Those of the system.
    pub fn used(&self) -> Result<Used> {
        Used::of(self.child.id())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two bytes, one after the other, take one delay each way and not two.
    #[test]
    fn bytes_are_delayed_and_do_not_wait_for_each_other() -> Result<()> {
        let server = TcpListener::bind("127.0.0.1:0")?;
        let near = TcpListener::bind("127.0.0.1:0")?;
        let (to, delay) = (server.local_addr()?, Duration::from_millis(150));
        let mut client = TcpStream::connect(near.local_addr()?)?;
        let passed: Arc<[AtomicU64; 2]> = Arc::default();
        connect(near.accept()?.0, to, delay, &passed)?;
        let (mut served, _) = server.accept()?;
        let begin = Instant::now();
        client.write_all(b"a")?;
        thread::sleep(Duration::from_millis(50));
        client.write_all(b"b")?;
        let mut came = [0; 2];
        served.read_exact(&mut came)?;
        let took = begin.elapsed();
        assert_eq!(came, *b"ab");
        assert!(took >= delay + Duration::from_millis(50), "{took:?}");
        served.write_all(b"c")?;
        client.read_exact(&mut came[..1])?;
        assert!(begin.elapsed() >= 2 * delay, "both ways are delayed");
        assert_eq!([&passed[0], &passed[1]].map(|it| it.load(Ordering::Relaxed)), [2, 1]);
        client.shutdown(Shutdown::Both)?;
        assert_eq!(served.read(&mut came)?, 0, "the end passes too");
        Ok(())
    }
}
