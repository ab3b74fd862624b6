"""The JSON schema of a release's attributes, for editors and `dg check yaml`, which points at the line of a mistake.

It knows forms and words, never how fields fit together: that is judged when definitions are loaded. It accepts all that
the spec accepts, and in every place a template, since nothing is resolved there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from dphist_pipeline.mechanisms import names
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.axes import KINDS, MOST_AXES
from dphist_pipeline.spec.categorical_axes import CategoricalAxisSpec
from dphist_pipeline.spec.code_lists import CodeListFields
from dphist_pipeline.spec.model import LARGEST_BOUND, LONGEST_DELAY
from dphist_pipeline.spec.periods import MONTHS, Length, WeekStart
from dphist_pipeline.spec.quality import MOST_BY, MOST_ROWS, QualitySpec
from dphist_pipeline.spec.translation import TAG_VALUE, Translation
from dphist_pipeline.spec.unfolding import FOR_EACH
from dphist_pipeline.spec.upstream import MOST_CHECKS, MOST_DEPS

Schema = dict[str, Any]

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*$|^\s*\+?\d+/\d+\s*$"
_CHECK = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*:[A-Za-z0-9_]+$"
_KEY = r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$"
_CRON = r"^\s*([0-9A-Za-z*/,#?-]+\s+){4}[0-9A-Za-z*/,#?-]+\s*$"
_DAY = r"^\d{4}-\d{2}-\d{2}$"


def _or_template(schema: Schema) -> Schema:
    """The schema, where no template stands; one that does is judged when it is resolved.

    By a condition and not `anyOf`, whose message would say that nothing fits, and not what is wrong.
    """
    return {"if": {"type": "string", "pattern": r"\{\{"}, "else": schema}


def _text(pattern: str = "") -> Schema:
    return _or_template({"type": "string", "minLength": 1, **({"pattern": pattern} if pattern else {})})


def _optional(schema: Schema) -> Schema:
    return {"if": {"type": "null"}, "else": schema}


def _one_of(words: Iterable[str]) -> Schema:
    return _or_template({"enum": list(words)})


def _whole(least: int, most: int) -> Schema:
    return _or_template({"type": "integer", "minimum": least, "maximum": most})


def _number(positive: bool = False) -> Schema:
    return _or_template(
        {
            "type": ["number", "string"],
            "pattern": _NUMBER.replace("[+-]?(", "[+]?(", 1) if positive else _NUMBER,
            **({"exclusiveMinimum": 0} if positive else {}),
        }
    )


def _listed(item: Schema, least: int = 0, most: int | None = None) -> Schema:
    ends: Schema = {"minItems": least, **({"maxItems": most} if most is not None else {})}
    return _or_template({"type": "array", "items": item, **ends})


def _mapping(fields: Iterable[str], judged: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    properties = {name: judged.get(name, {}) for name in fields}
    closed = {"properties": properties, "required": list(required), "additionalProperties": False}
    return _or_template({"type": "object", **closed})


_FLAG = _or_template({"type": "boolean"})
_EDGE = _or_template({"type": ["number", "string", "null"]})


def _axis() -> Schema:
    """An axis of the kind that its keys say."""
    shared = {"column": _text(), "name": _text(), "other": _FLAG}
    binned = dict.fromkeys(("start", "stop", "width"), _EDGE) | {"below": _FLAG, "above": _FLAG}
    binned |= {"edges": _optional(_listed(_EDGE, 2)), "closed": _one_of(["left", "right"])}
    calendar = {"calendar": _one_of(["day", "week", "month", "quarter", "year"])}
    calendar |= {name: _text(_DAY) for name in ("start", "stop")}
    word = _or_template({"type": ["string", "null"]})
    # A mapping gives a word to each code; else a list, whose messages stay those of a list.
    codes = {"if": {"type": "object"}, "then": {"additionalProperties": word, "minProperties": 1}}
    categorical = {
        "values": {**codes, "else": _listed(_text(), 1)},
        "labels": _listed(_or_template({"type": "string"})),
    }
    lists = [name for name in CodeListFields.model_fields if name not in CategoricalAxisSpec.model_fields]
    kinds = {
        kind: _mapping([*model.model_fields, *(lists if kind == "categorical" else [])], shared | judged, required)
        for (kind, model), (judged, required) in zip(
            KINDS.items(),
            [(binned, ["column"]), (calendar, ["column", "calendar", "start", "stop"]), (categorical, ["column"])],
            strict=True,
        )
    }
    has_values = {"anyOf": [{"required": ["values"]}, {"required": ["values_from"]}]}
    categorical_or_binned = {"if": has_values, "then": kinds["categorical"], "else": kinds["binned"]}
    return {"if": {"required": ["calendar"]}, "then": kinds["calendar"], "else": categorical_or_binned}


# Two may be missing in a file: `neighbors` is another spelling, and a bound has no use where every row is a unit.
_MAY_BE_MISSING = ("neighbours", "max_rows_per_unit")


def release_schema() -> Schema:
    """What the JSON schema of a release's attributes says: `properties` by field, `required` and more."""
    required = [name for name, field in ReleaseSpec.model_fields.items() if field.is_required()]
    return {
        "properties": _properties(),
        "required": [name for name in required if name not in _MAY_BE_MISSING],
        "anyOf": [{"required": ["neighbours"]}, {"required": ["neighbors"]}],
    }


