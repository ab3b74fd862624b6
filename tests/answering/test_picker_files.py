"""The files of the picker: which are written, when, and what they hold. What they answer is tested in a browser."""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, WARD
from derived_files import made_anew
from families_by_hand import publish_family
from picker_scenario import WEEKS, content_of, days_of
from test_best_tables import FAMILIES

from dphist_pipeline.answering import _picker_columns as picker_columns
from dphist_pipeline.answering import _picker_files as picker_files
from dphist_pipeline.publishing._index_pages import shows
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.public_names import is_path
from dphist_pipeline.publishing.published_files import PublishedFolder

NOTE = {"reason": "wrong file", "at": "2026-03-20T00:00:00Z", "entry": 1}
pytestmark = [
    pytest.mark.slow,
    pytest.mark.stand_in("pictures", why="no file of the picker shows one"),
]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    return tmp_path / "public"


def publish(public: Path, week: str = WEEKS[0], release: str = "weekly", revision: int = 1, off: float = 0.0) -> Path:
    made = by_hand.estimate([WARD], np.array([100.0, 50.0, 7.0 + revision]), off=off)
    return by_hand.publish(public, made, [WARD], release, week, revision, **days_of(week)).path


def cells_of(public: Path, week: str = WEEKS[0], release: str = "weekly") -> Any:
    text = (public / release / f"picker/period={week}/cells.js").read_text()
    return json.loads(text.partition("\n")[2].removesuffix(");\n"))


def offered(public: Path, release: str = "weekly") -> list[tuple[str, int]]:
    return [(period[0], period[3]) for table in content_of(public, release)["tables"] for period in table["periods"]]


