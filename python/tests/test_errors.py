"""Errors: a class for each thing that a program can act on."""

import errno
import shutil

import oblivio
import pytest
from conftest import SECRET


def test_paths(volume):
    volume.write("/f", b"")
    volume.mkdir("/d/e", parents=True)
    for kind, standard, number, call in [
        (oblivio.NotFound, FileNotFoundError, errno.ENOENT, lambda: volume.read("/no")),
        (oblivio.Exists, FileExistsError, errno.EEXIST, lambda: volume.mkdir("/d")),
        (oblivio.NotADirectory, NotADirectoryError, errno.ENOTDIR, lambda: volume.list("/f")),
        (oblivio.IsADirectory, IsADirectoryError, errno.EISDIR, lambda: volume.read("/d")),
        (oblivio.NotEmpty, OSError, errno.ENOTEMPTY, lambda: volume.remove("/d")),
    ]:
        with pytest.raises(kind) as raised:
            call()
        error = raised.value
        assert isinstance(error, standard) and isinstance(error, oblivio.OblivioError)
        assert error.errno == number and error.filename.startswith("/")
    for bad in ("relative", "/a/../b", ""):
        with pytest.raises(oblivio.BadPath):
            volume.read(bad)
    with pytest.raises(ValueError):
        volume.remove("/")


def test_no_space(volume):
    with pytest.raises(oblivio.Full) as raised:
        volume.write("/f", bytes(80 << 20))
    assert raised.value.errno == errno.ENOSPC and isinstance(raised.value, OSError)
    volume.write("/g", b"there is room for small ones")


def test_no_volume(room, tmp_path):
    with pytest.raises(oblivio.NotFound):
        room.open()
    (tmp_path / "file").write_bytes(b"no volume")
    with pytest.raises(oblivio.NotAVolume):
        oblivio.open(tmp_path / "file", SECRET)
    with pytest.raises(oblivio.Invalid) as raised:
        oblivio.open("sftp://me:canary@host/a", SECRET)
    assert "canary" not in str(raised.value)
    room.create().close()
    with pytest.raises(oblivio.Exists):
        room.create()


def test_an_old_copy(room, tmp_path):
    room.create().close()
    shutil.copytree(room.place, tmp_path / "old")
    with room.open() as volume:
        volume.write("/f", b"newer")
    shutil.rmtree(room.place)
    shutil.copytree(tmp_path / "old", room.place)
    with pytest.raises(oblivio.RolledBack):
        room.open()
    with room.open(accept_rollback=True) as volume:
        assert volume.list() == []


def test_damage(room):
    with room.create() as volume:
        volume.write("/f", bytes(range(256)) * 4000)
    for object in room.place.iterdir():
        content = object.read_bytes()
        if len(content) > 100_000:
            object.write_bytes(bytes(byte ^ 0x40 for byte in content))
    with pytest.raises(oblivio.Damaged):
        with room.open() as volume:
            volume.read("/f")


def test_a_failing_storage(room):
    room.create().close()
    room.state.rename(room.state.with_name("elsewhere"))
    room.state.write_bytes(b"a file where the folder should be")
    with pytest.raises(oblivio.OblivioError):
        room.open()


def test_all_exceptions_have_one_base():
    for name in oblivio.__all__:
        kind = getattr(oblivio, name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            assert issubclass(kind, oblivio.OblivioError), name


def test_each_error_of_the_library_has_a_class():
    from pathlib import Path

    from oblivio import _errors

    source = Path(__file__).parents[1] / "src" / "error.rs"
    names = [line.split('("')[1].split('"')[0] for line in source.read_text().splitlines() if '=> ("' in line]
    assert len(names) > 15
    for name in names:
        assert isinstance(_errors.make(name, "why", None, None), getattr(oblivio, name))
