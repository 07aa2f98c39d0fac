"""The exceptions, by what a program can do about them."""

from __future__ import annotations

import errno
import os


class OblivioError(Exception):
    """The base of all."""


class WrongPassphrase(OblivioError):
    """The passphrase opens nothing here. Nothing was changed: ask again."""


class RolledBack(OblivioError):
    """The volume is older than what this computer saw."""


class OtherVolume(OblivioError):
    """Another volume was at this place before."""


class Forgotten(OblivioError):
    """What this computer knows of the volume cannot be read or kept."""


class NotAVolume(OblivioError):
    """The place holds no volume, or one of an unknown format."""


class HoldsDisk(NotAVolume):
    """The volume holds a disk, not files."""


class HoldsFiles(NotAVolume):
    """The volume holds files, not a disk."""


class StillToCome(OblivioError):
    """A sync client has not brought all files of the newest state into the folder yet."""


class Parted(OblivioError):
    """Two computers wrote apart from each other: each history can be looked at."""


class Invalid(OblivioError, ValueError):
    """The request makes no sense, or asks for more than can be stored."""


class BadPath(Invalid):
    """The text is no path inside a volume."""


class Closed(OblivioError, ValueError):
    """The volume or file was closed, or failed before: open it again."""


class _Failed(OblivioError, OSError):
    """The base of those that carry an error number, as the system's have."""

    _number = errno.EIO


class Damaged(_Failed):
    """The stored bytes are not what was written. Nothing wrong was handed out."""


class Lost(Damaged):
    """What was asked for is lost to damage. All else can be read."""


class InUse(_Failed):
    """Another process, or this one, has the volume open."""

    _number = errno.EBUSY


class TakenOver(_Failed):
    """Another computer has the volume now. What was synced is safe: open it again."""

    _number = errno.ESTALE


class Full(_Failed):
    """The volume or its store has no space left."""

    _number = errno.ENOSPC


class NotFound(_Failed, FileNotFoundError):
    """There is nothing at this place or path."""

    _number = errno.ENOENT


class Exists(_Failed, FileExistsError):
    """Something is at this place or path already."""

    _number = errno.EEXIST


class NotADirectory(_Failed, NotADirectoryError):
    """A directory was needed."""

    _number = errno.ENOTDIR


class IsADirectory(_Failed, IsADirectoryError):
    """A file was needed."""

    _number = errno.EISDIR


class NotEmpty(_Failed):
    """The directory to remove or replace has entries."""

    _number = errno.ENOTEMPTY


class StorageFailed(_Failed):
    """The storage failed."""


def make(name: str, text: str, path: str | None, number: int | None) -> OblivioError:
    """The exception of a class of this module, for an error of the library."""
    kind = globals()[name]
    if not issubclass(kind, _Failed):
        return kind(text)
    code = number or kind._number
    if path is not None:
        return kind(code, os.strerror(code), path)
    return kind(code, text)
