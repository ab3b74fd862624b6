"""The files of macros: a name that nobody sets is no empty text, and a changed file changes what is built."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from dphist_pipeline.answering import _macros
from dphist_pipeline.answering._macros import macro_files
from dphist_pipeline.base.sql_files import FOLDER
from dphist_pipeline.estimates import notes


def test_a_name_that_no_file_sets_is_refused_and_not_left_out() -> None:
    with pytest.raises(UndefinedError, match="'nobody' is undefined"):
        macro_files(None).from_string("SELECT {{ nobody }}").render()


def test_what_macros_are_made_from_changes_with_each_file_and_with_each_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_from = _macros.source.__wrapped__
    before = made_from()
    files = Path(shutil.copytree(FOLDER / "answering", tmp_path / "answering"))
    with monkeypatch.context() as patch:
        patch.setattr(_macros, "_FILES", files)
        assert made_from() == before
        for path in files.rglob("*.sql"):
            text = path.read_text(encoding="utf-8")
            path.write_text(f"{text}-- more", encoding="utf-8")
            assert made_from() != before, path
            path.write_text(text, encoding="utf-8")
        assert made_from() == before
    for holder, name in [*((vars(notes), name) for name in vars(notes) if name.isupper()), (_macros._NAMES, "sure")]:
        with monkeypatch.context() as patch:
            patch.setitem(holder, name, "another")
            assert made_from() != before, name
