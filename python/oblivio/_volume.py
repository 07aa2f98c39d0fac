"""An open volume."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from . import _errors, _file, _oblivio


class Entry(NamedTuple):
    """One name in a directory."""

    name: str
    path: str
    kind: str  # "file", "directory", "symlink" or "special"

    @property
    def is_dir(self) -> bool:
        return self.kind == "directory"


class Stat(NamedTuple):
    """What is known of a file or directory."""

    size: int
    kind: str
    mode: int
    modified_ns: int
    created_ns: int

    @property
    def is_dir(self) -> bool:
        return self.kind == "directory"

    @property
    def modified(self) -> float:
        """Seconds since 1970."""
        return self.modified_ns / 1e9


class Usage(NamedTuple):
    """How much a volume holds, in bytes."""

    used: int
    free: int
    capacity: int


class LaneStatus(NamedTuple):
    """What only the passphrase of a lane tells of it."""

    bytes: int  # its capacity
    waiting: int  # writes in memory, until the volume is written
    waiting_bytes: int
    carried_by_bytes: int  # about how much must be written to the volume until they are durable
    grace_left_bytes: int  # what may be written while the lane is shut, before it loses anything
    grace_bytes: int  # the same of a lane that was always open


_Names = list[str]


class Volume:
    """An open volume that holds files. Paths begin with `/`.

    Any thread may use it. What is changed is durable after `sync`, or `close`, which a `with` block
    calls at its end.
    """

    def __init__(self, inner: _oblivio.Volume) -> None:
        self._inner = inner

    def read(self, path) -> bytes:
        """The whole content of a file."""
        return self._inner.read(os.fsencode(path))

    def write(self, path, data) -> None:
        """Makes `data` the whole content of a file. A crash leaves the old or the new one."""
        self._inner.write(os.fsencode(path), bytes(memoryview(data).cast("B")))

    def append(self, path, data) -> None:
        """Adds `data` at the end of a file, which is made if need be."""
        self._inner.append(os.fsencode(path), bytes(memoryview(data).cast("B")))

    def copy(self, source, target) -> int:
        """Copies a file over another path; the number of bytes. A crash may leave a part of it."""
        return self._inner.copy(os.fsencode(source), os.fsencode(target))

    def list(self, path="/") -> list[Entry]:
        """What is in a directory, by name."""
        entries = self._inner.list(os.fsencode(path))
        return [Entry(os.fsdecode(name), os.fsdecode(at), kind) for name, at, kind in entries]

    def walk(self, top="/") -> Iterator[tuple[str, _Names, _Names]]:
        """The directories at and below a path, as `os.walk` gives them: path, directories, files.

        What is removed from the list of directories meanwhile is not entered. Links are among the
        files, and not followed.
        """
        left = [os.fsdecode(top)]
        while left:
            path = left.pop()
            directories: _Names = []
            files: _Names = []
            for entry in self.list(path):
                (directories if entry.is_dir else files).append(entry.name)
            yield path, directories, files
            left.extend(posixpath.join(path, name) for name in reversed(directories))

    def stat(self, path) -> Stat:
        """What is known of a file or directory."""
        return Stat(*self._inner.stat(os.fsencode(path)))

    def exists(self, path) -> bool:
        """Whether something is at a path."""
        return self._inner.exists(os.fsencode(path))

    def mkdir(self, path, *, parents: bool = False) -> None:
        """Makes a directory; with `parents` those above too, and one that is there is no error."""
        self._inner.mkdir(os.fsencode(path), parents)

    def remove(self, path) -> None:
        """Removes a file, a link, or an empty directory."""
        self._inner.remove(os.fsencode(path))

    def rmtree(self, path) -> None:
        """Removes a directory and everything in it; links in it are not followed."""
        self._inner.remove_all(os.fsencode(path))

    def rename(self, source, target) -> None:
        """Moves a file or directory, over a file that is there."""
        self._inner.rename(os.fsencode(source), os.fsencode(target))

    def usage(self) -> Usage:
        """How much the volume holds."""
        return Usage(*self._inner.usage())

    def open(self, path, mode="r", buffering=-1, encoding=None, errors=None, newline=None):
        """Opens a file as the built-in `open` does. Text is UTF-8 if nothing else is said.

        With `buffering=0` it is a `RawFile`. Closing a file hands over what it has in its buffer;
        durable it is after `sync` of the volume.
        """
        plain, text = _file.parse(mode)
        if text and buffering == 0:
            raise ValueError("text needs a buffer")
        inner = self._open(os.fsencode(path), plain[0])
        raw = _file.RawFile(inner, os.fsdecode(path), plain)
        return _file.wrap(raw, text, buffering, encoding, errors, newline)

    def _open(self, path: bytes, kind: str) -> _oblivio.File:
        if kind == "x":
            return self._inner.create_file(path)
        while True:
            try:
                inner = self._inner.open_file(path)
                break
            except _errors.NotFound:
                if kind == "r":
                    raise
            try:
                return self._inner.create_file(path)
            except _errors.Exists:
                # A dangling link has no file; and it stays, however often this is tried.
                if not self._inner.exists(path):
                    raise
        if kind == "w":
            inner.set_length(0)
        return inner

    def lane(self, number: int) -> Volume | None:
        """The files of a lane, counted from 1, if the passphrase opened it: a volume beside this one.

        It is open as long as this one is. What is written into it goes along with what is written
        into this one, and causes no write by itself. So its `sync` returns once another thread has
        written enough into this one; after a minute it raises `Full`, and what waits is kept.
        """
        inner = self._inner.lane(number)
        return None if inner is None else Volume(inner)

    def lane_status(self) -> LaneStatus | None:
        """What is to be said of this lane; `None` of a volume that is no lane."""
        status = self._inner.lane_status()
        return None if status is None else LaneStatus(*status)

    def sync(self) -> None:
        """Makes everything so far durable. Its lanes go along as far as there is room."""
        self._inner.sync()

    def idle(self) -> str | None:
        """Answers other computers, at a URL; the name of one that wants the volume, if one does."""
        return self._inner.idle()

    def close(self) -> None:
        """Makes everything durable and lets go of the volume. Again, it does nothing.

        `Full` if a lane had more to write than the volume carried: that is lost. Sync the lane before.
        A lane itself ends with its volume: closing it lets go of this object only.
        """
        self._inner.close()

    @property
    def closed(self) -> bool:
        return self._inner.closed()

    def __enter__(self) -> Volume:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self) -> str:
        # Nothing of the place: a URL may hold a secret.
        return f"<oblivio.Volume {'closed' if self.closed else 'open'}>"
