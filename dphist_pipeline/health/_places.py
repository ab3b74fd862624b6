"""Checks of folders, of the operator's key and of free disk: who can read and change them, and how much is free."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from dphist_pipeline.base.about_publisher import NAME, faults
from dphist_pipeline.base.files import may
from dphist_pipeline.health.finding import (
    NAMED,
    CheckResult,
    Examined,
    fault,
    finding_of,
    name_of,
    not_looked_at,
    ok,
    shell_word,
    warning,
)
from dphist_pipeline.ledger.errors import OperatorKeyOpen, OperatorKeyUnusable
from dphist_pipeline.ledger.signing import Operator, key_path
from dphist_pipeline.releasing.store import FORM

OTHERS = stat.S_IRWXO
GROUP_OR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
WRITABLE_BY_OTHERS = stat.S_IWOTH
GIGABYTE = 10**9
# Gigabytes of free disk: a release stages its rows, and spills what does not fit into DPHIST_MEMORY.
LEAST, ENOUGH = 1, 10
FEWEST_FILES = 1_000


def store(subject: Examined) -> CheckResult:
    """The store's folder: there, of this version, and nobody else can put other folders into it."""
    check = "store"
    if subject.store is None:
        return finding_of(check, subject.refused[check])
    for folder in (subject.root, subject.store.public):
        if not folder.is_dir():
            return fault(check, f"{folder} is not there", f"Put the store back from a backup, {folder} with it.")
        if folder.stat().st_mode & WRITABLE_BY_OTHERS:
            return fault(check, f"everybody can change files in {folder}", f"chmod o-w {shell_word(folder)}")
    if subject.releases_here and not may(subject.store.public, os.W_OK):
        return fault(
            check,
            f"this user cannot publish into {subject.store.public}",
            f"chmod u+w {shell_word(subject.store.public)}",
        )
    if subject.store.form != FORM:
        mend = "dphist store upgrade, once this version is installed on every host of the store."
        return fault(check, f"{subject.root} has form {subject.store.form}, and releases are refused", mend)
    return ok(check, f"{subject.root}, id {subject.store.id}")


def about(subject: Examined) -> CheckResult:
    """What the office says of itself in `about.json`: a field that says nothing is not told on any page."""
    check = "about"
    if subject.store is None:
        return not_looked_at(check, "there is no store")
    if problems := faults(subject.store.public):
        return warning(
            check, "; ".join(problems[:NAMED]), f"Mend {subject.root / NAME}; pages say nothing of these fields."
        )
    return ok(check, f"every field of {NAME} is read" if (subject.root / NAME).exists() else f"there is no {NAME}")


def user(subject: Examined) -> CheckResult:
    """Which user runs this, and what they can do here; of one who must release, a store of another user is a fault."""
    check, me = "user", name_of(os.geteuid())
    if not subject.confidential.is_dir():
        return not_looked_at(check, f"{subject.confidential} is not there")
    owner = name_of(subject.confidential.stat().st_uid)
    if not subject.releases_here and subject.releases_only:
        return fault(check, f"this is {me}, and the store is {owner}'s", f"Run releases as {owner}.")
    if not subject.releases_here and not _decides(subject):
        return warning(
            check,
            f"this is {me}, who neither releases here (that is {owner}) nor decides",
            f"Run releases, and this command, as {owner}, with the same DPHIST_ variables.",
        )
    does = ("releases" if subject.releases_here else "", "decides" if _decides(subject) else "")
    return ok(check, f"this is {me}, who {' and '.join(filter(None, does))}; the store is {owner}'s")


def confidential(subject: Examined) -> CheckResult:
    """The confidential folder: its owner's alone, with everything in it."""
    check, folder = "confidential", subject.confidential
    try:
        status = folder.lstat()
    except OSError:
        return fault(check, f"{folder} is not there", "Put the store back from a backup, the journal with it.")
    if not stat.S_ISDIR(status.st_mode):
        return fault(check, f"{folder} is no folder", "Put the folder itself there, not a link to it.")
    if status.st_mode & GROUP_OR_OTHERS:
        who = "everybody" if status.st_mode & OTHERS else "its group"
        return fault(check, f"{who} may read or change {folder}", f"chmod 700 {shell_word(folder)}")
    owner = name_of(status.st_uid)
    if not may(folder, os.R_OK | os.X_OK):
        return ok(check, f"{folder} is {owner}'s; this user cannot look into it, as it should be")
    if status.st_uid == os.geteuid() and not may(folder, os.W_OK):
        return fault(check, f"{owner} cannot write into {folder}", f"chmod 700 {shell_word(folder)}")
    foreign = _of_another_user(folder, status.st_uid)
    if foreign is not None:
        return fault(
            check, f"{foreign} is not {owner}'s: another user released here", f"chown -R {owner} {shell_word(folder)}"
        )
    return ok(check, f"{folder} is {owner}'s alone (mode 700)")


