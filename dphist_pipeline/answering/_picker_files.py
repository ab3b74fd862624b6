"""Files of the picker on a release's page: its tables, their cells by period, and the widths of intervals.

All is read from the catalogue, so the script answers from the numbers that `dph_box` and `dph_over` read. A browser
refuses to fetch from files, so every file is a script that hands its content to `picker.js`:

    picker/script.js                        that script
    picker/release.js                       axes, periods, widths; written last, and first in it what it was made from
    picker/[TABLE/]period=PERIOD/cells.js   the cells of a period, and the law of their noise
    picker/[TABLE/]period=PERIOD/cells-N.js a tile of the cells of a large table, whose `cells.js` has none of them

Files of other releases are not opened. A file whose period no longer stands is emptied, so that copies are, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering._catalogue_places import Places
from dphist_pipeline.answering._picker_columns import beside, column, members, tile_layout
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.counted_words import counted_words
from dphist_pipeline.base.domain import OTHER, BinnedAxis, CategoricalAxis
from dphist_pipeline.base.files import read_regular, replace_public, sync_folder
from dphist_pipeline.base.languages.texts import gettext, in_language, pgettext, translate
from dphist_pipeline.base.shown_below import limit_of
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.cells_near_zero import CellsNearZero, has_whole_first
from dphist_pipeline.estimates.chance_of_persons import CHANCE
from dphist_pipeline.estimates.laws import INTERVALS, parts_named
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.estimates.row_quality import BoundingEffect
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.formatting import visible
from dphist_pipeline.publishing.published_estimate import published_figures
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.spec.axes import domain_of

FOLDER, RELEASE, SCRIPT, CELLS = "picker", "release.js", "script.js", "cells.js"
FORM = 7  # of all these files
MOST_CELLS = 100_000  # of a table whose cells are written
MOST_LOADED = 2_000_000  # bytes for one question
MOST_FILES = 120  # periods in one question
MOST_SPANS = 400  # bins of an axis whose ranges have words of their own
MOST_WORDS = 400_000  # bytes about the axes of a table, and about better tables of a family
_HEAD = 4096  # bytes, in which a file says what it was made from
_PLACES = Places()
_SUMMED = ("noise_scale", "noise_variance", "step", "alpha", "beta", "gamma", "delta")
_THIS = "release = $release AND period = $period AND revision = $revision"
_ENDS = ("estimate", "ci_lower", "ci_upper")
_TEXTS = {"no_interval": notes.NO_INTERVAL, "cuts_group": notes.CUTS_GROUP, "smoothed": notes.SMOOTHED}
_TEXTS |= {"below": notes.BELOW, "missing_day": notes.MISSING_DAY, "missing_days": notes.MISSING_DAYS}
_TEXTS |= {"known": notes.KNOWN, "beyond": notes.BEYOND}


@dataclass(frozen=True)
class _PickerPublication:
    """The latest publication of one period of a table, as the catalogue has it.

    `folder`: the release's, or its family's, in the public folder. `release`: the name of the table in SQL. `days`: the
    first day of the period, and the day after its last; both None without periods.
    """

    folder: str
    release: str
    period: str
    revision: int
    days: tuple[str | None, str | None]
    digest: str
    grid: str
    cells: int
    scale: str | None

    @property
    def table(self) -> str:
        """The name of the table within its family; empty for a release that is none."""
        return "" if self.release == self.folder else self.release.removeprefix(f"{self.folder}_")

    @property
    def place(self) -> str:
        """The path of its file below the folder of the picker."""
        return "/".join(filter(None, [self.table, f"period={self.period}", CELLS]))

    def tile(self, number: int) -> str:
        """Likewise, of one of its tiles."""
        return f"{self.place.removesuffix('.js')}-{number}.js"

    @property
    def made_from(self) -> str:
        """A digest that changes with its file."""
        return _digest([FORM, self.digest])

    def published(self, release: Path) -> Path:
        """The folder of its files."""
        folder = release / f"period={self.period}" / f"revision={self.revision}"
        return PublishedFolder(folder).table(self.table) if self.table else folder

    def audit(self, release: Path) -> Mapping[str, Any]:
        """Its audit, which the catalogue was made from."""
        read: Mapping[str, Any] = json.loads(read_regular(self.published(release) / "audit.json"))
        return read


def write_picker(connection: duckdb.DuckDBPyConnection, public: Path, scratch: Path) -> None:
    """Writes the files of every release of which something changed, by the catalogue; one process at a time.

    Args:
        connection: to the catalogue as it shall be, attached as `catalogue` and in use.
    """
    old_folders = sorted(public.glob(f"*/{FOLDER}/{RELEASE}"))
    releases: dict[str, list[_PickerPublication]] = {file.parents[1].name: [] for file in old_folders}
    for one in _latest(connection):
        releases.setdefault(one.folder, []).append(one)
    reached, about = _reach_of_widths(connection), About.of(public)
    for name, publications in sorted(releases.items()):
        mark = _mark(publications, reached, about.language)
        folder = public / name / FOLDER
        if _made_from(folder / RELEASE) != mark and (public / name).is_dir():
            _write_release(connection, public / name, publications, mark, about, scratch)


def _latest(connection: duckdb.DuckDBPyConnection) -> list[_PickerPublication]:
    """The publications that a reader may ask, in order of release and period."""
    query = f"""
        SELECT coalesce(family, release), release, period, revision, CAST(period_start AS VARCHAR),
            CAST(period_end AS VARCHAR), audit_digest, grid, cells, noise_scale
        FROM {_PLACES.table("dph_releases")} WHERE is_latest ORDER BY ALL
    """
    return [
        _PickerPublication(folder, release, period, revision, (first, after), digest, grid, cells, scale)
        for folder, release, period, revision, first, after, digest, grid, cells, scale in connection.execute(
            query
        ).fetchall()
    ]


def _reach_of_widths(connection: duckdb.DuckDBPyConnection) -> Mapping[str, list[int]]:
    """How far the tables of widths reach for each scale: another release may have made them longer."""
    reach: dict[str, list[int]] = {}
    for table, number in (("dph_half_widths", "cells"), ("dph_linear_widths", "draws")):
        query = f"SELECT noise_scale, max({number}) FROM {_PLACES.table(table)} GROUP BY ALL ORDER BY ALL"
        for scale, most in connection.execute(query).fetchall():
            reach.setdefault(scale, []).append(int(most))
    return reach


def _mark(publications: Sequence[_PickerPublication], reached: Mapping[str, list[int]], language: str) -> str:
    """A digest that changes with what `release.js` is made from."""
    facts = [[one.release, one.period, one.revision, one.digest, one.days] for one in publications]
    scales = sorted({one.scale for one in publications if one.scale is not None})
    script = hashlib.sha256(_script().encode()).hexdigest()
    widths = [[one, reached.get(one)] for one in scales]
    return _digest([FORM, version("dphist-pipeline"), script, facts, widths, language])


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _made_from(file: Path) -> str:
    """What the first line of a file says that it was made from; empty without one."""
    return str(_head(file).get("made_from", ""))


def _head(file: Path) -> dict[str, Any]:
    """The object in the first line of a file; empty without one."""
    with suppress(OSError, ValueError, RecursionError):
        with file.open("rb") as opened:
            line = opened.read(_HEAD).split(b"\n", 1)[0].decode()
        head = json.loads(line.partition("(")[2].rstrip(","))
        return head if isinstance(head, dict) else {}
    return {}


@cache
def _script() -> str:
    return Path(__file__).with_name("picker.js").read_text(encoding="utf-8")


def _call(name: str, head: Mapping[str, Any], body: str) -> str:
    """A script that hands two values to `picker.js`; the first has a line of its own."""
    return f"dphPicker.{name}({json.dumps(head)},\n{body});\n"


def _write_release(
    connection: duckdb.DuckDBPyConnection,
    release: Path,
    publications: Sequence[_PickerPublication],
    mark: str,
    about: About,
    scratch: Path,
) -> None:
    folder, wanted, heads = release / FOLDER, set(), dict[str, Mapping[str, Any]]()
    for one in publications:
        if one.cells > MOST_CELLS:
            continue
        file = folder / one.place
        heads[one.place] = _head(file)
        if heads[one.place].get("made_from") != one.made_from:
            *tiles, cells = _cells_texts(connection, release, one)
            for number, text in enumerate(tiles):
                _put(folder / one.tile(number), text, scratch)
            _put(file, cells, scratch)  # last: it says that all are there
            heads[one.place] = _head(file)
        wanted |= {one.place, *map(one.tile, range(math.prod(_tiles(heads[one.place]).get("parts", [0]))))}
    empty = _call("cells", {}, "{}")
    for file in sorted(folder.rglob("cells*.js")):
        if file.relative_to(folder).as_posix() not in wanted and file.read_text() != empty:
            _put(file, empty, scratch)
    _put(folder / SCRIPT, _script(), scratch)
    _put(folder / RELEASE, _release_text(connection, release, publications, heads, mark, about), scratch)


def _put(file: Path, text: str, scratch: Path) -> None:
    file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace_public(file, text, scratch)
    sync_folder(file.parent.parent)


def _release_text(
    connection: duckdb.DuckDBPyConnection,
    release: Path,
    publications: Sequence[_PickerPublication],
    heads: Mapping[str, Mapping[str, Any]],
    mark: str,
    about: About,
) -> str:
    tables: dict[str, list[_PickerPublication]] = {}
    for one in publications:
        tables.setdefault(one.release, []).append(one)
    scales = {one.scale for one in publications if one.scale is not None} | _scales_of_sums(connection, tables)
    content = {
        "tables": [_table(connection, release, made, heads, about) for made in tables.values()],
        "half_widths": [_widths(connection, "dph_half_widths", scale) for scale in sorted(scales)],
        "linear_widths": [_widths(connection, "dph_linear_widths", scale) for scale in sorted(scales)],
        "normal": [INTERVALS.normal_reach, INTERVALS.normal_reach_of_two],
        "most": {"loaded": MOST_LOADED, "files": MOST_FILES, "cells": MOST_CELLS},
        "chance": {"sure": CHANCE.sure, "least": CHANCE.least},
        "reliable": {"good": RELIABILITY.good, "fair": RELIABILITY.fair},
        "legend": {word: meaning for word, meaning in RELIABILITY.legend.items() if word},
        "notes": _TEXTS,
    }
    head = {"form": FORM, "made_from": mark, "release": release.name}
    return _call("release", head, json.dumps(content, separators=(",", ":")))


def _scales_of_sums(connection: duckdb.DuckDBPyConnection, releases: Iterable[str]) -> set[str]:
    query = f"SELECT DISTINCT noise_scale FROM {_PLACES.table('dph_groups')} WHERE list_contains($releases, release)"
    return {scale for (scale,) in connection.execute(query, {"releases": list(releases)}).fetchall()}


def _widths(connection: duckdb.DuckDBPyConnection, table: str, scale: str) -> list[Any]:
    """A scale of noise, and the columns of its table of widths."""
    query = f"SELECT * EXCLUDE (noise_scale) FROM {_PLACES.table(table)} WHERE noise_scale = $scale ORDER BY 1"
    rows = connection.execute(query, {"scale": scale}).fetchall()
    if parts_named(scale) > 1:  # of an amount, whose cells of rows have two draws each
        rows = [(number // 2, *widths) for number, *widths in rows if number > 1]
    return [scale, *map(list, zip(*rows, strict=True))]


def _table(
    connection: duckdb.DuckDBPyConnection,
    release: Path,
    made: Sequence[_PickerPublication],
    heads: Mapping[str, Mapping[str, Any]],
    about: About,
) -> dict[str, Any]:
    """What a reader can choose in one table: the axes of its newest period, and the periods that have them.

    `heads`: the first lines of the files of cells, by their places.
    """
    newest = made[-1]
    audit = newest.audit(release)
    with in_language(about.language_of(audit)):
        axes: list[dict[str, Any]] | None = _axes(audit)
        counted = counted_words(audit) or gettext("rows")
    by_row = audit.get("privacy_unit", "row") == "row"
    better = _better(connection, newest.release, {(one.period, one.revision) for one in made})
    if len(json.dumps(axes)) > MOST_WORDS or len(json.dumps(better)) > MOST_WORDS:
        axes, better = None, {}
    places: dict[str, int] = {}
    periods = []
    for one in made:
        names = json.dumps(better.get(one.period, []))
        file = release / FOLDER / one.place
        size = file.stat().st_size if one.cells <= MOST_CELLS else None
        facts = [one.period, *one.days, one.revision, one.made_from[:12], size, one.grid == newest.grid]
        tiles = _tiles(heads[one.place]) if size is not None else {}
        split_into = [[tiles["parts"], tiles["bytes"], tiles["most"]]] if tiles else []
        periods.append([*facts, places.setdefault(names, len(places)), *split_into])
    return {
        "name": newest.release,
        "table": newest.table,
        "cells": newest.cells,
        "counted": counted,
        "unit": "" if by_row else str(audit.get("unit_label") or audit["privacy_unit"]),
        "axes": axes,
        "periods": periods,
        "better": [json.loads(names) for names in places],
        **({"amount": audit["amount"]["axis"]} if "amount" in audit else {}),
    }


def _better(
    connection: duckdb.DuckDBPyConnection, release: str, standing: set[tuple[str, int]]
) -> dict[str, list[list[Any]]]:
    """By period, the names with conditions for which another table of the family answers, and that table."""
    query = f"""
        SELECT period, revision, list_sort(names.boxed), best FROM {_PLACES.table("dph_better")}
        WHERE release = $release AND len(names.by) = 0 ORDER BY ALL
    """
    better: dict[str, list[list[Any]]] = {}
    for period, revision, names, best in connection.execute(query, {"release": release}).fetchall():
        if (period, revision) in standing:
            better.setdefault(period, []).append([names, best])
    return better


def _axes(audit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The axes of a publication in declared order: what their positions are called, and what a question calls them."""
    domain, axes = domain_of(audit["axes"]).of_rows, []
    called = [axis.name for axis in domain.called(audit.get("axis_labels")).axes]
    for axis, name, stride in zip(domain.axes, called, domain.strides, strict=True):
        labels = [visible(label) for label in ReaderAxis(axis, closed=audit.get("model") == "local").labels]
        if labels[-1] == OTHER and axis.other_cell is not None:
            labels[-1] = pgettext("category", "other")
        told: dict[str, Any] = {
            "name": axis.name,
            "called": name,
            "stride": stride,
            "size": axis.size,
            "labels": labels,
        }
        if isinstance(axis, BinnedAxis):
            told |= {"other": axis.other_cell is not None, "binned": True, "atoms": audit.get("atoms")}
            told |= {side: _ends(axis, end) for side, end in zip(("lower", "upper"), axis.bounds, strict=True)}
            told |= {"spans": _spans(axis, closed=audit.get("model") == "local")}
        elif isinstance(axis, CategoricalAxis):
            none = [None] * (axis.other_cell is not None)
            told |= {"binned": False, "values": [*axis.values, *none]}
            told["levels"] = [[level, [*groups, *none]] for level, groups in axis.levels.items()]
        axes.append(told)
    return axes


