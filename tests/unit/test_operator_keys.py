"""The operator's key file signs only while nobody but its owner can read, change or replace it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from office import Office

from dphist_pipeline.ledger.errors import OperatorKeyOpen, OperatorKeyUnusable
from dphist_pipeline.ledger.signing import Operator, key_path


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private key in a folder of its own, which is the operator's."""
    path = tmp_path / "keys" / "operator.key"
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(path))
    Operator.load_or_make()
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    return path


def mended(path: Path) -> str:
    """The refusal of a key file, after its own command was run once and the key is taken again."""
    with pytest.raises(OperatorKeyOpen) as refusal:
        Operator.load(path)
    subprocess.run(["sh", "-c", str(refusal.value.mend)], check=True)
    Operator.load(path)
    return str(refusal.value)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o640, 0o620, 0o610, 0o644, 0o666, 0o777])
def test_a_key_file_with_rights_for_others_signs_nothing_until_they_are_gone(key: Path, mode: int) -> None:
    key.chmod(mode)
    said = mended(key)
    assert f"chmod 600 {key}" in said and "rotate-key" in said and "Nothing was decided" in said


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o700])
def test_a_key_file_of_its_owner_alone_signs(key: Path, mode: int) -> None:
    key.chmod(mode)
    assert Operator.load().public


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720, 0o702])
def test_a_key_in_a_folder_that_others_write_to_signs_nothing(key: Path, mode: int) -> None:
    key.parent.chmod(mode)
    said = mended(key)
    assert f"chmod go-w {key.parent}" in said


@pytest.mark.parametrize("mode", [0o755, 0o1777, 0o1770])
def test_a_folder_in_which_nobody_else_can_replace_the_key_is_taken(key: Path, mode: int) -> None:
    key.parent.chmod(mode)
    assert Operator.load().public


def test_a_link_to_a_key_is_judged_by_the_folder_of_the_link_and_of_the_file(key: Path, tmp_path: Path) -> None:
    link = tmp_path / "links" / "operator.key"
    link.parent.mkdir(mode=0o700)
    link.symlink_to(key)
    assert Operator.load(link).public == Operator.load(key).public
    for folder in (link.parent, key.parent):
        folder.chmod(0o777)
        assert f"chmod go-w {folder}" in mended(link)


def test_a_path_with_a_space_is_quoted_for_the_shell(tmp_path: Path) -> None:
    path = tmp_path / "my keys" / "o'hara.key"
    Operator.load_or_make(path)
    path.chmod(0o644)
    mended(path)
    path.parent.chmod(0o777)
    mended(path)


def test_a_key_that_is_made_in_an_open_folder_is_not_used_either(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(OperatorKeyOpen, match="chmod go-w"):
        Operator.load_or_make(folder / "operator.key")
    assert not any(folder.iterdir())


@pytest.mark.slow
def test_every_command_that_decides_refuses_an_open_key(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened().released()
    key = office.folder / "keys" / "operator.key"
    key.parent.mkdir(mode=0o700)
    key.write_bytes(key_path().read_bytes())
    key.chmod(0o640)
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(key))
    before, reason = office.state(), ("--reason", "r")
    for words in (
        ("ledger", *["open", "other", "--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "1"]),
        ("ledger", "raise", "health", "--total", "20", *reason),
        ("ledger", "allow", "health", "--source", "data/more.parquet"),
        ("ledger", "disallow", "3", *reason),
        ("ledger", "key"),
        ("ledger", "add-key", "ab" * 32, "--name", "Eve"),
        ("ledger", "rotate-key", "--to", office.folder / "keys" / "new.key", *reason),
        ("ledger", "sign", "3"),
        ("store", "adopt", *reason),
        ("ledger", "move", "postgresql://me@/none?host=/nowhere"),
        ("init", "--store", office.folder / "second"),
    ):
        done = office.run(*words, *(() if "--store" in words or words[1] == "key" else ("--store", office.store)))
        assert done.code == 1 and "chmod 600" in " ".join(done.err.split()), (words, done)
    assert "Already published" in office.released().out, "a release needs no key"
    (office.folder / "keys" / "new.key").unlink(missing_ok=True)
    assert office.state() == before
    assert os.environ["DPHIST_OPERATOR_KEY"] == str(key)


def test_a_key_that_cannot_be_used_says_where_it_was_looked_for(tmp_path: Path) -> None:
    for content, says in ((None, "is not there"), (b"", "cannot be read"), (b"-----BEGIN X-----", "cannot be read")):
        file = tmp_path / "key"
        if content is not None:
            file.write_bytes(content)
            file.chmod(0o600)
        with pytest.raises(OperatorKeyUnusable, match=says) as refused:
            Operator.load(file)
        assert str(file) in str(refused.value) and "DPHIST_OPERATOR_KEY" in str(refused.value)
    made = Operator.load_or_make(tmp_path / "new" / "key")
    assert Operator.load(tmp_path / "new" / "key").public == made.public
    assert (tmp_path / "new" / "key").stat().st_mode & 0o077 == 0
