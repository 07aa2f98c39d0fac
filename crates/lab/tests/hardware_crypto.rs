//! The ciphers, the queue and the memory of `hardware/rtl` give what AES (FIPS 197), SHA3
//! (FIPS 202) and plain Rust give, after the cycles that their headers promise, in both simulators.
//!
//! A simulator that is not installed skips by name.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use aes::Aes128;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use oblivio_testkit::Dice;
use sha3::{Digest as _, Sha3_224};

/// Vectors for the bench and the result that each must give, without the pipeline's cycle numbers.
#[derive(Default)]
struct Script {
    vectors: String,
    expected: Vec<String>,
    /// What leaves the pipeline, which answers on its own.
    pipeline: Vec<String>,
}

/// A number as the simulators read and print it: the last byte first.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().rev().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string takes it");
        text
    })
}

fn bytes<const N: usize>(dice: &mut Dice) -> [u8; N] {
    std::array::from_fn(|_| dice.below(256) as u8)
}

fn encrypted(key: &[u8; 16], block: &[u8; 16]) -> [u8; 16] {
    let mut block = (*block).into();
    Aes128::new(key.into()).encrypt_block(&mut block);
    block.into()
}

impl Script {
    fn line(&mut self, line: &str) {
        self.vectors.push_str(line);
        self.vectors.push('\n');
    }

    fn key(&mut self, key: &[u8; 16]) {
        // Nothing is in flight when the key changes.
        self.line("w 10");
        self.line(&format!("k {}", hex(key)));
        self.expected.push("k 0000000b".into());
    }

    fn pipelined(&mut self, key: &[u8; 16], block: &[u8; 16]) {
        self.line(&format!("a {}", hex(block)));
        self.pipeline.push(hex(&encrypted(key, block)));
    }

    /// What works on something else is started anew by the next line.
    fn interrupted(&mut self, dice: &mut Dice) {
        if dice.percent(50) {
            self.line(&format!("g {:x}", dice.below(15)));
        }
    }

    fn iterative(&mut self, key: &[u8; 16], block: &[u8; 16]) {
        self.line(&format!("i {} {}", hex(key), hex(block)));
        self.expected.push(format!("i 0000000b {}", hex(&encrypted(key, block))));
    }

    fn prf(&mut self, key: &[u8; 16], address: u64, count: u64) {
        self.line(&format!("p {} {address:016x} {count:016x}", hex(key)));
        let block: [u8; 16] = [address.to_le_bytes(), count.to_le_bytes()]
            .concat()
            .try_into()
            .expect("8 + 8 bytes are 16");
        self.expected.push(format!("p 0000000b {}", hex(&encrypted(key, &block)[..8])));
    }

    /// SHA3-224 of a short message by the bare permutation: padding is done here. The state after
    /// it begins with the digest; the rest is not compared.
    fn permuted(&mut self, message: &[u8]) {
        assert!(message.len() < 144, "one permutation takes at most 143 bytes");
        let mut state = [0; 200];
        state[..message.len()].copy_from_slice(message);
        state[message.len()] ^= 6;
        state[143] ^= 0x80;
        self.line(&format!("f {}", hex(&state)));
        self.expected.push(format!("f 0000000c {}", hex(&Sha3_224::digest(message))));
    }

    fn mac(&mut self, key: &[u8; 16], count: u64, address: u64, data: &[u8; 64]) {
        self.line(&format!("m {} {count:016x} {address:016x} {}", hex(key), hex(data)));
        let digest = Sha3_224::new()
            .chain_update(key)
            .chain_update(count.to_le_bytes())
            .chain_update(address.to_le_bytes())
            .chain_update(data)
            .finalize();
        self.expected.push(format!("m 0000000d {}", hex(&digest[..16])));
    }

    /// Pushes and pops by chance, also into a full queue and from an empty one.
    fn queue(&mut self, dice: &mut Dice, cycles: usize) {
        let mut words = VecDeque::new();
        for cycle in 0..cycles {
            // Long stretches of filling and of draining, so that both ends are met.
            let filling = (cycle / 24) % 2 == 0;
            let (push, pop) = (dice.percent(if filling { 75 } else { 25 }), dice.percent(50));
            let word = dice.below(1 << 32) as u32;
            self.line(&format!("q {} {} {word:08x}", u8::from(push), u8::from(pop)));
            let (used, oldest) = (words.len(), words.front().copied().unwrap_or(0));
            let (full, empty) = (u8::from(used == 8), u8::from(used == 0));
            self.expected.push(format!("q {full} {empty} {used:x} {oldest:08x}"));
            if pop {
                words.pop_front();
            }
            // What is full before the edge takes nothing, even if a word leaves at it.
            if push && used < 8 {
                words.push_back(word);
            }
        }
    }

