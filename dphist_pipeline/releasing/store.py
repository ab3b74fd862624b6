"""Where a project's releases live: the public folder, the confidential one, and how they are told apart.

    <store>/store.json      a random id, and the id of the ledger that pays for it
            public/         what was released
            confidential/   staged rows and cubes of runs under way (0700), and the journal of answers; its own
                            random id
            ledger.sqlite   unless $DPHIST_LEDGER names another
            specs/          the normalised specs that were charged, by digest, and in signed/ those
                            that an operator signed for (see `_spec_changes`)

A run's folder lives as long as its process: each holds the lock beside it, and whoever comes later deletes the
folders whose lock nobody holds, so a killed run leaves nothing behind.

Several hosts may have one store: each has a confidential folder of its own, and draws for its own charges alone. Every
charge names the id of the folder that may draw for it. Hosts share a ledger, a witness and the store's id; they need
not share any folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist_pipeline.base.files import (
    locked_folder,
    make_folder,
    may,
    named_store,
    network_disk,
    project_folder,
    read_regular,
    replace_durably,
    sync_folder,
    write_durably,
)
from dphist_pipeline.errors import DphistError, Halted, Refused
from dphist_pipeline.ledger.entries import Charge, Folder
from dphist_pipeline.ledger.errors import LedgerError, WitnessMissing
from dphist_pipeline.publishing.public_names import CURRENT

# A question to what is published opens no ledger: SQLAlchemy and keys are imported where one is opened.
if TYPE_CHECKING:
    from sqlalchemy import URL

    from dphist_pipeline.ledger.ledger import Ledger
    from dphist_pipeline.ledger.witness import Witness
    from dphist_pipeline.publishing.bucket_sync import BucketSync

FORM = 2  # of the public folder; 1 had downloads, lists of rendered pages, and cards that audits seal
DESCRIBED, FOLDER = "store.json", "folder.json"
LOCK, KEPT = ".lock", ".kept"
KEPT_SECONDS = 24 * 3600


class StoreMissing(Refused):
    """There is no store where one was expected."""

    def __init__(self, root: Path) -> None:
        self.root = root
        super().__init__(
            f"there is no store at {root}. Make one with `dphist init --store {root}`, or name another with "
            "`--store` or $DPHIST_STORE."
        )


def store_unusable(root: Path, problem: str) -> Halted:
    """A store that exists but cannot be used, or a place where none can be made."""
    return Halted(f"the store at {root} {problem}", code="store_unusable", root=root, problem=problem)


def not_upgraded(root: Path) -> Halted:
    """A store of form 1, below whose public folder this version writes nothing."""
    return Halted(
        f"the store at {root} has the form of an earlier version, and this one publishes nothing there: once this "
        "version is installed on every host of the store, run `dphist store upgrade`, which spends nothing. Then run "
        "the same command again.",
        code="store_not_upgraded",
    )


def verified_alone(entries: int, publications: int, missing: DphistError) -> Refused:
    """A ledger that holds together, and no witness to say whether it is the newest."""
    return Refused(
        f"{entries} entries were read, every hash and every sum holds, and {publications} of the publications are "
        f"whole; but nobody can say whether entries are missing at the ledger's end. {missing}",
        code="verified_alone",
    )


@dataclass(frozen=True)
class Key:
    """The key of a charge: a release, the first day of its period (or `all`), a revision from 1."""

    release: str
    period: str
    revision: int

    @classmethod
    def of(cls, charge: Charge) -> Key:
        """The key of a charge."""
        return cls(charge.release, charge.period, charge.revision)

    @property
    def place(self) -> Path:
        """The path of this key's files below a store's confidential folders."""
        return Path(self.release, self.period, str(self.revision))

    @property
    def public_place(self) -> Path:
        """The path of this key's files below a store's public folder."""
        return Path(self.release, f"period={self.period}", f"revision={self.revision}")


@dataclass(frozen=True)
class Store:
    """A store that exists; see the module for its folders."""

    root: Path
    id: str
    ledger_id: str
    ledger_address: str | None = None  # of a ledger that neither lies in the store nor is named by the environment
    witness_file: str | Path | None = None  # where the environment does not say it
    joined: bool = False  # whether another host of the store was there first
    public_address: str | None = None  # of a copy of the public folder in a bucket
    form: int = FORM

    @classmethod
    def create(cls, root: Path, public_address: str | None = None) -> Store:
        """Makes a store with its ledger, known to its witness; refuses a folder that holds anything.

        Whoever makes it is the ledger's operator, with the key that is theirs, made where there is none.

        Raises:
            Halted: something is there already, or the folder cannot be made.
            LedgerError: ledger, key or witness cannot be where they are to be.
        """
        from dphist_pipeline.ledger.ledger import Ledger
        from dphist_pipeline.ledger.signing import Operator
        from dphist_pipeline.ledger.witness import Witness

        witness = Witness.at()
        root = make_folders(root, witness)
        store_id, created = uuid.uuid4().hex, None
        try:
            created = ledger = Ledger.create(_ledger_address(root), Operator.load_or_make())
            witness.refuse_ledger(ledger.place)
            witness.enrol(store_id, ledger.standing().started_by)
        except DphistError:
            for part in ("public", "confidential", "specs"):
                shutil.rmtree(root / part)
            if created is not None:
                created.discard()
            with suppress(OSError):
                root.rmdir()
            raise
        store = cls(root, store_id, ledger.id, public_address=public_address)
        store._describe()
        return store

    @classmethod
    def join(cls, root: Path, public_address: str | None = None) -> Store:
        """Makes a store of this host for a ledger and a witness that other hosts use, which the environment names.

        Hosts of one store share the bucket that their public folder is copied to.

        Raises:
            Halted: the environment names no ledger, or a store cannot be made there.
            LedgerError: there is no such ledger, or its witness is another one.
        """
        from dphist_pipeline.ledger.ledger import Ledger
        from dphist_pipeline.ledger.witness import Witness

        if not os.environ.get("DPHIST_LEDGER"):
            raise store_unusable(root, "cannot be made: set DPHIST_LEDGER and DPHIST_WITNESS as on its other hosts")
        ledger, witness = Ledger.open(_ledger_address(root)), Witness.at()
        witness.refuse_ledger(ledger.place)
        store_id = witness.store_started_by(ledger.standing().started_by)
        if store_id is None:
            raise WitnessMissing(witness.where, f"the ledger at {ledger.place}")
        store = cls(make_folders(root, witness), store_id, ledger.id, joined=True, public_address=public_address)
        store._describe()
        return store

    @staticmethod
    def folder(named: Path | None = None) -> Path:
        """The folder of the store to use: as named, else $DPHIST_STORE, else `store/` in the working folder's project.

        Never at a spec's place: who writes specs would bring a ledger of their own.
        """
        if (named := named or named_store.get()) is not None:
            return named
        address = os.environ.get("DPHIST_STORE")
        return Path(address) if address else project_folder(Path.cwd()) / "store"

    @staticmethod
    def cannot_open(root: Path, error: OSError) -> Halted:
        """Why this user cannot open a store."""
        return store_unusable(root, f"cannot be opened: {error.strerror}. Run this as the user who releases.")

    @classmethod
    def open_named(cls, named: Store | Path | None = None) -> Store:
        """Opens the store to use; see `folder`. One that is open is given as it is."""
        return named if isinstance(named, Store) else cls.open(cls.folder(named))

    @classmethod
    def public_folder(cls, named: Path | str | None) -> Path:
        """The folder whose files answer questions; no ledger is opened.

        It may be a store's, or a copy, which stays as it is; by default as `folder` says.
        """
        root = cls.folder(None if named is None else Path(named))
        if not (root / DESCRIBED).exists() and any(root.glob(f"*/{CURRENT}")):
            return root.absolute()
        return cls.open(root).public

    @classmethod
    def open(cls, root: Path | str, ledger: str | None = None, witness: str | Path | None = None) -> Store:
        """Opens the store in a folder, with its ledger and witness by address, or else as the environment says."""
        _refuse_address(Path(root))
        root = Path(root).absolute()
        described = root / DESCRIBED
        if not described.is_file():
            raise StoreMissing(root)
        if not may(described, os.R_OK):
            raise store_unusable(
                root, f"has a store.json that this user may not read. Its owner lets you: chmod a+r {described}"
            )
        try:
            content = json.loads(described.read_bytes())
            form = int(content.get("schema_version", content.get("format")))  # version 0.1 calls it `format`
            ids, joined = (str(content["id"]), str(content["ledger_id"])), bool(content.get("joined"))
            store = cls(root, *ids, ledger, witness, joined, content.get("public_address"), form)
        except (ValueError, KeyError, TypeError, OSError):
            form = 0
        if form > FORM:
            raise store_unusable(root, f"has form {form}, which a later version of dphist gave it: install that one")
        if form < 1:
            raise store_unusable(root, "has a store.json that this version cannot read; put back the original")
        return store

    def refuse_old_layout(self) -> None:
        """Refuses to write below the public folder of a store that was not upgraded; raises Halted."""
        if self.form != FORM:
            raise not_upgraded(self.root)

    def upgrade(self) -> Store:
        """Brings the store to the form of this version, which earlier versions refuse from now on."""
        return replace(self, form=FORM)._rewrite_description()

    @property
    def ledger_url(self) -> str | URL:
        """The ledger's address: as named when the store was opened, else $DPHIST_LEDGER, else a file in the store."""
        return self.ledger_address or _ledger_address(self.root)

    @cached_property
    def _opened_ledger(self) -> Ledger:
        from dphist_pipeline.ledger.ledger import Ledger

        ledger = Ledger.open(self.ledger_url, self.ledger_id)
        kind = network_disk(self.confidential) if isinstance(ledger.place, Path) else None
        if kind is not None:
            problem = f"has its confidential files on a network file system ({kind}), where several machines reach them"
            raise store_unusable(self.root, f"{problem}. That needs a ledger on a server: `dphist ledger move --help`")
        return ledger

    def ledger(self) -> Ledger:
        """The ledger, checked against all that was ever published or rejected here; opened and verified once.

        What is asked of it later is read anew each time. A store lives for one command, or one step of Dagster.
        """
        ledger = self._opened_ledger
        # Files first, entries second: another run may charge and publish at this very moment.
        ledger.require(list(self.named_entries()))
        return ledger

    def witness(self, ledger: Ledger) -> Witness:
        """The witness, which holds every charge outside the store; refused where it would be copied with the ledger."""
        from dphist_pipeline.ledger.witness import Witness

        witness = Witness.at(self.witness_file)
        witness.refuse_ledger(ledger.place)
        witness.refuse_inside(self.root)
        return witness

    def refuse_truncated_ledger(self, ledger: Ledger, witness: Witness) -> None:
        """Refuses a ledger that lacks the latest entry which the witness has seen: its end was cut off."""
        number = self.missing_head(ledger, witness)
        if number is not None:
            raise LedgerError("ledger_lacks_head", ledger=ledger.place, where=witness.where, number=number)

    def missing_head(self, ledger: Ledger, witness: Witness) -> int | None:
        """The number of the latest entry that the witness has seen, where the ledger does not hold it."""
        # The witness first, the ledger second: another process may enter something at this very moment.
        head = witness.head(self.id, ledger.head()[0])
        return None if head is None or ledger.holds(*head) else head[0]

    def verify(self) -> tuple[int, int, list[str]]:
        """Reads the whole ledger again, and every published file against it, and those that no ledger pays for.

        Gives the numbers of entries and of whole publications, and which publications of this host are missing.

        Raises:
            LedgerError, PublishedFilesDamaged: what does not agree.
        """
        from dphist_pipeline.ledger.witness import place_of
        from dphist_pipeline.publishing.published_files import (
            PublishedFilesDamaged,
            PublishedFolder,
            forget_digests,
            read_audit,
        )
        from dphist_pipeline.publishing.statements import Statement

        forget_digests()
        ledger = self.ledger()
        witness = self.witness(ledger)
        self.refuse_truncated_ledger(ledger, witness)
        # A user who only decides sees no confidential folder. If the witness does not know it either, every host's
        # files are told.
        sees = may(self.confidential, os.R_OK | os.X_OK)
        own = {self.own_folder().id} if sees else witness.folders_at(place_of(self.root))
        entries, whole, missing = ledger.verify(), 0, []
        for account in ledger.accounts():
            for charge in (entry for entry in Statement.of(ledger, account.name).charges if not entry.lost):
                key = Key.of(charge)
                is_published, recorded = self.published(key).exists(), ledger.published_digest(charge)  # in this order
                if recorded is None and is_published:
                    raise PublishedFilesDamaged(
                        self.published(key),
                        "is there, and the ledger has no entry that it was published; release it again, at no cost",
                    )
                if recorded is not None and not is_published:
                    is_here = not own or charge.folder is None or charge.folder.id in own
                    missing += [str(key.public_place)] if is_here else []
                elif recorded is not None:
                    self.read_vouched_audit(charge, recorded)
                    is_marked = PublishedFolder(self.published(key)).is_marked_withdrawn()
                    if "withdrawn" in ledger.notes(charge) and not is_marked:
                        raise PublishedFilesDamaged(self.published(key), "is withdrawn, and its audit does not say so")
                    whole += 1
        for folder in self.public.glob("*/period=*/revision=*"):
            if folder.name.removeprefix("revision=").isdecimal():
                PublishedFolder(folder).refuse_links(self.public)
                whole += read_audit(folder).get("model") == "local"
        return entries, whole, missing

    def confirm_witness(self, entries: int, publications: int) -> bool:
        """Compares the ledger with its witness; changes nothing in either. The numbers are for the message.

        Gives False for a ledger of version 0.1, which has no witness until its first decision brings one.

        Raises:
            Refused: there is no witness, or it does not know the store.
            LedgerError: the two disagree, or the witness cannot be used.
        """
        ledger = self.ledger()
        witness, problem = self.witness(ledger), None
        try:
            witness.confirm(self.id, ledger.standing)
        except WitnessMissing as error:
            problem = error
        if problem is None:
            return True
        if not ledger.operators():
            return False
        raise verified_alone(entries, publications, problem)

    def unrecorded_publications(self, ledger: Ledger) -> list[Charge]:
        """Charges whose files are published though the ledger does not say so: its end was cut off."""
        from dphist_pipeline.publishing.statements import Statement

        charges = [charge for account in ledger.accounts() for charge in Statement.of(ledger, account.name).charges]
        # The files first, the ledger second: a run enters its publication before anybody sees a file.
        published_charges = [
            charge for charge in charges if not charge.lost and self.published(Key.of(charge)).exists()
        ]
        return [charge for charge in published_charges if ledger.published_digest(charge) is None]

    def read_vouched_audit(self, charge: Charge, recorded: str | None) -> dict[str, Any]:
        """Reads the audit of what a charge paid for, and compares what it says with the ledger.

        `recorded`: the digest of its values in the ledger; None where the ledger does not say yet that it is published.
        """
        from dphist_pipeline.releasing._vouching import read_vouched_audit

        return read_vouched_audit(self, self.published(Key.of(charge)), charge, recorded)

    def cadence(self, release: str) -> Path:
        """The file that says how a release cuts time; see `due`."""
        return self.root / "specs" / "periods" / f"{release}.json"

    def mark_for_approval(self, charge: Charge) -> None:
        """Keeps that what a charge paid for waits for a person: its numbers are in doubt (`publish: if_plausible`).

        The charge cannot say so: it is made before anything is drawn. So a file beside the store's specs says it, named
        by the hash of the charge and empty. That a period waits rests on noisy numbers that were paid for.
        """
        place = self._approval_mark(charge)
        if not place.exists():
            make_folder(place.parent)
            write_durably(place, b"")

    def is_marked_for_approval(self, charge: Charge) -> bool:
        """Whether a charge that is not published waits for a person, not for another run."""
        return self._approval_mark(charge).exists()

    def _approval_mark(self, charge: Charge) -> Path:
        return self.root / "specs" / "waiting" / charge.hash

    @property
    def public(self) -> Path:
        """The folder of all publications."""
        return self.root / "public"

    @property
    def confidential(self) -> Path:
        """Staged rows and cubes of runs under way, and the journal; nobody else may read it."""
        return self.root / "confidential"

    def published(self, key: Key) -> Path:
        """The folder in which this key's release is, or will be, published."""
        return self.public / key.public_place

    def key_of(self, published: Path) -> Key | None:
        """The key whose release is published in a folder; None for any other folder, such as `revision=01`."""
        release, period, revision = published.relative_to(self.public).parts
        number = revision.removeprefix("revision=")
        if not number.isdecimal():
            return None
        key = Key(release, period.removeprefix("period="), int(number))
        return key if self.published(key) == published else None

    def journal(self, key: Key) -> Path:
        """The folder of the measurements' answers for this key."""
        return self.confidential / "journal" / key.place

    def rejection(self, key: Key) -> Path:
        """The file that stays where a waiting release was rejected: which entry of the ledger says so."""
        return self.confidential / "rejected" / key.place.with_suffix(".json")

    @contextmanager
    def run(self, key: Key) -> Iterator[Path]:
        """A private folder for one attempt, gone at the end."""
        folder = self.confidential / "runs" / key.place / uuid.uuid4().hex
        handle = _make_and_hold_lock(_beside(folder, LOCK))
        try:
            make_folder(folder)
            yield folder
        finally:
            _forget(folder)
            os.close(handle)

    def forget_kept_runs(self, key: Key) -> None:
        """Deletes what attempts by version 0.2 or older left of a key's period under Dagster, at any revision."""
        for marker in (self.confidential / "runs" / key.release / key.period).glob(f"*/*{KEPT}"):
            _forget(marker.with_suffix(""))

    @contextmanager
    def building(self) -> Iterator[None]:
        """One process at a time that changes what is public beyond a single release, such as the catalogue."""
        with locked_folder(self.public):
            yield

    def sweep(self) -> None:
        """Deletes the folders of attempts whose process is gone."""
        # os.walk, unlike Path.glob, takes no offence at folders that vanish meanwhile.
        for place, _, names in os.walk(self.confidential / "runs"):
            for lock in [Path(place, name) for name in names if name.endswith(LOCK)]:
                handle = _hold_lock(lock)
                if handle is not None:
                    _forget(lock.with_suffix(""))
                    os.close(handle)
            for marker in [Path(place, name) for name in names if name.endswith(KEPT)]:
                with suppress(FileNotFoundError):
                    if time.time() - marker.stat().st_mtime > KEPT_SECONDS:
                        _forget(marker.with_suffix(""))

    def abandoned_runs(self) -> list[str]:
        """Releases and periods of killed runs that left files, as in 'wards/2026-03-02'; in order, each once.

        Nothing in their folders is opened. A lock without a file in its folder holds nothing exact.
        """
        folder, places = self.confidential / "runs", set()
        for place, _, names in os.walk(folder):
            for beside in [Path(place, name) for name in names]:
                is_over = beside.suffix == KEPT or (beside.suffix == LOCK and not _is_held(beside))
                if is_over and any(files for *_, files in os.walk(beside.with_suffix(""))):
                    places.add("/".join(Path(place).relative_to(folder).parts[:2]))
        return sorted(places)

    def forgotten_rejections(self, ledger: Ledger) -> set[Path]:
        """Files of rejections whose entries the ledger does not hold."""
        hashes = {entry.hash for entry in ledger.entries()}
        return {
            self.root / place
            for place, _, of in self.named_entries()
            if (self.root / place).is_relative_to(self.confidential) and of not in hashes
        }

    def named_entries(self) -> Iterator[tuple[str, int, str]]:
        """The ledger entries that published audits and rejections name, so that an older ledger is noticed.

        Releases of the local model name none: their contributors spent, and this store's ledger knows nothing of it.
        Nor does an audit that is damaged, no more than one that is gone: it stops its own publication, and no other.
        """
        for audit in sorted(self.public.glob("*/period=*/revision=*/audit.json")):
            with suppress(ValueError, KeyError, TypeError, OSError):
                status = audit.stat()
                identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                if (entry := _named_entry(audit, identity)) is not None:
                    yield str(audit.relative_to(self.root)), *entry
        for rejection in sorted(self.confidential.glob("rejected/*/*/*.json")):
            try:
                facts = json.loads(rejection.read_bytes())
                witness = (str(rejection.relative_to(self.root)), int(facts["number"]), facts["hash"])
            except (ValueError, KeyError, TypeError, OSError):
                raise store_unusable(
                    self.root, f"has a damaged {rejection.relative_to(self.root)}: put it back from a backup"
                ) from None
            yield witness

    def own_folder(self) -> Folder:
        """The confidential folder of this host, with its random id; gives it one if it is an earlier version's.

        Raises:
            Halted: the id is damaged, or cannot be written.
        """
        path = self.confidential / FOLDER
        mend = f"{path.relative_to(self.root)}: put it back from a backup"
        problem = f"a damaged {mend}"
        try:
            if not path.exists():
                draft = path.with_name(f".{uuid.uuid4().hex}")
                write_durably(draft, folder_content())
                with suppress(FileExistsError):  # another process was first
                    os.link(draft, path)
                draft.unlink()
                sync_folder(path.parent)
            folder_id = json.loads(path.read_bytes())["id"]
            if isinstance(folder_id, str) and len(folder_id) == 32 and folder_id.isalnum():
                return Folder(folder_id, host_name())
        except PermissionError:
            problem = "a confidential/ that you may not use. `dphist doctor` says which user releases here"
        except OSError as error:
            problem = f"({error.strerror}) an unusable {mend}"
        except (ValueError, KeyError, TypeError):
            pass
        raise store_unusable(self.root, f"has {problem}")

    def bucket(self) -> BucketSync | None:
        """The copy in the store's bucket; None where the store has none."""
        if self.public_address is None:
            return None
        from dphist_pipeline.publishing.bucket_sync import BucketSync

        return BucketSync(self.public, self.public_address, self.bucket_memory)

    @property
    def bucket_memory(self) -> Path:
        """The folder in which this host keeps what it sent to each bucket."""
        return self.confidential / "sent"

    def with_address(self, public_address: str) -> Store:
        """The store with another bucket to copy to, checked before, which it remembers; nothing is sent yet.

        Raises:
            Halted: this user may not write that down.
        """
        return replace(self, public_address=public_address)._rewrite_description()

    def _rewrite_description(self) -> Store:
        described = self.root / DESCRIBED
        try:
            with locked_folder(self.root):
                mode = described.stat().st_mode & 0o777  # whoever could read it still can
                replace_durably(described, self.root / f".{DESCRIBED}.new", self._description(), mode)
            return self
        except OSError as error:
            problem = f"stays as it is: {DESCRIBED} could not be written ({error.strerror})"
        raise store_unusable(self.root, f"{problem}. Run this as the user who releases.")

    def _describe(self) -> None:
        """Writes down which store a folder holds, and makes it one thereby."""
        write_durably(self.root / DESCRIBED, self._description())
        sync_folder(self.root)

    def _description(self) -> bytes:
        """The content of `store.json`."""
        content = {"schema_version": self.form, "id": self.id, "ledger_id": self.ledger_id}
        content |= {"joined": True} if self.joined else {}
        content |= {"public_address": self.public_address} if self.public_address else {}
        return json.dumps(content, indent=2).encode() + b"\n"


