//! The programs that are traced, one for each of the paper's.

use super::inputs::Input;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where a program comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// A file of a Debian package.
    Installed(&'static str),
    /// The compiler proper of Debian's gcc.
    Compiler,
    /// Our own C, compiled with these options.
    Compiled { source: &'static str, options: &'static [&'static str] },
    /// An example of the tracer's crate.
    Ours,
}

/// A program, and what it is to do.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// As it is called here.
    pub name: &'static str,
    /// The benchmark of SPEC06 that it stands for.
    pub paper: &'static str,
    /// The Debian packages that it needs, split at spaces; none for our own.
    pub package: &'static str,
    /// Where it is.
    pub origin: Origin,
    /// Other files that must be there.
    pub needs: &'static [&'static str],
    /// Its arguments, split at spaces. They name inputs.
    pub arguments: &'static str,
    /// Files that it reads.
    pub inputs: &'static [(&'static str, Input)],
    /// The input that is typed into it. The line stays open until the trace ends.
    pub typed: Option<&'static str>,
    /// Variables of its environment, besides those that all have.
    pub environment: &'static [(&'static str, &'static str)],
    /// Instructions in which it reads its input, before the caches begin to be warmed up.
    pub reading: u64,
}

const NONE: Program = Program {
    name: "",
    paper: "",
    package: "",
    origin: Origin::Ours,
    needs: &[],
    arguments: "",
    inputs: &[],
    typed: None,
    environment: &[],
    reading: 0,
};

/// Gates on every bit of a register in an even superposition.
const QUANTUM: &str = r#"
#include <quantum.h>
#include <stdlib.h>

int main(int count, char **arguments) {
    int width = atoi(arguments[1]), rounds = atoi(arguments[2]);
    quantum_reg reg = quantum_new_qureg(0, width);
    for (int bit = 0; bit < width; bit++) quantum_hadamard(bit, &reg);
    for (int round = 0; round < rounds; round++)
        for (int bit = 0; bit < width; bit++) {
            quantum_cnot(bit, (bit + 1) % width, &reg);
            quantum_toffoli(bit, (bit + 3) % width, (bit + 7) % width, &reg);
            quantum_sigma_x((bit + 5) % width, &reg);
            quantum_cond_phase_kick(bit, (bit + 2) % width, 0.1, &reg);
        }
    quantum_delete_qureg(&reg);
    return 0;
}
"#;

/// All of them.
pub const ALL: [Program; 10] = [
    Program {
        name: "bzip2",
        paper: "bzip2",
        package: "bzip2",
        origin: Origin::Installed("/usr/bin/bzip2"),
        arguments: "-9 -c mixed",
        inputs: &[("mixed", Input::Mixed(32 << 20))],
        ..NONE
    },
    Program {
        name: "cc1",
        paper: "gcc",
        package: "cpp-12",
        origin: Origin::Compiler,
        arguments: "-quiet -O2 program.i -o /dev/null",
        inputs: &[("program.i", Input::C(1200))],
        ..NONE
    },
    Program {
        name: "gnugo",
        paper: "gobmk",
        package: "gnugo",
        origin: Origin::Installed("/usr/games/gnugo"),
        arguments: "--mode gtp --seed 1 --level 10",
        inputs: &[("moves", Input::Go)],
        typed: Some("moves"),
        ..NONE
    },
    Program {
        name: "x264",
        paper: "h264ref",
        package: "x264",
        origin: Origin::Installed("/usr/bin/x264"),
        arguments: "--no-asm --threads 1 --lookahead-threads 1 --sync-lookahead 0 --quiet \
                    --muxer raw -o /dev/null film.y4m",
        inputs: &[("film.y4m", Input::Film(24))],
        ..NONE
    },
    Program {
        name: "hmm2search",
        paper: "hmmer",
        package: "hmmer2",
        origin: Origin::Installed("/usr/bin/hmm2search"),
        arguments: "--cpu 0 profile.hmm proteins.fasta",
        inputs: &[("profile.hmm", Input::Profile), ("proteins.fasta", Input::Proteins(20_000))],
        ..NONE
    },
    Program {
        name: "quantum",
        paper: "libquantum",
        package: "libquantum-dev",
        // The library asks for OpenMP, which starts no thread if it is to use one only.
        origin: Origin::Compiled { source: QUANTUM, options: &["-lquantum", "-fopenmp"] },
        needs: &["/usr/include/quantum.h"],
        arguments: "20 100",
        ..NONE
    },
    Program {
        name: "dimacs-solver",
        paper: "mcf",
        package: "liblemon-utils",
        origin: Origin::Installed("/usr/bin/dimacs-solver"),
        arguments: "-q network.min /dev/null",
        inputs: &[("network.min", Input::Network(300_000))],
        reading: 8_000_000_000,
        ..NONE
    },
    Program {
        name: "perltidy",
        paper: "perlbench",
        package: "perl-base perltidy",
        origin: Origin::Installed("/usr/bin/perl"),
        needs: &["/usr/bin/perltidy"],
        arguments: "/usr/bin/perltidy -npro -st -nst -o /dev/null source.pl",
        inputs: &[("source.pl", Input::Perl)],
        ..NONE
    },
    Program {
        name: "toga2",
        paper: "sjeng",
        package: "toga2",
        origin: Origin::Installed("/usr/games/toga2"),
        inputs: &[("game", Input::Chess)],
        typed: Some("game"),
        ..NONE
    },
    Program { name: "astar", paper: "astar", arguments: "1400 100", ..NONE },
];

