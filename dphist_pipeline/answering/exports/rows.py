"""What is exported of a release: every cell of the latest revisions, with labels, errors and notes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.answering.asking import MARGINAL_COLUMNS, Publication, marginals, wholes
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.answering.catalogue_rows import day_of_period
from dphist_pipeline.answering.exports import columns
from dphist_pipeline.answering.exports.columns import KEY, ExportedCells, in_arrow
from dphist_pipeline.answering.published import NotPublished, audit_in_force, latest_revision
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.counted_words import counted_words
from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.base.languages.texts import ENGLISH, LANGUAGES, gettext, mark_text, pgettext, translate
from dphist_pipeline.base.shown_below import hidden_in_words, limit_of, masks, words_for
from dphist_pipeline.estimates.cells_near_zero import CellsNearZero, first_in_words, has_whole_first
from dphist_pipeline.estimates.known_figures import levels_in_words, totals_are_known
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.derived_files import grid_of
from dphist_pipeline.publishing.formatting import decimals_of
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import PublishedFolder

Mask = tuple[NDArray[np.bool_], NDArray[np.bool_]]
LATEST = "latest"
NOBODY = About()
FIGURES_IN_FILES = mark_text(
    "Counts by %(level)s, and sums of them, are public figures: exact, with a standard error of 0. Estimates of cells "
    "add up to them."
)


@dataclass(frozen=True)
class Exported:
    """The publications of a release that are exported, ordered by period.

    `decimals`: of numbers in text files and in the sheet's format; None for as many as the noise of each justifies.
    `withdrawn`: the periods of which nothing stands any more. `is_part`: one period or revision was asked for, and then
    none is. `held`: the rows of each publication, where they are in memory already; see `with_rows`. `has_whole_first`:
    whether whole counts stand before estimates, see `has_whole_first`.
    """

    publications: tuple[Publication, ...]
    decimals: int | None = None
    about: About = NOBODY
    withdrawn: tuple[str, ...] = ()
    is_part: bool = False
    held: tuple[pa.Table, ...] = field(default=(), repr=False, compare=False)
    has_whole_first: bool = False

    @classmethod
    def read(
        cls,
        public: Path,
        release: str,
        period: str | None = None,
        revision: int | None = None,
        decimals: int | None = None,
    ) -> Exported:
        """The latest revision of every period; or one period, or one revision.

        Raises:
            NotPublished: there is no such release, period or revision.
            Refused: it was withdrawn.
            PublishedFilesDamaged: a published file is missing or altered.
        """
        latest = latest_revision(public, release, period)
        if period is not None:
            period = str(audit_in_force(latest)["period"])
        publications = {}
        for folder, audit in Catalogue(public).publications(release):
            if period in (None, audit["period"]) and revision in (None, audit["revision"]):
                publications[audit["period"]] = Publication(folder, audit)  # ordered by revision
        if not publications and revision is not None:
            raise NotPublished(f"revision of '{release}'", str(revision), [])
        if not publications:
            audit_in_force(latest)
        is_part = period is not None or revision is not None
        folders = () if is_part else sorted(PublishedFolder(latest).release.glob("period=*"))
        gone = tuple(day for folder in folders if (day := folder.name.removeprefix("period=")) not in publications)
        exported = tuple(publications.values())
        # The first one decides, so that columns stay where they are when periods are added.
        is_first = has_whole_first(exported[0].audit, near_zero(exported[0]))
        return cls(exported, decimals, About.of(public), gone, is_part, has_whole_first=is_first)

    @property
    def audit(self) -> Mapping[str, Any]:
        """The audit of the last publication."""
        return self.publications[-1].audit

    @property
    def language(self) -> str:
        """The code of the language of its pages, in which titles and labels are taken to be."""
        spoken = self.about.language_of(self.audit)
        return spoken if spoken in LANGUAGES else ENGLISH.code

    @cached_property
    def columns(self) -> dict[str, str]:
        """What each column means, in order: the axes of all periods, then the numbers. An axis keeps its name."""
        axes = self._axes
        told = {column.name: column.meaning for column in columns.COLUMNS if column.name not in axes}
        keys = {column.name: told.pop(column.name) for column in KEY}
        if self.has_whole_first and "whole_count" in told:
            told = {"whole_count": told.pop("whole_count"), **told}
        return {**keys, **axes, **told}

    @cached_property
    def _axes(self) -> dict[str, str]:
        """What the columns of the axes of all periods mean."""
        meanings: dict[str, str] = {}
        axes = [axis for one in self.publications for axis in one.domain.of_rows.axes]
        for axis in axes:
            about = "the category; empty for `other`"
            if isinstance(axis, BinnedAxis):
                about = "an end of the bin; empty for an open end and for `other`"
            meanings |= dict.fromkeys(ReaderAxis(axis).published, f"{axis.name}: {about}")
            meanings.setdefault(f"{axis.name}_is_other", f"{axis.name}: whether the cell is the one for `other`")
            for name, (kind, about) in ReaderAxis(axis).columns_beside(axes).items():
                meanings[name] = f"{about}; in CSV and workbooks empty if open" if kind in ("from", "to") else about
        return meanings

    def with_rows(self) -> Exported:
        """The same with its rows in memory, for several files."""
        return replace(self, held=tuple(self.tables()))

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each publication, in declared order, with the columns of all."""
        yield from self.held
        asked = () if self.held else self.publications
        told = {column.name: column for column in columns.COLUMNS}
        for one, numbers in zip(asked, _answered_at_once(asked, self.is_part), strict=True):
            axes, cells = _axis_rows(one), ExportedCells(one, numbers)
            nulls = pa.nulls(one.domain.of_rows.cells)
            yield pa.table(
                [axes.get(name, nulls) if name in self._axes else in_arrow(told[name], cells) for name in self.columns],
                [*self.columns],
            )


