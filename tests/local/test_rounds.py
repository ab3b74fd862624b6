"""What a collection's steps leave for each other: the reports that are counted, and the tally of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from error_codes import coded
from local_office import LocalOffice
from office import Office
from reports_scenario import FIRST_BIT, NO_BIT, columns, written

from dphist_pipeline.answering import building
from dphist_pipeline.answering.catalogue import build_catalogue
from dphist_pipeline.errors import Refused
from dphist_pipeline.local import rounds
from dphist_pipeline.local.partition import question_of
from dphist_pipeline.local.publication import publish_collection
from dphist_pipeline.publishing._index_pages import write_index
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.collection import CollectionSpec

pytestmark = pytest.mark.slow


@pytest.fixture
def local(office: Office) -> LocalOffice:
    return LocalOffice(office)


def reports(local: LocalOffice, name: str, bodies: list[bytes]) -> Path:
    """A file of reports of one byte, made by hand."""
    question = question_of(local.declared(reports="reports/**/*.parquet")).digest[:16]
    return written(local.folder / "reports" / name, columns(bodies, names=[question] * len(bodies)))


def publish(spec: CollectionSpec, store: Store, consumer: str) -> None:
    """Publishes one consumer's histogram from the tally, as an orchestrator does."""
    publish_collection(spec, store, rounds.read_tally(spec, store), only=consumer)


def test_the_digest_of_a_tally_never_changes_between_versions(local: LocalOffice) -> None:
    reports(local, "a.parquet", [FIRST_BIT[:1], NO_BIT[:1], b"\xff"])
    spec = local.declared(reports="reports/**/*.parquet")
    counted, digest = rounds.count(spec, local.store)
    assert (counted.tally.reports, counted.refused["malformed"]) == (2, 1)
    assert digest == "c052b3d03b52cddcc610f3b8a25c5bc13e04e9e7d47faba12db849426e20fb3a"
    kept = json.loads((rounds.file_of(spec, local.store, rounds.TALLY)).read_bytes())
    assert kept["digest"] == digest and rounds.read_tally(spec, local.store).refused == counted.refused


def test_a_folder_that_is_called_like_reports_is_passed_over(local: LocalOffice) -> None:
    reports(local, "a.parquet", [FIRST_BIT[:1]])
    (local.folder / "reports" / "folder.parquet").mkdir()
    spec = local.declared(reports="reports/**/*.parquet")
    assert rounds.count(spec, local.store)[0].tally.reports == 1
    (local.folder / "reports" / "a.parquet").unlink()
    with pytest.raises(Refused, check=coded("no_report_files")):
        rounds.count(spec, local.store)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The public folder, once for each time that the catalogue was built."""
    found: list[Path] = []

    def build(public: Path, scratch: Path, anew: bool) -> None:
        found.append(public)
        build_catalogue(public, scratch)
        write_index(public, scratch, anew)

    monkeypatch.setattr(building, "build_apart", build)
    return found


def test_the_catalogue_is_built_for_a_consumer_alone_and_not_again_for_what_it_has(
    local: LocalOffice, built: list[Path]
) -> None:
    reports(local, "a.parquet", [FIRST_BIT[:1]])
    spec = local.declared(reports="reports/**/*.parquet")
    rounds.count(spec, local.store)
    for consumer, times in (("city", 1), ("city", 1), ("state", 2), ("city", 2), ("state", 2)):
        publish(spec, local.store, consumer)
        assert len(built) == times


def test_a_catalogue_that_somebody_built_in_the_meantime_is_not_built_again(
    local: LocalOffice, built: list[Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reports(local, "a.parquet", [FIRST_BIT[:1]])
    spec, waiting = local.declared(reports="reports/**/*.parquet"), Store.building

    @contextmanager
    def after_another(store: Store) -> Iterator[None]:
        with waiting(store):
            DerivedFiles(store.public).write_current_files(tmp_path)
            build_catalogue(store.public, tmp_path)
            write_index(store.public, tmp_path)
            yield

    rounds.count(spec, local.store)
    monkeypatch.setattr(Store, "building", after_another)
    publish(spec, local.store, "city")
    assert built == []
