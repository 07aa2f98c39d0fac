"""An open file with a position, as Python's own files of the system are."""

from __future__ import annotations

import io
import os

from . import _errors, _oblivio

# An access costs about the same whatever its length, so buffers are larger than Python's own.
BUFFER_BYTES = 256 * 1024
# The most of one read: it is twice in memory for a moment.
READ_BYTES = 16 * 1024 * 1024


class RawFile(io.RawIOBase):
    """A file of a volume, without a buffer: each call is an access of its own."""

    def __init__(self, file: _oblivio.File, name: str, mode: str) -> None:
        self._file = file
        self._appends = "a" in mode
        self._position = file.length() if self._appends else 0
        self.name = name
        self.mode = mode

    def _check(self, able: bool, what: str) -> None:
        if self.closed:
            raise _errors.Closed("the file is closed")
        if not able:
            raise io.UnsupportedOperation(what)

    def readable(self) -> bool:
        self._check(True, "")
        return "r" in self.mode or "+" in self.mode

    def writable(self) -> bool:
        self._check(True, "")
        return self.mode != "rb"

    def seekable(self) -> bool:
        self._check(True, "")
        return True

    def readinto(self, buffer, /) -> int:
        self._check(self.readable(), "not open for reading")
        view = memoryview(buffer).cast("B")
        data = self._file.read_at(self._position, min(len(view), READ_BYTES))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def write(self, b, /) -> int:
        self._check(self.writable(), "not open for writing")
        data = bytes(memoryview(b).cast("B"))
        if data and self._appends:
            # At the end wherever it is by then: other computers may append to the same file.
            self._file.append(data)
            self._position = self._file.length()
        elif data:
            self._file.write_at(self._position, data)
            self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check(True, "")
        if whence == os.SEEK_SET:
            position = offset
        elif whence == os.SEEK_CUR:
            position = self._position + offset
        elif whence == os.SEEK_END:
            position = self._file.length() + offset
        else:
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        if position < 0:
            raise _errors.Invalid("a position before the beginning of the file")
        self._position = position
        return position

    def tell(self) -> int:
        self._check(True, "")
        return self._position

    def truncate(self, size: int | None = None, /) -> int:
        self._check(self.writable(), "not open for writing")
        size = self._position if size is None else size
        if size < 0:
            raise _errors.Invalid("a file has no negative length")
        self._file.set_length(size)
        return size

    def sync(self) -> None:
        """Makes everything that was written to the volume so far durable."""
        self._check(True, "")
        self._file.sync()

    def close(self) -> None:
        if not self.closed:
            try:
                super().close()
            finally:
                self._file.close()

    def __repr__(self) -> str:
        return f"<oblivio.RawFile {self.name!r} mode={self.mode!r}>"


def parse(mode: str) -> tuple[str, bool]:
    """A mode in the form `rb`, `rb+`, and whether it was for text."""
    letters = set(mode)
    kinds = letters & set("rwax")
    if len(letters) != len(mode) or len(kinds) != 1 or letters - set("rwax+bt") or letters >= set("bt"):
        raise ValueError(f"invalid mode: {mode!r}")
    return kinds.pop() + "b" + ("+" if "+" in letters else ""), "b" not in letters


def wrap(raw: RawFile, text: bool, buffering: int, encoding, errors, newline):
    """A file with a buffer, and for text with an encoding, as the built-in `open` makes them."""
    if buffering == 0:
        if text:
            raise ValueError("text needs a buffer")
        return raw
    size = buffering if buffering > 1 else BUFFER_BYTES
    kind = {"rb": io.BufferedReader}.get(raw.mode, io.BufferedWriter)
    buffered = (io.BufferedRandom if "+" in raw.mode else kind)(raw, size)
    if not text:
        return buffered
    return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline, buffering == 1)
