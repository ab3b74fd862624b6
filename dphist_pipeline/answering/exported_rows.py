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
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dphist_pipeline.about_publisher import About
from dphist_pipeline.answering.asking import MARGINAL_COLUMNS, Publication
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.answering.catalogue_rows import day_of_period
from dphist_pipeline.answering.published import NotPublished, audit_in_force, latest_revision
from dphist_pipeline.domain import Axis, BinnedAxis
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.languages.texts import ENGLISH, LANGUAGES, gettext, marked, pgettext
from dphist_pipeline.published_columns import VALUE_COLUMNS
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.formatting import decimals_of
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.shown_below import Masks, hidden_in_words, limit_of, masks, words_for

_MEANINGS = {column.name: column.in_views for column in VALUE_COLUMNS}
COLUMNS = {
    "period": marked("first day of the period"),
    "revision": marked("from 1; only the latest revision of a period is exported, unless another one is asked for"),
    "estimate": _MEANINGS["estimate"],
    "unbiased": _MEANINGS["unbiased_estimate"],
    "standard_error": marked("standard deviation of the noise in `unbiased`"),
    "ci_lower": _MEANINGS["ci_lower"],
    "ci_upper": _MEANINGS["ci_upper"],
    "reliability": marked("a word for the error, see below"),
    "note": marked("what to know about the estimate, in English"),
    "period_start": "first day of the period, as a date; empty without periods",
    "period_end": "day after the last day of the period, as a date; empty without periods",
}
# Columns of `VALUE_COLUMNS` beside those that an answer tells of a cell follow as they were published.
_TOLD = {"estimate", "unbiased_estimate", "ci_lower", "ci_upper", "group_id"}
FURTHER = tuple(column for column in VALUE_COLUMNS if column.name not in _TOLD)
_KEY = ("period", "revision")
NUMBERS = ("estimate", "unbiased", "standard_error", "ci_lower", "ci_upper")
MASKED = ("estimate", "unbiased", "ci_lower", "ci_upper")
NOBODY = About()


@dataclass(frozen=True)
class Exported:
    """The publications of a release that are exported, ordered by period.

    `decimals`: of numbers in text files and in the sheet's format; None for as many as the noise of each justifies.
    `withdrawn`: the periods of which nothing stands any more. `is_part`: one period or revision was asked for, and then
    none is. `held`: the rows of each publication, where they are in memory already; see `with_rows`.
    """

    publications: tuple[Publication, ...]
    decimals: int | None = None
    about: About = NOBODY
    withdrawn: tuple[str, ...] = ()
    is_part: bool = False
    held: tuple[pa.Table, ...] = field(default=(), repr=False, compare=False)

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
        return cls(tuple(publications.values()), decimals, About.of(public), gone, is_part)

    @property
    def audit(self) -> Mapping[str, Any]:
        """Of the last publication."""
        return self.publications[-1].audit

    @property
    def language(self) -> str:
        """The code of the language of its pages, in which titles and labels are taken to be."""
        spoken = self.about.language_of(self.audit)
        return spoken if spoken in LANGUAGES else ENGLISH.code

    @cached_property
    def columns(self) -> dict[str, str]:
        """What each column means, in order: the axes of all periods, then the numbers. An axis keeps its name."""
        told = COLUMNS | {column.name: column.in_views for column in FURTHER}
        numbers = {name: about for name, about in told.items() if name not in (*_KEY, *self._axes)}
        return {**{name: COLUMNS[name] for name in _KEY}, **self._axes, **numbers}

    @cached_property
    def _axes(self) -> dict[str, str]:
        """What the columns of the axes of all periods mean."""
        meanings: dict[str, str] = {}
        for axis in (axis for one in self.publications for axis in one.domain.axes):
            about = "the category; empty for `other`"
            if isinstance(axis, BinnedAxis):
                about = "an end of the bin; empty for an open end and for `other`"
            meanings |= dict.fromkeys(ReaderAxis(axis).published, f"{axis.name}: {about}")
            meanings.setdefault(f"{axis.name}_is_other", f"{axis.name}: whether the cell is the one for `other`")
            meanings |= _for_readers(axis, [other for one in self.publications for other in one.domain.axes])
        return meanings

    def with_rows(self) -> Exported:
        """The same with its rows in memory, for several files: to ask for them takes a sixth of a small release."""
        return replace(self, held=tuple(self.tables()))

    def tables(self) -> Iterator[pa.Table]:
        """The rows of each publication, in declared order, with the columns of all."""
        yield from self.held
        for one in () if self.held else self.publications:
            axes, numbers = _axis_rows(one), _numbers(one)
            columns = [axes.get(name) if name in self._axes else numbers[name] for name in self.columns]
            cells = int(one.audit["cells"])
            yield pa.table([pa.nulls(cells) if column is None else column for column in columns], [*self.columns])


def masks_of(publication: Publication, rows: pa.Table) -> Masks | None:
    """What of some rows of `Exported.tables` is told in words; None if the spec asks for none of that."""
    limit = limit_of(publication.audit)
    if limit is None:
        return None
    estimate, unbiased = (rows[name].cast(pa.float64()).fill_null(math.nan).to_numpy() for name in MASKED[:2])
    return masks(limit, estimate, unbiased)