def near_zero(publication: Publication) -> CellsNearZero:
    """How many of its published cells noise hides."""
    rows = pq.ParquetFile(publication.folder / "histogram.parquet").read(["ci_lower", "ci_upper"])
    if rows.num_columns < 2:  # of a file of an older version, which has no intervals
        return CellsNearZero()
    if totals_are_known(publication.audit):
        return CellsNearZero.of_estimate(published_estimate(publication.folder, publication.audit))
    return CellsNearZero.of(*(column.to_numpy() for column in rows.columns))


def masks_of(publication: Publication, rows: pa.Table) -> dict[str, Mask]:
    """Where columns of some rows of `Exported.tables` tell words, and where they are left out; none without a limit."""
    limit = limit_of(publication.audit)
    if limit is None:
        return {}
    estimate, unbiased = (
        rows[name].cast(pa.float64()).fill_null(math.nan).to_numpy() for name in ("estimate", "unbiased")
    )
    hidden = masks(limit, estimate, unbiased)
    # A public figure is told, however small.
    noisy = rows["standard_error"].fill_null(math.nan).to_numpy() != 0
    of_columns = {
        column.name: tuple(mask & noisy for mask in hidden.of(column.name))
        for column in columns.COLUMNS
        if column.is_hidden and column.name in rows.column_names
    }
    if "whole_count" in of_columns:
        low = rows["whole_count"].to_numpy() < limit
        of_columns["whole_count"] = (low & noisy, hidden.beside & ~low & noisy)
    return of_columns


def with_words(publication: Publication, rows: pa.Table, number: Callable[[str, Any], Any]) -> dict[str, list[Any]]:
    """The columns of some rows of `Exported.tables` as a file for people has them: small figures are words.

    `number`: what the file has for a value of a column.
    """
    by_name = {name: [number(name, value) for value in rows[name].to_pylist()] for name in rows.column_names}
    words = words_for(limit_of(publication.audit) or 0)
    for name, hidden in masks_of(publication, rows).items():
        values = zip(by_name[name], *(mask.tolist() for mask in hidden), strict=True)
        by_name[name] = [words if low else None if out else value for value, low, out in values]
    return by_name


def places_of(exported: Exported, table: pa.Table) -> dict[str, int]:
    """How many decimals the numbers of a publication have, by their columns; the error has one more."""
    noisy = [column.name for column in columns.COLUMNS if column.has_noise]
    if exported.decimals is not None:
        return dict.fromkeys(noisy, exported.decimals)
    least = float(np.fmin.reduce(table["standard_error"].to_numpy(), initial=math.inf))
    return dict.fromkeys(noisy, decimals_of(least)) | {"standard_error": decimals_of(least) + 1}


