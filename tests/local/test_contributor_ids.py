"""Ids of contributors: one person in several spellings is one, but for records of earlier versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from error_codes import coded
from local.test_record_folder import THRICE, answered, content, pairs

from dphist_pipeline.errors import Halted
from dphist_pipeline.local.record_folder import LIMIT

SPELLED = ["1", "001", " 1 ", "\u00a01\t", "00001", "1.0", "+1", "1e0", "\ufeff1\u3000"]


def test_one_id_in_several_spellings_is_one_contributor(tmp_path: Path) -> None:
    first = answered(tmp_path, ["1", "0", "zoé", "a1"])
    before = content(tmp_path)
    assert json.loads(before[LIMIT]) == {"limit": "5", "ids": "forms"}
    for spelled in SPELLED:
        again = answered(tmp_path, [spelled, "00", "zoe\u0301 ", "a1"])
        assert pairs(again) == pairs(first) and content(tmp_path) == before
    assert answered(tmp_path, SPELLED, THRICE).contributors == 1
    assert answered(tmp_path, ["a01", "1 1", "10", "b1"]).contributors == 4, "these are other ids"
    assert len(pairs(answered(tmp_path, ["a01", "1 1", "10", "b1", "1", "A1"]))) == 6


def test_an_id_of_blanks_alone_is_nobodys(tmp_path: Path) -> None:
    assert answered(tmp_path, [" ", "\t\u00a0", "ann"]).contributors == 1


def test_records_of_earlier_versions_keep_ids_as_they_are_written(tmp_path: Path) -> None:
    answered(tmp_path, ["begins"])
    (tmp_path / "records" / LIMIT).write_text('{"limit": "5"}')
    assert answered(tmp_path, SPELLED).contributors == len(SPELLED)
    before = content(tmp_path)
    assert answered(tmp_path, SPELLED).contributors == len(SPELLED) and content(tmp_path) == before
    answered(tmp_path, ["1"], THRICE)
    assert json.loads(content(tmp_path)[LIMIT]) == {"limit": "5"}


def test_records_of_the_form_before_keep_it(tmp_path: Path) -> None:
    answered(tmp_path, ["begins"])
    (tmp_path / "records" / LIMIT).write_text('{"limit": "5", "ids": "whole"}')
    assert answered(tmp_path, ["1", "001", "1.0", "a", "A"]).contributors == 4


def test_ids_in_a_form_of_a_later_version_are_refused(tmp_path: Path) -> None:
    answered(tmp_path, ["begins"])
    (tmp_path / "records" / LIMIT).write_text('{"limit": "5", "ids": "folded"}')
    with pytest.raises(Halted, check=coded("record_unusable"), match="'folded'"):
        answered(tmp_path, ["1"])
