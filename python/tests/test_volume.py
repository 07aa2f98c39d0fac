"""Volumes: what is written is read again, and others do not get in."""

import threading
import time
import traceback

import oblivio
import pytest
from conftest import CHEAP, SECRET


def test_what_is_written_is_there_the_next_time(room):
    with room.create() as volume:
        volume.mkdir("/letters/old", parents=True)
        volume.write("/letters/alice.txt", b"See you on Sunday.")
        assert not volume.closed
    assert volume.closed
    with room.open() as volume:
        assert volume.read("/letters/alice.txt") == b"See you on Sunday."
        entries = volume.list("/letters")
        assert [(entry.name, entry.kind) for entry in entries] == [
            ("alice.txt", "file"),
            ("old", "directory"),
        ]
        assert entries[1].is_dir and entries[0].path == "/letters/alice.txt"
        volume.rename("/letters/alice.txt", "/a")
        volume.remove("/letters/old")
        volume.remove("/letters")
        volume.sync()
        assert [entry.name for entry in volume.list()] == ["a"]
        assert volume.exists("/a") and not volume.exists("/letters")


def test_whole_files_and_trees(room):
    with room.create() as volume:
        volume.append("/log", b"one ")
        volume.append("/log", b"two")
        assert volume.copy("/log", "/copy") == 7
        volume.append("/log", b" three")
        assert (volume.read("/copy"), volume.read("/log")) == (b"one two", b"one two three")
        with pytest.raises(oblivio.Invalid):
            volume.copy("/log", "/log")
        for path in ("/tree/a/deep", "/tree/b"):
            volume.mkdir(path, parents=True)
            volume.write(path + "/file", b"x")
        seen = list(volume.walk("/tree"))
        assert seen == [
            ("/tree", ["a", "b"], []),
            ("/tree/a", ["deep"], []),
            ("/tree/a/deep", [], ["file"]),
            ("/tree/b", [], ["file"]),
        ]
        entered = []
        for path, directories, _ in volume.walk():
            entered.append(path)
            if "a" in directories:
                directories.remove("a")
        assert entered == ["/", "/tree", "/tree/b"]
        with pytest.raises(oblivio.NotFound):
            next(volume.walk("/no"))
        with pytest.raises(NotADirectoryError):
            volume.rmtree("/log")
        volume.rmtree("/tree")
        assert [entry.name for entry in volume.list()] == ["copy", "log"]
        assert volume.idle() is None


def test_stat_and_usage(volume):
    before = time.time_ns()
    volume.write("/f", bytes(5000))
    stat = volume.stat("/f")
    assert (stat.size, stat.kind, stat.is_dir) == (5000, "file", False)
    assert abs(stat.modified_ns - before) < 60e9 and abs(stat.modified - time.time()) < 60
    assert stat.mode == 0o644 and volume.stat("/").is_dir
    usage = volume.usage()
    assert usage.used == 5000 and usage.capacity >= 64 << 20


def test_data_and_paths_of_other_types(volume):
    from pathlib import PurePosixPath

    volume.write(PurePosixPath("/p"), bytearray(b"abc"))
    volume.write(b"/\xff", memoryview(b"abcdef")[::1])
    assert volume.read("/p") == b"abc"
    (odd, _) = sorted(volume.list(), key=lambda entry: entry.name, reverse=True)
    assert volume.read(odd.path) == b"abcdef", "a name that is not text"


def test_passphrases(room):
    asked = []

    def ask():
        asked.append(1)
        return SECRET

    room.create().close()
    room.open(ask).close()
    assert asked == [1]
    room.open(SECRET.encode()).close()
    with pytest.raises(oblivio.WrongPassphrase):
        room.open("a guess")
    with pytest.raises(ZeroDivisionError):
        room.open(lambda: 1 // 0)
    for odd in (None, 5, [SECRET], lambda: None):
        with pytest.raises(TypeError) as raised:
            room.open(odd)
        assert SECRET not in str(raised.value)


def test_no_passphrase_in_what_is_printed(room):
    with room.create() as volume:
        assert "canary" not in repr(volume) and str(room.place) not in repr(volume)
        assert "canary" not in repr(vars(volume)) + repr(volume.__reduce_ex__)
    for wrong in (SECRET + "!", SECRET[:-1]):
        try:
            room.open(wrong)
        except oblivio.WrongPassphrase as error:
            said = repr(error) + "".join(traceback.format_exception(None, error, error.__traceback__))
            assert "canary" not in said
        else:
            raise AssertionError("it opened")


def test_one_at_a_time(room):
    with room.create():
        with pytest.raises(oblivio.InUse):
            room.open()
    room.open().close()


def test_a_closed_volume_says_so(room):
    volume = room.create()
    file = volume.open("/f", "wb", 0)
    volume.close()
    volume.close()
    assert repr(volume) == "<oblivio.Volume closed>"
    with pytest.raises(oblivio.Closed):
        volume.read("/f")
    with pytest.raises(oblivio.Closed):
        file.write(b"late")


def test_against_snapshots(room):
    with room.create(seen_by="snapshots", size=4 << 20, one_file=True) as volume:
        volume.write("/f", b"x" * 100_000)
    assert room.place.is_file()
    with room.open() as volume:
        assert volume.read("/f") == b"x" * 100_000


def test_other_threads_run_meanwhile(room):
    room.create(guessing_cost=(64 << 20, 12)).close()
    ticks, ended = [], threading.Event()

    def tick():
        while not ended.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        begin = time.monotonic()
        room.open().close()
        end = time.monotonic()
    finally:
        ended.set()
        thread.join()
    during = [at for at in ticks if begin < at < end]
    # With Python's lock held, the guessing alone would leave one long gap and a tick at each end.
    assert len(during) > 5, f"{len(during)} ticks in {end - begin:.3f} s"


def test_many_threads_on_one_volume(volume):
    failed = []

    def work(at):
        try:
            for turn in range(20):
                volume.write(f"/{at}", bytes([at]) * (turn + 1))
                assert volume.read(f"/{at}") == bytes([at]) * (turn + 1)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed and not any(thread.is_alive() for thread in threads)
    assert len(volume.list()) == 6


def test_options_that_do_not_exist(room):
    with pytest.raises(TypeError):
        room.create(colour="red")
    with pytest.raises(oblivio.Invalid):
        oblivio.create(room.place, SECRET, seen_by="nobody", **CHEAP)
    assert not room.place.exists()