def stats(public: Path, release: str) -> dict[str, tuple[int, int]]:
    files = sorted((public / release / "picker").rglob("*.js"))
    return {str(file): (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def page(public: Path, release: str = "weekly") -> str:
    return (public / release / "index.html").read_text()


def test_a_release_has_its_cells_and_its_page_the_one_script(public: Path) -> None:
    published = publish(public, off=0.5)
    made_anew(public)
    assert cells_of(public)["estimate"] == [100.5, 50.5, 8.5] and cells_of(public)["unbiased"] == [100, 50, 8]
    (table,) = content_of(public, "weekly")["tables"]
    assert table["axes"][0]["labels"] == ["surgery", "medicine", "other"] and table["cells"] == 3
    assert table["axes"][0]["values"] == ["surgery", "medicine", None]
    scripts = re.findall(r'<script src="([^"?]*)\?[0-9a-f]{32}" defer>', page(public))
    assert scripts == ["picker/script.js", "picker/release.js"]
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'self' file:\">" in page(public)
    assert "script-src" not in (public / "index.html").read_text()
    assert "script-src" not in (published / "card.html").read_text()


def test_the_picker_speaks_the_language_of_the_office(public: Path) -> None:
    publish(public)
    made_anew(public)
    told = page(public).partition('id="picker-words">')[2].partition("<")[0]
    assert json.loads(told) == {"texts": {}}
    (public.parent / "about.json").write_text('{"language": "de"}')
    made_anew(public)
    told = json.loads(page(public).partition('id="picker-words">')[2].partition("<")[0])
    assert told["texts"]["Show the answer"] == "Antwort zeigen"
    assert content_of(public, "weekly")["tables"][0]["axes"][0]["labels"] == ["surgery", "medicine", "Sonstige"]
    script = (public / "weekly/picker/script.js").read_text()
    asked = set(re.findall(r'\bsaid\("((?:[^"\\]|\\.)*)"', script))
    assert len(asked) > 30 and asked <= told["texts"].keys()


def test_a_publication_leaves_the_files_of_others_and_of_other_periods_alone(public: Path) -> None:
    publish(public)
    publish(public, release="loans")
    made_anew(public)
    loans, weekly = stats(public, "loans"), stats(public, "weekly")
    publish(public, WEEKS[1])
    made_anew(public)
    assert stats(public, "loans") == loans
    now = stats(public, "weekly")
    (new,) = now.keys() - weekly.keys()
    assert f"period={WEEKS[1]}" in new
    assert {name for name in weekly if now[name] == weekly[name]} == {name for name in weekly if "cells.js" in name}
    assert offered(public) == [(WEEKS[0], 1), (WEEKS[1], 1)]


def test_a_longer_table_of_widths_reaches_the_releases_of_its_scale(public: Path) -> None:
    publish(public)
    made_anew(public)
    before = content_of(public, "weekly")["half_widths"][0][1][-1]
    axes = [AGE, WARD]
    by_hand.publish(public, by_hand.estimate(axes), axes, "larger", "all")
    made_anew(public)
    assert content_of(public, "weekly")["half_widths"][0][1][-1] > before


def test_what_was_superseded_or_withdrawn_is_not_offered(public: Path) -> None:
    publish(public)
    publish(public, WEEKS[1])
    late = publish(public, revision=2)
    made_anew(public)
    assert offered(public) == [(WEEKS[0], 2), (WEEKS[1], 1)] and cells_of(public)["unbiased"][-1] == 9
    PublishedFolder(late).mark_withdrawn(NOTE, public.parent / "scratch")
    made_anew(public)
    assert offered(public) == [(WEEKS[0], 1), (WEEKS[1], 1)] and cells_of(public)["unbiased"][-1] == 8
    for folder in (late.parent / "revision=1", public / f"weekly/period={WEEKS[1]}/revision=1"):
        PublishedFolder(folder).mark_withdrawn(NOTE, public.parent / "scratch")
    made_anew(public)
    assert offered(public) == [] and cells_of(public) == cells_of(public, WEEKS[1]) == {}
    assert "script-src" not in page(public) and 'id="picker"' not in page(public)


def test_a_run_that_was_killed_before_the_list_is_finished(public: Path, monkeypatch: Any) -> None:
    published = publish(public)
    with monkeypatch.context() as patch:
        patch.setattr(picker_files, "_release_text", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            made_anew(public)
    assert not (public / "weekly/picker/release.js").exists()
    assert offered(made_anew(public)) == [(WEEKS[0], 1)] and shows(public, published)


def test_a_list_that_changed_changes_the_page(public: Path) -> None:
    published = publish(public)
    made_anew(public)
    file = public / "weekly/picker/release.js"
    file.write_text(file.read_text().replace('"made_from": "', '"made_from": "0'))
    assert not shows(public, published)


def test_a_list_that_somebody_damaged_is_made_anew(public: Path) -> None:
    publish(public)
    file = made_anew(public) / "weekly/picker/release.js"
    right = file.read_bytes()
    for damage in ("", "x", "dphPicker.release({", "dphPicker.release([1],\n{});"):
        file.write_text(damage)
        made_anew(public)
        assert file.read_bytes() == right


def test_a_table_above_the_limit_has_a_question_but_no_cells(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picker_files, "MOST_CELLS", 2)
    publish(public)
    made_anew(public)
    assert not list((public / "weekly/picker").rglob("cells.js"))
    (table,) = content_of(public, "weekly")["tables"]
    assert table["periods"][0][5] is None and table["axes"]


def test_axes_of_very_many_words_are_left_out(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picker_files, "MOST_WORDS", 50)
    publish(public)
    (table,) = content_of(made_anew(public), "weekly")["tables"]
    assert table["axes"] is None


def test_a_period_with_other_axes_is_told_apart(public: Path) -> None:
    publish(public)
    by_hand.publish(public, by_hand.estimate([AGE]), [AGE], "weekly", WEEKS[1], **days_of(WEEKS[1]))
    (table,) = content_of(made_anew(public), "weekly")["tables"]
    assert [period[6] for period in table["periods"]] == [False, True]
    assert [axis["name"] for axis in table["axes"]] == ["age"]


def test_a_family_has_a_folder_a_table_and_tells_which_is_better(public: Path) -> None:
    publish_family(public, *FAMILIES["levels"])
    made_anew(public)
    tables = {table["table"]: table for table in content_of(public, "family")["tables"]}
    assert {file.parent.parent.name for file in (public / "family/picker").rglob("cells.js")} == tables.keys()
    assert all(table["name"] == f"family_{name}" for name, table in tables.items())
    finest = max(tables.values(), key=lambda table: table["cells"])
    assert {name: best for (name,), best in _of_one_name(finest)}["state"] == "family_state"


def _of_one_name(table: Any) -> list[Any]:
    better = table["better"][table["periods"][0][7]]
    return [one for one in better if len(one[0]) == 1]


def test_a_bucket_takes_every_file_and_no_other_name(public: Path) -> None:
    publish(public)
    publish_family(public, [AGE, WARD], [("age", "ward"), ("ward",)])
    made_anew(public)
    files = {file.relative_to(public).as_posix() for file in public.rglob("*.js")}
    sent = [path for path, _ in DerivedFiles(public).there()]
    assert len(files) == 7 and files <= set(sent) and all(map(is_path, files))
    assert max(map(sent.index, files)) < sent.index("catalog.duckdb")
    for path in (
        "weekly/picker/x.js",
        "weekly/picker/../script.js",
        "weekly/picker/period=all/cells.json",
        "script.js",
    ):
        assert not is_path(path)


@pytest.mark.parametrize("number", [1.0, -3.0, 0.1, 1e300, 5e-324])
def test_numbers_keep_every_bit(number: float) -> None:
    values = np.array([number, math.nan, -number] * 9)
    text = picker_columns.column(values)
    decoded: Callable[[str], Any] = lambda one: np.frombuffer(base64.b64decode(one), "<f8")  # noqa: E731
    read = json.loads(text)
    found = decoded(read) if isinstance(read, str) else np.array(read, dtype=np.float64)
    assert found.tobytes() == values.tobytes() or np.array_equal(found, values, equal_nan=True)


def test_a_table_of_a_hundred_thousand_fractions_loads_less_than_two_megabytes() -> None:
    draws = np.random.default_rng(1)
    columns = [draws.laplace(0, 20, 100_000) / 3 + draws.gamma(0.5, 100, 100_000) for _ in range(2)]
    texts = [picker_columns.column(column) for column in columns]
    assert sum(map(len, texts)) < picker_files.MOST_LOADED - 60_000  # of the script, the axes and the widths
    apart = np.frombuffer(zlib.decompress(base64.b85decode(json.loads(texts[0]).removeprefix("~"))), np.uint8)
    assert apart.reshape(8, -1).T.tobytes() == columns[0].tobytes()


def test_estimates_that_mostly_are_the_unbiased_ones_are_told_by_their_places() -> None:
    unbiased = np.arange(40.0) + 0.25
    estimate = np.where(unbiased < 2, 0.0, unbiased)
    assert json.loads(picker_columns.beside(estimate, unbiased)) == {"at": [0, 1], "are": [0, 0]}
    assert json.loads(picker_columns.beside(unbiased, unbiased)) == {"at": [], "are": []}


def test_tiles_hold_what_lies_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picker_columns, "LEAST_SPLIT", 0)
    monkeypatch.setattr(picker_columns, "BYTES_OF_TILE", 5000)
    values = np.random.default_rng(3).laplace(40, 30, (15, 40)) / 3
    whole = np.maximum(0, np.rint(values)).ravel()
    made = picker_columns.tile_layout(values.shape, values.ravel(), values.ravel() + 1, whole, 20_000)
    assert made is not None
    (rows, columns), tiles = made
    assert (rows, columns) == (1, 4) and len(tiles) == 4
    for number, text in enumerate(tiles):
        tile = json.loads(text)
        assert np.array_equal(_numbers_of(tile["estimate"]), values[:, number * 10 : number * 10 + 10].ravel())
        units, rest = (_numbers_of(part) if part else np.zeros(15) for part in tile["before"]["estimate"])
        assert np.array_equal(units, np.trunc(units)) and np.all((rest >= 0) & (rest < 40 / 2**20))
        assert units / 2**20 + rest == pytest.approx(values[:, : number * 10].sum(axis=1), rel=1e-15)
    assert picker_columns.tile_layout(values.shape, values.ravel() * 1e9, values.ravel(), whole, 20_000) is None
    some = np.where(values < 9, math.nan, values).ravel()
    assert picker_columns.tile_layout((600,), values.ravel(), some, whole, 20_000) is None


def _numbers_of(read: Any) -> Any:
    return np.frombuffer(base64.b64decode(read), "<f8") if isinstance(read, str) else np.array(read)


@pytest.mark.parametrize(
    ("cut", "total", "limit", "told"),
    [(40, 360, None, [40.0, 22.0, 58.0]), (5, 360, None, [5.0, 0.0, 23.0]), (40, 360, 50, [])],
)
def test_cells_tell_the_rows_that_the_cap_cut(
    public: Path, cut: float, total: float, limit: int | None, told: list[float]
) -> None:
    rows = replace(by_hand.QUALITY[1], values=np.array([float(cut)]))
    made = replace(by_hand.estimate([WARD], np.array([total, 0.0, 0.0]), off=0.0), quality=(by_hand.QUALITY[0], rows))
    rule = {} if limit is None else {"show_below": limit}
    by_hand.publish(public, made, [WARD], "weekly", WEEKS[0], **days_of(WEEKS[0]), **rule)
    made_anew(public)
    assert cells_of(public)["cut"] == [1, *told]  # of one row of each unit: no table of units by rows


def test_tiles_go_with_their_period(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LEAST_SPLIT": 0, "BYTES_OF_TILE": 1, "SHORTEST_SIDE": 1, "MOST_HEAVIER": 1000}.items():
        monkeypatch.setattr(picker_columns, name, value)
    published, of_period = publish(public), public / f"weekly/picker/period={WEEKS[0]}"
    made_anew(public)
    files = [of_period / name for name in ("cells-0.js", "cells-1.js", "cells.js")]
    assert sorted(of_period.iterdir()) == files and set(files) <= {
        public / path for path, _ in DerivedFiles(public).there()
    }
    (table,) = content_of(public, "weekly")["tables"]
    sizes = [file.stat().st_size for file in files]
    assert table["periods"][0][5] == sizes[2] and table["periods"][0][8] == [[2], sum(sizes[:2]), max(sizes[:2])]
    assert all(is_path(file.relative_to(public).as_posix()) for file in files)
    PublishedFolder(published).mark_withdrawn(NOTE, public.parent / "scratch")
    made_anew(public)
    assert {file.read_text() for file in files} == {"dphPicker.cells({},\n{});\n"}


def test_the_first_page_and_cards_lead_to_the_picker_and_to_the_files(public: Path) -> None:
    published = publish(public)
    made_anew(public)
    assert 'href="weekly/index.html#pick"' in (public / "index.html").read_text()
    assert 'id="pick"' in page(public) and page(public).count(f'id="period-{WEEKS[0]}"') == 1
    card = (published / "card.html").read_text()
    assert 'href="../../index.html#pick"' in card and 'href="../../index.html#files"' in card
    PublishedFolder(published).mark_withdrawn(NOTE, public.parent / "scratch")
    made_anew(public)
    assert "#pick" not in (public / "index.html").read_text()


def test_ranges_of_bins_have_words(public: Path) -> None:
    axes = [AGE, {"column": "year", "start": 0, "stop": 30, "width": 10, "whole": True}]
    by_hand.publish(public, by_hand.estimate(axes), axes, "bins", "all", counted="loans", axis_labels={"age": "years"})
    made_anew(public)
    (table,) = content_of(public, "bins")["tables"]
    age, year = (axis["spans"] for axis in table["axes"])
    assert table["counted"] == "loans" and [axis["called"] for axis in table["axes"]] == ["years", "year"]
    assert age["form"] == "%(low)s to under %(high)s" and age["low"] == [None, "0", "18", "65"]
    assert age["below"] == ["below 0", "below 18", "below 65", None] and age["above"][3] == "65 or more"
    assert year["form"] == "%(low)s to %(high)s" and year["low"] == ["0", "10", "20"] and year["high"][2] == "29"
