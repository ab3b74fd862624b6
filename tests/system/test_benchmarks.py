"""Benchmarks are run by hand; this one is quick enough to see that it still runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


def test_the_solvers_benchmark_runs_and_writes_json(tmp_path):
    script, target = PROJECT / "benchmarks" / "solvers.py", tmp_path / "solvers.json"
    command = [sys.executable, script, "--quick", "--to", target]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report = json.loads(target.read_text(encoding="utf-8"))
    solvers = {row["solver"] for row in report["solvers"]}
    assert {"v_optimal", "closest_neighbours", "optimal_groups", "consistent", "kd_boxes, 3-D"} <= solvers
    assert all(sorts > 0 for row in report["solvers"] for sorts in row["sorts"])
    assert all(row["milliseconds"] > 0 for row in report["papers"])