def in_places(value: Any, places: int | None) -> Any:
    """A number as text with some decimals and no commas, for a file; 0 never has a sign; everything else as it is.

    `places` is None for a column that holds no numbers with noise.
    """
    if not isinstance(value, float) or places is None:
        return value
    text = f"{value:.{places}f}"  # in every language with a point
    return text if text.strip("-0.") else text.removeprefix("-")


def _axis_rows(publication: Publication) -> dict[str, Any]:
    """The columns of the axes, and whether a cell is the one for `other`."""
    domain = publication.domain.of_rows
    axes = domain.axes
    names = [name for axis in axes for name in ReaderAxis(axis).published]
    rows = pq.ParquetFile(publication.folder / "histogram.parquet").read(names)
    if (amount := publication.domain.amount) is not None:  # a row for each cell that both ends share
        cells = np.arange(rows.num_rows).reshape(publication.domain.shape)
        rows = rows.take(pa.array(cells.take(0, axis=amount).ravel()))
    by_column = dict(zip(names, rows.columns, strict=True))
    for axis in axes:
        other = np.logical_and.reduce([_nulls(rows[key]) for key in ReaderAxis(axis).keys])
        by_column.setdefault(f"{axis.name}_is_other", pa.array(other))
    closed = publication.audit.get("model") == "local"
    places = np.unravel_index(np.arange(rows.num_rows), domain.shape)
    for axis, place in zip(axes, places, strict=True):
        values = ReaderAxis(axis, closed).values(place)
        by_column |= {name: values[name] for name in ReaderAxis(axis).columns_beside(axes)}
    return by_column


