# `just check` is CI; the other recipes are long work with bounded defaults.

# Everything that CI runs.
check:
    .ci/run

# The second tier of tests: those that start servers, mount, kill processes or open a browser.
system *filter:
    .ci/system {{filter}}

# What it costs to try the project: README's two commands in a fresh clone, for docs/benchmarks.md.
first-contact commit="HEAD":
    packaging/first-contact {{commit}}

# The Debian package, in target/debian (needs cargo-deb; it is installed if it is missing).
deb:
    command -v cargo-deb >/dev/null || cargo install cargo-deb --locked
    cargo build --profile dist --all-features -p oblivio-cli
    packaging/stage target/dist/oblivio target/dist/packaging
    cargo deb -p oblivio-cli --profile dist --no-build

# The package in a fresh Debian: installed, read about, completed, mounted from fstab, removed (root).
try-deb package="":
    packaging/try.sh {{ if package == "" { "target/debian/oblivio_*.deb" } else { quote(package) } }}

# The Python package: its wheel in python/dist, and its tests.
python:
    python3 -m venv python/venv
    python/venv/bin/pip install -q 'maturin>=1.7,<2' pytest mypy
    python/venv/bin/maturin build --profile dist --manifest-path python/Cargo.toml --out python/dist
    python/venv/bin/pip install -q --force-reinstall --no-deps python/dist/oblivio-*.whl
    python/venv/bin/python -m pytest -q python/tests
    python/venv/bin/python -m mypy.stubtest oblivio

# The volumes of tests/fixtures, made anew in an empty folder (but format-1, which no version makes now).
fixtures dir:
    OBLIVIO_WRITE_FIXTURES={{dir}} cargo test -p oblivio-volume --test it fixture -- --ignored

# Every parser under the fuzzer, this many seconds each (needs cargo-fuzz).
fuzz seconds="60":
    fuzz/run {{seconds}}

# Every byte of a tree changed, every object dropped, swapped, truncated, rolled back.
damage:
    OBLIVIO_SCALE=100 cargo test --release -p oblivio-volume --test it -- --nocapture damage::damage damage::a_damaged_log

# Every home of a volume with random flips, and with each object lost, cut or replaced; then one in a hundred buckets of
# a tree lost, by their level.
damage-homes scale="10" seed="4949":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture damage::trial damage::levels

# Damaged volumes of files that are repaired, through crashes of the repair: 18 times the scale. A seed that failed is
# the first again: `just repairs 0.01 n`.
repairs scale="100" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture damage::repairs damage::around

# A store that hides, swaps, cuts, replays and forks what it holds, under several computers, on each
# engine. A schedule that failed is the first again with its seed: `just hostile 0.01 n`.
hostile scale="1000" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture hostile::

# What one device at its worst costs another one, in times, and memory.
share-worst:
    cargo test --release -p oblivio-share --lib -- --ignored --nocapture long_one_device

# Schedules of a share's server with a hostile device and a disk that fails: 100,000 without connections, which
# takes an hour, and 5,000 with them.
share-campaign scale="1667" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test -p oblivio-share -- campaign::

# One bit of each home of a volume, then each command: nothing is destroyed. 1,000 places of each home at
# scale 50 take 20 minutes. The online store, which is slow, has 600.
opening scale="50" seed="1000":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test -p oblivio-cli --features online --test it -- --include-ignored opening::

# Schedules of sessions of several computers on one online store. One again: `just sessions 0.001 n`.
sessions scale="1250" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --lib -- --nocapture session::simulation

# Processes that take a volume over from each other, killed, stopped or at work: six times the scale on
# each of a server that speaks like S3, Apache and OpenSSH, where they are installed.
takeovers scale="100" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio --features sftp --test it -- --ignored --nocapture takeovers

# A mounted volume in a bucket while the network refuses, stalls, cuts and forbids: each until twice the
# scale of calls have failed.
outages scale="10":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-cli --features online --test it -- --ignored --nocapture outages

# Random workloads with a crash at every storage operation, with and without a pace.
crash scale="100" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture crash_campaign::crashes

# Seeds of the crash campaign, each played twice: the same disks, byte for byte.
crash-twice scale="100" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture crash_campaign::a_seed_replays

# Random workloads on every engine, and on the tree in every configuration.
model scale="150":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture model:: engines::

# The sequential engine's placement against a model of every block, two million operations times the
# scale; then reads, crashes and pairs of workloads whose traces must be equal.
sequential-model scale="100":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture sequential_model:: sequential::

# Volumes on the sequential engine: crash states, and pairs of workloads with traces that must be equal.
sequential-volume scale="200" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture sequential:: fs::crashes --skip sequential::damage --skip sequential::game

# The game of lanes: pairs of worlds of which one uses its lanes, eight times the scale, and nobody may tell which. Then
# 20 runs of up to 30 honest pairs, and 45 planted leaks. A pair that failed is the first again: `just lane-game 0.1 n`.
lane-game scale="1250" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --nocapture sequential::game

