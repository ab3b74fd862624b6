"""The fuzzer follows coverage, repeats itself, saves what fails, and changes what it is given in every way it has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from byte_mutations import after_head, byte_change, mixed, token_change
from guided_loop import fuzz
from hostile_files import CSV_SEEDS, INT96, PARQUET_SEEDS, csv_files, parquet_files
from traced_edges import Edges
from yaml_mutations import structure_change

HERE = Path(__file__).parent
change = mixed(byte_change, token_change([b"a", b"b"]))


def behind_branches(content: bytes) -> set[str]:
    """Fails on what begins with four certain bytes, and takes another line for each that is right."""
    if content[:1] == b"F":
        if content[1:2] == b"U":
            if content[2:3] == b"Z":
                assert content[3:4] != b"Y"
            return set()
        return set()
    return set()


def test_a_fault_behind_several_measurements_is_found_saved_and_told_with_its_seed(tmp_path: Path):
    def letters(choice: random.Random, content: bytes, corpus: Sequence[bytes]) -> bytes:
        return content[: choice.randrange(4)] + bytes([choice.randrange(65, 91)])

    def run(watched: list[Path]) -> str:
        try:
            fuzz(behind_branches, [b""], letters, inputs=4000, seed=5, watched=watched, folder=tmp_path)
        except AssertionError as error:
            return str(error)
        return ""

    found = run([HERE])
    (saved,) = tmp_path.iterdir()
    assert (
        saved.read_bytes().startswith(b"FUZY") and f"saved as {saved}" in found and found.startswith("seed 5, input ")
    )
    assert run([HERE]) == found
    assert run([tmp_path]) == ""  # without coverage to follow, it is not found


def test_only_chosen_files_are_watched_and_the_debugger_gets_its_place_back():
    edges = Edges(HERE)
    with edges.apart(), edges.watching():
        random.Random(1).random()
        behind_branches(b"")
    first = len(edges.seen)
    with edges.watching():
        behind_branches(b"F")
    assert len(edges.seen) > first > 0
    elsewhere = Edges(HERE / "nowhere")
    with elsewhere.watching():
        behind_branches(b"F")
    assert elsewhere.seen == set()


@pytest.mark.parametrize("seeds", [CSV_SEEDS, PARQUET_SEEDS], ids=["csv", "parquet"])
def test_changes_are_many_and_never_fail(seeds: list[bytes]):
    choice = random.Random(3)
    every = [change, after_head(3, change), structure_change(["axes"])]
    made = {one(choice, seed, seeds) for one in every for seed in [*seeds, b""] for _ in range(20)}
    assert len(made) > 500


def test_a_documents_structure_is_changed():
    choice, edit = random.Random(3), structure_change(["axes"])
    made = {edit(choice, b"a: [1, {b: c}]\nd: &x {e: f}\ng: *x\n", []) for _ in range(200)}
    assert len(made) > 100 and any(b'"axes"' in one or b"axes:" in one for one in made)
    assert edit(choice, b"\xff", []) == b"\xff"


def test_a_twin_differs_in_its_rows_and_in_nothing_else():
    for seed in CSV_SEEDS:
        _, hostile = csv_files(seed)
        (name,), twin = hostile.files, hostile.twin
        assert twin is not None and hostile.files != twin
        if name == "a.csv":
            assert hostile.files[name].partition(b"\n")[0] == twin[name].partition(b"\n")[0]
    tokens = 0
    for seed in PARQUET_SEEDS:
        try:
            _, hostile = parquet_files(seed)
        except pa.ArrowException:
            continue
        assert set(hostile.files) == set(hostile.twin or hostile.files)
        tokens += b"zyxwv" in b"".join(hostile.files.values())
        assert all(b"zyxwvUnit" not in whole for whole in (hostile.twin or {}).values())
    assert tokens and len(INT96) == 12
