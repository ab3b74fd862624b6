"""The figures of a spec: their populations are looked at before a charge, and kept beside what is published."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.publishing.figure_files import DECLARED, DeclaredFigures, FigurePopulation
from dphist_pipeline.releasing._audit_facts import tables_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.published_figures import Rate

UNREADABLE = "is no readable table with a header line"


def figures_refused(release: str, problems: list[str]) -> Refused:
    """Figures that no period could tell."""
    return Refused(
        f"release '{release}': {'; '.join(problem.rstrip('.') for problem in problems)}. Nothing was read or spent.",
        code="figures_refused",
    )


def declared_in(spec: ReleaseSpec, before: DeclaredFigures | None = None) -> DeclaredFigures:
    """The figures of a spec with their populations, each read once; a file that cannot be read keeps its last rows.

    `before`: what was declared last.
    """
    kept, populations = before.populations if before is not None else {}, dict[str, FigurePopulation]()
    for rate in _rates(spec):
        earlier = kept.get(rate.population)
        try:
            content = rate.content()
            digest = hashlib.sha256(content).hexdigest()
            if earlier is not None and (earlier.sha256, earlier.problem) == (digest, ""):
                populations[rate.population] = earlier
                continue
            rows = _rows(content, Path(rate.population).suffix)
            today = datetime.now(UTC).date().isoformat()
            since = earlier.since if earlier is not None and earlier.sha256 == digest else today
            columns = tuple(rows.column_names)
            cells = tuple(zip(*(column.to_pylist() for column in rows.columns), strict=True))
            populations[rate.population] = FigurePopulation(digest, since, columns, cells)
        except (ValueError, QuestionRefused) as error:
            problem = str(error) if isinstance(error, ValueError) else UNREADABLE
            last = earlier or FigurePopulation("", "", (), ())
            populations[rate.population] = FigurePopulation(last.sha256, last.since, last.columns, last.rows, problem)
    return DeclaredFigures(spec.figures, populations)


def _rates(spec: ReleaseSpec) -> Iterator[Rate]:
    yield from {figure.rate.population: figure.rate for figure in spec.figures if figure.rate is not None}.values()


def _rows(content: bytes, ending: str) -> pa.Table:
    """The rows of a population; every column is text.

    Raises:
        QuestionRefused: it is no table.
    """
    from dphist_pipeline.answering.asking import read_population

    with tempfile.TemporaryDirectory(prefix="dphist_") as folder:
        file = Path(folder) / f"population{ending.lower()}"
        file.write_bytes(content)
        table = read_population(file)
    return pa.table(
        {name: column.cast(pa.string()) for name, column in zip(table.column_names, table.columns, strict=True)}
    )


def refuse_untold_figures(spec: ReleaseSpec) -> list[str]:
    """Refuses figures whose population cannot serve; gives remarks about rows that lack people.

    The macros themselves are asked, of a table of zeros with the declared axes.

    Raises:
        Refused: a file is not there or not public, or a column of it is missing.
    """
    rates = [figure for figure in spec.figures if figure.rate is not None]
    if not rates:
        return []
    declared = declared_in(spec)
    problems = [
        f"{path} {population.problem}" for path, population in declared.populations.items() if population.problem
    ]
    if problems:
        raise figures_refused(spec.release, problems)
    from dphist_pipeline.answering.figure_lines import rehearsal_of_rates

    tables = {"": {"axes": [axis.as_json() for axis in spec.axes]}}
    if spec.family is not None:
        tables = tables_of(spec.family, spec)
    refused, lacking = rehearsal_of_rates(rates, declared, {name: table["axes"] for name, table in tables.items()})
    if refused:
        raise figures_refused(spec.release, refused)
    return lacking


def figure_facts(spec: ReleaseSpec) -> list[dict[str, Any]]:
    """What an audit says of the populations of figures: the path and digest of each file that can be read."""
    return [
        {"population": path, "sha256": population.sha256}
        for path, population in declared_in(spec).populations.items()
        if population.sha256
    ]


def keep_figures(store: Store, spec: ReleaseSpec) -> bool:
    """Keeps the figures of a spec beside what it published, and tells whether they changed."""
    folder = store.public / spec.release
    if not folder.is_dir() or not (spec.figures or (folder / DECLARED).exists()):
        return False
    declared = declared_in(spec, DeclaredFigures.read(folder))
    with store.building(), store.run(Key(spec.release, "figures", 1)) as scratch:
        return declared.write(folder, scratch)
