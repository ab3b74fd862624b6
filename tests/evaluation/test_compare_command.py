"""`dphist compare` as people type it: one line in, tables out, one message for whatever is wrong."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from office import Office
from refusing import check_changes_nothing

from dphist_pipeline.cli.prepare.compare import FIRST_LINE, OF_A_RELEASE, expand_epsilons

CSV = "bin,count\n" + "".join(f"{place},{place % 5 * 100}\n" for place in range(70))


@pytest.fixture
def counts(office: Office) -> str:
    (office.folder / "counts.csv").write_text(CSV)
    return "counts.csv"


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("d --epsilon 1 0.1 0.01 --repeat 2", "d --epsilon 1 --epsilon 0.1 --epsilon 0.01 --repeat 2"),
        ("d --epsilon 1 --epsilon 0.1", "d --epsilon 1 --epsilon 0.1"),
        ("--epsilon 1 1/3 1e-2 d 5", "--epsilon 1 --epsilon 1/3 --epsilon 1e-2 d 5"),
        ("--epsilon=1 .5 d", "--epsilon=1 --epsilon .5 d"),
        ("--epsilon d --repeat 5 6", "--epsilon d --repeat 5 6"),
        ("d --repeat 5 --epsilon", "d --repeat 5 --epsilon"),
    ],
)
def test_numbers_after_an_epsilon_are_epsilons(words: str, read: str) -> None:
    assert expand_epsilons(words.split()) == read.split()


@pytest.mark.slow
def test_every_spelling_gives_the_same_epsilons(office: Office, counts: str) -> None:
    for words in (["--epsilon", "1", "1/3"], ["--epsilon", "1", "--epsilon", "1/3"], ["--epsilon=1", "1/3"]):
        ran = office.run("compare", counts, "--mechanism", "geometric", "--repeat", "1", "--json", "-", *words)
        assert {score["epsilon_exact"] for score in ran.json["scores"]} == {"1", "1/3"}
    assert office.run("compare", "--epsilon", "2", counts, "--mechanism", "geometric", "--repeat", "1").code == 0


def test_json_is_all_that_a_script_reads_and_people_are_told_beside_it(office: Office, counts: str) -> None:
    asked = ("compare", counts, "--epsilon", "1", "--mechanism", "geometric", "--repeat", "2", "--json")
    ran = office.run(*asked, "-")
    assert (ran.code, ran.err) == (0, f"{FIRST_LINE}\n")
    assert ran.json["mechanisms"] == [{"name": "geometric", "mechanism": "geometric", "settings": {}}]
    assert "public or synthetic" in ran.json["note"]
    assert office.run(*asked, "found.json").out.startswith(FIRST_LINE)
    assert set(json.loads((office.folder / "found.json").read_text())) == set(ran.json)


def test_names_with_settings_stay_apart_and_within_the_line(office: Office, counts: str) -> None:
    names = [f"noise_first:penalty={kind}" for kind in ("paper", "bic")] + ["dpcube:structure_share=1/3,max_depth=5"]
    words = [word for name in names for word in ("--mechanism", name)]
    ran = office.run("compare", counts, "--epsilon", "0.1", "--repeat", "2", *words)
    assert ran.code == 0 and max(map(len, ran.out.splitlines())) <= 80
    assert "penalty=paper" in ran.out and "max_depth=5" in ran.out


@pytest.mark.slow
def test_a_cube_is_asked_boxes_and_those_left_out_are_named(office: Office) -> None:
    (office.folder / "cube.csv").write_text("x,y,count\n0,3,40\n4,1,2\n")
    ran = office.run("compare", "cube.csv", "--shape", "6x5", "--repeat", "1", "--workload", "boxes:100")
    assert "30 cells (6 × 5), 42 records" in ran.out and "epsilon 0.01: 100 random boxes" in ran.out
    assert "Left out: mechanism 'noise_first' serves one axis" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "±" not in ran.out.partition("One release each")[0]


def test_methods_without_epsilon_stand_beside_mechanisms_and_say_so(office: Office, counts: str) -> None:
    asked = ("compare", counts, "--mechanism", "geometric", "--repeat", "60", "--epsilon", "50", "0.001")
    asked = (*asked, "--with", "cell_key,rounding:base=5,suppression")
    ran = office.run(*asked)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("\n  (no ε)") >= 3 * (2 + 2) and max(map(len, ran.out.splitlines())) <= 80
    for name in ("cell_key", "rounding:base=5", "suppression"):
        assert f"{name} (no ε): no promise against" in " ".join(ran.out.split())
    # At ε = 0.001 each of them has less error, and none is recommended.
    assert ran.out.count("For cells: geometric") == 0 and "Recommended" not in ran.out
    facts = office.run(*asked, "--mechanism", "noise_first", "--json", "-").json
    assert {row["mechanism"] for row in facts["recommended"]} <= {"geometric", "noise_first"}
    assert set(facts["without_epsilon"]) == {"cell_key (no ε)", "rounding:base=5 (no ε)", "suppression (no ε)"}
    errors = [
        row for row in facts["scores"] if row["measure"] == "mse" and row["mechanism"] in facts["without_epsilon"]
    ]
    assert [row["epsilon"] for row in errors] == [None] * 3  # once, not once an epsilon
    assert errors[1]["mean"] == 0 and 2 < errors[0]["mean"] < 4  # all counts are multiples of 100


def test_synthetic_data_have_names(office: Office) -> None:
    ran = office.run("compare", "synthetic:social_network", "--repeat", "1", "--mechanism", "geometric")
    assert "11,342 cells, 674,736 records" in ran.out


@pytest.mark.slow
def test_an_earlier_period_of_a_release_costs_nothing(office: Office) -> None:
    office.with_release()
    before = office.state()
    asked = ("compare", "wards", "--mechanism", "geometric", "--epsilon", "1", "--repeat", "1")
    ran = office.run(*asked)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == OF_A_RELEASE and "Nothing is charged" in OF_A_RELEASE
    assert lines[1].startswith("wards, period all, as published (its own noise is in it): 21 cells (7 × 3), ")
    assert lines[1].endswith("sensitivity 2") and "epsilon 1: 100,000 random boxes" in ran.out
    counts = pq.read_table(office.published() / "histogram.parquet")["estimate"].to_numpy()
    found = office.run(*asked, "--sensitivity", "1", "--json", "-").json
    assert found["records"] == np.rint(counts.clip(0)).sum() and found["sensitivity"] == 1
    assert "its own noise" in found["data"] and "what was published" in found["note"]
    assert office.run(*asked, "--shape", "7x3").code == 2
    assert "nowards" in office.run("compare", "nowards").err
    assert office.state() == before


@pytest.mark.slow
def test_pictures_are_named(office: Office, counts: str) -> None:
    words = ("--mechanism", "geometric", "--repeat", "1", "--plots", "made/plots")
    ran = office.run("compare", counts, "--epsilon", "1", "0.1", *words)
    assert (office.folder / "made" / "plots" / "errors_by_epsilon.png").is_file()
    assert "drawn: made/plots/errors_by_epsilon.svg" in ran.out
    office.run("compare", counts, "--epsilon", "1", *words[:-1], "quiet", "--json", "-")
    assert (office.folder / "quiet" / "relative_error_by_size.svg").is_file()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["missing.parquet"], "missing.parquet: there is no such file"),
        (["columns.csv"], "needs a column `count`"),
        (["counts.csv", "--shape", "9999999x9999"], "has 1 axes (bin); --shape names 2"),
        (["counts.csv", "--shape", "999999999"], "cells are too many"),
        (["synthetic:waitakeri"], "Did you mean 'waitakere'?"),
        (["counts.csv", "--mechanism", "geometrik"], "there is no mechanism 'geometrik'. Did you mean 'geometric'?"),
        (["counts.csv", "--mechanism", "noise_first:penalty=large"], "setting 'penalty'"),
        (["counts.csv", "--epsilon", "much"], "epsilon must be a number"),
        (["counts.csv", "--epsilon", "1", "0"], "epsilon must lie between"),
        (["counts.csv", "--epsilon", "1", "-1"], "no such option: -1"),
        (["counts.csv", "--sensitivity", "100000000"], "10^7"),
        (["counts.csv", "--workload", "circles"], "workload 'circles'"),
        (["counts.csv", "--workload", "ranges:71"], "the counts have 70 cells"),
        (["counts.csv", "--with", "cellkey"], "--with: there is no method 'cellkey'. Did you mean 'cell_key'?"),
        (["counts.csv", "--repeat", "0"], "--repeat"),
        (["counts.csv", "--json", "no/such/folder.json"], "--json"),
        (["counts.csv", "--json", "data"], "--json"),
        (["counts.csv", "--plots", "counts.csv"], "--plots"),
        ([], "DATA"),
    ],
    ids=str,
)
def test_whatever_is_wrong_is_one_message_and_changes_nothing(
    office: Office, counts: str, words: list[str], says: str
) -> None:
    (office.folder / "columns.csv").write_text("bin,number\n0,5\n")
    check_changes_nothing(office, lambda: office.run("compare", *words), says)