def _spans(axis: BinnedAxis, closed: bool) -> dict[str, Any] | None:
    """The words of ranges of several bins, by their first and their last bin; None for days, which the script words.

    `form` has a place for each end; `closed` is that of ranges that hold the upper end of the last bin.
    """
    if axis.reads == "days" or axis.size > MOST_SPANS:
        return None
    plain = translate("%(low)s to %(high)s")
    within = translate("%(low)s to under %(high)s" if axis.closed == "left" else "over %(low)s to %(high)s")
    form = plain if axis.whole else within
    bins = [ends for ends in zip(*(bound.tolist() for bound in axis.bounds), strict=True) if not math.isnan(ends[0])]
    spans = [axis.values_between(low, high, closed) for low, high in bins]
    low = [axis.written(low) if math.isfinite(low) else None for low, _ in spans]
    high = [axis.written(high) if math.isfinite(high) else None for _, high in spans]
    below = [ReaderAxis(axis).range_in_words(-math.inf, high) if math.isfinite(high) else None for _, high in bins]
    above = [ReaderAxis(axis).range_in_words(low, math.inf) if math.isfinite(low) else None for low, _ in bins]
    is_left = axis.closed == "left"
    under = [high[at] if closed and end == axis.edges[-1] else below[at] for at, (_, end) in enumerate(bins)]
    return {
        **{"form": form, "closed": plain if closed else form},
        **{"low": low, "high": high, "below": below, "above": above},
        # What the two lists of ends call a bin. An end that does not belong to the range says so.
        **{"from": low if axis.whole or is_left else above, "to": under if is_left and not axis.whole else high},
    }


