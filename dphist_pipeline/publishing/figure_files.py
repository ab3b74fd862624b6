"""The figures of a release as public files: what they are, in `figures.json`, and their lines, in `latest/figures.*`.

`figures.json` has what the spec declared last, with the populations that were read for it: public files of the office.
So whoever has the public folder can compute every line again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.files import read_regular, replace_public
from dphist_pipeline.estimates.notes import KNOWN
from dphist_pipeline.publishing.formatting import decimals_of, is_formula
from dphist_pipeline.publishing.headline_figures import DECIMALS_OF_KNOWN, ERRORS_WIDE
from dphist_pipeline.spec.published_figures import COLUMNS, Figure, figure_of

DECLARED, LATEST, LINES = "figures.json", "latest", "figures"
SCHEMA_VERSION = 1
NUMBERS = ("value", "ci_lower", "ci_upper")
MADE_FROM = b"made_from"


@dataclass(frozen=True)
class FigurePopulation:
    """A population as it was read: `sha256` of its file, the day from which it is used, and its rows as text.

    `problem`: why the file cannot be read now; then the rows are those of its last reading, or none.
    """

    sha256: str
    since: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    problem: str = ""

    @property
    def table(self) -> pa.Table:
        """Its rows; every column is text."""
        columns = zip(*self.rows, strict=True) if self.rows else [() for _ in self.columns]
        return pa.table({name: pa.array(cells, pa.string()) for name, cells in zip(self.columns, columns, strict=True)})


@dataclass(frozen=True)
class DeclaredFigures:
    """The figures of a release, and the populations that they need by the paths in the spec."""

    figures: tuple[Figure, ...] = ()
    populations: Mapping[str, FigurePopulation] = field(default_factory=dict)

    @classmethod
    def read(cls, release: Path) -> Self:
        """Reads the figures of a release from its public folder; gives none where their file is missing or damaged."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            content = json.loads(read_regular(release / DECLARED))
            populations = {
                path: FigurePopulation(
                    **{**facts, "columns": tuple(facts["columns"]), "rows": tuple(map(tuple, facts["rows"]))}
                )
                for path, facts in content["populations"].items()
            }
            return cls(tuple(map(figure_of, content["figures"])), populations)
        return cls((), {})

    def write(self, release: Path, scratch: Path) -> bool:
        """Writes the file where it says something else, and tells whether; no file for a release without figures."""
        content = {
            "schema_version": SCHEMA_VERSION,
            "figures": [figure.as_json() for figure in self.figures],
            "populations": {path: asdict(population) for path, population in self.populations.items()},
        }
        if self.digest == type(self).read(release).digest:
            return False
        replace_public(release / DECLARED, json.dumps(content, ensure_ascii=False) + "\n", scratch)
        return True

    def digest_of(self, figure: Figure) -> str:
        """The digest of the file that a figure is computed with; empty for one without."""
        population = self.populations.get(figure.rate.population) if figure.rate else None
        return population.sha256 if population else ""

    @property
    def digest(self) -> str:
        """The digest of all that it says."""
        facts = [[figure.as_json() for figure in self.figures], {p: asdict(o) for p, o in self.populations.items()}]
        return hashlib.sha256(canonical_json(facts).encode()).hexdigest()


def write_lines(release: Path, lines: pa.Table, made_from: str, scratch: Path) -> None:
    """Writes the lines of all periods into `latest/figures.csv` and `.parquet`; the one with the mark last.

    Of a release without figures nothing is written, and files that are there lose their rows.
    """
    folder = release / LATEST
    parquet = folder / f"{LINES}.parquet"
    if made_of(release) == made_from or (not lines.num_rows and not parquet.exists()):
        return
    folder.mkdir(mode=0o755, exist_ok=True)
    content = pa.BufferOutputStream()
    rounded = pa.Table.from_pylist([for_people(line) for line in lines.to_pylist()], lines.schema)
    pyarrow.csv.write_csv(rounded, content, pyarrow.csv.WriteOptions(quoting_header="none"))
    replace_public(folder / f"{LINES}.csv", content.getvalue().to_pybytes(), scratch)
    content = pa.BufferOutputStream()
    pq.write_table(lines.replace_schema_metadata({MADE_FROM: made_from}), content, compression="zstd", version="2.6")
    replace_public(parquet, content.getvalue().to_pybytes(), scratch)


def for_people(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line as spreadsheets take it: numbers with the decimals that their noise justifies, no text is a formula."""
    places = places_of(line)
    return {
        name: round(value, places) + 0.0
        if name in NUMBERS and value is not None and places is not None
        else f"'{value}"
        if isinstance(value, str) and is_formula(value)
        else value
        for name, value in line.items()
    }


def is_known(line: Mapping[str, Any]) -> bool:
    """Whether the number of a line follows from public figures alone, as its note says."""
    return line["value"] is not None and KNOWN[1:] in (line["note"] or "")


def places_of(line: Mapping[str, Any]) -> int | None:
    """How many decimals the numbers of a line have, by its interval; None without one."""
    if line["ci_lower"] is None or line["ci_upper"] is None:
        return None
    if is_known(line):
        return 0 if float(line["value"]).is_integer() else DECIMALS_OF_KNOWN
    return decimals_of((line["ci_upper"] - line["ci_lower"]) / ERRORS_WIDE)


def made_of(release: Path) -> str:
    """The digest that the lines of a release were made from; empty where there are none."""
    with suppress(OSError, pa.ArrowInvalid):
        metadata: Mapping[bytes, bytes] = pq.read_schema(release / LATEST / f"{LINES}.parquet").metadata or {}
        return metadata.get(MADE_FROM, b"").decode()
    return ""


def are_current(release: Path) -> bool:
    """Whether the lines of a release were made from the figures that are declared now; an amount declares none."""
    return not (release / DECLARED).exists() or made_of(release).startswith(DeclaredFigures.read(release).digest)


def lines_of(release: Path, period: str | None = None, revision: int | None = None) -> list[dict[str, Any]]:
    """The lines of figures of a release, or of one period or publication; none where it has no figures."""
    with suppress(OSError, pa.ArrowInvalid):
        lines: list[dict[str, Any]] = pq.ParquetFile(release / LATEST / f"{LINES}.parquet").read().to_pylist()
        return [line for line in lines if period in (None, line["period"]) and revision in (None, line["revision"])]
    return []


def used_columns(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of lines without those of axes that none of them has."""
    return [
        name for name in (lines[0] if lines else ()) if name in COLUMNS or any(line[name] is not None for line in lines)
    ]
