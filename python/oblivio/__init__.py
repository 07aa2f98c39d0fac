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
from ._errors import (
    BadPath,
    Closed,
    Damaged,
    Exists,
    Forgotten,
    Full,
    HoldsDisk,
    Invalid,
    InUse,
    IsADirectory,
    NotADirectory,
    NotAVolume,
    NotEmpty,
    NotFound,
    OblivioError,
    OtherVolume,
    RolledBack,
    StorageFailed,
    TakenOver,
    WrongPassphrase,
)
from ._file import RawFile
from ._oblivio import __version__
from ._volume import Entry, Stat, Usage, Volume

__all__ = [
    "BadPath", "Closed", "Damaged", "Entry", "Exists", "Forgotten", "Full", "HoldsDisk", "InUse",
    "Invalid", "IsADirectory", "NotADirectory", "NotAVolume", "NotEmpty", "NotFound", "OblivioError",
    "OtherVolume", "RawFile", "RolledBack", "Stat", "StorageFailed", "TakenOver", "Usage", "Volume",
    "WrongPassphrase", "__version__", "create", "open",
]  # fmt: skip

_SEEN_BY = {"storage": False, "snapshots": True}


def open(place, passphrase, **how) -> Volume:
    """Opens a volume: a folder, a file, a partition, or a URL.

    The passphrase is text, bytes, or a function that returns one. Options are `state` (the folder in
    which this computer remembers volumes), `memory` (bytes), `pad`, `accept_rollback`,
    `accept_other_volume` and `rollback_protection`.
    """
    how = _how(**how)
    return Volume(_oblivio.open(os.fspath(place), _secret(passphrase), how))


def create(
    place, passphrase, *, seen_by="storage", size=None, block_size=None, one_file=False,
    guessing_cost=None, **how,
) -> Volume:  # fmt: skip
    """Makes a volume in a new folder and opens it, with the options of `open`.

    `seen_by` is "storage", or "snapshots", which needs a `size`. `guessing_cost` is the memory in
    bytes and the passes over it that each guess of the passphrase takes.
    """
    if seen_by not in _SEEN_BY:
        raise Invalid(f"seen_by is 'storage' or 'snapshots', not {seen_by!r}")
    what = {
        "snapshots": _SEEN_BY[seen_by],
        "size": size,
        "block_size": block_size,
        "one_file": one_file,
        "guessing_cost": guessing_cost,
    }
    how = _how(**how)
    return Volume(_oblivio.create(os.fspath(place), _secret(passphrase), what, how))


def _how(
    *, state=None, memory=None, pad=False, accept_rollback=False, accept_other_volume=False,
    rollback_protection=True,
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
