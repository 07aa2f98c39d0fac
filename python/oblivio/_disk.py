"""An open disk."""

from __future__ import annotations

from . import _oblivio
from ._volume import LaneStatus


class Disk:
    """An open volume that holds a disk: bytes by their offset, all zero at first.

    Any thread may use it. What is written is durable after `sync`, or `close`, which a `with` block
    calls at its end.
    """

    def __init__(self, inner: _oblivio.Disk) -> None:
        self._inner = inner

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return self._inner.size()

    def read(self, offset: int, length: int) -> bytes:
        """Reads this many bytes. The cost hardly depends on how many."""
        return self._inner.read_at(offset, length)

    def write(self, offset: int, data) -> None:
        """Writes at an offset."""
        self._inner.write_at(offset, bytes(memoryview(data).cast("B")))

    def trim(self, offset: int, length: int) -> None:
        """Gives a range back: it reads as zeros, and its whole blocks take no space."""
        self._inner.trim(offset, length)

    def lane(self, number: int) -> Disk | None:
        """The disk of a lane, counted from 1, if the passphrase opened it.

        What holds for `Volume.lane` holds for it.
        """
        inner = self._inner.lane(number)
        return None if inner is None else Disk(inner)

    def lane_status(self) -> LaneStatus | None:
        """What is to be said of this lane; `None` of a disk that is no lane."""
        status = self._inner.lane_status()
        return None if status is None else LaneStatus(*status)

    def sync(self) -> None:
        """Makes everything so far durable. Its lanes go along as far as there is room."""
        self._inner.sync()

    def idle(self) -> str | None:
        """Answers other computers, at a URL; the name of one that wants the disk, if one does."""
        return self._inner.idle()

    def close(self) -> None:
        """Makes everything durable and lets go of the disk. Again, it does nothing.

        What holds for `Volume.close` holds for its lanes.
        """
        self._inner.close()

    @property
    def closed(self) -> bool:
        return self._inner.closed()

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        # Nothing of the place: a URL may hold a secret.
        return f"<oblivio.Disk {'closed' if self.closed else 'open'}>"
