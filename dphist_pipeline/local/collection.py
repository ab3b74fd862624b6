"""The spec of a collection under local privacy: what one YAML file declares, checked whole before anybody is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, PlainValidator, PrivateAttr, ValidationError

from dphist_pipeline.domain import BinnedAxis, Domain
from dphist_pipeline.local import collection_fields as fields
from dphist_pipeline.local.collection_consumers import Consumer, declared_consumers
from dphist_pipeline.local.collection_fields import Protocol
from dphist_pipeline.local.question import EVERY_ROUND, Combine, Encoding
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.digest import declared, digest_of
from dphist_pipeline.spec.fields import Flag
from dphist_pipeline.spec.loading import COLLECTION, from_file, from_templates
from dphist_pipeline.spec.mistakes import located
from dphist_pipeline.spec.refusals import SpecError, as_key, place
from dphist_pipeline.spec.words import Owners, Title


class CollectionSpec(BaseModel):
    """One collection as declared: fields in the order in which their checks build on each other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    collection: Annotated[str, PlainValidator(fields.name)] = declared(digest=True, default=None)
    title: Title = declared(digest=False, default="")
    value: Annotated[str, PlainValidator(fields.value)] = declared(digest=True, default=None)
    start: Annotated[Fraction, PlainValidator(fields.start)] = declared(digest=True, default=None)
    stop: Annotated[Fraction, PlainValidator(fields.stop)] = declared(digest=True, default=None)
    consumers: Annotated[tuple[Consumer, ...], PlainValidator(declared_consumers)] = declared(digest=True, default=None)
    protocol: Annotated[Protocol, PlainValidator(fields.protocol)] = declared(digest=True, default=None)
    encoding: Literal[Encoding, "auto"] = declared(digest=True, default="auto")
    participation: Annotated[Fraction, PlainValidator(fields.participation)] = declared(digest=True, default=None)
    values_per_contributor: Annotated[int, PlainValidator(fields.values_per_contributor)] = declared(
        digest=True, default=1
    )
    values: Annotated[Combine, PlainValidator(fields.values)] = declared(digest=True, default="separate")
    round: Annotated[str, PlainValidator(fields.round_)] = declared(digest=True, default=EVERY_ROUND)
    nonnegative: Flag = declared(digest=True, default=False)
    reports: Annotated[str | None, PlainValidator(fields.reports)] = declared(digest=False, default=None)
    owners: Owners = declared(digest=False, default=())

    _base: Path | None = PrivateAttr(default=None)

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, object], base: Path, where: str = "attributes") -> CollectionSpec:
        """A spec from the mapping under `attributes`, which holds no templates.

        Args:
            base: folder that relative paths start from.
            where: what messages call the mapping.

        Raises:
            SpecError: with every mistake that was found.
        """
        try:
            spec = cls.model_validate({as_key(key): value for key, value in attributes.items()})
        except ValidationError as error:
            problems = [(place(where, at), what) for at, what in located(error, cls.model_fields)]
        else:
            spec._base = Path(base).resolve()
            return spec
        raise SpecError(problems, of_what="collection")

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        if self._base is None:
            raise TypeError("a spec gets its folder from `from_attributes` or `load_collection`")
        return self._base

    @property
    def report_epsilon(self) -> Fraction:
        """What one report spends under every protocol: the least that a consumer declares."""
        return fields.least_epsilon(self.consumers)

    @property
    def epsilon(self) -> Fraction:
        """What a contributor spends by answering once, with all values; participation does not lower it."""
        return self.values_per_contributor * self.report_epsilon

    @property
    def reports_pattern(self) -> str | None:
        """The reports as an absolute glob."""
        return None if self.reports is None else sources.absolute_pattern(self.reports, self.base)

    def release_of(self, consumer: Consumer) -> str:
        """What the consumer's release is called."""
        return f"{self.collection}_{consumer.name}"

    def domain_of(self, consumer: Consumer) -> Domain:
        """The declared grid of the consumer's release: its intervals, on one axis."""
        return Domain((BinnedAxis(str(self.value), str(self.value), tuple(map(float, consumer.edges))),))

    def normalised(self) -> dict[str, object]:
        """Every field as a JSON value: exact fractions as text, intervals as edges, `reports` as written."""
        special: dict[str, object] = {
            "consumers": [
                {
                    "name": consumer.name,
                    "epsilon": str(consumer.epsilon),
                    "edges": [str(number) for number in consumer.edges],
                }
                for consumer in self.consumers
            ],
            "owners": list(map(str, self.owners)),
        }
        plain = {field: getattr(self, field) for field in type(self).model_fields if field not in special}
        return {field: _plain(value) for field, value in plain.items()} | special

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex."""
        return digest_of(self, self.normalised())


def load_collection(path: Path | str) -> CollectionSpec:
    """The spec of a collection in a YAML file, checked whole; no report is opened.

    Raises:
        SpecError: with every mistake that was found, its place in the file and its mend.
    """
    return from_file(path, COLLECTION, "collection", CollectionSpec.from_attributes)


def collection_from_attributes(
    attributes: Mapping[str, object], base: Path, problems: Sequence[tuple[str, str]] = ()
) -> CollectionSpec:
    """The spec in a mapping as written, where no template is resolved; see `spec.loading.from_templates`."""
    return from_templates(CollectionSpec.from_attributes, attributes, base, problems, "collection")


def _plain(value: object) -> object:
    return str(value) if isinstance(value, str | Fraction) else value
