"""Mistakes in specs: their errors, how messages write places and values, and Pydantic's errors in our words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dphist_pipeline.errors import Refused, did_you_mean, first_of

LONGEST_ECHO = 60
MOST_RELEASES_NAMED = 5
MOST_LINES = 40

Location = tuple[str | int, ...]


class SpecError(Refused):
    """A spec with mistakes: all that were found, each with its place and its mend.

    `problems` are pairs of place (`attributes.axes[1].values[0]`, or line and column) and what is wrong there.
    """

    def __init__(
        self, problems: Iterable[tuple[str, str]], file: Path | str | None = None, of_what: str = "release"
    ) -> None:
        self.problems = tuple(problems)
        self.file, self.of_what = file, of_what
        count = len(self.problems)
        title = f"{of_what} spec" if file is None else one_line(str(file), 300)
        lines = [f"{title}: {count} mistake{'s' if count != 1 else ''}, nothing was read or spent"]
        lines += [f"  {place}: {problem}" if place else f"  {problem}" for place, problem in self.problems[:MOST_LINES]]
        if count > MOST_LINES:
            lines.append(f"  and {count - MOST_LINES} more; mend these first")
        super().__init__("\n".join(lines))


class PeriodError(Refused):
    """A period that does not exist, is not spelled as its first day, or is not over yet."""

    def __init__(self, key: object, problem: str) -> None:
        self.key, self.problem = key, problem
        super().__init__(f"period {echo(key)}: {problem}")


class WhichSpec(Refused):
    """A file that makes several releases, where one of them is to be named."""

    def __init__(self, file: Path | str, names: Sequence[str], wanted: str = "") -> None:
        self.file, self.names, self.wanted = file, tuple(names), wanted
        called, makes = one_line(str(file), 300), f"{len(names):,} release{'s' if len(names) > 1 else ''}"
        if wanted:
            problem = f", none of which is {echo(wanted)}. {did_you_mean(wanted, names)}"
        else:
            problem = f": {first_of(names, MOST_RELEASES_NAMED)}. Name one, as in {called}#{names[0]}."
        super().__init__(f"{called} makes {makes}{problem} Nothing was read or spent.")


class MistakesError(ValueError):
    """Several mistakes below one field, found by one check: pairs of location below the field, and message.

    The renderer of messages takes it apart.
    """

    def __init__(self, mistakes: Iterable[tuple[Location, str]]) -> None:
        self.found = tuple(mistakes)
        super().__init__("; ".join(problem for _, problem in self.found))


class FromEnvironment(str):
    """Text with `{{ env.X }}` resolved. Messages show `written`, never the resolved value."""

    written: str

    def __new__(cls, value: str, written: str = "") -> FromEnvironment:
        text = super().__new__(cls, value)
        text.written = written
        return text


def one_line(text: str, longest: int = LONGEST_ECHO) -> str:
    """Any text on one line, without control characters, cut to `longest` characters."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in cut)


def echo(value: object) -> str:
    """A value of the spec as a message may echo it: short, escaped, and never out of the environment."""
    if isinstance(value, FromEnvironment):
        return f"the value of {one_line(value.written)}"
    if isinstance(value, str):
        cut = value if len(value) <= LONGEST_ECHO else value[: LONGEST_ECHO - 1] + "…"
        return repr(cut)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value) if abs(value) < 10**LONGEST_ECHO or value != value else "a very large number"
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, list | tuple) else f"a {one_line(type(value).__name__)}"


