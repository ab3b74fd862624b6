"""Blocks by the groups that a release has published: every record lies where its cell does."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import duckdb
import numpy as np
import pyarrow as pa
import pytest
from error_codes import coded
from office import ran

from dphist_pipeline.applications import blocking
from dphist_pipeline.applications.blocking import group_blocking, published_groups
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.errors import Refused
from dphist_pipeline.releasing.store import Store

AXES: list[dict[str, Any]] = [
    {"column": "born", "start": 0, "stop": 3, "width": 1},
    {"column": "ward", "values": ["a", "b"], "other": True},
]
GROUPS = np.array([[7, 4, 7], [4, 4, 9], [7, 9, 9]])


@pytest.fixture
def owners() -> list[WholeRelease]:
    found = []
    for counts in (np.arange(9), np.full(9, 2)):
        domain = by_hand.estimate(AXES).domain
        whole = counts.reshape(domain.shape)
        audit = {"release": "born", "period": "all", "epsilon": "1/2", "mechanism": "geometric"}
        found.append(WholeRelease(audit, domain, whole, whole.astype(float), ()))
    return found


def test_records_lie_in_the_published_group_of_their_cell(owners: list[WholeRelease]) -> None:
    made = group_blocking(*owners, GROUPS.ravel())
    register = pa.table({"born": np.repeat([0.5, 1.5, 2.5], 3), "ward": ["a", "b", "c"] * 3})
    with duckdb.connect() as connection:
        connection.register("register", register)
        found = connection.sql(made.register_sql("register")).fetchnumpy()["block_1"]
    np.testing.assert_array_equal(found, np.unique(GROUPS, return_inverse=True)[1].ravel())
    assert made.epsilon == Fraction(1)


def test_expected_pairs_are_those_of_both_owners_counts_in_a_group(owners: list[WholeRelease]) -> None:
    part = group_blocking(*owners, GROUPS.ravel()).partitions["block_1"]
    in_groups = {group: np.arange(9)[GROUPS.ravel() == group].sum() for group in (4, 7, 9)}
    np.testing.assert_array_equal(part.counts, [[in_groups[4], in_groups[7], in_groups[9]], [6, 6, 6]])
    assert part.expected_pairs == 36 * 6


def test_a_release_without_groups_or_of_too_many_cells_is_refused(owners: list[WholeRelease], monkeypatch) -> None:
    with pytest.raises(Refused, check=coded("application_refused"), match="geometric, makes none"):
        group_blocking(*owners, None)
    monkeypatch.setattr(blocking, "MOST_CELLS", 8)
    with pytest.raises(Refused, check=coded("application_refused"), match="has 9 cells"):
        group_blocking(*owners, GROUPS.ravel())


@pytest.mark.slow
def test_the_command_takes_published_groups_in_place_of_axes(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    for name in ("one", "two"):
        by_hand.publish(store.public, by_hand.estimate(AXES), AXES, release=name)
    words = ["block", "one", "two", "--store", store.root, "--output", tmp_path / "rules.json"]
    for more, says in (
        ([], "give either --by"),
        (["--by", "born", "--released-groups"], "give either --by"),
        (["--released-groups"], "has published no groups of cells"),
    ):
        done = ran(*words, *more)
        assert done.code == 1 and says in " ".join(done.err.split()), done.err
    for path in store.public.glob("*/period=*/revision=*"):
        assert published_groups(path) is None


@pytest.mark.slow
def test_the_command_writes_blocks_of_a_release_with_groups(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    domain = by_hand.estimate(AXES).domain
    grouped = replace(by_hand.estimate(AXES), groups=np.unique(GROUPS, return_inverse=True)[1].reshape(domain.shape))
    for name, made in (("one", grouped), ("two", by_hand.estimate(AXES))):
        by_hand.publish(store.public, made, AXES, release=name)
    words = ["--store", store.root, "--released-groups", "--output", tmp_path / "rules.json"]
    done = ran("block", "one", "two", *words)
    assert done.code == 0, done.err
    (part,) = json.loads((tmp_path / "rules.json").read_text(encoding="utf-8"))["partitions"]
    assert (part["blocks"], part["axes"]) == (3, ["born", "ward"])


def test_a_release_in_python_gives_the_blocks_of_the_command(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "store")
    domain = by_hand.estimate(AXES).domain
    grouped = replace(by_hand.estimate(AXES), groups=np.unique(GROUPS, return_inverse=True)[1].reshape(domain.shape))
    one, two = (
        by_hand.publish(store.public, estimate, AXES, release=name)
        for name, estimate in (("one", grouped), ("two", by_hand.estimate(AXES)))
    )
    words = ["--store", store.root, "--released-groups", "--output", tmp_path / "rules.json"]
    assert ran("block", "one", "two", *words).code == 0
    written = json.loads((tmp_path / "rules.json").read_text(encoding="utf-8"))
    assert one.block(two, released_groups=True).facts() == written
    with pytest.raises(Refused, check=coded("application_refused"), match="has published no groups of cells"):
        two.block(one, released_groups=True)
    for by, released in ((None, False), ([["born"]], True)):
        with pytest.raises(Refused, check=coded("application_refused"), match="give either `by`"):
            one.block(two, by, released_groups=released)
