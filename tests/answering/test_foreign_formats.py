"""Formats that installed packages bring by an entry point: listed in the help, used, and harmless where broken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import reload
from pathlib import Path

import by_hand
import pytest
from by_hand import WARD
from error_codes import coded

from dphist_pipeline.answering.exports import formats
from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.cli.ask import export as command
from dphist_pipeline.errors import Refused

pytestmark = pytest.mark.stand_in("pictures", why="these files are texts")

MODULE = '''"""A list of cells in Markdown."""

from dphist_pipeline.answering.exports.formats import Format


def write(exported, file):
    rows = [row for table in exported.tables() for row in table.to_pylist()]
    lines = [f"| {row['ward_label']} | {row['unbiased']:.0f} |" for row in rows]
    file.write_text("\\n".join(lines) + "\\n")


MARKDOWN = Format(".md", "a list for reports", write)
NOTHING = "no format"
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package as an installer lays it down, which brings a format that works, three that do not, and one of ours."""
    (tmp_path / "office_formats.py").write_text(MODULE)
    info = tmp_path / "office_formats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: office-formats\nVersion: 1.0\n")
    points = {"md": "office_formats:MARKDOWN", "none": "office_formats:NOTHING", "lost": "office_formats:LOST"}
    points |= {"gone": "nowhere_at_all:X", "csv": "office_formats:MARKDOWN", "two": "office_formats:MARKDOWN"}
    listed = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[{formats.GROUP}]\n{listed}")
    other = tmp_path / "other_formats-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-formats\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(f"[{formats.GROUP}]\ntwo = other_formats:TWO\n")
    monkeypatch.syspath_prepend(tmp_path)
    formats._points.cache_clear()
    yield
    formats._points.cache_clear()
    sys.modules.pop("office_formats", None)


def test_a_package_brings_a_format_which_help_lists(installed: None, tmp_path: Path) -> None:
    by_hand.publish(tmp_path / "public", by_hand.estimate([WARD]), [WARD])
    write = formats.write_export
    assert write(Exported.read(tmp_path / "public", "weekly"), "md", tmp_path / "x.md") == [tmp_path / "x.md"]
    assert (tmp_path / "x.md").read_text() == "| surgery | -3 |\n| medicine | 4 |\n| other | 11 |\n"
    assert formats.names()[-5:] == ["gone", "lost", "md", "none", "two"]
    try:
        text = str(reload(command).export.__doc__)
    finally:
        formats._points.cache_clear()
    assert "md: a list for reports" in text and "gone: cannot be loaded from nowhere_at_all:X" in text


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none", "what it names is no Format"),
        ("lost", "AttributeError"),
        ("gone", "ModuleNotFoundError"),
        ("two", "several packages bring it"),
        ("cvs", "Did you mean 'csv'"),
    ],
)
def test_a_format_that_cannot_be_loaded_is_refused(installed: None, name: str, problem: str) -> None:
    with pytest.raises(Refused, check=coded("no_format"), match=problem):
        formats.format_named(name)


def test_no_package_takes_the_name_of_a_format_of_ours(installed: None) -> None:
    assert formats.format_named("csv") is formats.OWN["csv"]
