"""The JSON schema of a release's attributes, for editors and `dg check yaml`, which points at the line of a mistake.

It knows forms and words, never how fields fit together: that is judged when definitions are loaded. It accepts all that
the spec accepts, and in every place a template, since nothing is resolved there. The form of a field comes from its
type in the model of a spec; a field whose type does not say what a file may hold has its form here, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel
from pydantic.fields import FieldInfo

from dphist_pipeline.base.reading import ENCODINGS
from dphist_pipeline.spec._code_lists import CodeListFields
from dphist_pipeline.spec.axes import KINDS
from dphist_pipeline.spec.declared_columns import FORMS, IsOneOf, WrittenDate
from dphist_pipeline.spec.fields import Listed
from dphist_pipeline.spec.loading import FOR_EACH
from dphist_pipeline.spec.published_figures import Figure, Mean, Rate

Schema = dict[str, Any]

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*$|^\s*\+?\d+/\d+\s*$"
_NAME = r"^[a-z][a-z0-9_]{0,62}$"
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


def _number(positive: bool = False) -> Schema:
    return _or_template(
        {
            "type": ["number", "string"],
            "pattern": _NUMBER.replace("[+-]?(", "[+]?(", 1) if positive else _NUMBER,
            **({"exclusiveMinimum": 0} if positive else {}),
        }
    )


def _list_schema(item: Schema, least: int = 0, most: int | None = None) -> Schema:
    ends: Schema = {"minItems": least, **({"maxItems": most} if most is not None else {})}
    return _or_template({"type": "array", "items": item, **ends})


def _mapping(fields: Mapping[str, FieldInfo], schemas: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """A mapping with the fields of a model and no other."""
    closed = {"properties": _forms(fields, schemas), "required": list(required), "additionalProperties": False}
    return _or_template({"type": "object", **closed})


_EDGE = _or_template({"type": ["number", "string"]})


def _forms(fields: Mapping[str, FieldInfo], schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The form of each field of a model; `schemas` has those of fields whose types do not say what a file may hold.

    Raises:
        ValueError: a field has no form, or a form no field.
    """
    forms = {name: schemas.get(name) or _form_of(info.annotation, info.metadata) for name, info in fields.items()}
    unmatched = [name for name, form in forms.items() if form is None] + sorted(set(schemas) - set(fields))
    if unmatched:
        raise ValueError(f"fields without a form for editors, or forms without a field: {', '.join(unmatched)}")
    return {name: form for name, form in forms.items() if form is not None}


def _form_of(kind: Any, rules: Iterable[Any]) -> Schema | None:
    """The form of values of a type; None where the type alone does not say what a file may hold.

    `rules`: what pydantic knows of the field beside its type.
    """
    rules = list(_flat(rules))
    lists = [rule for rule in rules if isinstance(rule, Listed)]
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _form_of(parts[0], [*rules, *parts[1:]])
    if any(hasattr(rule, "func") and not isinstance(rule, AfterValidator | Listed) for rule in rules):
        return None  # what reads it may take other types
    if origin in (Union, UnionType) and len(parts) == 2 and NoneType in parts:
        form = _form_of(next(part for part in parts if part is not NoneType), rules)
        return None if form is None else _optional(form)
    if origin is tuple and lists:
        form = _form_of(parts[0], ())
        return None if form is None else _list_schema(form, lists[0].least, lists[0].most)
    if origin is dict:
        form = _form_of(parts[1], ())
        return None if form is None else _or_template({"type": "object", "additionalProperties": form})
    if origin is Literal:
        return _one_of(parts)
    limits = {json: value for rule in rules for json, value in _limits(rule)}
    types = {bool: "boolean", int: "integer", str: "string"}
    return _or_template({"type": types[kind], **limits}) if kind in types else None


def _sizes(info: FieldInfo) -> tuple[int, int | None]:
    """The fewest and the most items of a list."""
    rule = next(rule for rule in info.metadata if isinstance(rule, Listed))
    return rule.least, rule.most


