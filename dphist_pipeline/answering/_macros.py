"""The SQL macros of the catalogue, each rendered by Jinja2 from its file in `sql/answering/`.

A file includes the pieces in `pieces/` and calls the expressions in `pieces/expressions.sql`; what several macros ask
is a macro of its own in `internals/`, which lies beside the catalogue's tables. In an attached catalogue a macro does
not see others by their names: the expression `inner` asks one by DuckDB's `query`, which takes the name as text.

Macros read a box as text by the patterns below, without DuckDB's extension `json`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dphist_pipeline.answering._catalogue_places import Places
from dphist_pipeline.answering._query_parts import compact_statement
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES, VALUE_COLUMNS
from dphist_pipeline.base.sql_files import FOLDER, literal
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.laws import INTERVALS
from dphist_pipeline.estimates.reliability import RELIABILITY

if TYPE_CHECKING:
    from jinja2 import Environment

_FILES = FOLDER / "answering"

# A box as text has words, each in quotes of SQL or JSON or without. With `s` for each word, a box is of this form.
_WORD = r"""'(?:[^'\\]|\\(?s:.))*'|"(?:[^"\\]|\\(?s:.))*"|[^\s,{}\[\]:='"][^,{}\[\]:='"]*"""
_ESCAPE = r"(?s)\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[^\\]+"
_MEMBERS = r"(?:s|\[(?:s(?:,s)*)?\])"
_OBJECT = rf"\{{(?:s[:=]{_MEMBERS}(?:,s[:=]{_MEMBERS})*)?\}}"
_SHAPE = rf"s[:=](?:{_MEMBERS}|{_OBJECT})"
_FORM = rf"\{{(?:{_SHAPE}(?:,{_SHAPE})*)?\}}"
PATTERNS = {"word": _WORD, "escape": _ESCAPE, "form": _FORM, "shape": _SHAPE}


MACROS = (
    "dph_total",
    "dph_box",
    "dph_range",
    "dph_marginal",
    "dph_share",
    "dph_quantile",
    "dph_mean",
    "dph_sum",
    "dph_rate",
    "dph_standardised",
    "dph_ranks",
    "dph_difference",
    "dph_ratio",
    "dph_compare",
    "dph_compare_releases",
    "dph_changes",
    "dph_over",
    "dph_band",
    "dph_whole",
    "dph_distances",
    "dph_quality",
)
# What several of them ask, in `internals/`.
INNER = ("dph_one_box", "dph_counted_by", "dph_moments_along", "dph_box_pairs", "dph_summed")
KNOWN_GROUP = "_known_group"  # a column of cells that no axis can have
_SUMMED = (
    "period",
    "revision",
    "cell_number",
    KNOWN_GROUP,
    *(column.name for column in VALUE_COLUMNS if column.is_summed),
)
# What every file may name. A file that needs another value sets it: `release`, where its argument has another name.
_NAMES = {
    "notes": notes,
    "patterns": PATTERNS,
    "release": "release_name",
    "boxes": {"box": "box"},  # by the names of the boxes, the arguments that give them
    "asked": "coalesce(TRY_CAST(with_chance AS BOOLEAN), false)",
    "chance_outside": literal(notes.CHANCE_LEFT_OUT),
    "summed_columns": ", ".join(f"t.{name}" for name in _SUMMED),
    # Of the table of a release, beside its axes.
    "value_columns": ", ".join(("cell_number", *KINDS_OF_VALUES, "whole_count", KNOWN_GROUP)),
    "least_variance": repr(INTERVALS.least_variance_of_shares),
    "most_good": repr(RELIABILITY.good),
    "most_fair": repr(RELIABILITY.fair),
    "sure": repr(INTERVALS.reach_of_ratios),
    "normal": repr(INTERVALS.normal_reach),
    "normal_square": repr(INTERVALS.normal_reach**2),
    "normal_of_two": repr(INTERVALS.normal_reach_of_two),
}


def macro(name: str, schema: str | None = None) -> str:
    """The CREATE statement of one of `MACROS` or `INNER`."""
    return _statement(name, schema)


@cache
def _statement(name: str, schema: str | None) -> str:
    file = f"internals/{name}.sql" if name in INNER else f"{name}.sql"
    return compact_statement(macro_files(schema).get_template(file).render(name=name))


@cache
def inner_macros(name: str) -> tuple[str, ...]:
    """The macros of `INNER` that a macro asks."""
    return tuple(one for one in INNER if f"{Places().internals}{one}'" in macro(name))


@cache
def source() -> str:
    """Everything that macros are made from: the files, and the values that they name. It changes when any macro does.

    To render all macros takes a fifth of a second, which each question of the command line would wait for.
    """
    paths = sorted(_FILES.rglob("*.sql"))
    files = [f"{path.relative_to(_FILES).as_posix()}\n{path.read_text(encoding='utf-8')}" for path in paths]
    told = {name: value for name, value in vars(notes).items() if name.isupper()}
    return "\n".join([*files, *map(str, [MACROS, INNER, {**_NAMES, "notes": told}])])


@cache
def macro_files(schema: str | None) -> Environment:
    """The files of macros, for a catalogue in a schema."""
    # Loaded here: a question to a catalogue that has its macros needs none of it.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from dphist_pipeline.base.compiled_templates import compiled_templates

    places = Places(schema)
    loader, compiled = FileSystemLoader(_FILES), compiled_templates(Path(__file__).parent)
    # SQL, no page
    files = Environment(loader=loader, bytecode_cache=compiled, undefined=StrictUndefined, autoescape=False)
    files.filters["literal"] = literal
    files.globals |= {**_NAMES, "schema": places.users, "internals": places.internals, "beside": places.beside_release}
    expressions = files.get_template("pieces/expressions.sql").module
    files.globals |= {name: value for name, value in vars(expressions).items() if not name.startswith("_")}
    return files
