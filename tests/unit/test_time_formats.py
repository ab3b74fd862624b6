"""How dates are written, as `try_strptime` takes it."""

from __future__ import annotations

import duckdb
import pytest

from dphist_pipeline.spec.sources import is_time_format


@pytest.mark.parametrize("text", ["%d/%m/%Y", "%Y%m%d", "%-d.%-m.%y", "day %j of %Y", "%% %Y"])
def test_formats_of_dates_are_told_from_others(text: str):
    assert is_time_format(text)
    assert duckdb.sql("SELECT try_strptime('x', $format)", params={"format": text}).fetchall() == [(None,)]


@pytest.mark.parametrize("text", ["", "Y-m-d", "%", "%q", "%Y %z", "%Y %Z", "%-Y", "%Y %", "%Y" * 101, "%c", "%s"])
def test_what_is_no_format_of_dates_is_refused(text: str):
    assert not is_time_format(text)
