"""Lanes: a volume of their own beside another one, which only their passphrase opens."""

import threading

import oblivio
import pytest
from conftest import SECRET

HIDDEN = "hidden canary"
BESIDE = {"seen_by": "snapshots", "one_file": True, "lanes": (1, 4), "lane_passphrases": [HIDDEN]}


def carried(lane, carry):
    """Syncs a lane in a thread, and writes to its volume until that returns."""
    failed = []

    def sync():
        try:
            lane.sync()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    while thread.is_alive():
        carry()
    thread.join()
    assert not failed


def test_a_lane_is_there_for_its_passphrase_alone(room):
    with room.create(size=16 << 20, **BESIDE) as volume:
        lane = volume.lane(1)
        assert isinstance(lane, oblivio.Volume) and repr(lane) == "<oblivio.Volume open>"
        assert volume.lane(0) is None and volume.lane(2) is None and lane.lane(1) is None

        def write():
            lane.mkdir("/letters")
            for at in range(20):
                with lane.open(f"/letters/{at}", "w") as file:
                    file.write(f"See you on Sunday {at}.")

        writer = threading.Thread(target=write)
        writer.start()
        for at in range(20):
            volume.write(f"/shown-{at}", b"anybody may see this")
        writer.join(60)
        assert not writer.is_alive() and len(lane.list("/letters")) == 20

        def carry():
            volume.write("/carrier", bytes(100_000))
            volume.sync()

        carried(lane, carry)
        assert lane.lane_status().waiting == 0 and volume.lane_status() is None
    with room.open() as volume:
        assert volume.lane(1) is None and not volume.exists("/letters")
        volume.write("/shown-1", b"changed without the lane")
    with room.open(HIDDEN) as volume:
        assert volume.read("/shown-1") == b"changed without the lane"
        lane = volume.lane(1)
        assert lane.read("/letters/19") == b"See you on Sunday 19."
        status = lane.lane_status()
        assert status.bytes > 3 << 20 and status.grace_left_bytes <= status.grace_bytes
    with pytest.raises(oblivio.WrongPassphrase):
        room.open("neither")


def test_a_lane_ends_with_its_volume(room):
    volume = room.create(size=16 << 20, **BESIDE)
    with volume.lane(1) as left:
        left.write("/f", b"goes along")
    assert left.closed and not volume.closed
    with pytest.raises(oblivio.Closed):
        left.read("/f")
    lane = volume.lane(1)
    assert lane.read("/f") == b"goes along"
    file = lane.open("/f", "rb", 0)
    volume.write("/carrier", bytes(1 << 20))
    volume.close()
    assert lane.closed and repr(lane) == "<oblivio.Volume closed>"
    calls = [lambda: lane.read("/f"), lane.sync, lane.lane_status, lambda: lane.lane(1), file.read]
    for call in [*calls, lambda: volume.lane(1)]:
        with pytest.raises(oblivio.Closed):
            call()
    lane.close()
    with room.open(HIDDEN) as volume:
        assert volume.lane(1).read("/f") == b"goes along"


def test_a_volume_may_be_closed_while_its_lane_waits(room):
    volume = room.create(size=16 << 20, **BESIDE)
    lane = volume.lane(1)
    lane.write("/much", bytes(range(256)) * 4096)
    said = []

    def sync():
        try:
            lane.sync()
        except oblivio.OblivioError as error:
            said.append(error)

    thread = threading.Thread(target=sync)
    thread.start()
    thread.join(1)
    assert thread.is_alive(), "nothing carries it"
    with pytest.raises(oblivio.Full):
        volume.close()
    thread.join(20)
    assert [type(error) for error in said] == [oblivio.Full] and volume.closed


def test_a_disk_has_a_lane_with_a_disk(room):
    size = 8 << 20
    with room.create_disk(size, **BESIDE) as disk:
        lane = disk.lane(1)
        assert isinstance(lane, oblivio.Disk) and 0 < lane.size < size
        writer = threading.Thread(target=lambda: lane.write(12_345, b"hidden sectors"))
        writer.start()
        disk.write(0, b"shown sectors")
        writer.join(60)
        turn = iter(range(100_000))

        def carry():
            disk.write(next(turn) * 65536 % size, bytes([1]) * 65536)
            disk.sync()

        carried(lane, carry)
        assert lane.lane_status().waiting == 0 and disk.lane_status() is None
    for call in (lambda: lane.size, lambda: lane.read(0, 1), lane.sync):
        with pytest.raises(oblivio.Closed):
            call()
    with room.open_disk() as disk:
        assert disk.lane(1) is None
    with oblivio.open_disk(room.place, HIDDEN, **room.how()) as disk:
        assert disk.lane(1).read(12_345, 14) == b"hidden sectors"


def test_two_lanes(room):
    passphrases = [HIDDEN, lambda: b"hidden deeper"]
    what = {**BESIDE, "lanes": (2, 8), "lane_passphrases": passphrases}
    with room.create(size=16 << 20, **what) as volume:
        volume.write("/carrier", bytes(4 << 20))
    for passphrase, opened in ((SECRET, []), (HIDDEN, [1]), ("hidden deeper", [1, 2])):
        with room.open(passphrase) as volume:
            assert [at for at in (1, 2) if volume.lane(at)] == opened


def test_lanes_that_cannot_be(room):
    for other in (
        {"lanes": None},
        {"lane_passphrases": [HIDDEN, "more"]},
        {"lane_passphrases": [SECRET]},
        {"one_file": False},
        {"one_file": False, "seen_by": "storage"},
    ):
        with pytest.raises(oblivio.Invalid) as raised:
            room.create(size=16 << 20, **{**BESIDE, **other})
        assert "canary" not in str(raised.value)
    with pytest.raises(TypeError):
        room.create(size=16 << 20, **{**BESIDE, "lane_passphrases": [None]})
    with pytest.raises(oblivio.Invalid):
        oblivio.create("share://127.0.0.1:1/team", SECRET, lane_passphrases=[HIDDEN])
    assert not room.place.exists()
    room.create(size=16 << 20, **{**BESIDE, "lanes": None, "lane_passphrases": []}).close()
