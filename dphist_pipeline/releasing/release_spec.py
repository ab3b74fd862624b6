"""The spec of a release, with the mechanisms that are installed, from a file or from the fields of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dphist_pipeline import mechanisms
from dphist_pipeline.errors import Refused, did_you_mean, first_of
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.code_list_files import Decided
from dphist_pipeline.spec.loading import ADDRESSES, COMPONENT, MOST_NAMED, Build, from_file, from_templates
from dphist_pipeline.spec.mechanism_registry import Registry
from dphist_pipeline.spec.mistakes import shortened, shown
from dphist_pipeline.spec.model import DeclaredRelease
from dphist_pipeline.spec.sources import EVERY_ROW

CodeListsOf = Callable[[Mapping[str, object]], Decided | None]


class ReleaseSpec(DeclaredRelease):
    """One release as declared, whose mechanism is one of this folder's, or of an installed package."""

    registry: ClassVar[Registry] = mechanisms

    def build_mechanism(self) -> mechanisms.Mechanism:
        """The mechanism with its settings."""
        return mechanisms.build(self.mechanism, self.plain_settings)

    @property
    def declared_types(self) -> dict[str, str]:
        """The types of columns that are known without a source: a CSV file has only text. Empty for all else."""
        if self.source_format != "csv" or self.source_sql is not None:
            return {}
        units = () if self.privacy_unit == EVERY_ROW else self.privacy_unit.columns
        columns = (*units, self.period_column, *(axis.column for axis in self.domain.axes))
        return {column: sources.TEXT[0] for column in columns if column is not None}

    def unsaid_dates(self, types: Mapping[str, str]) -> str:
        """A warning where the period's column is text and the spec does not say how dates are written; else empty.

        Args:
            types: the engine's types by column; without that of the period's column nothing is said.
        """
        column = self.period_column
        if column is None or self.period_format is not None or types.get(column) not in sources.TEXT:
            return ""
        return (
            f"`{column if column.isprintable() else shown(column)}` is text, and no `period_format` says how its dates "
            f"are written: only ISO dates, as {sources.AN_ISO_DATE}, are read, and a row with another date falls into "
            "no period. If they are written otherwise, every number is noise around 0. Write `period_format: "
            '"%d.%m.%Y"` where they are written 14.09.2026, or `period_format: iso`.'
        )


class WhichSpec(Refused):
    """A file that makes several releases, where one of them is to be named."""

    def __init__(self, file: Path | str, names: Sequence[str], wanted: str = "") -> None:
        self.file, self.names, self.wanted = file, tuple(names), wanted
        called, makes = shortened(str(file), 300), f"{len(names):,} release{'s' if len(names) > 1 else ''}"
        if wanted:
            problem = f", none of which is {shown(wanted)}. {did_you_mean(wanted, names)}"
        else:
            problem = f": {first_of(names, MOST_NAMED)}. Name one, as in {called}#{names[0]}."
        super().__init__(f"{called} makes {makes}{problem} Nothing was read or spent.")


def load_spec(path: Path | str, code_lists: Decided | None = None) -> ReleaseSpec:
    """The release spec in a YAML file, checked whole; no data is opened.

    Args:
        path: of the file; of a file with `for_each`, `FILE#RELEASE`.
        code_lists: gives the folders that an operator declared public; without it no code list is read.

    Raises:
        SpecError: with every mistake that was found, its place in the file and its mend.
        WhichSpec: the file makes several releases, and the path names none of them.
    """
    file, wanted = _file_and_release(path)
    specs = load_specs(file, code_lists)
    names = [spec.release for spec in specs]
    if wanted in names:
        return specs[names.index(wanted)]
    if wanted or len(specs) > 1:
        raise WhichSpec(file, names, wanted)
    return specs[0]


def load_specs(path: Path | str, code_lists: Decided | None = None) -> list[ReleaseSpec]:
    """All release specs of a YAML file: one, or one for each item of `for_each`; as `load_spec`.

    Args:
        path: of the file; no release is named in it.
    """
    return from_file(path, COMPONENT, "release", _release(lambda attributes: code_lists), ADDRESSES, {})


def _file_and_release(path: Path | str) -> tuple[Path | str, str]:
    file, mark, release = str(path).rpartition("#")
    return (file, release) if mark and not Path(path).exists() else (path, "")


def _release(code_lists_of: CodeListsOf) -> Build[ReleaseSpec]:
    return lambda attributes, base: ReleaseSpec.from_attributes(attributes, base, code_lists=code_lists_of(attributes))


def spec_from_attributes(
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]] = (),
    code_lists: Decided | None = None,
) -> ReleaseSpec:
    """The one release spec in a mapping whose templates are not resolved yet.

    Args:
        attributes: fields of the spec by name.
        base: folder that relative paths start from.

    Raises:
        SpecError: with every mistake that was found.
    """
    (spec,) = from_templates(_release(lambda given: code_lists), attributes, base, problems, addresses=ADDRESSES)
    return spec


def specs_from_attributes(
    attributes: Mapping[str, object],
    base: Path,
    problems: Sequence[tuple[str, str]],
    code_lists_of: CodeListsOf,
    variables: Mapping[str, object],
) -> list[ReleaseSpec]:
    """The release specs in a mapping whose templates and loops are not resolved yet.

    Args:
        attributes: fields of the spec by name.
        base: folder that relative paths start from.
        code_lists_of: what an operator decided about code lists, by the attributes of a spec.

    Raises:
        SpecError: with every mistake that was found.
    """
    return from_templates(_release(code_lists_of), attributes, base, problems, "release", ADDRESSES, variables)
