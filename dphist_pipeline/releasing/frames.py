"""Data frames as records: written to a private Parquet file when they are counted, and read as any other file.

So one path of reading serves files and frames, and gives the same bins, kept rows and values for both. Of a frame only
the columns that count are taken. The file is deleted as soon as it was counted.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from dphist_pipeline.base.declared_numbers import with_plain_texts
from dphist_pipeline.base.domain import ByText, Domain
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.measurements import PrivateCounts as PrivateCounts
from dphist_pipeline.confidential.plan import CountingPlan, SourcePlan
from dphist_pipeline.confidential.reading.column_sql import refuse_shadowing
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.errors import Halted, did_you_mean
from dphist_pipeline.spec.declared_columns import IsOneOf, inputs_of
from dphist_pipeline.spec.model import CubeSpec, Neighbours
from dphist_pipeline.spec.periods import EVERYTHING, Period
from dphist_pipeline.spec.sources import EVERY_ROW, NormalForm, Source

Result = TypeVar("Result")
FILE = "frame.parquet"

if TYPE_CHECKING:
    import duckdb
    import narwhals as nw
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from dphist_pipeline.releasing._frame_files import OpenFrame

A_FRAME = "a Polars or pandas frame, an Arrow table, a DuckDB relation, or another frame that Narwhals knows"
NOT_READ = (
    "could not be computed and written by its engine, whose message is withheld because it may hold values; try the "
    "frame itself where records may be seen, and see that memory and disk suffice"
)


class SupportsArrow(Protocol):
    """What gives its rows as a stream of Arrow: most frames, tables and readers."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class SparkFrame(Protocol):
    """A data frame of PySpark, as far as its type is told from others."""

    def mapInArrow(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: N802 - PySpark's name


Frame: TypeAlias = (
    "SupportsArrow | SparkFrame | pl.LazyFrame | duckdb.DuckDBPyRelation | nw.DataFrame[Any] | nw.LazyFrame[Any]"
)


class FrameMissing(Halted):
    """A release of a frame was asked for where nobody handed a frame over."""

    def __init__(self, source: str) -> None:
        self.source = str(source)
        super().__init__(
            f"source {source}: is a data frame that a Python program hands over, as in `dph.release(spec, store, "
            "frame=people)`, and this call has none. Nothing was read or spent. Run the release in that program; what "
            "was published already can be replayed without the frame"
        )


def frame_unexpected(source: str) -> Halted:
    """A frame was handed over for a release that reads something else."""
    return Halted(
        f"source {source}: is what the spec reads, and not the frame that was handed over. Nothing was read or "
        "spent. Leave `frame` out, or name a frame in the spec: `source: frame:NAME`",
        code="frame_unexpected",
    )


def count_cube(
    frame: Frame,
    domain: Domain | Sequence[Mapping[str, Any]],
    *,
    privacy_unit: str | Sequence[str],
    max_rows_per_unit: int | None = None,
    neighbours: Neighbours = "add_remove",
    unit_normalise: Sequence[NormalForm] = (),
    time_zone: str = "UTC",
    derive: Sequence[Mapping[str, Any]] = (),
    keep: Sequence[Mapping[str, Any]] = (),
) -> PrivateCounts:
    """Bounded counts of a data frame, behind measurements: for studies with `sanitize`, not for publishing.

    Reads, bounds and counts exactly as a release does. No row is computed before a mechanism asks the first
    measurement; then the columns that count are written to a private temporary file, once, and the counts stay in
    memory.

    Args:
        frame: of Polars or pandas, an Arrow table, a DuckDB relation, or any other frame that Narwhals knows. Column
            types are part of what is public: they must not follow from the records.
        domain: the declared grid, or its axes as a spec writes them: `[{"column": "age", "start": 0, …}]`.
        privacy_unit: the column that names a person, several that do so together, or `row`.
        max_rows_per_unit: how many rows of a unit count; may be left out with `row` alone.
        neighbours: what the sensitivity holds for: add_remove or substitute.
        unit_normalise: forms that names of units are brought into before they are compared: see the reference of specs.
        time_zone: of times without an offset.
        derive: columns that are made of others row by row, as a spec writes them.
        keep: conditions on the rows that count, as a spec writes them.

    Raises:
        DphistError: for a grid or unit with mistakes, at once; for missing columns and types that cannot serve, and a
            frame that its engine cannot compute, when counts are asked for. No message holds a value.
        TypeError: for what is no data frame.
    """
    bound = 1 if max_rows_per_unit is None and privacy_unit == EVERY_ROW else max_rows_per_unit
    fields = {"privacy_unit": privacy_unit, "max_rows_per_unit": bound, "neighbours": neighbours}
    more = {"unit_normalise": unit_normalise, "derive": derive, "keep": keep}
    spec = CubeSpec.of_arguments(domain, {**fields, **more}, "count_cube")
    unit, forms = spec.privacy_unit.columns, spec.unit_normalise
    reading = Reading("frame", None, "frame", unit=unit, unit_normalise=forms)
    plan = CountingPlan(
        source=SourcePlan(Source("frame"), reading, "frame"),
        privacy_unit=spec.privacy_unit,
        max_rows_per_unit=spec.max_rows_per_unit,
        domain=spec.grid,
        period=Period(EVERYTHING, None, None),
        time_zone=time_zone,
        derive=spec.derive,
        keep=spec.keep,
    )
    opened = _narwhals_frame(plan, frame)
    if opened is None:
        raise TypeError(f"frame must be {A_FRAME}, not {type(frame).__name__}")

    @cache  # one count for all measurements: kept rows follow a key that is fresh for every count
    def counts() -> NDArray[np.int64]:
        from dphist_pipeline.confidential.cube import read_and_count

        with tempfile.TemporaryDirectory(prefix="dphist_") as folder:
            scratch = Path(folder)
            return read_and_count(_write_frame(opened, plan, scratch), scratch)

    return PrivateCounts(spec.grid, spec.sensitivity, counts)


@contextmanager
def as_file(plan: CountingPlan, frame: Frame | None, folder: Path) -> Iterator[CountingPlan]:
    """The plan of a release with its frame written to a file, which is deleted in the end; or the plan as it is.

    Raises:
        FrameMissing, Halted: a frame where none is read, or none where one is.
    """
    source = plan.source.written
    if (plan.source.reading.format == "frame") != (frame is not None):
        raise FrameMissing(source) if frame is None else frame_unexpected(source)
    if frame is None:
        yield plan
        return
    records = _narwhals_frame(plan, frame)
    if records is None:
        raise SourceRefused(source, f"must be {A_FRAME}, and a {type(frame).__name__} was handed over")
    try:
        yield _write_frame(records, plan, folder)
    finally:
        (folder / FILE).unlink(missing_ok=True)


def _narwhals_frame(plan: CountingPlan, frame: Frame) -> OpenFrame | None:
    from dphist_pipeline.releasing._frame_files import open_frame

    categories = {axis.column for axis in plan.axes_read.axes if isinstance(axis, ByText)}
    categories |= {one.column for one in plan.keep if isinstance(one, IsOneOf)}
    return _withheld(plan.source.written, lambda: open_frame(frame, categories))


def _write_frame(opened: OpenFrame, plan: CountingPlan, folder: Path) -> CountingPlan:
    """The plan, reading a file with the columns that it needs of the frame."""
    where, file = plan.source.written, folder / FILE
    names = [name for name in _withheld(where, opened.names) if isinstance(name, str)]
    for name in needed if (needed := _columns(plan)) is not None else names:
        if name not in names:
            raise ColumnRefused(name, f"is not in the frame. {did_you_mean(name, names)}")
        if names.count(name) > 1:
            raise ColumnRefused(name, "is in the frame twice. Rename one")
    if needed is not None:  # else a query says which columns there are
        refuse_shadowing(plan.derive, names)
    _withheld(where, lambda: opened.write(names if needed is None else needed, file))
    objects = _withheld(where, opened.objects)
    axes = (
        with_plain_texts(axis) if isinstance(axis, ByText) and axis.column in objects else axis
        for axis in plan.axes_read.axes
    )
    reading = replace(plan.source.reading, format="parquet")
    source = replace(plan.source, reading=reading, pattern=glob.escape(str(file)))
    keep = (one.with_plain_texts() if isinstance(one, IsOneOf) and one.column in objects else one for one in plan.keep)
    read: dict[str, Any] = {"domain": Domain(tuple(axes))}
    if plan.per_unit is not None:
        read = {"per_unit": replace(plan.per_unit, read=tuple(axes))}
    return replace(plan, source=source, keep=tuple(keep), **read)


def _columns(plan: CountingPlan) -> tuple[str, ...] | None:
    """The columns that count; None where a query over the source may read any."""
    if plan.source.query is not None:
        return None
    unit = () if plan.privacy_unit == EVERY_ROW else plan.privacy_unit.columns
    period = () if plan.period_column is None else (plan.period_column,)
    inputs = sorted(inputs_of(plan.derive, plan.keep))
    derived = {one.column for one in plan.derive}
    read = dict.fromkeys([*(axis.column for axis in plan.axes_read.axes), *unit, *period, *inputs])
    return tuple(column for column in read if column not in derived)


def _withheld(where: str, work: Callable[[], Result]) -> Result:
    """Calls an engine; its error, which may hold values, becomes ours, without itself as a context."""
    try:
        return work()
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # a panic of Polars is no Exception
        pass
    raise SourceRefused(where, NOT_READ)