def _properties() -> dict[str, Schema]:
    neighbours = _one_of(["add_remove", "substitute", "add_or_remove_one", "replace_one"])
    owners = _listed(_text(r"^team:[A-Za-z0-9_.-]+$|^[^@\s]+@[^@\s]+\.[^@\s]+$"))
    return {
        "release": _text(r"^[a-z][a-z0-9_]{0,62}$"),
        "title": _or_template({"type": "string"}),
        "source": _text(),
        "privacy_unit": {"if": {"type": "array"}, "then": _listed(_text(), 1), "else": _text()},
        "max_rows_per_unit": _whole(1, LARGEST_BOUND),
        "neighbours": neighbours,
        "neighbors": neighbours,
        "epsilon": _number(positive=True),
        "account": _text(r"^[a-z][a-z0-9_]{0,62}$"),
        "mechanism": _one_of(names()),
        "settings": _or_template({"type": "object"}),
        "axes": _listed(_axis(), 1, MOST_AXES),
        "quality": _optional(_quality()),
        "deps": _listed(_text(_KEY), 0, MOST_DEPS),
        "required_checks": _listed(_text(_CHECK), 0, MOST_CHECKS),
        "require": _optional(_one_of(["files", "partitions", "checks", "none"])),
        "period": _one_of(get_args(Length)),
        "week_starts": _one_of(get_args(WeekStart)),
        "quarter_starts": _one_of(MONTHS),
        "release_delay_days": _whole(0, LONGEST_DELAY),
        "first_period": _optional(_text(_DAY)),
        "last_period": _optional(_text(_DAY)),
        "schedule": _optional(_text(_CRON)),
        "automation": _optional(_one_of(["eager", "on_cron"])),
        "freshness": _optional(_whole(0, LONGEST_DELAY)),
        "publish": _one_of(["automatic", "manual", "if_plausible"]),
        "translation": _optional(_translation(owners)),
        "owners": owners,
        FOR_EACH: {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _listed({}, 1)},
    }


def _quality() -> Schema:
    judged = {"share": _number(True), "rows": _whole(1, MOST_ROWS), "by": _listed(_text(), 0, MOST_BY)}
    return _mapping(QualitySpec.model_fields, judged)


def _translation(owners: Schema) -> Schema:
    tag = _or_template({"type": "string", "pattern": TAG_VALUE})
    tags = _or_template({"type": "object", "additionalProperties": tag})
    group = _optional(_text(r"^[A-Za-z0-9_]+$"))
    judged = {"key": _optional(_text(_KEY)), "group": group, "tags": tags, "owners": owners}
    return _mapping(Translation.model_fields, judged)