/// The same programs with less to do, so that a second simulator can run them to their end.
pub const SHORT: [Program; 3] = [
    Program {
        arguments: "-9 -c mixed-short",
        inputs: &[("mixed-short", Input::Mixed(3 << 20))],
        ..ALL[0]
    },
    Program { arguments: "1400 6", ..ALL[9] },
    Program {
        arguments: "--cpu 0 profile.hmm proteins-short.fasta",
        inputs: &[("profile.hmm", Input::Profile), ("proteins-short.fasta", Input::Proteins(500))],
        // All memory is the heap's, which lies alike in both. Each simulator has other places for
        // large arrays, and two of them that fall into the same sets cost 44 % more misses in L1.
        environment: &[("MALLOC_MMAP_MAX_", "0")],
        ..ALL[4]
    },
];

/// A program that is ready to run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The file.
    pub path: PathBuf,
    /// Package and version.
    pub package: String,
}

impl Program {
    /// Makes its inputs and finds it; compiles it where it must be.
    ///
    /// # Errors
    /// It is missing: the error names the package. Its inputs cannot be made.
    pub fn prepare(&self, folder: &Path, examples: &Path) -> Result<Ready> {
        let advice = match self.origin {
            Origin::Ours => "cargo build --profile dist -p oblivio-tracer --lib --examples".into(),
            _ => format!("apt install {}", self.package),
        };
        let there = |path: &Path| {
            ensure!(path.is_file(), "{} is missing ({advice})", path.display());
            Ok(())
        };
        self.needs.iter().try_for_each(|path| there(path.as_ref()))?;
        let path = match self.origin {
            Origin::Installed(path) => path.into(),
            Origin::Compiler => {
                let found = Command::new("gcc-12").arg("-print-prog-name=cc1").output();
                let found = found.context("gcc-12 is missing (apt install gcc-12)")?;
                String::from_utf8_lossy(&found.stdout).trim().into()
            }
            Origin::Compiled { source, options } => self.compile(folder, source, options)?,
            Origin::Ours => examples.join(self.name),
        };
        there(&path)?;
        for (name, input) in self.inputs {
            input.make(folder, name).with_context(|| format!("the input {name}"))?;
        }
        Ok(Ready { path, package: self.versions() })
    }

    fn compile(&self, folder: &Path, source: &str, options: &[&str]) -> Result<PathBuf> {
        let (text, binary) = (folder.join(format!("{}.c", self.name)), folder.join(self.name));
        std::fs::write(&text, source)?;
        let made = Command::new("cc")
            .args(["-O2".as_ref(), "-o".as_ref(), binary.as_os_str(), text.as_os_str()])
            .args(options)
            .output()
            .context("cc is missing (apt install gcc)")?;
        ensure!(made.status.success(), "cc: {}", String::from_utf8_lossy(&made.stderr));
        Ok(binary)
    }

    /// The packages with their versions, as Debian knows them.
    fn versions(&self) -> String {
        if self.package.is_empty() {
            return format!("oblivio-tracer {}", env!("CARGO_PKG_VERSION"));
        }
        let version = |package: &str| {
            let asked =
                Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]).output();
            let asked = asked.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
            format!("{package} {}", asked.unwrap_or_else(|_| "of unknown version".into()))
        };
        self.package.split(' ').map(version).collect::<Vec<_>>().join(", ")
    }
}