# A classifier of lanes, which learns from 200 pairs times the scale, by halves, and judges the other half.
lane-classifier scale="20" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --test it -- --ignored --nocapture sequential::game::classifier

# A folder that two instances of Syncthing copy: four times the scale of rounds, by turns and apart. And a crash at
# every operation of such a volume.
syncthing scale="5" seed="20":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture syncthing
    OBLIVIO_SCALE=100 cargo test --release -p oblivio-volume --test it -- --nocapture extents::crashes

# Every byte of a sequential disk with 4 MiB of data changed and every extent replayed; then every
# byte of four small volumes, log, states and header too, and every region of 400 replayed.
sequential-damage:
    OBLIVIO_SCALE=100 cargo test --release -p oblivio-engine --test it -- --nocapture sequential_damage::
    OBLIVIO_SCALE=100 cargo test --release -p oblivio-volume --test it -- --nocapture sequential::damage

# Pairs of workloads with equal numbers and sizes of operations, which must look the same with
# padding: on blocks, disks, files, over NBD, and through a real mount. A failure names its seed, for
# `OBLIVIO_SEED=n just padded-pairs 0.01`.
padded-pairs scale="100":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-volume --test it -- --nocapture pairs_of_workloads
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-serve --lib -- --nocapture --include-ignored pairs_of

# The stored bytes of a sequential volume of 384 MiB of zeros (three times its size), as files for a
# randomness battery.
sequential-stored dir scale="1":
    OBLIVIO_STORED={{dir}} OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-volume --test it sequential::stored -- --ignored --nocapture

# The stash while a tree of 2^14 blocks shrinks, 20 lives with each of five workloads.
shrink scale="1" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-engine --test it -- --nocapture --ignored shrink::

# Whether the log of the top of trees up to 2^16 blocks ever needs more entries than are due.
top-log:
    cargo test --release -p oblivio-engine --test it top_log::long -- --nocapture --ignored

# Honest volumes under the audit, two runs of 50,000 accesses, both times the scale: none may raise an
# alarm. Then all leaks that are planted for it, with the command.
audit-honest scale="1" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-cli --lib honest_runs -- --ignored --nocapture
    cargo test --release -p oblivio-cli --test it -- --ignored its_own_test_passes_too

# What an online store sees: honest runs that may raise no alarm, sessions that are cut off at any
# request, and 17 planted leaks (the eighteenth is in `cargo test --test it online::an_agent`).
audit-online scale="20" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-volume --lib -- --nocapture windows::audited

# A tree in windows: every bucket where the counter says, over 1,000 windows times the scale with growth
# and shrinking (100,000 reach L = 20); then what windows leave in the stash, 20,000 accesses times the
# scale of each of five workloads.
windows scale="20":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture window_runs::

# Seeded workloads on a volume for online stores, with a crash, a lost computer and a lost answer at
# every call to the store; and pairs of them, which look the same before and after.
windows-crashes scale="15":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-volume --test it -- --nocapture windows::workloads

# A shared volume: runs of the engine that may raise no alarm, and the judge's own seeds, each with
# all planted leaks and 15 honest cases: as many as the scale.
pyramid-audit scale="20":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture --include-ignored --test-threads 1 pyramid_sim::honest_runs pyramid_sim::long_the_judge pyramid_sim::what_is_asked

# Simulated seeds of a shared volume under all faults, five times the scale: linearizable, and oblivious
# at the server. One seed again: `just pyramid-sim 0.2 n`.
pyramid-sim scale="200" seed="0":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-engine --test it -- --nocapture pyramid_sim::every_seed pyramid_sim::a_seed_replays pyramid_sim::planted_bugs

# Bits of a shared volume's slots changed right before they are read, each of which must be found: 100
# times the scale under a scribe in one thread, then ten times the scale under whole clients.
pyramid-flips scale="100":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture pyramid_share::flips
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-client --test it -- --nocapture --include-ignored flips::

# A crash at each record of 500 asks to a shared volume (at one of 28 with the scale 1): simulated, then
# of a server's folder, whose unsynced bytes are lost, torn and reordered.
pyramid-crashes scale="100":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture pyramid_sim::a_crash_at_any_record
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-client --test it -- --nocapture --include-ignored a_crash_at_any_record

# The pyramid's bounds over 5,000 asks times the scale of each of four workloads: with 2^16 blocks of 64
# bytes from 100 on, with 2^12 below.
pyramid-bounds scale="200":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-engine --test it -- --nocapture pyramid_bounds::

# The command killed at random moments, twelve times the scale.
kills scale="20" seed="2026":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture killed_commands

# A mount killed under load, four times the scale; then its store fails, stalls and is full.
mount-kills scale="50":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture mount::kills
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-serve --lib outage -- --nocapture

