"""A place for a volume, and a folder for what the computer remembers of it."""

import oblivio
import pytest

SECRET = "correct horse canary staple"
# The least that guessing may cost: these passphrases guard nothing.
CHEAP = {"size": 64 << 20, "block_size": 4096, "guessing_cost": (32 << 10, 1)}


class Room:
    def __init__(self, folder):
        self.place = folder / "vault"
        self.state = folder / "state"

    def how(self, **other):
        return {"state": self.state, "memory": 8 << 20, **other}

    def create(self, **other):
        return oblivio.create(self.place, SECRET, **self.how(**{**CHEAP, **other}))

    def open(self, passphrase=SECRET, **other):
        return oblivio.open(self.place, passphrase, **self.how(**other))

    def create_disk(self, size, **other):
        cheap = {name: value for name, value in CHEAP.items() if name != "size"}
        return oblivio.create_disk(self.place, SECRET, size, **self.how(**{**cheap, **other}))

    def open_disk(self, **other):
        return oblivio.open_disk(self.place, SECRET, **self.how(**other))


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)


@pytest.fixture
def volume(room):
    with room.create() as volume:
        yield volume