def operator_key(subject: Examined) -> CheckResult:
    """The operator's key: private, outside the store and known to the ledger; or rightly absent.

    Of a user who must only release, a key that this user can read is a fault.
    """
    check, path = "operator_key", key_path()
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return ok(check, f"no key at {path}: this user releases, and decides nothing")
    except OSError:
        return ok(check, f"the key at {path} cannot be read by this user, who decides nothing")
    if not may(path, os.R_OK):
        return ok(check, f"the key at {path} is {name_of(status.st_uid)}'s; this user decides nothing")
    try:
        operator = Operator.load(path)
    except OperatorKeyOpen as error:
        return fault(check, f"the key at {path} signs nothing: {error.problem}", error.mend)
    except OperatorKeyUnusable as error:
        return finding_of(check, error)
    if path.resolve().is_relative_to(subject.root.resolve()):
        return fault(
            check, f"the key at {path} lies in the store", "Move it out of the store, and set DPHIST_OPERATOR_KEY."
        )
    if subject.releases_only:
        return fault(
            check,
            f"this user can read the key at {path}, and must only release",
            f"Give the file to whoever decides, and take it away here: {shell_word(path)}",
        )
    return _known_key(check, subject, path, operator)


def _known_key(check: str, subject: Examined, path: Path, operator: Operator) -> CheckResult:
    if subject.ledger is None:
        return not_looked_at(check, "the ledger could not be opened")
    operators, signers = subject.ledger.operators(), subject.ledger.books().permissions.names
    if operator.public in operators:
        return ok(check, f"the key at {path} is {operators[operator.public]}'s, and decides here")
    if operator.public in signers:
        return warning(
            check,
            f"the key at {path} was replaced by another one",
            f"Set DPHIST_OPERATOR_KEY to the new key, and delete the old one: rm {shell_word(path)}",
        )
    if not operators:
        return ok(check, f"the key at {path} will be the operator's by the first decision")
    return warning(
        check,
        f"the key at {path} is of no operator of this ledger ({', '.join(operators.values())})",
        f"Have one of them add it: dphist ledger add-key {operator.public} --name NAME",
    )


def disk(subject: Examined) -> CheckResult:
    """Room on the disks of the confidential folder, of temporary files and of the public folder.

    Bands alone, no sizes: how much a run has staged at this moment depends on records.
    """
    check, bands = "disk", []
    places = {
        "confidential": subject.confidential,
        "public": subject.root / "public",
        "temporary": Path(tempfile.gettempdir()),
    }
    for name, folder in places.items():
        try:
            free = os.statvfs(folder)
        except OSError:
            return not_looked_at(check, f"{folder} is not there")
        room, mend = free.f_bavail * free.f_frsize, f"Free room on the disk of {folder}, or move it to a larger one."
        if room < LEAST * GIGABYTE:
            return fault(check, f"less than {LEAST} GB free for {name} files, in {folder}", mend)
        if free.f_files and free.f_favail < FEWEST_FILES:
            return fault(check, f"the disk of {folder} takes hardly any more files", mend)
        bands.append((name, folder, room < ENOUGH * GIGABYTE, mend))
    for name, folder, little, mend in bands:
        if little:
            return warning(check, f"less than {ENOUGH} GB free for {name} files, in {folder}", mend)
    return ok(check, f"at least {ENOUGH} GB free for {', '.join(places)} files")


def _decides(subject: Examined) -> bool:
    """Whether this user holds a key of the ledger."""
    if subject.ledger is None:
        return False
    try:
        return Operator.load().public in subject.ledger.operators()
    except (OperatorKeyUnusable, OperatorKeyOpen):
        return False


def _of_another_user(folder: Path, owner: int) -> Path | None:
    """The first file or folder below that belongs to somebody else."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            try:
                if path.lstat().st_uid != owner:
                    return path
            except FileNotFoundError:  # a run under way tidied up
                continue
    return None