def make_folders(root: Path, witness: Witness) -> Path:
    """Makes the folders of a store in a missing or empty one, and gives its absolute path; the witness lies outside.

    Raises:
        Halted: the folder holds something, or cannot be made.
    """
    _refuse_address(root)
    root = root.absolute()
    witness.refuse_inside(root)
    if {"?", "#"} & set(str(root)):
        raise store_unusable(
            root, "cannot be made: ? and # have a meaning in addresses of databases. Use a path without them."
        )
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise store_unusable(root, "cannot be made: something is there already. Choose another folder.")
    try:
        make_folder(root, 0o755)
        (root / "public").mkdir(0o755)  # of two that make one store at once, the second fails here
        for part in ("runs", "journal"):
            make_folder(root / "confidential" / part)
        make_folder(root / "specs" / "signed")
        write_durably(root / "confidential" / FOLDER, folder_content())
        return root
    except OSError as error:
        problem = error.strerror
    raise store_unusable(root, f"cannot be made: {problem}. Choose a folder that you may write to.")


def _ledger_address(root: Path) -> str | URL:
    """The address of a store's ledger: $DPHIST_LEDGER, else a file in its folder, which is absolute."""
    from sqlalchemy import URL

    # Built from its parts: in a text, signs such as % in the folder's name would be decoded.
    return os.environ.get("DPHIST_LEDGER") or URL.create("sqlite", database=str(root / "ledger.sqlite"))