def _nulls(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which values are null, shape (rows,); Arrow would load all its functions to tell."""
    known = [np.ones(0, dtype=np.bool_)]
    for chunk in column.chunks:
        validity = chunk.buffers()[0]
        bits = np.full(-(-(chunk.offset + len(chunk)) // 8), 255, np.uint8) if validity is None else validity
        known.append(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[chunk.offset :][: len(chunk)] == 1)
    return ~np.concatenate(known)


def _answered_at_once(publications: Sequence[Publication], is_part: bool) -> Iterator[Mapping[str, Any]]:
    """What `dph_marginal` and `dph_whole` answer of each cell of some publications of a release, by their columns.

    To plan a macro takes longer than to answer it: all periods are asked at once where they have the same cells.
    """
    at_once = not is_part and len({grid_of(one.audit) for one in publications}) == 1
    answers = marginals(publications) if at_once else {}
    counts = wholes(publications) if at_once and publications[0].domain.amount is None else {}
    for one in publications:
        key = (one.audit["period"], one.audit["revision"])
        asked = answers[key] if at_once else one.marginal([axis.name for axis in one.domain.of_rows.axes], {})
        if one.domain.amount is not None:  # parts of rows have no whole counts
            whole = {"whole_count": pa.nulls(asked.num_rows, pa.int64())}
        else:
            whole = counts[key] if at_once else one.whole()
        # By their places: an axis may be called as a column of an answer.
        numbers = dict(zip(MARGINAL_COLUMNS, asked.columns[-len(MARGINAL_COLUMNS) :], strict=True))
        yield {**numbers, "whole_count": whole["whole_count"]}


def current_files(exported: Exported) -> list[Path]:
    """The files of `latest/` that programs read, as CSV and Parquet; of a long history, those of each period.

    Raises:
        ValueError: a part of the release was asked for, or the files are not there yet.
    """
    if exported.is_part:
        raise ValueError("a record describes the whole release; leave out --period and --revision")
    folder = PublishedFolder(exported.publications[-1].folder)
    latest = folder.release / LATEST / (folder.path.name if folder.is_table else "")
    for place in ("", "period=*/"):
        files = [file for kind in ("csv", "parquet") for file in sorted(latest.glob(f"{place}cells.{kind}"))]
        if any(file.suffix == ".parquet" and pq.read_metadata(file).num_rows for file in files):
            return files
    raise ValueError(
        f"the record describes files in {latest}, which are not there yet; the next publication writes them"
    )


def days_of(audit: Mapping[str, Any]) -> tuple[date, date] | None:
    """The first day of a period, and the day after its last; None without them."""
    start, end = (day_of_period(audit, name) for name in ("period_start", "period_end"))
    return None if start is None or end is None else (start, end)


def charged_at(exported: Exported) -> str:
    """When the last publication was charged; empty if its audit does not say it."""
    return str((exported.audit.get("ledger") or {}).get("charged_at") or "")


def title_of(exported: Exported) -> str:
    """The title of the release, or its name."""
    return str(exported.audit.get("title") or exported.audit["release"])


def is_local(exported: Exported) -> bool:
    """Whether contributors made their reports noisy, so that nobody holds their values."""
    return bool(exported.audit.get("model") == "local")


def counted_of(exported: Exported) -> str:
    """The things that the figures are numbers of."""
    return counted_words(exported.audit) or (gettext("values") if is_local(exported) else gettext("rows"))


def _epsilon_of(exported: Exported) -> str:
    """What the epsilon of an audit is called: a release without periods has one for all records."""
    if exported.audit["period"] == "all":
        return "epsilon"
    return gettext("epsilon of a round") if is_local(exported) else gettext("epsilon of a period")


def limits_of(exported: Exported) -> list[int]:
    """Every least figure that is shown in one of the publications, in order; none where all figures are."""
    return sorted({limit for one in exported.publications if (limit := limit_of(one.audit)) is not None})


def facts_of(exported: Exported) -> list[tuple[str, str]]:
    """Facts for a sheet of notes or a footnote, from the last publication where they do not differ: (name, text)."""
    audits, last = [one.audit for one in exported.publications], exported.audit
    periods = [str(audit["period"]) for audit in audits]
    limits = limits_of(exported)
    about = exported.about
    facts = [
        (gettext("publisher"), about.publisher),
        (gettext("contact"), about.contact),
        (gettext("licence"), about.license),
    ]
    number, between = len(periods), pgettext("days", " to ")
    epsilons = sorted({str(audit["epsilon"]) for audit in audits})
    return [
        (gettext("release"), str(last["release"])),
        (gettext("title"), title_of(exported)),
        *((name, text) for name, text in facts if text),
        (gettext("periods"), periods[0] if number == 1 else f"{periods[0]}{between}{periods[-1]} ({number})"),
        *(
            [(gettext("withdrawn"), gettext("%(periods)s: do not use copies", periods=", ".join(exported.withdrawn)))]
            if exported.withdrawn
            else []
        ),
        (
            gettext("protected"),
            gettext(
                "every %(unit)s, by differential privacy: %(neighbours)s",
                unit=last.get("unit_label") or last["privacy_unit"],
                neighbours=last["neighbours"],
            ),
        ),
        (_epsilon_of(exported), gettext(" and ").join(epsilons)),
        (
            gettext("values of a contributor that are reported")
            if is_local(exported)
            else gettext("rows of a unit that count"),
            str(last["max_rows_per_unit"]),
        ),
        (gettext("mechanism"), str(last["mechanism"])),
        (
            gettext("sums"),
            gettext("Do not add up ends of intervals; ask `dphist answer` or a macro of the catalogue for sums."),
        ),
        *_near_zero_facts(exported),
        *(
            [
                (
                    pgettext("reliability", "known"),
                    translate(FIGURES_IN_FILES) % {"level": levels_in_words(last["invariants"])},
                )
            ]
            if totals_are_known(last)
            else []
        ),
        *[(words_for(limit), hidden_in_words(limit)) for limit in limits],
        (gettext("audit"), str(last["audit_digest"])),
    ]


def _near_zero_facts(exported: Exported) -> list[tuple[str, str]]:
    """Why whole numbers stand first, and what to do with intervals below 0."""
    near = near_zero(exported.publications[-1])
    first = first_in_words(exported.audit, [near]) if exported.has_whole_first else ""
    facts = [("whole_count", first), ("ci_upper", near.below_in_words())]
    return [(name, text) for name, text in facts if text]