# The server of a disk killed under an ext4, twice the scale (needs root and loop devices).
nbd-kills scale="50":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture nbd::ext4

# The server of shared volumes killed under load, four times the scale.
share-kills scale="5" seed="1":
    OBLIVIO_SCALE={{scale}} OBLIVIO_SEED={{seed}} cargo test -p oblivio-share --lib -- --ignored --nocapture kills_lose_nothing

# A shared volume whose tables are behind a line of 20 milliseconds, beside one with tables in the
# server's folder, by turns: five rounds, times the scale.
share-tables scale="1":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-client --test it -- --ignored --nocapture speed_beside

# Shared volumes, mounted twice, whose server and mounts are killed under load, twice the scale.
share-mount-kills scale="10":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture shared_mounts::kills

# Four mounts of a shared volume race for a few names, 200 operations times the scale; one of them is
# killed.
share-races scale="50":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture shared_mounts::races

# The suite of github.com/pjd/pjdfstest, built in this folder, over two mounts of a shared volume
# (needs root and Perl's `prove`).
share-pjdfstest suite:
    OBLIVIO_PJDFSTEST={{suite}} cargo test --release -p oblivio-cli --test it -- --ignored --nocapture pjdfstest

# Clients of a disk's server, with and without TLS, beside 500 idle connections: four, times the scale.
nbd-strangers scale="12":
    OBLIVIO_SCALE={{scale}} cargo test --release -p oblivio-serve --lib strangers -- --nocapture --test-threads 1

# One table of docs/benchmarks.md: engine, profile, pyramid, growth, stash, integrity, figure7, files, sweep,
# breathe, mounted, latency.
# Two of docs/sequential.md: `just lab sequential cost`, speed.
# Those of docs/sequential-disk.md: disk, own-code, ageing, table1, figure7, seeks.
# One of docs/cloud-paper.md: `just lab cloud figure4`, table1, figure5, figure6, figure7, figure8,
# total.
# One of docs/privatefs-paper.md: `just lab privatefs-paper figure3`, figure6 to figure11, ratio, trips;
# beside, which needs the command as well.
# Of docs/processor.md: `just lab processor table2` and check-tracer; after `just trace`, figure5 and figure6;
# figure8 and figure9 need `just trace all --line 128 --out target/traces128` as well.
# One of docs/share-benchmarks.md, with the command beside it (`cargo build --profile dist --all-features -p oblivio-cli`):
# `just lab share speed`, memory, files. `--keep DIR` keeps the volume, which takes long to fill.
lab experiment *args:
    cargo run --profile dist -p oblivio-lab --features rivals -- {{experiment}} --write {{args}}

# The circuit of hardware/: `just hardware cosim` (many requests, beside its model; hours), tamper, timing and
# picture write docs/hardware.md; lint, prove (some minutes) and areas, clock with a block's name do not.
hardware part="lint" *args:
    #!/usr/bin/env bash
    set -euo pipefail
    case {{part}} in
      lint) hardware/lint {{args}} ;;
      prove) hardware/proof/run {{args}} ;;
      areas) hardware/synthesis/run {{ if args == "" { "oram" } else { args } }} ;;
      clock) hardware/synthesis/clock {{ if args == "" { "pmmac" } else { args } }} ;;
      *) cargo run --profile dist -p oblivio-lab -- hardware {{part}} --write {{args}} ;;
    esac

# The memory that a program asks for, in target/traces, or of all ten for docs/processor.md (needs
# qemu-user and the programs; what is missing is named). `just lab processor check-tracer` compares
# the tracer with cachegrind.
trace program="all" *args:
    cargo build --profile dist -p oblivio-lab
    cargo build --profile dist -p oblivio-tracer --lib --examples
    target/dist/oblivio-lab processor trace {{program}} --write {{args}}

# All figures of docs/privatefs-paper.md: Figures 3 and 6 to 11 of the PrivateFS paper. Then real mounts,
# and UtahFS, if its two programs are in the folder given (`just figures-pyramid DIR`).
figures-pyramid utahfs="":
    cargo build --profile dist -p oblivio-lab
    cargo build --profile dist --all-features -p oblivio-cli
    for part in figure3 figure6 figure7 figure8 figure9 figure10 figure11 ratio trips; do \
        target/dist/oblivio-lab privatefs-paper $part --write || exit 1; \
    done
    target/dist/oblivio-lab privatefs-paper beside {{ if utahfs == "" { "" } else { "--utahfs " + quote(utahfs) } }} --write

# Waiting times while a volume grows to 4 GiB and is emptied again, this many times. The folder must
# not stall: one in memory, with room for 12 GiB. All memory is found before.
breathe times="3" dir="/dev/shm" hold="64":
    cargo build --profile dist -p oblivio-lab --features rivals
    for run in $(seq {{times}}); do \
        target/dist/oblivio-lab breathe --dir {{dir}} --hold-memory {{hold}} || exit 1; \
    done
