"""Where a project's releases live: the public folder, the confidential one, and how they are told apart.

    <store>/store.json      a random id, and the id of the ledger that pays for it
            public/         what was released
            confidential/   staged rows and cubes of runs under way (0700), and the journal of answers
            ledger.sqlite   unless $DPHIST_LEDGER names another

A run's folder lives as long as its process: each holds a lock, and whoever comes later deletes the folders whose
lock nobody holds, so a killed run leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import make_folder, sync_folder, write_durably
from dphist_pipeline.privacy.ledger import Ledger

FORMAT = 1


class StoreMissing(DphistError):
    """There is no store where one was expected."""

    def __init__(self, root: Path) -> None:
        self.root = root
        super().__init__(
            f"there is no store at {root}. Make one with `dphist init --store {root}`, or name another with "
            "`--store` or $DPHIST_STORE."
        )


class StoreUnusable(DphistError):
    """A store that exists but cannot be used, or a place where none can be made."""

    def __init__(self, root: Path, problem: str) -> None:
        self.root, self.problem = root, problem
        super().__init__(f"the store at {root} {problem}")


@dataclass(frozen=True)
class Key:
    """What is charged once: a release, the first day of its period (or `all`), a revision from 1."""

    release: str
    period: str
    revision: int

    @property
    def place(self) -> Path:
        """Where this key's files lie below a store's confidential folders."""
        return Path(self.release, self.period, str(self.revision))

    @property
    def public_place(self) -> Path:
        """Where this key's files lie below a store's public folder."""
        return Path(self.release, f"period={self.period}", f"revision={self.revision}")


@dataclass(frozen=True)
class Store:
    """A store that exists; see the module for its folders."""

    root: Path
    id: str
    ledger_id: str

    @classmethod
    def create(cls, root: Path) -> Store:
        """Makes a store with its ledger; refuses a folder that holds anything.

        Raises:
            StoreUnusable: something is there already, or the folder cannot be made.
        """
        root = root.absolute()
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise StoreUnusable(root, "cannot be made: something is there already. Choose another folder.")
        try:
            make_folder(root, 0o755)
            make_folder(root / "public", 0o755)
            for part in ("runs", "locks", "journal"):
                make_folder(root / "confidential" / part)
        except OSError as error:
            problem = error.strerror
        else:
            problem = None
        if problem:
            raise StoreUnusable(root, f"cannot be made: {problem}. Choose a folder that you may write to.")
        ledger = Ledger.create(ledger_url(root))
        store = cls(root, uuid.uuid4().hex, ledger.id)
        content = {"format": FORMAT, "id": store.id, "ledger_id": ledger.id}
        write_durably(root / "store.json", json.dumps(content, indent=2).encode() + b"\n")
        sync_folder(root)
        return store

    @classmethod
    def open(cls, root: Path) -> Store:
        """Opens the store in a folder.

        Raises:
            StoreMissing, StoreUnusable: what is wrong, and the mend.
        """
        root = root.absolute()
        described = root / "store.json"
        if not described.is_file():
            raise StoreMissing(root)
        try:
            content = json.loads(described.read_bytes())
            usable = content["format"] == FORMAT
            store = cls(root, str(content["id"]), str(content["ledger_id"]))
        except (ValueError, KeyError, TypeError, OSError):
            usable = False
        if not usable:
            raise StoreUnusable(root, "has a store.json that this version cannot read; put back the original")
        return store

    def ledger(self) -> Ledger:
        """Opens and verifies the ledger, and checks it against every audit that was ever published here."""
        ledger = Ledger.open(ledger_url(self.root), self.ledger_id)
        ledger.require(self._witnesses())
        return ledger

    @property
    def public(self) -> Path:
        """What was released."""
        return self.root / "public"

    @property
    def confidential(self) -> Path:
        """Staged rows and cubes of runs under way, and the journal; nobody else may read it."""
        return self.root / "confidential"

    def published(self, key: Key) -> Path:
        """The folder in which this key's release is, or will be, published."""
        return self.public / key.public_place

    def journal(self, key: Key) -> Path:
        """The folder of the doors' answers for this key."""
        return self.confidential / "journal" / key.place

    @contextmanager
    def run(self, key: Key) -> Iterator[Path]:
        """A private folder for one attempt, gone at the end; sweeps away those of killed attempts."""
        self.sweep()
        name = uuid.uuid4().hex
        lock_path = self.confidential / "locks" / name
        folder = self.confidential / "runs" / key.place / name
        with _locked(lock_path):
            _insist_on(folder)
            try:
                yield folder
            finally:
                self._forget(folder, lock_path)

    def sweep(self) -> None:
        """Deletes the folders of attempts whose process is gone."""
        for lock_path in sorted(self.confidential.glob("locks/*")):
            with _locked(lock_path, wait=False) as mine:
                if mine:
                    for folder in self.confidential.glob(f"runs/*/*/*/{lock_path.name}"):
                        shutil.rmtree(folder, ignore_errors=True)
                    lock_path.unlink(missing_ok=True)

    def _forget(self, folder: Path, lock_path: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        lock_path.unlink(missing_ok=True)
        for parent in folder.parents:
            if parent.name == "runs":
                break
            with suppress(OSError):  # another attempt may still use it
                parent.rmdir()

    def _witnesses(self) -> Iterator[tuple[str, int, str]]:
        """The ledger entries that published audits name, so that an older ledger is noticed."""
        for audit in sorted(self.public.glob("*/period=*/revision=*/audit.json")):
            try:
                entry = json.loads(audit.read_bytes())["ledger"]
                witness = (str(audit.relative_to(self.root)), int(entry["number"]), str(entry["hash"]))
            except (ValueError, KeyError, TypeError, OSError):
                witness = None
            if witness is None:
                raise StoreUnusable(self.root, f"has a damaged audit, {audit.relative_to(self.root)}: restore it")
            yield witness


def ledger_url(root: Path) -> str:
    """Where the ledger of a store is: $DPHIST_LEDGER, else a file in the store."""
    return os.environ.get("DPHIST_LEDGER") or f"sqlite:///{root / 'ledger.sqlite'}"


def _insist_on(folder: Path) -> None:
    """Makes a folder whose empty parents another attempt may be deleting just now."""
    while not folder.is_dir():
        with suppress(FileNotFoundError):
            make_folder(folder)


@contextmanager
def _locked(path: Path, wait: bool = True) -> Iterator[bool]:
    """Holds an advisory lock on a file; without `wait`, yields whether it was free."""
    handle = _open_locked(path) if wait else _try_locked(path)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            os.close(handle)


def _open_locked(path: Path) -> int:
    """A lock on a file that is still there: a sweep may delete it between its making and its locking."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if path.exists():
            return handle
        os.close(handle)


def _try_locked(path: Path) -> int | None:
    handle = None
    with suppress(FileNotFoundError, BlockingIOError):
        handle = os.open(path, os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return handle
    if handle is not None:
        os.close(handle)
    return None
