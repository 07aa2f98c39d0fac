//! What the traced programs work on: generated, and the same on every machine.

use anyhow::{Context, Result, ensure};
use oblivio_testkit::SplitMix64;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// A file that a program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Text, tables, code and noise in turns, this many bytes.
    Mixed(u64),
    /// A C program, preprocessed, with this many functions.
    C(u64),
    /// Moves that a player of Go is asked for.
    Go,
    /// Frames of 1280 x 720, this many.
    Film(u64),
    /// A family of proteins, from which a profile is built.
    Profile,
    /// Proteins to search, this many.
    Proteins(u64),
    /// A network of this many nodes, through which something must flow at the least cost.
    Network(u64),
    /// What Perl comes with, three times over.
    Perl,
    /// A game of chess that is to be thought about.
    Chess,
}

impl Input {
    /// Makes the file `name` in the folder, if it is not there.
    ///
    /// # Errors
    /// Those of the file system, and of the program that builds a profile.
    pub fn make(self, folder: &Path, name: &str) -> Result<()> {
        let path = folder.join(name);
        if path.exists() {
            return Ok(());
        }
        let part = folder.join(format!("{name}.part"));
        let mut to = BufWriter::with_capacity(1 << 20, File::create(&part)?);
        let mut dice = SplitMix64::new(1);
        match self {
            Self::Mixed(bytes) => mixed(&mut to, &mut dice, bytes)?,
            Self::C(functions) => c_program(&mut to, &mut dice, functions)?,
            Self::Go => go(&mut to)?,
            Self::Film(frames) => film(&mut to, &mut dice, frames)?,
            Self::Profile => family(&mut to, &mut dice)?,
            Self::Proteins(count) => proteins(&mut to, &mut dice, count)?,
            Self::Network(nodes) => network(&mut to, &mut dice, nodes)?,
            Self::Perl => perl(&mut to)?,
            Self::Chess => to.write_all(b"uci\nsetoption name Hash value 64\ngo infinite\n")?,
        }
        to.flush()?;
        drop(to);
        if self == Self::Profile {
            build_profile(folder, &part)?;
        }
        std::fs::rename(part, path)?;
        Ok(())
    }
}

const CHUNK: u64 = 16 << 10;

fn mixed(to: &mut impl Write, dice: &mut SplitMix64, bytes: u64) -> Result<()> {
    let words: Vec<String> = (0..8192).map(|_| word(dice)).collect();
    let mut written = 0;
    while written < bytes {
        let mut chunk = Vec::new();
        let (kind, mut count) = (dice.below(8), dice.next_u64() >> 32);
        let step = 1 + dice.below(64);
        while (chunk.len() as u64) < CHUNK {
            match kind {
                0..2 => {
                    // Few words are often used, as in a language.
                    let rank = (dice.unit().powi(4) * words.len() as f64) as usize;
                    chunk.extend(words[rank].as_bytes());
                    chunk.push(if dice.chance(0.1) { b'\n' } else { b' ' });
                }
                2..4 => {
                    count += dice.below(step);
                    chunk.extend((count as u32).to_le_bytes());
                    chunk.extend((dice.below(4) as u32).to_le_bytes());
                }
                4..6 => {
                    // Instructions: an operation out of few, and operands that repeat.
                    let operation = (dice.unit().powi(3) * 48.0) as u8;
                    chunk.extend([0x48, 0x80 | operation, dice.below(16) as u8 * 8]);
                    chunk.extend((dice.below(1 << 10) as u16).to_le_bytes());
                }
                _ => chunk.extend(dice.next_u64().to_le_bytes()),
            }
        }
        chunk.truncate((bytes - written).min(CHUNK) as usize);
        to.write_all(&chunk)?;
        written += chunk.len() as u64;
    }
    Ok(())
}

fn word(dice: &mut SplitMix64) -> String {
    let letters = b"etaoinshrdlucmfwypvbgkjqxz";
    let letter = |dice: &mut SplitMix64| letters[(dice.unit().powi(2) * 26.0) as usize] as char;
    (0..2 + dice.below(8)).map(|_| letter(dice)).collect()
}

/// Functions that call those before them.
fn c_program(to: &mut impl Write, dice: &mut SplitMix64, functions: u64) -> Result<()> {
    writeln!(to, "struct node {{ struct node *next, *other; int key, count; long sums[8]; }};")?;
    writeln!(to, "extern int table[4096]; extern struct node *find(struct node *, int);")?;
    for number in 0..functions {
        writeln!(to, "int work{number}(struct node *at, int a, int b, int c) {{")?;
        writeln!(to, "  int d = a ^ b, e = {}, f = c;", dice.below(1000))?;
        for _ in 0..6 + dice.below(14) {
            statement(to, dice, number, 2)?;
        }
        writeln!(to, "  return {};\n}}", expression(dice, 3))?;
    }
    Ok(())
}

