"""What a setting of a mechanism does, its default, and how the default relates to the paper: told in one place.

The description stands in the annotation of the setting's field; cards, `dphist mechanisms`, its JSON and the reference
are made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cache
from textwrap import fill
from typing import Annotated, get_args, get_origin, get_type_hints

SAME = "the same"
WIDTH = 120


@dataclass(frozen=True)
class Setting:
    """The description of a setting, in the annotation of its field: `Annotated[int, Field(ge=1), Setting("…")] = 4`.

    Attributes:
        meaning: what the setting does, and its values.
        paper: the paper's value, or why it has none; by default, the paper's value is the default.
        why: one sentence, where the paper's value is another: why the default is not that, from what was measured.
        later: added when specs were in use: while it has its default, settings and digests are as if it were not there.
    """

    meaning: str
    paper: str = SAME
    why: str = ""
    later: bool = False


@dataclass(frozen=True)
class ToldSetting:
    """A setting as readers see it: all values as text.

    Attributes:
        default: its value where a spec does not name it.
        paper, meaning, why: see `Setting`.
    """

    name: str
    default: str
    paper: str
    meaning: str
    why: str

    def facts(self) -> dict[str, str]:
        """The setting as JSON values."""
        parts = (self.name, self.default, self.paper, self.meaning, self.why)
        return dict(zip(("name", "default", "paper", "meaning", "why"), parts, strict=True))

    def text(self) -> str:
        """The setting as lines of a card."""
        why = f" {self.why}" if self.why else ""
        written = f"{self.name}: {self.meaning} Default {self.default}; the paper: {self.paper}.{why}"
        return fill(written, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)


def table_of(settings: Sequence[ToldSetting]) -> str:
    """Settings as a table in Markdown; empty without settings."""
    head = ("setting", "default", "the paper", "meaning", "why not the paper's value")
    rows = [head, ("---",) * len(head), *([f"`{one.name}`", *list(one.facts().values())[1:]] for one in settings)]
    lines = ("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
    return "\n".join(lines) if settings else ""


def told_settings(kind: type) -> tuple[ToldSetting, ...]:
    """The settings of a mechanism in order of their fields, those without a description apart."""
    described = _setting_meaning(kind)
    return tuple(
        ToldSetting(field.name, _default(field.default), setting.paper, setting.meaning, setting.why)
        for field in fields(kind)
        if (setting := described.get(field.name)) is not None
    )


def later_defaults(kind: type) -> dict[str, object]:
    """The settings that are left out of settings and digests while they have this value, their default."""
    described = _setting_meaning(kind)
    return {
        field.name: field.default for field in fields(kind) if field.name in described and described[field.name].later
    }


@cache
def _setting_meaning(kind: type) -> dict[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    descriptions = {}
    for field in fields(kind):
        hint = hints[field.name]
        parts = [part for part in get_args(hint) if isinstance(part, Setting)] if get_origin(hint) is Annotated else []
        if parts:
            descriptions[field.name] = parts[-1]
    return descriptions


def _default(value: object) -> str:
    if value is MISSING:
        return "required"
    if value is None or value == ():
        return "none"
    return str(value) if isinstance(value, Fraction | int | float | str) else repr(value)
