"""The store that lies in the tests: what is in its archive, and how it is unpacked and used.

`make_store.py` made it once. Every later version must go on with it, so what is here and in `test_kept_store.py` uses
the command line and the published files alone, and nothing of the version that made it.
"""

from __future__ import annotations

import contextlib
import json
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

from office import Ran, ran

ARCHIVE = Path(__file__).with_name("store.tar.xz")
STORE, WITNESS, KEY, ANSWERS = "store", "witness/witness.sqlite", "key/only_for_tests.key", "answers.json"
PERIODS = ("2026-01-05", "2026-01-12")
SPECS = ("weekly", "family", "looked_at", "waiting", "mistaken")  # files of specs, named as the releases
RELEASED = [("weekly", PERIODS[0]), ("weekly", PERIODS[1]), ("family", "all"), ("looked_at", "all")]
COLLECTED = ("ages_city", "ages_state")
NAMES = ("DPHIST_STORE", "DPHIST_LEDGER", "DPHIST_DEBUG", "FORCE_COLOR")
QUESTIONS: list[list[str]] = [
    *(["weekly", "--period", period, "--where", "age in [25, 75) and ward = 'surgery'"] for period in PERIODS),
    ["family", "--where", "ward = 'medicine'"],
    ["family", "--where", "age in [25, 75) and sex = 'f'"],
    ["looked_at", "--where", "age in [0, 50)"],
    ["ages_city", "--where", "age in [0, 50)"],
    ["ages_state"],
]


@dataclass(frozen=True)
class KeptStore:
    """An office of the kind that the archive holds: specs, records, a store, its witness and its operator's key."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / STORE

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Has this process work for the office: its witness, its operator, none of this user's notes."""
        places = {"DPHIST_WITNESS": WITNESS, "DPHIST_OPERATOR_KEY": KEY, "XDG_STATE_HOME": "state"}
        known = {name: value for name, value in os.environ.items() if name not in NAMES}
        known |= {name: str(self.folder / place) for name, place in places.items()} | {"COLUMNS": "80"}
        with mock.patch.dict(os.environ, known, clear=True), contextlib.chdir(self.folder):
            yield

    def run(self, *words: str) -> Ran:
        """Runs `dphist` with these words; it must succeed."""
        with self.used():
            done = ran(*words)
        assert done.code == 0, f"dphist {' '.join(words)}: {done.err}"
        return done

    def released(self, name: str, period: str, *more: str) -> dict[str, Any]:
        """What `dphist release` says of a period, or of the whole release."""
        chosen = [] if period == "all" else ["--period", period]
        told: dict[str, Any] = self.run("release", f"{name}.yaml", *chosen, *more, "--json").json
        return told

    def allowed(self, day: str = "") -> None:
        """Decides that releases may read the records where they are now, and that the clock is right on this day."""
        self.run("ledger", "allow", "health", "--source", "data/*.parquet")
        today = day or f"{datetime.now(UTC):%Y-%m-%d}"  # years may have passed since the store was charged last
        self.run("ledger", "allow", "--clock", today, "--reason", "the store was in a cupboard")

    def spent(self) -> str:
        """What the account has spent."""
        told: str = self.run("ledger", "show", "health", "--json").json[0]["spent"]
        return told

    def answers(self) -> list[dict[str, Any]]:
        """What every question is answered: the count and its interval."""
        told = [self.run("answer", *question, "--json").json for question in QUESTIONS]
        return [{name: one[name] for name in ("estimate", "ci_lower", "ci_upper")} for one in told]

    def answers_then(self) -> list[dict[str, Any]]:
        """The same, by the version that made the store."""
        told: list[dict[str, Any]] = json.loads((self.folder / ANSWERS).read_bytes())
        return told

    def published(self, name: str, period: str, revision: int = 1) -> Path:
        """The folder of a publication."""
        return self.store / "public" / name / f"period={period}" / f"revision={revision}"

    def files(self) -> dict[str, bytes]:
        """Every file of a publication, and none of those that are made from them anew."""
        public = self.store / "public"
        return {str(path.relative_to(public)): path.read_bytes() for path in sorted(public.glob("*/period=*/**/*.*"))}


def unpacked(folder: Path) -> KeptStore:
    """The store as the archive holds it, with the modes of its files, in a folder that does not exist yet."""
    folder.mkdir(mode=0o700)
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            assert member.isdir() or member.isfile(), member.name
            archive.extract(member, folder, filter="data")
    with tarfile.open(ARCHIVE) as archive:  # after all files are there; whatever the mask of this user
        for member in archive:
            (folder / member.name).chmod(member.mode)
    return KeptStore(folder)