def _ends(axis: BinnedAxis, ends: NDArray[np.float64]) -> list[float | str | None]:
    """Ends of bins as a box has them: null where they are open, and for `other`."""
    return [axis.public_end(end) for end in ends.tolist()]


def _tiles(head: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the file of a period says of its tiles: parts of each axis, bytes of all and of the largest; or nothing."""
    tiles = head.get("tiles")
    return tiles if isinstance(tiles, dict) else {}


def _cells_texts(connection: duckdb.DuckDBPyConnection, release: Path, one: _PickerPublication) -> list[str]:
    """The files of one publication: tiles, if its table is large, and last its law with all other cells.

    `below` is the least figure that is shown; null where every figure is. `rows_of_each` is how many rows of one person
    may be counted; `known`, only where figures are public, has for each axis the labels of its positions (null where
    all are alike), how many labels each has, and the figures by labels; `cut` what `_rows_cut` gives, 0 where
    contributors sent reports; `whole_first` whether whole counts are told before estimates.
    """
    of = {"release": one.release, "period": one.period, "revision": one.revision}
    has_bars = "noise_scale IS NOT NULL OR step IS NOT NULL AS has_bars"
    query = f"SELECT {has_bars}, {', '.join(_SUMMED)} FROM {_PLACES.table('dph_releases')} WHERE {_THIS}"
    (law,) = connection.execute(query, of).fetchall()
    sums = _sums(connection, of)
    levels, lines = _levels(connection, of)
    audit = one.audit(release)
    domain = domain_of(audit["axes"])
    law_facts = dict(zip(("has_bars", *_SUMMED), law, strict=True))
    facts = {
        "law": law_facts,
        "cells": domain.of_rows.cells,
        "below": limit_of(audit),
        "rows_of_each": int(audit.get("max_rows_per_unit") or 1),
        "cut": 0,
        "levels": levels,
        "lines": lines,
        "sums": sums,
    }
    if (known := published_figures(one.published(release), audit)) is not None:
        labels = [along.tolist() if along.any() else None for along in known.labels]
        facts["known"] = [labels, [*known.figures.shape], known.figures.ravel().tolist()]
    estimate, unbiased, groups, counts, *ends = _numbers(connection, one)
    facts["whole_first"] = has_whole_first(audit, CellsNearZero.of(*ends))
    if domain.amount is not None:
        law_facts["noise_variance"] *= 2
        estimate, unbiased, groups, counts = (
            numbers.reshape(domain.shape).sum(axis=domain.amount).ravel()
            for numbers in (estimate, unbiased, groups, counts)
        )
    counted = float(np.nansum(estimate if np.isnan(unbiased).all() else unbiased))
    if audit.get("model") != "local":
        facts["cut"] = _rows_cut(connection, of, counted, limit_of(audit))
    body, head = json.dumps(facts, separators=(",", ":"))[:-1], {"form": FORM, "made_from": one.made_from, **of}
    columns = {"unbiased": column(unbiased)}
    columns |= {"estimate": beside(estimate, unbiased), "whole": beside(counts, unbiased)}
    size = sum(map(len, columns.values()))
    # Noisy sums answer for whole groups: which groups a question holds, every cell must say.
    tiled = None if sums else tile_layout([*domain.of_rows.shape], estimate, unbiased, counts, size)
    if tiled is not None:
        parts, tiles = tiled
        texts = [_call("tile", head | {"tile": number}, text) for number, text in enumerate(tiles)]
        sizes = [len(text.encode()) for text in texts]
        tiled_as = {"parts": parts, "bytes": sum(sizes), "most": max(sizes)}
        return [*texts, _call("cells", head | {"tiles": tiled_as}, f"{body}}}")]
    columns["groups"] = column(groups) if sums else "null"
    return [_call("cells", head, f"{body},{members(columns)}}}")]


def _numbers(connection: duckdb.DuckDBPyConnection, one: _PickerPublication) -> list[NDArray[np.float64]]:
    """The columns of the query of all cells, with nan for null, shape (cells,) each."""
    query = f"""
        SELECT estimate, unbiased_estimate, CAST(group_id AS DOUBLE) AS group_id,
            CAST(whole_count AS DOUBLE) AS whole_count, ci_lower, ci_upper
        FROM {_PLACES.cells(one.release)}
        WHERE period = $period AND revision = $revision ORDER BY cell_number
    """
    of = {"period": one.period, "revision": one.revision}
    rows = connection.execute(query, of).fetchall()
    return [np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)]


def _rows_cut(
    connection: duckdb.DuckDBPyConnection, of: Mapping[str, Any], counted: float, limit: int | None
) -> list[float] | None:
    """How many rows of each unit the quality table looks at, and the rows of these that the cap cut with both ends.

    It has the first number alone where the figure is below the limit; None without such a table.
    """
    query = f"""
        SELECT
            max(position) FILTER (statistic = 'units') AS seen,
            {", ".join(f"any_value({name}) FILTER (statistic = 'cut' AND axis IS NULL)" for name in _ENDS)}
        FROM {_PLACES.table("dph_quality_rows")} WHERE {_THIS}
    """
    ((seen, estimate, lower, upper),) = connection.execute(query, of).fetchall()
    if estimate is None:
        return None
    cut = BoundingEffect(None, counted, estimate, lower, upper)
    return [seen or 1] if cut.about < (limit or 0) else [seen or 1, cut.about, *cut.possible]


def _sums(connection: duckdb.DuckDBPyConnection, of: Mapping[str, Any]) -> list[Any]:
    """The noisy sums of groups of one publication, in order."""
    query = f"""
        SELECT sum_number, parent, first_group, last_group, cells, noisy_sum, noise_scale, noise_variance
        FROM {_PLACES.table("dph_groups")} WHERE {_THIS} ORDER BY sum_number
    """
    return connection.execute(query, of).fetchall()


def _levels(connection: duckdb.DuckDBPyConnection, of: Mapping[str, Any]) -> tuple[list[list[Any]], list[list[Any]]]:
    """The nodes in which cells share noise: coefficient and width by axis; and the weighted lines that they name."""
    query = f"SELECT level, axis, width, coefficient FROM {_PLACES.table('dph_covariance')} WHERE {_THIS} ORDER BY ALL"
    levels: dict[int, list[Any]] = {}
    for level, axis, width, coefficient in connection.execute(query, of).fetchall():
        levels.setdefault(level, [coefficient, []])[1].append([axis, width])
    numbers = sorted({width for _, widths in levels.values() for _, width in widths if width < 0})
    query = f"SELECT node, weight FROM {_PLACES.table('dph_lines')} WHERE width = $width ORDER BY node, position"
    lines = []
    for width in numbers:
        nodes: dict[int, list[float]] = {}
        for node, weight in connection.execute(query, {"width": width}).fetchall():
            nodes.setdefault(node, []).append(weight)
        lines.append([width, list(nodes.values())])
    return list(levels.values()), lines