fn expression(dice: &mut SplitMix64, depth: u32) -> String {
    if depth == 0 || dice.chance(0.15) {
        return match dice.below(10) {
            0..6 => ["a", "b", "c", "d", "e", "f"][dice.below(6) as usize].into(),
            6 => dice.below(5000).to_string(),
            7 => format!("table[{} & 4095]", expression(dice, 0)),
            8 => "at->key".into(),
            _ => format!("(int)at->sums[{}]", dice.below(8)),
        };
    }
    let sign = ["+", "-", "*", "^", "&", "|", "<", "==", ">> 3 +"][dice.below(9) as usize];
    format!("({} {sign} {})", expression(dice, depth - 1), expression(dice, depth - 1))
}

fn statement(to: &mut impl Write, dice: &mut SplitMix64, number: u64, depth: u32) -> Result<()> {
    let name = ["a", "b", "c", "d", "e", "f"][dice.below(6) as usize];
    let value = expression(dice, 3);
    match if depth == 0 { dice.below(4) } else { dice.below(9) } {
        0 | 1 => writeln!(to, "  {name} = {value};")?,
        2 => writeln!(to, "  at->sums[{value} & 7] += {name}; at->count++;")?,
        3 if number > 0 => {
            let called = number - 1 - dice.below(number.min(50));
            writeln!(to, "  {name} += work{called}(at, {name}, {value}, {});", dice.below(99))?;
        }
        3 => writeln!(to, "  table[{value} & 4095] = {name};")?,
        4 => {
            writeln!(to, "  for (int i = 0; i < ({value} & 63); i++) {{ {name} += table[i];")?;
            statement(to, dice, number, depth - 1)?;
            writeln!(to, "  }}")?;
        }
        5 => {
            writeln!(to, "  switch ({value} & 7) {{")?;
            for case in 0..6 {
                writeln!(to, "  case {case}:")?;
                statement(to, dice, number, depth - 1)?;
                writeln!(to, "  break;")?;
            }
            writeln!(to, "  }}")?;
        }
        6 => {
            writeln!(to, "  while (at->next && at->key < {value}) {{ at = at->next; {name}++; }}")?;
        }
        _ => {
            writeln!(to, "  if ({value}) {{")?;
            statement(to, dice, number, depth - 1)?;
            writeln!(to, "  }} else {{")?;
            statement(to, dice, number, depth - 1)?;
            writeln!(to, "  }}")?;
        }
    }
    Ok(())
}

fn go(to: &mut impl Write) -> Result<()> {
    writeln!(to, "boardsize 19")?;
    for _ in 0..60 {
        writeln!(to, "genmove black\ngenmove white")?;
    }
    Ok(())
}

/// A textured ground that moves, and squares that move over it; some noise.
fn film(to: &mut impl Write, dice: &mut SplitMix64, frames: u64) -> Result<()> {
    const WIDE: usize = 1280;
    const HIGH: usize = 720;
    let ground: Vec<u8> = (0..WIDE * HIGH)
        .map(|at| {
            let (x, y) = ((at % WIDE) as f64, (at / WIDE) as f64);
            let waves = (x / 37.0).sin() * (y / 23.0).cos() * 40.0 + (x * y / 9000.0).sin() * 25.0;
            (110.0 + waves) as u8 + dice.below(12) as u8
        })
        .collect();
    let squares: Vec<[usize; 5]> =
        (0..12).map(|_| [1280, 720, 9, 7, 150].map(|below| dice.below(below) as usize)).collect();
    writeln!(to, "YUV4MPEG2 W{WIDE} H{HIGH} F25:1 Ip A1:1 C420")?;
    for time in 0..frames as usize {
        writeln!(to, "FRAME")?;
        let mut frame: Vec<u8> = (0..WIDE * HIGH)
            .map(|at| {
                let (x, y) = ((at + 3 * time) % WIDE, (at / WIDE + time) % HIGH);
                ground[y * WIDE + x] + dice.below(3) as u8
            })
            .collect();
        for &[x, y, right, down, shade] in &squares {
            for at in 0..96 * 96 {
                let (x, y) = (x + time * right + at % 96, y + time * down + at / 96);
                frame[y % HIGH * WIDE + x % WIDE] = (shade + (at % 7) * 5) as u8;
            }
        }
        to.write_all(&frame)?;
        let colour = |at: usize| 100 + ((at % 640 / 16 + at / 10240 + time) % 56) as u8;
        frame.clear();
        frame.extend((0..2 * (WIDE / 2) * (HIGH / 2)).map(colour));
        to.write_all(&frame)?;
    }
    Ok(())
}

const ACIDS: &[u8] = b"ACDEFGHIKLMNPQRSTVWY";

fn acid(dice: &mut SplitMix64) -> char {
    ACIDS[dice.below(20) as usize] as char
}