def _flat(rules: Iterable[Any]) -> Iterator[Any]:
    for rule in rules:
        yield from _flat(rule.metadata) if isinstance(rule, FieldInfo) else (rule,)


def _limits(rule: Any) -> Iterator[tuple[str, Any]]:
    """What a rule of pydantic says in the words of JSON schema."""
    keywords = {"ge": "minimum", "le": "maximum", "pattern": "pattern", "min_length": "minLength"}
    for name, json in keywords.items():
        if (value := getattr(rule, name, None)) is not None:
            yield json, value


def _axis() -> Schema:
    """An axis of the kind that its keys say."""
    word = _or_template({"type": ["string", "null"]})
    # A mapping gives a word to each code; else a list, whose messages stay those of a list.
    codes = {"if": {"type": "object"}, "then": {"additionalProperties": word, "minProperties": 1}}
    # The groups of each level, or columns of the code list.
    levels = {
        "if": {"type": "object"},
        "then": {"additionalProperties": _list_schema(_text())},
        "else": _list_schema(_text()),
    }
    schemas: dict[str, dict[str, Schema]] = {
        "banded": {
            "bands": {"type": "object", "additionalProperties": _EDGE, "minProperties": 1},
            "stop": _optional(_EDGE),
        },
        "binned": {
            **dict.fromkeys(("start", "stop", "width", "lowest", "highest"), _optional(_EDGE)),
            "edges": _optional(_list_schema(_EDGE, 2)),
        },
        "amount": {"amount": _list_schema(_EDGE, 2, 2)},
        "derived": {
            **dict.fromkeys(("start", "stop", "width"), _optional(_EDGE)),
            "edges": _optional(_list_schema(_EDGE, 2)),
            "within": _text(),
            "amount": _optional(_list_schema(_EDGE, 2, 2)),
            # A name, or an axis of any other kind, which the spec judges.
            "of": {"type": ["string", "object", "null"]},
        },
        "calendar": dict.fromkeys(("start", "stop"), _text(_DAY)),
        "categorical": {
            "values": {**codes, "else": _list_schema(_text(), 1)},
            "labels": _list_schema(word),
            "levels": levels,
        }
        | {"spellings": {"if": {"type": "object"}, "then": {"additionalProperties": _text()}, "else": _text()}},
    }
    required = {
        "calendar": ["column", "calendar", "start", "stop"],
        "banded": ["column", "bands"],
        "amount": ["column", "amount"],
        "derived": ["name", "of_unit"],
    }
    more = {"categorical": CodeListFields.model_fields}
    kinds = {
        kind: _mapping(
            more.get(kind, {}) | model.model_fields, {"name": _text()} | schemas[kind], required.get(kind, ["column"])
        )
        for kind, model in KINDS.items()
    }
    axis = kinds["binned"]
    for kind, model in reversed(KINDS.items()):
        if keys := [{"required": [key]} for key in model.said_by]:
            axis = {"if": keys[0] if len(keys) == 1 else {"anyOf": keys}, "then": kinds[kind], "else": axis}
    return axis


def _derived_column() -> Schema:
    """A derived column of the form that its keys say."""
    dates = _mapping(WrittenDate.model_fields, {}, ["column"])
    schemas = {"first_of": {"first_of": _list_schema(dates, *_sizes(FORMS["first_of"].model_fields["first_of"]))}}
    form: Schema = {"required": ["column"]}
    for name, model in FORMS.items():
        required = [field for field, info in model.model_fields.items() if info.is_required()]
        one = _mapping(model.model_fields, {"column": _text(_NAME), **schemas.get(name, {})}, required)
        form = {"if": {"required": [name]}, "then": one, "else": form}
    return _or_template({"type": "object", **form})


