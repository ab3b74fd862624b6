"""Axes of named categories as a spec writes them: listed, or taken from a public code list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Self, cast

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from dphist_pipeline.base.domain import Axis, CategoricalAxis
from dphist_pipeline.base.tidying import STEPS, Step, tidy
from dphist_pipeline.spec._binned_axes import LABEL, NamedAxis
from dphist_pipeline.spec._code_lists import CodeListFields, read_code_list, read_spellings
from dphist_pipeline.spec.fields import Categories, Category, Label, PublishedName, label, text, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, one_line, with_location
from dphist_pipeline.spec.sources import Decided

WHERE_ANY = ("levels", "labels", "tidy", "spellings")
MOST_MISTAKES = 20


class CategoricalAxisSpec(NamedAxis):
    """Named categories, compared as text, with coarser levels and labels where they are declared."""

    said_by: ClassVar[tuple[str, ...]] = ("values", "values_from")

    values: Categories = Field(
        description="a list of categories, or a mapping with a word for each", examples=["[surgery, medicine]"]
    )
    # Whether `values` gave the labels, as a mapping: then they are words of the spec, like its title, and in no digest.
    _worded: bool = PrivateAttr(default=False)
    levels: dict[PublishedName, Annotated[tuple[Category, ...], tuple_of()]] = Field(
        default={}, examples=["{region: [north, south]}"]
    )
    labels: Annotated[tuple[Label, ...], tuple_of()] = ()
    tidy: Annotated[tuple[Step, ...], tuple_of(0, len(STEPS))] = Field(default=(), examples=["[trim, lower, nfc]"])
    spellings: dict[Category, Category] = Field(
        default={}, examples=["codes/kinds.csv, a list with the columns spelling and value", "{Bk: book}"]
    )

    @model_validator(mode="wrap")
    @classmethod
    def _codes_with_words(cls, value: object, judge: ModelWrapValidatorHandler[Self]) -> Self:
        """`values: {C0: surgery}` as its codes and their labels."""
        axis = cast("Mapping[str, object]", value)
        if not isinstance(axis, Mapping) or not isinstance(words := axis.get("values"), Mapping):
            return judge(value)
        code_axis = judge({**axis, "values": list(words), "labels": _labels(words, beside="labels" in axis)})
        code_axis._worded = True
        return code_axis

    @model_validator(mode="after")
    def _one_for_each_value(self) -> Self:
        lists: dict[Location, tuple[str, ...]] = {("levels", name): groups for name, groups in self.levels.items()}
        if self.labels:
            lists["labels",] = self.labels
        problem = f"needs one label for each of the {len(self.values)} values, in their order"
        mistakes = [(at, problem) for at, items in lists.items() if len(items) != len(self.values)]
        if mistakes:
            raise MistakesError(mistakes)
        return self

    @model_validator(mode="after")
    def _one_category_for_each_text(self) -> Self:
        """Refuses texts that are counted in two cells. No message holds a spelling, which may come from a file."""
        mistakes: list[tuple[Location, str]] = []
        if len(set(self.tidy)) < len(self.tidy):
            mistakes.append((("tidy",), "names a step twice; name each once"))
        texts: dict[str, str] = {}
        for number, value in enumerate(self.values):
            if texts.setdefault(tidy(value, self.tidy), value) != value:
                mistakes.append(
                    (("values", number), "is the same as an earlier one once both are tidied; keep one of them")
                )
        categories = set(self.values)
        for number, (spelling, value) in enumerate(self.spellings.items()):
            if value not in categories:
                mistakes.append((("spellings", number), "stands for a category that `values` does not list"))
            elif texts.setdefault(tidy(spelling, self.tidy), value) != value:
                mistakes.append((("spellings", number), "is, once tidied, counted in another category already"))
        if mistakes:
            raise MistakesError(mistakes[:MOST_MISTAKES])
        return self

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self.values) + self.other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return (self.name, *([f"{self.name}_label"] if self.labels else []), *self.levels)

    @property
    def declared_texts(self) -> dict[Location, tuple[str, ...]]:
        """Categories, labels, and the groups of each level."""
        lists: dict[Location, tuple[str, ...]] = {("values",): self.values, ("labels",): self.labels}
        return lists | {("levels", name): groups for name, groups in self.levels.items()}

    @cached_property
    def axis(self) -> Axis:
        """The axis of the domain."""
        return CategoricalAxis(
            self.name, self.column, self.values, self.other, self.levels, self.labels, self.tidy, self.spellings
        )

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, defaults filled in; those of `WHERE_ANY` only where there are any."""
        fields = self.model_dump(mode="json", exclude={LABEL})
        return {name: value for name, value in fields.items() if value or name not in WHERE_ANY}

    def digest_facts(self) -> dict[str, object]:
        """As `as_json`, without words that may change as a title may."""
        return {name: value for name, value in self.as_json().items() if not (self._worded and name == "labels")}


def _labels(words: Mapping[object, object], beside: bool) -> list[str]:
    """The checked labels of codes; `beside`: whether others stand beside them. All empty ones are none."""
    if beside:
        raise MistakesError(
            [(("labels",), "gives words to codes to which `values` gives some already; keep one of the two")]
        )
    faults, labels = list[tuple[Location, str]](), list[str]()
    for code, word in words.items():
        try:
            labels.append(label(word))
        except MistakesError as mistakes:
            faults += [(("values", one_line(str(code)), *at), problem) for at, problem in mistakes.found]
    if faults:
        raise MistakesError(faults)
    return labels if any(labels) else []


def from_code_list(axis: Mapping[str, object], base: Path | None, decided: Decided | None) -> dict[str, object]:
    """The axis with its categories, levels and labels in place of the code list that it names.

    Relative paths start from `base`; without `decided`, no list is allowed.
    """
    problems: list[tuple[Location, str]] = []
    if "values" in axis:
        problems.append((("values_from",), "is given together with `values`; keep one of the two"))
    try:
        code_list = CodeListFields.model_validate(axis)
    except ValidationError as error:
        problems += with_location(error, CodeListFields.model_fields)
    if problems:
        raise MistakesError(problems)
    try:
        codes = read_code_list(code_list, base or Path(), decided)
    except MistakesError as mistakes:
        problems = [(("values_from", *at), problem) for at, problem in mistakes.found]
    else:
        rest = {key: value for key, value in axis.items() if key not in CodeListFields.model_fields}
        return {"column": code_list.column, **rest, **vars(codes)}
    raise MistakesError(problems)


def with_spellings(axis: Mapping[str, object], base: Path | None, decided: Decided | None) -> dict[str, object]:
    """The axis with the accepted spellings in place of the file that it names; otherwise as `from_code_list`."""
    try:
        return {**axis, "spellings": read_spellings(text(axis["spellings"]), base or Path(), decided)}
    except MistakesError as mistakes:
        problems: list[tuple[Location, str]] = [(("spellings", *at), problem) for at, problem in mistakes.found]
    except ValueError as error:
        problems = [(("spellings",), str(error))]
    raise MistakesError(problems)
