"""Short texts on a release for people who decide about it and know no ε: lawyers, ethics boards, journalists.

All numbers follow from the spec, and from the account's total where a store knows it; no record is read.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.publishing.formatting import likelihood_ratio, visible
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.known_tables import known_tables
from dphist_pipeline.releasing.release_spec import ReleaseSpec

Reader = Literal["legal", "ethics", "press"]

# How often a cell with nobody is taken for one with people, and the other way round.
ERRORS = Fraction(1, 20)
_LARGE = 10**6  # times: beyond this a bound is told as no bound
_EXACT = 40  # epsilon from which powers of e are not computed


def least_told(epsilon: Fraction, sensitivity: int) -> int:
    """The least count of one cell that is told from an empty one, if all of epsilon went to plain noise in each cell.

    Discrete Laplace noise reaches t or more with probability q^t/(1 + q), where q = e^(-epsilon/sensitivity). With t
    the least number whose probability is at most 1 in 20, "at least t" is wrong for an empty cell once in 20, and
    "below t" is wrong once in 20 for a count of 2t - 1.
    """
    decay = math.exp(-epsilon / sensitivity)
    reach = math.ceil(math.log(ERRORS * (1 + decay)) / math.log(decay)) if decay else 1
    return 2 * max(reach, 1) - 1


def odds(epsilon: Fraction) -> str:
    """By how much odds change at most, e^epsilon, rounded up as on cards, in words."""
    if epsilon > _EXACT or math.exp(epsilon) > _LARGE:
        return "no bound to speak of, more than a million times"
    return f"at most {likelihood_ratio(epsilon)} times"


def plain_text(spec: ReleaseSpec, reader: Reader, store: Path | None = None) -> str:
    """The text for a reader, as Markdown.

    Args:
        store: whose ledger tells the account's total; None for the usual one, and general words where there is none.
    """
    texts = {name: _in_markdown(value, in_code=name in _IN_CODE) for name, value in facts(spec, store).items()}
    text = _environment().get_template(f"{reader}.md.j2").render(texts)
    blocks = re.split(r"\n\s*\n", text.strip())
    # Paragraphs and entries of lists get lines of a length that people read; headings and tables stay as they are.
    return "\n\n".join(block if block[0] in "#|" else "\n".join(_lines(block)) for block in blocks) + "\n"


def facts(spec: ReleaseSpec, store: Path | None = None) -> dict[str, Any]:
    """What the texts say, as JSON values."""
    row, known = spec.privacy_unit == "row", known_tables(spec)
    facts_of_spec: dict[str, Any] = {
        "release": spec.release,
        "title": spec.title or spec.release,
        "unit": "record" if row else spec.unit_label or spec.privacy_unit,
        "column": None if row else spec.privacy_unit,
        "counted": spec.counted or "records",
        "tables": [] if spec.family is None else list(spec.family.names),
        "rows": None if row else spec.max_rows_per_unit,
        "hides_presence": spec.neighbours == "add_remove",
        "epsilon": as_text(spec.epsilon),
        "odds": odds(spec.epsilon),
        "odds_between_values": odds(spec.epsilon * (2 if spec.neighbours == "add_remove" else 1)),
        "least_told": least_told(spec.epsilon, spec.sensitivity),
        "cells": spec.cells,
        "axes": [axis.name for axis in spec.domain.axes],
        "period": None if spec.period == "none" else spec.period,
        "quality": spec.quality is not None,
        "known": bool(known),
        # Tables of a family agree, but for the noise of cells that are known to be 0.
        "sums_differ": spec.family is None or any(table.leaves_noise_out for table in known.values()),
        "account": spec.account,
    }
    return facts_of_spec | dict(_over_time(spec, store))


def _over_time(spec: ReleaseSpec, store: Path | None) -> Iterator[tuple[str, str | None]]:
    """Odds of a year of periods, where the account pays for it, and of all that the account may ever spend."""
    statement = AccountRunway.statement(spec, store)
    total = None if isinstance(statement, str) else statement.total
    year = spec.epsilon * AccountRunway.MOST_IN_A_YEAR.get(spec.period, 0)
    is_paid = year > 0 and (total is None or year <= total)
    yield "odds_in_a_year", odds(year) if is_paid else None
    yield "epsilon_in_a_year", as_text(year) if is_paid else None
    yield "odds_in_all", None if total is None else odds(total)
    yield "total", None if total is None else as_text(total)
    yield "renews", None if isinstance(statement, str) else statement.account.renews


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _in_markdown(value: Any, in_code: bool) -> Any:
    """Texts from a spec, whose letters can neither be hidden nor end a cell, a code or a line; other values stay.

    Between backquotes (`in_code`), other marks mean nothing.
    """
    if isinstance(value, list):
        return [_in_markdown(one, in_code) for one in value]
    if not isinstance(value, str):
        return value
    text = visible(value).replace("\n", " ").replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return text if in_code else text.translate(_MARKS)


_IN_CODE = ("account", "column")
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "[]*_!"})


def _lines(block: str) -> Iterator[str]:
    for entry in re.split(r"\n(?=- )", block):
        entry = entry.strip()
        yield textwrap.fill(" ".join(entry.split()), 100, subsequent_indent="  " if entry.startswith("- ") else "")