def _condition() -> Schema:
    """A condition: `is`, or `from`, `to` or both."""
    end = _optional(_or_template({"type": ["number", "string"]}))
    values = _list_schema(_text(), *_sizes(IsOneOf.model_fields["values"]))
    closed = {"required": ["column"], "additionalProperties": False}
    ranged = {"properties": {"column": _text(), "from": end, "to": end}, **closed}
    return _or_template(
        {
            "type": "object",
            "if": {"required": ["is"]},
            "then": {"properties": {"column": _text(), "is": values}, **closed},
            "else": {**ranged, "anyOf": [{"required": ["from"]}, {"required": ["to"]}]},
        }
    )


def _figure() -> Schema:
    """A figure with one of `rate`, `share` and `mean`."""
    number = _or_template({"type": ["number", "string"]})
    ends = {"low": _optional(number), "high": _optional(number)}
    mean = {"if": {"type": "object"}, "then": _mapping(Mean.model_fields, ends, ["axis"]), "else": _text()}
    kinds = {
        "rate": _optional(_mapping(Rate.model_fields, {"per": number}, ["population"])),
        "share": _optional(_or_template({"type": "object", "minProperties": 1})),
        "mean": _optional(mean),
    }
    return _mapping(Figure.model_fields, kinds, ["name"])


# Two may be missing in a file: `neighbors` is another spelling, and a bound has no use where every row is a unit.
_MAY_BE_MISSING = ("neighbours", "max_rows_per_unit")


def release_schema(fields: Mapping[str, FieldInfo], mechanisms: Iterable[str]) -> Schema:
    """What the JSON schema of a release's attributes says: `properties` by field, `required` and more."""
    required = [name for name, field in fields.items() if field.is_required()]
    neighbours = _one_of([*get_args(fields["neighbours"].annotation), "add_or_remove_one", "replace_one"])
    share = {"allOf": [_number(positive=True), {"exclusiveMaximum": 1}]}
    schemas = {
        **{"source": _text(), "source_sql": _optional(_text()), "csv_encoding": _one_of(ENCODINGS)},
        "privacy_unit": {"if": {"type": "array"}, "then": _list_schema(_text(), 1), "else": _text()},
        "neighbours": neighbours,
        "epsilon": _number(positive=True),
        **{"release": _text(_NAME), "account": _text(_NAME), "store_resource": _optional(_text(_NAME))},
        **{"mechanism": _one_of(mechanisms), "settings": _or_template({"type": "object"})},
        "axes": _list_schema(_axis(), *_sizes(fields["axes"])),
        "tables": _optional(_tables(fields)),
        "quality": _optional(_mapping(_inside(fields, "quality"), {"share": share})),
        **{
            "derive": _list_schema(_derived_column(), *_sizes(fields["derive"])),
            "keep": _list_schema(_condition(), *_sizes(fields["keep"])),
        },
        "figures": _list_schema(_figure(), *_sizes(fields["figures"])),
        **dict.fromkeys(("first_period", "last_period"), _optional(_text(_DAY))),
        "translation": _optional(_mapping(_inside(fields, "translation"), {})),
    }
    each = {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _list_schema({}, 1)}
    return {
        "properties": {**_forms(fields, schemas), "neighbors": neighbours, FOR_EACH: each},
        "required": [name for name in required if name not in _MAY_BE_MISSING],
        "anyOf": [{"required": ["neighbours"]}, {"required": ["neighbors"]}],
    }


def _inside(fields: Mapping[str, FieldInfo], name: str) -> dict[str, FieldInfo]:
    """The fields of the mapping that a field of a release holds."""
    kinds = get_args(fields[name].annotation)
    (model,) = (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel))
    return dict(model.model_fields)


def _tables(fields: Mapping[str, FieldInfo]) -> Schema:
    weight = _or_template({"type": ["number", "string"]})
    weights = _or_template({"type": "object", "additionalProperties": weight})
    schemas = {
        "weights": weights,
        "targets": weights,
        "invariants": _optional({"if": {"type": "array"}, "then": _list_schema(_text(), 1), "else": _text()}),
    }
    return {"allOf": [_mapping(_inside(fields, "tables"), schemas), {"minProperties": 1}]}
