"""Disks, folders that a sync client copies, and volumes that computers share."""

import shutil
import subprocess

import oblivio
import pytest
from conftest import CHEAP, SECRET


def test_a_disk(room):
    with room.create_disk(1 << 20) as disk:
        assert disk.size == 1 << 20 and repr(disk) == "<oblivio.Disk open>"
        disk.write(5000, b"written")
        disk.sync()
        disk.write((1 << 20) - 3, bytearray(b"end"))
        with pytest.raises(oblivio.Invalid):
            disk.write((1 << 20) - 3, b"over")
        assert disk.idle() is None
    assert disk.closed
    with pytest.raises(oblivio.Closed):
        disk.read(0, 1)
    with pytest.raises(oblivio.HoldsDisk):
        room.open()
    with room.open_disk() as disk:
        assert disk.read(4999, 9) == b"\0written\0"
        disk.trim(4096, 4096)
        assert disk.read(5000, 7) == bytes(7)
        assert disk.read((1 << 20) - 3, 3) == b"end"


def test_files_are_no_disk(room):
    room.create().close()
    with pytest.raises(oblivio.HoldsFiles):
        room.open_disk()


def test_a_folder_that_a_sync_client_copies(room):
    with room.create(sync_folder=True) as volume:
        volume.write("/f", b"x" * 100_000)
    with room.open(older=True) as volume:
        assert volume.read("/f") == b"x" * 100_000
    with pytest.raises(oblivio.OblivioError):
        room.open(history="nobody")


def test_a_share_without_a_server(tmp_path):
    how = {"state": tmp_path / "state"}
    with pytest.raises(oblivio.Invalid):
        oblivio.open("share://nowhere", SECRET, **how)
    with pytest.raises(oblivio.StorageFailed) as raised:
        oblivio.open("share://127.0.0.1:1/team", SECRET, **how)
    assert "token" in str(raised.value)


@pytest.mark.skipif(shutil.which("oblivio") is None, reason="needs the command, as a server")
def test_a_share(tmp_path):
    command = ["oblivio", "share", "serve", "served", "--listen", "127.0.0.1:0", "--volume", "team"]
    server = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip().rstrip(".").rsplit(" ", 1)[1]
        place = f"share://{address}/team"

        def how(computer):
            token = tmp_path / f"{computer}.token"
            add = ["oblivio", "share", "token", "add", "served", "team", computer]
            if not token.exists():
                subprocess.run([*add, "--host", address, "--out", token], cwd=tmp_path, check=True)
            return {"state": tmp_path / computer, "token_file": token}

        with oblivio.create(place, SECRET, **CHEAP, **how("anna")) as anna:
            with anna.open("/log", "a") as log:
                log.write("from anna\n")
            with oblivio.open(place, SECRET, **how("ben")) as ben:
                with ben.open("/log", "a") as log:
                    log.write("from ben\n")
                assert ben.read("/log") == b"from anna\nfrom ben\n"
        with pytest.raises(oblivio.WrongPassphrase):
            oblivio.open(place, "a guess", **how("anna"))
    finally:
        server.terminate()
        server.wait(60)
