"""Compiled templates are kept beside Python's compiled files, and pages are made without them, too."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dphist_pipeline.base.compiled_templates import compiled_templates


def test_compiled_templates_lie_beside_compiled_modules_of_this_python(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    kept = compiled_templates(tmp_path)
    assert kept is not None and kept.directory == str(tmp_path / "__pycache__")
    assert sys.implementation.cache_tag in kept.pattern


def test_a_folder_that_cannot_be_written_to_keeps_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(os, "access", lambda folder, how: False)
    assert compiled_templates(tmp_path) is None


def test_who_keeps_no_compiled_modules_keeps_no_templates(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert compiled_templates(tmp_path) is None