/// Relatives of one protein, aligned.
fn family(to: &mut impl Write, dice: &mut SplitMix64) -> Result<()> {
    let ancestor: Vec<char> = (0..300).map(|_| acid(dice)).collect();
    writeln!(to, "# STOCKHOLM 1.0\n")?;
    for number in 0..24 {
        let relative: String = ancestor
            .iter()
            .map(|&it| match dice.below(20) {
                0..6 => acid(dice),
                6 => '-',
                _ => it,
            })
            .collect();
        writeln!(to, "protein{number:02} {relative}")?;
    }
    writeln!(to, "//")?;
    Ok(())
}

/// Replaces the family by its profile, without the day on which it was built.
fn build_profile(folder: &Path, path: &Path) -> Result<()> {
    let built = folder.join("profile.built");
    let program = Command::new("hmm2build")
        .args(["-F".as_ref(), built.as_os_str(), path.as_os_str()])
        .output()
        .context("hmm2build (apt install hmmer2)")?;
    ensure!(program.status.success(), "hmm2build: {}", String::from_utf8_lossy(&program.stderr));
    let text = std::fs::read_to_string(&built)?;
    let kept = text.lines().filter(|line| !line.starts_with("DATE") && !line.starts_with("COM"));
    std::fs::write(path, kept.map(|line| format!("{line}\n")).collect::<String>())?;
    std::fs::remove_file(built)?;
    Ok(())
}

fn proteins(to: &mut impl Write, dice: &mut SplitMix64, count: u64) -> Result<()> {
    for number in 0..count {
        writeln!(to, ">q{number}")?;
        let long = 200 + dice.below(600);
        writeln!(to, "{}", (0..long).map(|_| acid(dice)).collect::<String>())?;
    }
    Ok(())
}

/// A few sources and sinks, random arcs, and a dear ring through which everything could flow.
fn network(to: &mut impl Write, dice: &mut SplitMix64, nodes: u64) -> Result<()> {
    let ends = nodes / 100;
    let arcs = nodes * 6;
    writeln!(to, "p min {nodes} {}", arcs + nodes)?;
    for end in 1..=ends {
        writeln!(to, "n {end} 10\nn {} -10", nodes + 1 - end)?;
    }
    for from in 1..=nodes {
        writeln!(to, "a {from} {} 0 1000000 10000", from % nodes + 1)?;
    }
    for _ in 0..arcs {
        let (from, next) = (dice.below(nodes), 1 + dice.below(nodes - 1));
        let (most, cost) = (1 + dice.below(20), 1 + dice.below(1000));
        writeln!(to, "a {} {} 0 {most} {cost}", from + 1, (from + next) % nodes + 1)?;
    }
    Ok(())
}

fn perl(to: &mut impl Write) -> Result<()> {
    let find = "print grep { -f } map { \"$_/perl5db.pl\" } @INC";
    let found = Command::new("perl").args(["-e", find]).output().context("perl")?;
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    // Two folders of @INC may be one.
    let end = found.find(".pl").context("perl5db.pl is missing (apt install perl-modules)")? + 3;
    let text = std::fs::read(&found[..end])?;
    for _ in 0..3 {
        to.write_all(&text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made is whole, and made once.
    #[test]
    fn inputs_are_the_same_every_time() {
        let made = |input: Input| {
            let folder = tempfile::tempdir().unwrap();
            input.make(folder.path(), "x").unwrap();
            let bytes = std::fs::read(folder.path().join("x")).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
            bytes
        };
        let inputs = [
            Input::Mixed(100_000),
            Input::C(5),
            Input::Go,
            Input::Film(2),
            Input::Proteins(3),
            Input::Network(200),
            Input::Chess,
        ];
        for input in inputs {
            assert_eq!(made(input), made(input), "{input:?}");
        }
        assert_eq!(made(Input::Mixed(100_000)).len(), 100_000);
        assert_eq!(made(Input::Film(2)).len(), 40 + 2 * (6 + 1280 * 720 * 3 / 2));
    }

    /// What flows in flows out, and every arc is between nodes.
    #[test]
    fn a_network_can_be_solved() {
        let mut bytes = Vec::new();
        network(&mut bytes, &mut SplitMix64::new(1), 500).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (mut flow, mut arcs) = (0, 0);
        for line in text.lines() {
            let numbers: Vec<i64> =
                line.split(' ').skip(1).filter_map(|it| it.parse().ok()).collect();
            match line.as_bytes()[0] {
                b'n' => flow += numbers[1],
                b'a' => {
                    arcs += 1;
                    assert!(numbers[0] != numbers[1]);
                    assert!(numbers[..2].iter().all(|node| (1..=500).contains(node)));
                }
                _ => assert_eq!(numbers, [500, 3500]),
            }
        }
        assert_eq!((flow, arcs), (0, 3500));
    }
}