def folder_content() -> bytes:
    """What lies in a confidential folder to be known by: a random id."""
    return json.dumps({"schema_version": 1, "id": uuid.uuid4().hex}).encode() + b"\n"


def _refuse_address(root: Path) -> None:
    """Refuses an address such as s3://bucket/store, which would name a local folder called `s3:`."""
    first = root.parts[0] if root.parts else ""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]+:", first):
        raise store_unusable(
            root, f"cannot be made or opened: `{first}//` begins an address, and a store is a folder of this machine."
        )


def host_name() -> str:
    """The name of this machine, for the ledger."""
    name = socket.gethostname()
    return name if name.isprintable() and 0 < len(name) <= 200 else "unnamed"


def _beside(folder: Path, ending: str) -> Path:
    """A file next to the folder of a run, called like it, with an ending such as `LOCK`; neither need be there."""
    return folder.with_name(folder.name + ending)


def _make_and_hold_lock(lock: Path) -> int:
    """Makes a lock and holds it, though a sweep may delete it, or its empty folders, between the two.

    Gives an open file descriptor; the lock is held until it is closed.
    """
    while True:
        with suppress(FileNotFoundError):
            make_folder(lock.parent)
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT, 0o600))
            handle = _hold_lock(lock)
            if handle is not None:
                return handle


