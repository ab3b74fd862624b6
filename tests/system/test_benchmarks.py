"""Benchmarks are run by hand; these are quick enough to see that they still run."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv, parquet

PROJECT = Path(__file__).resolve().parents[2]


def reported(script: str, target: Path, *words: str | Path) -> Any:
    """What a benchmark writes as JSON."""
    command = [sys.executable, PROJECT / "benchmarks" / script, *words, "--to", target]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.soak
def test_the_solvers_benchmark_runs_and_writes_json(tmp_path):
    report = reported("solvers.py", tmp_path / "solvers.json", "--quick")
    solvers = {row["solver"] for row in report["solvers"]}
    assert {"v_optimal", "closest_neighbours", "optimal_groups", "consistent", "kd_boxes, 3-D"} <= solvers
    assert all(sorts > 0 for row in report["solvers"] for sorts in row["sorts"])
    assert all(row["milliseconds"] > 0 for row in report["papers"])


@pytest.mark.slow
def test_the_benchmark_of_the_local_model_runs_and_writes_json(tmp_path):
    report = reported("local_model.py", tmp_path / "local_model.json", "--quick", "--large")
    encodings = {"symmetric", "optimized", "grr"}
    assert {(row["encoding"], row["epsilon"]) for row in report["timed"]} == {
        (encoding, epsilon) for encoding in encodings for epsilon in (1, 3, 15)
    }
    assert {row["intervals"] for row in report["timed"]} == {26}
    ratios = ("encode_per_save", "encode_per_packbits", "decode_per_load", "decode_per_unpackbits")
    assert all(row[ratio] > 0 for row in report["timed"] for ratio in ratios)
    assert {row["encoding"] for row in report["large"]} == encodings
    assert all(0 < row["peak_gigabytes"] < 1 for row in report["large"])


@pytest.mark.soak
def test_the_benchmark_of_the_catalogue_runs_and_writes_json(tmp_path):
    sizes = ["--cells", "10000", "--periods", "1", "--periods", "2", "--releases", "1"]
    report = reported("catalogue.py", tmp_path / "catalogue.json", *sizes)
    assert [row["cells"] for row in report["boxes"]] == [10_000] and report["boxes"][0]["ratio"] > 0
    assert [row["period"] for row in report["publishing"]] == [1, 2]
    assert all(0 < row["catalogue"] < row["release"] for row in report["publishing"])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "words"), [("startup", []), ("scale", ["--rows", "1000", "--cells", "10404", "--bound", "3"])]
)
def test_the_benchmarks_of_size_run_and_write_json(tmp_path, name: str, words: list[str]):
    report = reported(f"{name}.py", tmp_path / f"{name}.json", "--repeats", "1", *words)
    if name == "startup":
        assert 0 < report["fewest"]["floor"]["processors"] < report["fewest"]["help"]["processors"]
    else:
        assert [run["cells"] for run in report["runs"]] == [10_404] and min(report["runs"][0]["steps"].values()) >= 0


@pytest.mark.soak
def test_the_benchmark_of_processor_time_compares_each_command_with_imports(tmp_path):
    report = reported("processor_time.py", tmp_path / "processor_time.json", "--repeats", "1")
    rows = {row["command"]: row for row in report["commands"]}
    sizes = ["5,000 rows", "10^6 rows"]
    releases = [*(f"release, {size}" for size in sizes), "replay"]
    due = {f"release --all-due, {weeks} due" for weeks in (1, 100)}
    assert {*rows} == {"imports", "init", "ledger open", "check", *releases, "ledger show", "answer", *due}
    assert rows["imports"]["median_by_imports"] == 1 < rows["check"]["median_by_imports"]
    assert 0 < report["fixed_task_seconds"] < 10


@pytest.mark.soak
def test_the_benchmark_of_dagsters_cost_runs_and_writes_json(tmp_path):
    report = reported("dagster_overhead.py", tmp_path / "dagster_overhead.json", "--rounds", "1", "--persons", "3000")
    for part, way in (("demo", "dagster"), ("load_100", "load")):
        assert report[part][way]["cpu"] > 0 and report[part]["more"].keys() == {"cpu", "wall"}


@pytest.mark.soak
def test_the_benchmark_of_dagsters_runs_runs_and_writes_json(tmp_path):
    report = reported("dagster_runs.py", tmp_path / "dagster_runs.json", "--rounds", "1", "--weeks", "2")
    assert all(report[name]["cpu"] > 0 for name in ("materialize_by_job", "backfill_by_runs"))


# Sums of 100 magnitudes of two-sided geometric noise of scale 3 lie outside of 130 to 550 with 1e-11, by convolution;
# rows that the bound cuts, of some 10 persons of 4,000, move the sum by less than 30.
@pytest.mark.draws("two-sided geometric in another process, 1e-10")
@pytest.mark.soak
def test_the_comparison_of_peers_measures_a_run_and_ends_one_that_takes_too_much(tmp_path):
    small = ["--rows", "5000", "--sides", "10", "--only", "count_cube"]
    runs = []
    for more in ([], ["--gigabytes", "0.01"]):
        report = reported("peers/compare.py", tmp_path / "peers.json", *small, *more)
        runs += report["runs"]
    measured, ended = runs
    assert measured["cells_released"] == 100 and measured["ended"] == "" and 1 < measured["mean_absolute_error"] < 6
    assert measured["processor"] > 0 and 0 < measured["gigabytes"] < 8 and measured["start_up"] > 0
    assert ended["ended"] == "above 0.01 GB" and ended["seconds"] == 0
    assert set(report["promises"]) == {"release", "count_cube", *report["versions"]} - {"ours"}


@pytest.mark.soak
def test_the_benchmark_of_dpcubes_boxes_runs_and_writes_json(tmp_path):
    report = reported("dpcube_boxes.py", tmp_path / "dpcube_boxes.json", "--quick")
    assert report["settings"] == len(report["rows"]) >= 50 and report["above"] <= len(report["again"])
    assert all(row["auto"] > 0 for row in report["rows"])
    assert {row["cells"] for row in report["rows"]} >= {16, 64}


@pytest.mark.soak
def test_the_benchmark_of_accuracy_goes_on_where_it_was_and_compares_with_the_best(tmp_path):
    lines, target = tmp_path / "runs.jsonl", tmp_path / "accuracy.json"
    small = ["--sets", "level, 64 cells, 300 records", "--mechanisms", "adaptive,geometric,boost"]
    for runs in ("2", "3"):
        report = reported("accuracy.py", target, *small, "--runs", runs, "--lines", lines)
    assert len(lines.read_text(encoding="utf-8").splitlines()) == 9
    cells, prefixes, ranges = sorted(report["rows"], key=lambda row: row["workload"])
    assert (cells["workload"], prefixes["workload"], ranges["workload"]) == ("cells", "prefixes", "ranges")
    best = cells["best published"]  # which one is best, real draws decide
    assert cells["runs"] == 3 and cells["tuned"] and best in ("geometric", "boost")
    assert cells["ratios"][best] == pytest.approx(1) and cells["ratios"]["adaptive"] > 0
    assert [goal["cases"] for goal in report["goals"]] == [1]
    assert "<svg" in target.with_suffix(".svg").read_text(encoding="utf-8")


@pytest.mark.soak
def test_the_benchmark_of_ranges_runs_and_keeps_what_it_has(tmp_path, monkeypatch):
    for name, rows in {"line": [(0, 9), (63, 4)], "again": [(31, 7)]}.items():
        cells = "".join(f"{place},{count}\n" for place, count in rows)
        table = csv.read_csv(io.BytesIO(f"bin,count\n{cells}".encode()))
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    monkeypatch.setenv("DPHIST_DATA", str(tmp_path))
    held = [
        reported("ranges.py", tmp_path / "ranges.json", "--releases", "2", "--sets", *sets)
        for sets in (["line"], ["line", "again"])
    ]
    assert len(held[0]) == 6 and held[1][:6] == held[0] and {row["set"] for row in held[1]} == {"line", "again"}
    assert set(held[0][0]["mse"]) == {"geometric", "boost", "dawa", "Identity", "HB", "DAWA"}


@pytest.mark.soak
def test_the_benchmark_of_same_draws_compares_both_estimates(tmp_path, monkeypatch):
    cells = "".join(f"{place},{40 * (place % 9 == 0)}\n" for place in range(100))
    parquet.write_table(csv.read_csv(io.BytesIO(f"bin,count\n{cells}".encode())), tmp_path / "line.parquet")
    monkeypatch.setenv("DPHIST_DATA", str(tmp_path))
    found = reported("same_draws.py", tmp_path / "same.json", "--releases", "2", "--sets", "line")
    assert [(row["workload"], row["epsilon"]) for row in found] == [
        *(("ranges", 1), ("ranges", 0.1)),
        *(("prefixes", 1), ("prefixes", 0.1)),
    ]
    assert all(0 < row["ratio"] < 3 and row["multiscale"] != row["least_squares"] for row in found)


@pytest.mark.soak
def test_the_benchmark_of_levels_compares_all_settings_with_the_rest(tmp_path, monkeypatch):
    rows = "".join(f"{17 + place % 70},{place % 97}\n" for place in range(300))
    table = csv.read_csv(io.BytesIO(f"age,hours_per_week\n{rows}".encode()))
    parquet.write_table(table, tmp_path / "adult.parquet")
    monkeypatch.setenv("DPHIST_DATA", str(tmp_path))
    asked = ("--releases", "2", "--sets", "adult_age_hours", "--epsilons", "1")
    found = reported("box_levels.py", tmp_path / "levels.json", *asked)
    assert [(row["workload"], row["records"], row["chosen_on"]) for row in found] == [
        *(("boxes", 300, True), ("prefixes", 300, True)),
    ]
    for row in found:
        assert row["best"] in {"geometric", "boost", "workload", "adaptive_grid", "HB"}
        assert len(row["ratios"]) == 4
        assert all(ratio == row["mse"][who] / row["mse"][row["best"]] > 0 for who, ratio in row["ratios"].items())
    kept = (tmp_path / "levels.json").read_text(encoding="utf-8")
    assert reported("box_levels.py", tmp_path / "levels.json", *asked) == found
    assert (tmp_path / "levels.json").read_text(encoding="utf-8") == kept


@pytest.mark.soak
def test_a_hundred_releases_due_in_one_minute_are_all_done_and_none_twice(tmp_path):
    report = reported("load.py", tmp_path / "load.json", "--releases", "100")
    assert not report["late"] and report["runs"] == {"SUCCESS": 100}
    assert (report["charged"], report["published"], report["whole"]) == (100, 100, 100)
    assert report["charged_twice"] == [] and report["missing"] == []
    assert report["peak_gigabytes"] < 4 and report["largest_process_gigabytes"] < 1
