"""A spec that somebody else wrote, released by the command line and by Dagster from one and the same `defs.yaml`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dagster as dg
from dagster.components.testing.utils import DefsFolderSandbox
from office import SPEC, Office, Ran
from refusing import check_changes_nothing
from system.orchestrated import charges, materialized, said

from dphist_pipeline.confidential.reading import ingest

PROJECT = "attacked_project"


class Attempt:
    """What a spec writer left in the office's project: `src/attacked_project/defs/wards/defs.yaml`."""

    def __init__(self, office: Office) -> None:
        self.office = office
        self.sandbox = DefsFolderSandbox(office.folder, office.folder / "src" / PROJECT / "defs", PROJECT)
        self.folder = self.sandbox.defs_folder_path / "wards"
        self.folder.mkdir(parents=True, exist_ok=True)
        project = f'directory_type = "project"\n\n[project]\nroot_module = "{PROJECT}"\n'
        (office.folder / "dg.toml").write_text(project)

    @property
    def spec(self) -> Path:
        """The file."""
        return self.folder / "defs.yaml"

    def write(self, **changes: Any) -> Attempt:
        """Writes the spec with some fields changed, and decides nothing; `...` leaves a field out."""
        fields = {name: value for name, value in {**SPEC, **changes}.items() if value is not ...}
        attributes = json.dumps(fields, ensure_ascii=False)
        self.spec.write_text(f"type: dphist_pipeline.HistogramRelease\nattributes: {attributes}\n")
        return self

    def by_command(self, *more: str) -> Ran:
        """Runs `dphist release` from the working folder."""
        return self.office.run("release", self.spec, *more)

    def by_dagster(self, *names: str) -> tuple[bool, str]:
        """Loads the project and runs its assets: whether they succeeded, and all that Dagster was told."""
        with self.office.witnessed(), dg.DagsterInstance.ephemeral() as instance, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Dagster's own, as it reads a defs.yaml
            try:
                with self.sandbox.load_component_and_build_defs(self.folder) as (_, definitions):
                    run = materialized(definitions, instance, *names)
            except Exception as error:
                return False, chained(error)
            told = [said(run), *(repr(event.event_specific_data) for event in run.all_events)]
            return run.success, "\n".join(told)


def chained(error: BaseException | None) -> str:
    """An error and those that it came from."""
    return "" if error is None else f"{error}\n{chained(error.__cause__ or error.__context__)}"


@contextmanager
def nothing_opened() -> Iterator[None]:
    """No file, server or object store is opened for its records."""
    opened: list[object] = []

    def refuse(*given: object, **more: object) -> None:
        opened.append(given)
        raise AssertionError("records were opened")

    with patch.object(ingest, "_attach", refuse):
        yield
    assert not opened


def check_nobody_reads(attempt: Attempt, *says: str, hides: tuple[str, ...] = (), dagster: bool = True) -> None:
    """Refused both ways with these words, nothing opened or charged, the project as it was, nothing of `hides` told."""
    office, told = attempt.office, []
    charged = charges(office)

    def ask() -> Ran:
        ran = attempt.by_command()
        told.append(ran.out + ran.err)
        return ran

    with nothing_opened():
        check_changes_nothing(office, ask, *says)
        if dagster:
            before = office.state()
            success, shown = attempt.by_dagster()
            assert not success and office.state() == before
            assert not [words for words in says if words not in shown], shown
            told.append(shown)
    assert charges(office) == charged
    assert not [secret for secret in hides if any(secret in text for text in told)]
