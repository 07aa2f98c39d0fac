"""Storage that does not learn what you touch.

    import oblivio

    with oblivio.create("vault", "correct horse battery staple") as volume:
        volume.write("/letter.txt", b"See you on Sunday.")

    with oblivio.open("vault", getpass.getpass) as volume:
        with volume.open("/letter.txt") as file:
            print(file.read())
"""

from __future__ import annotations

import os

from . import _oblivio
from ._disk import Disk
from ._errors import (
    BadPath,
    Closed,
    Damaged,
    Exists,
    Forgotten,
    Full,
    HoldsDisk,
    HoldsFiles,
    Invalid,
    InUse,
    IsADirectory,
    Lost,
    NotADirectory,
    NotAVolume,
    NotEmpty,
    NotFound,
    OblivioError,
    OtherVolume,
    Parted,
    RolledBack,
    StillToCome,
    StorageFailed,
    TakenOver,
    WrongPassphrase,
)
from ._file import RawFile
from ._oblivio import __version__
from ._volume import Entry, LaneStatus, Stat, Usage, Volume

__all__ = [
    "BadPath", "Closed", "Damaged", "Disk", "Entry", "Exists", "Forgotten", "Full", "HoldsDisk",
    "HoldsFiles", "InUse", "Invalid", "IsADirectory", "LaneStatus", "Lost", "NotADirectory",
    "NotAVolume", "NotEmpty", "NotFound", "OblivioError", "OtherVolume", "Parted", "RawFile",
    "RolledBack", "Stat", "StillToCome", "StorageFailed", "TakenOver", "Usage", "Volume",
    "WrongPassphrase", "__version__", "create", "create_disk", "open", "open_disk",
]  # fmt: skip

_SEEN_BY = {"storage": False, "snapshots": True}


def open(place, passphrase, **how) -> Volume:
    """Opens a volume: a folder, a file, a partition, a URL, or a share as share://HOST:PORT/NAME.

    The passphrase is text, bytes, or a function that returns one. Options are `state` (the folder in
    which this computer remembers volumes), `memory` (bytes), `pad`, `accept_rollback`,
    `accept_other_volume` and `rollback_protection`. Those of some places are `token_file` (of a
    share, the first time), `take_over` (at a URL, from a computer that has it), and of a folder that
    a sync client copies `older` (not all of the newest is there yet) and `history` (only look at the
    one of this name).
    """
    how = _how(**how)
    return Volume(_oblivio.open(os.fspath(place), _secret(passphrase), how))


def open_disk(place, passphrase, **how) -> Disk:
    """Opens the disk that a volume holds, with the options of `open`."""
    how = _how(**how)
    return Disk(_oblivio.open_disk(os.fspath(place), _secret(passphrase), how))


def create(
    place, passphrase, *, seen_by="storage", size=None, block_size=None, one_file=False, lanes=(1, 8),
    lane_passphrases=(), sync_folder=False, guessing_cost=None, **how,
) -> Volume:  # fmt: skip
    """Makes a volume in a new folder, or at a URL, and opens it, with the options of `open`.

    `seen_by` is "storage", or "snapshots", which needs a `size`. `sync_folder` is for a folder that a
    sync client copies. `guessing_cost` is the memory in bytes and the passes over it that each guess
    of the passphrase takes.

    With `one_file` a volume against snapshots has lanes beside it, used or not: places for hidden
    files (`Volume.lane`). `lanes` is how many, one or two, and of how many parts of the volume's size
    each has one; `None` leaves them out. `lane_passphrases` has the passphrase of the first lane, then
    that of the second: it opens the volume and the lane. A lane without one is never open.
    """
    what = _what(seen_by, size, block_size, one_file, lanes, sync_folder, guessing_cost)
    how = _how(**how)
    secret, hidden = _secret(passphrase), [_secret(each) for each in lane_passphrases]
    return Volume(_oblivio.create(os.fspath(place), secret, hidden, what, how))


def create_disk(
    place, passphrase, size, *, seen_by="storage", block_size=None, one_file=False, lanes=(1, 8),
    lane_passphrases=(), sync_folder=False, guessing_cost=None, **how,
) -> Disk:  # fmt: skip
    """Makes a volume that holds a disk of `size` bytes, a multiple of 512, and opens it.

    The options are those of `create` and `open`.
    """
    what = _what(seen_by, None, block_size, one_file, lanes, sync_folder, guessing_cost)
    how = _how(**how)
    secret, hidden = _secret(passphrase), [_secret(each) for each in lane_passphrases]
    return Disk(_oblivio.create_disk(os.fspath(place), secret, hidden, size, what, how))


def _what(seen_by, size, block_size, one_file, lanes, sync_folder, guessing_cost):
    if seen_by not in _SEEN_BY:
        raise Invalid(f"seen_by is 'storage' or 'snapshots', not {seen_by!r}")
    return {
        "snapshots": _SEEN_BY[seen_by],
        "size": size,
        "block_size": block_size,
        "one_file": one_file,
        "lanes": lanes,
        "sync_folder": sync_folder,
        "guessing_cost": guessing_cost,
    }


def _how(
    *, state=None, memory=None, pad=False, accept_rollback=False, accept_other_volume=False,
    rollback_protection=True, token_file=None, take_over=False, older=False, history=None,
):  # fmt: skip
    return locals()


def _secret(passphrase) -> bytes:
    given = passphrase() if callable(passphrase) else passphrase
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, (bytes, bytearray)):
        return bytes(given)
    # The value itself is not named: it may be the secret in another form.
    raise TypeError("a passphrase is str or bytes, or a function that returns one")
