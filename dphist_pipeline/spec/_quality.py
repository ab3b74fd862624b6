"""The quality table as a spec asks for it: its share of epsilon, how many rows of a unit it sees, and by which axes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.estimates.budget import LARGEST_SCALE, SMALLEST_EPSILON
from dphist_pipeline.spec.fields import LARGEST_DENOMINATOR, PublishedName, digits, exact, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, mapping_of
from dphist_pipeline.spec.sources import EVERY_ROW, NAMES, placeholders_of, resolved_address

DEFAULT_SHARE, DEFAULT_ROWS = Fraction(1, 20), 10
MOST_ROWS, MOST_BY = 10_000, 2
EXAMPLE = "{share: 1/20, rows: 10, by: [ward]}"


def _share(value: object) -> Fraction:
    share = exact(value)
    if not 0 < share < 1 or share.denominator > LARGEST_DENOMINATOR:
        raise ValueError(f"must lie between 0 and 1, such as 1/20, not {echo(value)}: the mechanism takes the rest")
    return share


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names an axis twice; keep one of them")
    return names


class QualitySpec(BaseModel):
    """What a quality table is to say, and what it may cost."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    share: Annotated[Fraction, BeforeValidator(_share)] = DEFAULT_SHARE
    rows: int = Field(default=DEFAULT_ROWS, strict=True, ge=1, le=MOST_ROWS)
    by: Annotated[tuple[PublishedName, ...], AfterValidator(_distinct), tuple_of(0, MOST_BY)] = ()
    misfiled: bool = Field(default=False, strict=True)  # rows in files of another period, which are in none

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values; `misfiled`, which earlier specs did not have, only where it is true."""
        facts: dict[str, object] = {"share": str(self.share), "rows": self.rows, "by": list(self.by)}
        return facts | ({"misfiled": True} if self.misfiled else {})


Quality = Annotated[QualitySpec | None, mapping_of(QualitySpec, EXAMPLE)]


def check_quality(quality: QualitySpec, fields: Mapping[str, Any]) -> QualitySpec:
    """Gives a quality table that fits the valid fields of its spec.

    Raises:
        MistakesError: by field of the table.
    """
    mistakes: list[tuple[Location, str]] = []
    by_row, bound = fields.get("privacy_unit") == EVERY_ROW, fields.get("max_rows_per_unit")
    axes = fields.get("axes")
    if by_row:
        unused = quality.model_fields_set & {"rows", "by"}
        mistakes += [
            ((name,), "has no use with `privacy_unit: row`, where no row is cut; remove it") for name in unused
        ]
    elif bound is not None and quality.rows <= bound:
        problem = f"must be more than `max_rows_per_unit`, {bound:,}: the rows beyond the bound are what it looks at"
        mistakes.append((("rows",), problem))
    if quality.misfiled and "source" in fields and not placeholders_of(resolved_address(fields["source"])):
        problem = f"has no use where `source` does not say which files a period needs; use {NAMES} in it, or remove it"
        mistakes.append((("misfiled",), problem))
    if axes is not None:
        names = [axis.name for axis in axes]
        unknown = [(number, name) for number, name in enumerate(quality.by) if name not in names]
        mistakes += [
            (("by", number), f"{echo(name)} is no axis of the spec. {did_you_mean(name, names)}")
            for number, name in unknown
        ]
    if not mistakes and {"epsilon", "max_rows_per_unit", "neighbours", "axes"} <= fields.keys():
        mistakes += _too_little(
            quality, fields["epsilon"], len(axes or ()), fields["neighbours"] == "substitute", by_row, bound or 1
        )
    if mistakes:
        raise MistakesError(mistakes)
    return quality


def refuse_unpublished_axes(quality: QualitySpec, axes: Collection[str]) -> None:
    """Refuses to tell rows that are cut by an axis that no table of a family has: nothing to compare them with."""
    mistakes: list[tuple[Location, str]] = [
        (("quality", "by", number), f"{echo(name)} is an axis that no table has. {did_you_mean(name, axes)}")
        for number, name in enumerate(quality.by)
        if name not in axes
    ]
    if mistakes:
        raise MistakesError(mistakes)


def _too_little(
    quality: QualitySpec, epsilon: Fraction, axes: int, substitute: bool, by_row: bool, bound: int
) -> list[tuple[Location, str]]:
    """Whether noise can be drawn for every table, of which failures by axis move most, and something is left."""
    moved = (2 if substitute else 1) * (1 if by_row else quality.rows) * axes
    each = quality.share * epsilon / tables(quality, by_row)
    if each < SMALLEST_EPSILON or moved / each > LARGEST_SCALE:
        return [(("share",), f"is too small to draw noise for {moved:,} rows at epsilon {digits(each)}; raise it")]
    rest = (1 - quality.share) * epsilon
    if rest < SMALLEST_EPSILON or (2 if substitute else 1) * bound / rest > LARGEST_SCALE:
        return [(("share",), f"is so large that too little epsilon is left to the mechanism, {digits(rest)}; lower it")]
    return []


def tables(quality: QualitySpec, by_row: bool) -> int:
    """How many tables share what quality costs: rows by place and failures; else units and rows cut, too."""
    return (2 if by_row else 4 + len(quality.by)) + quality.misfiled