def _hold_lock(lock: Path) -> int | None:
    """Holds a lock if nobody else does and it is still the file of that name, which may vanish meanwhile.

    Gives an open file descriptor, to be closed by the caller; None where somebody else holds the lock.
    """
    handle = None
    with suppress(FileNotFoundError, BlockingIOError):
        handle = os.open(lock, os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(handle), lock.stat()):
            return handle
    if handle is not None:
        os.close(handle)
    return None


def _forget(folder: Path) -> None:
    """Deletes the folder of a run that is over, then its lock, then the folders above that this leaves empty."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        return  # the lock stays, so that the next sweep tries again
    for ending in (LOCK, KEPT):
        _beside(folder, ending).unlink(missing_ok=True)
    for parent in folder.parents:
        if parent.name == "runs":
            break
        with suppress(OSError):  # another attempt may still use it
            parent.rmdir()


def _is_held(lock: Path) -> bool:
    """Whether a process works under a lock, or has just let go of it and deleted it."""
    with suppress(OSError):
        handle = os.open(lock, os.O_RDONLY)
        try:
            # Shared, and let go of at once: a run that starts now takes its own lock a moment later.
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return not os.path.samestat(os.fstat(handle), lock.stat())
        finally:
            os.close(handle)
    return True


@lru_cache(maxsize=10_000)
def _named_entry(audit: Path, identity: tuple[int, ...]) -> tuple[int, str] | None:
    """Number and hash of the ledger entry that an audit names; None for a release of the local model.

    `identity`: of the file on the disk; a command asks several times.
    """
    facts = json.loads(read_regular(audit))
    if facts["ledger"] is None and facts["model"] == "local":
        return None
    return int(facts["ledger"]["number"]), facts["ledger"]["hash"]