    /// Writes and reads by chance, one in sixteen of the same address.
    fn memory(&mut self, dice: &mut Dice, cycles: usize) {
        let mut words = [0_u32; 16];
        for cycle in 0..cycles {
            // First every word is written; until then what is read is not defined.
            let filling = cycle < 16;
            let write_at = if filling { cycle } else { dice.index(16) };
            let read_at = if filling { cycle.saturating_sub(1) } else { dice.index(16) };
            let (write, word) = (filling || dice.percent(50), dice.below(1 << 32) as u32);
            self.line(&format!("r {} {write_at:x} {word:08x} {read_at:x}", u8::from(write)));
            let read = if cycle == 0 { "?".into() } else { format!("{:08x}", words[read_at]) };
            self.expected.push(format!("r {read}"));
            if write {
                words[write_at] = word;
            }
        }
    }
}

/// FIPS 197's block, SHA3-224 of nothing, and `rounds` of random inputs of every kind.
fn script(seed: u64, rounds: usize) -> Script {
    let mut script = Script::default();
    let mut dice = Dice::new(seed);
    // FIPS 197, C.1.
    let key = std::array::from_fn(|i| i as u8);
    let block = std::array::from_fn(|i| 0x11 * i as u8);
    script.key(&key);
    script.pipelined(&key, &block);
    script.iterative(&key, &block);
    let published = "5ac5b47080b7cdd830047b6ad8e0c469";
    assert_eq!(script.pipeline, [published], "the crate itself is off");
    script.permuted(b"");
    let published = "f 0000000c c76b5a5b3f8e071b9a7f59d4abb10e4f45156e3bb7db673642034e6b";
    assert_eq!(script.expected.last().map(String::as_str), Some(published), "so is this one");
    for _ in 0..rounds {
        let key = bytes(&mut dice);
        script.key(&key);
        for _ in 0..8 {
            script.pipelined(&key, &bytes(&mut dice));
            if dice.percent(25) {
                script.line("w 1");
            }
        }
        let (address, count) = (dice.next_u64(), dice.next_u64());
        script.interrupted(&mut dice);
        script.iterative(&bytes(&mut dice), &bytes(&mut dice));
        script.interrupted(&mut dice);
        script.prf(&bytes(&mut dice), address, count);
        script.interrupted(&mut dice);
        script.mac(&bytes(&mut dice), count, address, &bytes(&mut dice));
        script.interrupted(&mut dice);
        let length = dice.index(144);
        script.permuted(&bytes::<144>(&mut dice)[..length]);
    }
    script.queue(&mut dice, 8 * rounds);
    script.memory(&mut dice, 8 * rounds + 16);
    script
}

fn hardware() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware")
}

/// Whether a program is there; says so if it is not.
fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("-V").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (told, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {told}{errors}");
}

/// Runs a bench that is built and compares all that it says.
fn compare(folder: &Path, bench: &mut Command, script: &Script) {
    let (vectors, results) = (folder.join("vectors"), folder.join("results"));
    std::fs::write(&vectors, &script.vectors).expect("the folder is ours");
    run(bench
        .arg(format!("+vectors={}", vectors.display()))
        .arg(format!("+results={}", results.display())));
    let results = std::fs::read_to_string(results).expect("the bench writes it");
    let (pipeline, others): (Vec<&str>, Vec<&str>) =
        results.lines().partition(|line| line.starts_with('a'));

    assert_eq!(pipeline.len(), script.pipeline.len(), "blocks out of the pipeline");
    for (line, expected) in pipeline.iter().zip(&script.pipeline) {
        let words: Vec<&str> = line.split(' ').collect();
        let cycle = |at: usize| u32::from_str_radix(words[at], 16).expect("a cycle in hex");
        assert_eq!(cycle(2) - cycle(1), 11, "cycles of the pipeline: {line}");
        assert_eq!(words[3], expected, "a block of the pipeline");
    }

    assert_eq!(others.len(), script.expected.len(), "results of all but the pipeline");
    for (number, (line, expected)) in others.iter().zip(&script.expected).enumerate() {
        match expected.split_once(' ') {
            Some(("r", "?")) => {}
            // A digest is the low end of the state.
            Some(("f", digest)) => assert!(
                line[..10] == expected[..10] && line.ends_with(&digest[9..]),
                "result {number} is {line}, not {expected}"
            ),
            _ => assert_eq!(line, expected, "result {number}"),
        }
    }
}

#[test]
fn icarus_agrees() {
    if !installed("iverilog") {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    let bench = folder.path().join("bench.vvp");
    run(Command::new("iverilog")
        .args(["-g2012", "-Wall", "-y"])
        .arg(hardware().join("rtl"))
        .args(["-Y", ".sv", "-o"])
        .arg(&bench)
        .arg(hardware().join("bench/crypto_bench.sv")));
    // It works on single bits of 1600: slow.
    compare(folder.path(), Command::new("vvp").arg(&bench), &script(1, 40));
}

#[test]
fn verilator_agrees() {
    if !["verilator", "make", "g++"].into_iter().all(installed) {
        return;
    }
    let folder = tempfile::tempdir().expect("a scratch folder");
    run(Command::new("verilator")
        .args(["--binary", "--timing", "-O1", "-Wall", "-o", "bench", "--Mdir"])
        .arg(folder.path())
        .arg("-y")
        .arg(hardware().join("rtl"))
        .arg(hardware().join("bench/crypto_bench.sv")));
    compare(folder.path(), &mut Command::new(folder.path().join("bench")), &script(2, 500));
}
