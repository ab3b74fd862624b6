"""What a count of records needs of a spec: a grid, whose rows they are, and how many rows of a unit count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from dphist_pipeline.domain import Domain
from dphist_pipeline.spec.axes import KINDS, MOST_CELLS, Axes
from dphist_pipeline.spec.fields import listed
from dphist_pipeline.spec.mistakes import Location, SpecError, located, place
from dphist_pipeline.spec.model import LARGEST_BOUND, Neighbours, l1_sensitivity
from dphist_pipeline.spec.sources import EVERY_ROW, NormalForm, PrivacyUnit
from dphist_pipeline.spec.sources import privacy_unit as unit_of


class CubeSpec(BaseModel):
    """The arguments of a count, checked as the fields of a spec are.

    Attributes:
        domain: the axes; None where a grid is given.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    domain: Axes | None
    privacy_unit: Annotated[PrivacyUnit, BeforeValidator(unit_of)]
    max_rows_per_unit: Annotated[int, Field(strict=True, ge=1, le=LARGEST_BOUND)]
    neighbours: Neighbours
    unit_normalise: Annotated[tuple[NormalForm, ...], listed()]

    _given: Domain | None = PrivateAttr(None)

    @property
    def grid(self) -> Domain:
        """The declared grid."""
        return self._given or Domain(tuple(axis.axis for axis in self.domain or ()))

    @property
    def sensitivity(self) -> int:
        """The most that one unit moves the sum of all counts."""
        return l1_sensitivity(self.max_rows_per_unit, self.neighbours)

    @classmethod
    def checked(cls, domain: object, written: Mapping[str, object], asker: str) -> Self:
        """The arguments, without mistakes.

        Args:
            domain: a grid, or its axes as a spec writes them.
            written: the other arguments, by name.
            asker: the function that was called, for messages.

        Raises:
            SpecError: naming each argument with a mistake.
        """
        found: list[tuple[Location, str]] = []
        try:
            asked = cls.model_validate({**written, "domain": None if isinstance(domain, Domain) else domain})
        except ValidationError as error:
            found = located(error, cls.model_fields, KINDS)
        else:
            asked._given = domain if isinstance(domain, Domain) else None
            if asked.grid.cells > MOST_CELLS:
                told = f"has {asked.grid.cells:,} cells, more than {MOST_CELLS:,}; use fewer or wider bins"
                found = [(("domain",), told)]
            elif asked.privacy_unit == EVERY_ROW and asked.max_rows_per_unit != 1:
                found = [(("max_rows_per_unit",), "must be 1, or left out, with `privacy_unit: row`")]
            else:
                return asked
        raise SpecError([(place("", at).removeprefix("."), what) for at, what in found], file=asker)
