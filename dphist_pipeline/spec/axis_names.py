"""What every axis of a spec has: a column, a published name, and a cell for all else."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationInfo

from dphist_pipeline.spec import words
from dphist_pipeline.spec.fields import Flag, Text
from dphist_pipeline.spec.refusals import shown


def published_name(value: object) -> str:
    """A plain name that no other column of a release has.

    Raises:
        ValueError: for what is not a plain name, and for our own columns.
    """
    word = words.name(value)
    if word in words.OUR_COLUMNS:
        raise ValueError(f"{shown(word)} is a column that every release has; choose another name with `name:`")
    return word


def _axis_name(value: object, info: ValidationInfo) -> str:
    if value is not None:
        return published_name(value)
    if "column" not in info.data:
        return ""
    return published_name(_name_of_column(info.data["column"]))


def _name_of_column(column: str) -> str:
    try:
        return words.name(column)
    except ValueError:
        problem = f"the column {shown(column)} cannot be a published name"
    raise ValueError(
        f"{problem}; add `name: {words.suggestion(column)}` (lower-case letters, digits and _, no SQL word)"
    )


class NamedAxis(BaseModel):
    """An axis with its column, its published name, and whether it has a cell for all else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Text
    name: Annotated[str, PlainValidator(_axis_name)] = Field(default=None, validate_default=True)
    other: Flag = False
