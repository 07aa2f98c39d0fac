"""Files: as those of the system, in every mode, and for those who expect such files."""

import csv
import io
import os
import pickle
import random
import sqlite3
import tarfile
import zipfile

import oblivio
import pytest


@pytest.mark.parametrize("mode", ["rb", "r+b", "wb", "w+b", "ab", "a+b"])
def test_modes_do_as_those_of_the_system(volume, tmp_path, mode):
    def play(file):
        said = [file.readable(), file.writable(), file.seekable(), file.tell()]
        for step in (
            lambda: file.write(b"new"),
            lambda: file.seek(2),
            lambda: file.read(3),
            lambda: file.tell(),
            lambda: file.write(b"more"),
            lambda: file.seek(-2, os.SEEK_END),
            lambda: file.read(),
            lambda: file.truncate(4),
            lambda: file.seek(1, os.SEEK_CUR),
            lambda: file.read(100),
        ):
            try:
                said.append(step())
            except (OSError, ValueError) as error:
                said.append(isinstance(error, io.UnsupportedOperation))
        file.close()
        return said

    for buffering in (-1, 0):
        (tmp_path / "f").write_bytes(b"0123456789")
        volume.write("/f", b"0123456789")
        expected = play(open(tmp_path / "f", mode, buffering))
        assert play(volume.open("/f", mode, buffering)) == expected
        assert volume.read("/f") == (tmp_path / "f").read_bytes()


def test_modes_that_make_files(volume):
    for mode in ("w", "a", "x"):
        with volume.open(f"/{mode}", mode) as file:
            file.write("text: \u00e4\n")
        assert volume.read(f"/{mode}") == "text: \u00e4\n".encode()
    with pytest.raises(oblivio.Exists):
        volume.open("/x", "x")
    with pytest.raises(FileNotFoundError):
        volume.open("/no", "r+b")
    with pytest.raises(oblivio.NotFound):
        volume.open("/no/f", "w")
    with pytest.raises(oblivio.IsADirectory):
        volume.open("/", "rb")
    for bad in ("", "rw", "rbt", "q", "rr", "b"):
        with pytest.raises(ValueError):
            volume.open("/w", bad)
    assert [entry.name for entry in volume.list()] == ["a", "w", "x"]


def test_a_random_life_beside_a_file_of_the_system(volume, tmp_path):
    dice = random.Random(7)
    for buffering in (0, -1, 100):
        ours = volume.open("/f", "w+b", buffering)
        theirs = open(tmp_path / "f", "w+b", buffering)
        for _ in range(300):
            at, length = dice.randrange(60_000), dice.randrange(9_000)
            what = dice.choice(["write", "read", "seek", "truncate", "into"])
            if what == "write":
                data = dice.randbytes(length)
                assert ours.write(data) == theirs.write(data)
            elif what == "read":
                assert ours.read(length) == theirs.read(length)
            elif what == "seek":
                assert ours.seek(at) == theirs.seek(at)
            elif what == "truncate":
                assert ours.truncate(at) == theirs.truncate(at)
            else:
                mine, yours = bytearray(length), bytearray(length)
                assert ours.readinto(mine) == theirs.readinto(yours) and mine == yours
            assert ours.tell() == theirs.tell()
        ours.close()
        theirs.close()
        assert volume.read("/f") == (tmp_path / "f").read_bytes()


def test_lines_and_text(volume):
    lines = [f"line {at} \u2014 \u00fc\n" for at in range(5000)]
    with volume.open("/t", "w") as file:
        file.writelines(lines)
    with volume.open("/t") as file:
        assert list(file) == lines
        file.seek(0)
        assert file.readline() == lines[0]
    with volume.open("/c.csv", "w", newline="") as file:
        csv.writer(file).writerows([[1, "a,b"], [2, 'c"d']])
    with volume.open("/c.csv", newline="") as file:
        assert list(csv.reader(file)) == [["1", "a,b"], ["2", 'c"d']]


def test_zip_tar_and_pickle(volume):
    body = random.Random(1).randbytes(400_000)
    with volume.open("/z.zip", "w+b") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("one", body)
    with volume.open("/z.zip", "r+b") as file, zipfile.ZipFile(file, "a") as archive:
        archive.writestr("two", b"more", zipfile.ZIP_DEFLATED)
    with volume.open("/z.zip", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("one") == body and archive.read("two") == b"more"
    with volume.open("/t.tar", "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        member = tarfile.TarInfo("one")
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    with volume.open("/t.tar", "rb") as file, tarfile.open(fileobj=file) as archive:
        assert archive.extractfile("one").read() == body
    with volume.open("/p", "wb") as file:
        pickle.dump({"a": body}, file)
    with volume.open("/p", "rb") as file:
        assert pickle.load(file) == {"a": body}


@pytest.mark.skipif(not hasattr(sqlite3.Connection, "serialize"), reason="Python 3.11 has it")
def test_a_database(volume):
    with sqlite3.connect(":memory:") as database:
        database.execute("create table t (a)")
        database.executemany("insert into t values (?)", [(at,) for at in range(1000)])
    volume.write("/db", database.serialize())
    again = sqlite3.connect(":memory:")
    again.deserialize(volume.read("/db"))
    assert again.execute("select sum(a) from t").fetchone() == (499_500,)


def test_what_is_synced_is_there_after_a_crash(room, tmp_path):
    import shutil

    with room.create() as volume:
        with volume.open("/f", "wb", 0) as file:
            file.write(b"safe")
            file.sync()
            shutil.copytree(room.place, tmp_path / "crashed")
    with oblivio.open(
        tmp_path / "crashed", "correct horse canary staple", memory=8 << 20, rollback_protection=False
    ) as volume:
        assert volume.read("/f") == b"safe"


def test_a_closed_file(volume):
    file = volume.open("/f", "w+b", 0)
    assert repr(file) == "<oblivio.RawFile '/f' mode='wb+'>"
    file.close()
    file.close()
    assert file.closed
    for call in (file.tell, file.read, file.truncate, file.sync, lambda: file.write(b"")):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(io.UnsupportedOperation):
        volume.open("/f", "rb", 0).fileno()
    with pytest.raises(ValueError):
        volume.open("/f", "rb").seek(-1)


def test_a_large_file_passes_in_pieces(volume):
    with volume.open("/large", "w+b", 0) as file:
        file.seek(40 << 20)
        file.write(b"end")
        file.seek(0)
        assert len(file.read(20 << 20)) == 16 << 20, "a raw file may return less"
        file.seek((40 << 20) - 1)
        assert file.readall() == b"\0end"