def with_words(publication: Publication, rows: pa.Table, number: Callable[[str, Any], Any]) -> dict[str, list[Any]]:
    """The columns of some rows of `Exported.tables` as a file for people has them: small figures are words.

    `number`: what the file has for a value of a column.
    """
    columns = {name: [number(name, value) for value in rows[name].to_pylist()] for name in rows.column_names}
    hidden = masks_of(publication, rows)
    if hidden is not None:
        words = words_for(limit_of(publication.audit) or 0)
        for name in (*MASKED, *(column.name for column in FURTHER)):
            values = zip(columns[name], *(mask.tolist() for mask in hidden.of(name)), strict=True)
            columns[name] = [words if low else None if out else value for value, low, out in values]
    return columns


def places_of(exported: Exported, table: pa.Table) -> dict[str, int]:
    """How many decimals the numbers of a publication have, by their columns; the error has one more."""
    if exported.decimals is not None:
        return dict.fromkeys(NUMBERS, exported.decimals)
    errors = table["standard_error"].drop_null()
    least = min(errors.to_pylist(), default=math.nan)
    return dict.fromkeys(NUMBERS, decimals_of(least)) | {"standard_error": decimals_of(least) + 1}


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
    axes = publication.domain.axes
    columns = [name for axis in axes for name in ReaderAxis(axis).published]
    rows = pq.ParquetFile(publication.folder / "histogram.parquet").read(columns)
    by_column = dict(zip(columns, rows.columns, strict=True))
    for axis in axes:
        other = np.logical_and.reduce([rows[key].is_null().to_numpy() for key in ReaderAxis(axis).keys])
        by_column.setdefault(f"{axis.name}_is_other", pa.array(other))
    closed = publication.audit.get("model") == "local"
    places = np.unravel_index(np.arange(rows.num_rows), publication.domain.shape)
    for axis, place in zip(axes, places, strict=True):
        values = ReaderAxis(axis, closed).values(place)
        by_column |= {name: values[name] for name in _for_readers(axis, axes)}
    return by_column


def _for_readers(axis: Axis, axes: Sequence[Axis]) -> dict[str, str]:
    """Meanings of the columns for readers, by name; without ends of bins, since spreadsheets know no infinity."""
    return {
        name: about
        for name, (kind, about) in ReaderAxis(axis).columns_beside(axes).items()
        if kind in ("label", "order")
    }


def _numbers(publication: Publication) -> dict[str, Any]:
    """The columns of `COLUMNS`."""
    numbers = _of_independent_cells(publication)
    if not numbers:
        asked = publication.marginal([axis.name for axis in publication.domain.axes], {})
        # By their places: an axis may be called as a column of an answer.
        numbers = dict(zip(MARGINAL_COLUMNS, asked.columns[-len(MARGINAL_COLUMNS) :], strict=True))
    cells = len(numbers["estimate"])
    key = {name: pa.repeat(publication.audit[name], cells) for name in _KEY}
    days = {name: day_of_period(publication.audit, name) for name in ("period_start", "period_end")}
    key |= {name: pa.repeat(pa.scalar(day, pa.date32()), cells) for name, day in days.items()}
    return {**key, **numbers, "standard_error": numbers["noise_error"], **_further(publication, cells)}


def _further(publication: Publication, cells: int) -> dict[str, Any]:
    """The columns of `FURTHER`; null where an earlier version wrote the file."""
    if not FURTHER:
        return {}
    file = pq.ParquetFile(publication.folder / "histogram.parquet")
    rows = file.read([column.name for column in FURTHER if column.name in file.schema_arrow.names])
    return {
        column.name: rows[column.name]
        if column.name in rows.column_names
        else pa.nulls(cells, pa.type_for_alias(column.kind))
        for column in FURTHER
    }


def _of_independent_cells(publication: Publication) -> dict[str, Any]:
    """What `dph_marginal` answers of each cell where all have noise of one law and nothing else tells of them.

    To plan the macro is a quarter of a small release. Empty where the noise is shared, sums of groups were drawn, or
    another table of a family may know more.
    """
    files = PublishedFolder(publication.folder)
    if files.is_table or files.sums.exists():
        return {}
    columns = pq.ParquetFile(publication.folder / "histogram.parquet").read(["estimate", "unbiased_estimate"])
    values, noisy = (column.to_numpy() + 0.0 for column in columns)  # no negative zero, as in SQL
    cells = published_unbiased(publication.audit, noisy)
    if not isinstance(cells, NoisyCells):
        return {}
    reach, error = cells.half_width_of_cell(), math.sqrt(cells.variance)
    lower, upper = noisy - reach, noisy + reach
    outside = notes.lies_outside(values, lower, upper)
    return {
        "estimate": pa.array(values),
        "unbiased": pa.array(noisy),
        "noise_error": pa.repeat(error, cells.values.size),
        "ci_lower": pa.array(lower),
        "ci_upper": pa.array(upper),
        "note": pc.if_else(pa.array(outside), notes.SMOOTHED, pc.if_else(pa.array(values < 0), notes.BELOW, None)),
        "reliability": pa.array(RELIABILITY.words_of(noisy, np.array(error), lower)),
    }


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
    """What the figures are numbers of."""
    return str(exported.audit.get("counted") or (gettext("values") if is_local(exported) else gettext("rows")))


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
        *[(words_for(limit), hidden_in_words(limit)) for limit in limits],
        (gettext("audit"), str(last["audit_digest"])),
    ]
