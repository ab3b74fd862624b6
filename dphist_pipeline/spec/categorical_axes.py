"""Axes of named categories as a spec writes them: listed, or taken from a public code list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainValidator, ValidationInfo

from dphist_pipeline.domain import Axis, CategoricalAxis
from dphist_pipeline.spec import words
from dphist_pipeline.spec.axis_names import NamedAxis, published_name
from dphist_pipeline.spec.code_lists import MOST_LEVELS, Asked, Decided, read_code_list
from dphist_pipeline.spec.refusals import Location, MistakesError, shown

LIST_KEYS = ("values_column", "label_column", "parent_column")


def _levels(value: object, info: ValidationInfo) -> dict[str, tuple[str, ...]]:
    """Level names, each with a group for every category."""
    if not isinstance(value, Mapping):
        raise ValueError(f"takes a mapping here, such as {{region: [north, south]}}, not {shown(value)}")
    many = len(info.data.get("values", ()))
    levels = {}
    for name, groups in value.items():
        if not isinstance(groups, list | tuple) or len(groups) != many:
            raise ValueError(f"{shown(name)} needs a list with a group for each of the {many} values, in their order")
        levels[published_name(name)] = tuple(map(words.category, groups))
    return levels


def _labels(value: object, info: ValidationInfo) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) not in (0, len(info.data.get("values", ()))):
        raise ValueError("needs a list with a label for each of the values, in their order")
    return tuple(words.category(label) if label else "" for label in value)


class CategoricalAxisSpec(NamedAxis):
    """Named categories, compared as text, with coarser levels and labels where they are declared."""

    values: Annotated[tuple[str, ...], PlainValidator(words.categories)]
    levels: Annotated[dict[str, tuple[str, ...]], PlainValidator(_levels)] = Field(default_factory=dict)
    labels: Annotated[tuple[str, ...], PlainValidator(_labels)] = ()

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self.values) + self.other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return (str(self.name), *([f"{self.name}_label"] if self.labels else []), *self.levels)

    @cached_property
    def axis(self) -> Axis:
        """The axis of the domain."""
        values, labels = tuple(map(str, self.values)), tuple(map(str, self.labels))
        return CategoricalAxis(str(self.name), str(self.column), values, self.other, self.levels, labels)

    def normalised(self) -> dict[str, object]:
        """All fields as JSON values, defaults filled in; levels and labels only where there are any."""
        values = [str(value) for value in self.values]
        plain = {"column": str(self.column), "name": str(self.name), "other": self.other, "values": values}
        levels = {name: list(map(str, groups)) for name, groups in self.levels.items()}
        more = {"levels": levels, "labels": list(map(str, self.labels))}
        return plain | {field: value for field, value in more.items() if value}


def from_code_list(axis: Mapping[str, object], base: Path | None, decided: Decided | None) -> dict[str, object]:
    """The axis with its categories, levels and labels in place of the code list that it names.

    Args:
        axis: the fields as written, with `values_from`.
        base: the folder that relative paths start from.
        decided: gives the folders that an operator declared public; none allows no list.

    Raises:
        MistakesError: by field.
    """
    asked = _asked(axis, base)
    try:
        found = read_code_list(asked, decided)
    except MistakesError as mistakes:
        told = [(("values_from", *at), what) for at, what in mistakes.found]
    else:
        kept = {key: value for key, value in axis.items() if key not in (*LIST_KEYS, "values_from", "levels")}
        return {**kept, "values": found.values, "levels": found.levels, "labels": found.labels}
    raise MistakesError(told)


def _asked(axis: Mapping[str, object], base: Path | None) -> Asked:
    """Where the list is and which of its columns are meant."""
    found: list[tuple[Location, str]] = []
    if "values" in axis:
        found.append((("values_from",), "stands beside `values`; keep one of them"))
    written: dict[str, str | None] = {}
    for key in ("values_from", *LIST_KEYS):
        written[key] = None
        if key in axis:
            try:
                written[key] = words.text(axis[key])
            except ValueError as error:
                found.append(((key,), str(error)))
    if written["values_column"] is None and not found:
        try:
            written["values_column"] = words.text(axis.get("column"))
        except ValueError as error:
            found.append((("column",), str(error) if "column" in axis else "is required: the column of the source"))
    levels = axis.get("levels", [])
    found += _level_mistakes(levels)
    if found or not isinstance(levels, list | tuple):
        raise MistakesError(found)
    file = Path(written["values_from"] or "")
    return Asked(
        file if base is None else base / file,
        str(file),
        written["values_column"] or "",
        tuple(levels),
        written["label_column"],
        written["parent_column"],
    )


def _level_mistakes(levels: object) -> list[tuple[Location, str]]:
    if not isinstance(levels, list | tuple) or len(levels) > MOST_LEVELS:
        what = f"must be a list of columns, from the finest level, such as [state]; not {shown(levels)}"
        return [(("levels",), what)]
    found: list[tuple[Location, str]] = []
    for number, level in enumerate(levels):
        try:
            published_name(level)
        except ValueError as error:
            found.append((("levels", number), f"{error}; rename the column in the code list"))
            continue
        if level in levels[:number]:
            found.append((("levels", number), f"{shown(level)} is named twice; name it once"))
    return found