def read_words(name: str) -> frozenset[str]:
    """The words in a text file of this folder, without its ending .txt; lines that begin with # are comments."""
    lines = Path(__file__).with_name(f"{name}.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def as_key(key: object) -> str:
    """A key of a mapping as text; the keys of a spec all are."""
    return key if isinstance(key, str) else echo(key)


def place(where: str, location: Location) -> str:
    """A location (keys and numbers of items, outermost first) as text: `attributes.axes[1].values[0]`."""
    return where + "".join(map(_step, location))


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if re.fullmatch(r"[A-Za-z_]\w{0,59}", key, re.ASCII) else f"[{echo(key)}]"


if TYPE_CHECKING:  # what is due is told without the model of specs
    from pydantic import BaseModel, BeforeValidator, TypeAdapter, ValidationError
    from pydantic.fields import FieldInfo

    Fields = Mapping[str, FieldInfo]
    Kinds = Mapping[str, type[BaseModel]]

AMOUNT_AXIS = (
    "is no field: sums and means come from an axis with ends, as {column: cost, amount: [0, 20000]} in `axes`; "
    "its rows, sum and mean are figures by themselves, `sum_cost` and `mean_cost`"
)
# What is said of fields that people look for and that do not exist.
NO_FIELDS = {
    "renews": "is not supported yet; the account is set up with `dphist ledger open`",
    "neighbors": "is another spelling of `neighbours`; give one of the two",
    **dict.fromkeys(("weight", "weights", "weight_column", "sum", "sums", "sum_column"), AMOUNT_AXIS),
    **dict.fromkeys(("measure", "measures", "aggregate", "value_column"), AMOUNT_AXIS),
}
# By the type of Pydantic's error; its own values, `given` and `such_as` are filled in.
_MESSAGES = {
    "missing": "is required: {description}",
    "string_type": "must be text, but arrived as {given}: quote it",
    "string_unicode": "holds a piece of a broken character; remove it",
    "string_too_short": "is empty; give some text",
    "string_too_long": "is longer than {max_length} characters; shorten it",
    "string_pattern_mismatch": "must be {description}, not {given}",
    "bool_type": "must be true or false, not {given}",
    "int_type": "must be a whole number, not {given}",
    "greater_than_equal": "must be at least {ge:,}, not {given}",
    "less_than_equal": "must be at most {le:,}, not {given}",
    "tuple_type": "must be a list{such_as}, not {given}",
    "dict_type": "must be a mapping{such_as}, not {given}",
    "too_short": "holds {actual_length} items and needs at least {min_length}{such_as}",
    "too_long": "has more than {max_length:,} items",
}
_OTHERWISE = "does not have the form that the documentation describes"


def with_location(
    error: ValidationError, fields: Fields, kinds: Kinds = MappingProxyType({})
) -> list[tuple[Location, str]]:
    """Every mistake with its location below the model, in the order of the fields.

    `kinds`: models of a discriminated union, by the tag that Pydantic puts behind the item's number.
    """
    mistakes: list[tuple[Location, str]] = []
    for detail in error.errors(include_url=False):
        at: Location = detail["loc"]
        model_fields = fields
        if len(at) > 2 and at[2] in kinds:
            model_fields, at = kinds[str(at[2])].model_fields, (*at[:2], *at[3:])
        if at and at[-1] == "[key]":
            at = at[:-1]
        # Where a default rests on another field, the mistake is told of that one.
        if detail["type"] != "default_factory_not_called":
            mistakes += _explanation(detail, at, model_fields)
    return mistakes


def checker(kind: Any) -> Callable[[object], Any]:
    """A function that gives a value as a kind of field, or raises a MistakesError in the words of a spec."""
    from pydantic import TypeAdapter, ValidationError

    @cache
    def adapter() -> TypeAdapter[Any]:  # made when it is first used: a command uses few of them, and each takes 1 ms
        return TypeAdapter(kind)

    def check(value: object) -> Any:
        try:
            return adapter().validate_python(value)
        except ValidationError as error:
            mistakes = with_location(error, {})
        raise MistakesError(mistakes)

    return check


def _explanation(detail: Any, at: Location, model_fields: Fields) -> list[tuple[Location, str]]:
    facts = detail.get("ctx", {})
    if isinstance(facts.get("error"), MistakesError):
        return [((*at, *below), problem) for below, problem in facts["error"].found]
    if "error" in facts:
        return [(at, str(facts["error"]))]
    name = str(at[-1]) if at else ""
    if detail["type"] == "extra_forbidden":
        return [(at, NO_FIELDS.get(name) or f"unknown field. {did_you_mean(name[:LONGEST_ECHO], model_fields)}")]
    if detail["type"] == "literal_error":
        return [(at, _one_of(facts["expected"], detail["input"]))]
    field = next((model_fields[step] for step in at if isinstance(step, str) and step in model_fields), None)
    such_as = f", such as {field.examples[0]}" if field is not None and field.examples else ""
    filled = {**facts, "description": field.description if field else "", "such_as": such_as}
    return [(at, _MESSAGES.get(detail["type"], _OTHERWISE).format(given=echo(detail["input"]), **filled))]


def _one_of(expected: str, value: object) -> str:
    """What to say where a value is not one of a few words, which Pydantic writes as `'a', 'b' or 'c'`."""
    choices = expected.replace(" or ", ", ").replace("'", "").split(", ")
    hint = did_you_mean(value[:LONGEST_ECHO], choices) if isinstance(value, str) else ""
    hint = f". {hint}" if hint.startswith("Did") else ""
    return f"must be one of {', '.join(choices)}, not {echo(value)}{hint}"


def mapping_of(model: type[BaseModel], example: str) -> BeforeValidator:
    """A validator that reads a mapping within a spec as a model, and tells all mistakes in it; None stays None."""
    from pydantic import BeforeValidator, ValidationError

    def read(value: object) -> object:
        if value is None or isinstance(value, model):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"must be a mapping such as {example}, not {echo(value)}")
        try:
            return model.model_validate(value)
        except ValidationError as error:
            mistakes = MistakesError(with_location(error, model.model_fields))
        raise mistakes

    return BeforeValidator(read)
