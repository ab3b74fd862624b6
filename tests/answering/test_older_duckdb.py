"""The catalogue in the versions of DuckDB that people have: the same answers from 1.4 on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import answering_scenario as scenario
import by_hand
import pytest
from test_every_question import QUESTIONS

from dphist_pipeline.answering.catalogue import build_catalogue

OLDER = ("1.4.5", "1.5.6")
LISTED = """
    SELECT schema_name, table_name AS name FROM duckdb_tables() WHERE database_name = 'r'
    UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = 'r' AND NOT internal
"""
ASK = """
import json, sys
import duckdb
catalogue, questions = json.load(sys.stdin)
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")  # a slow machine would have it drawn between the answers
connection.execute(f"ATTACH '{catalogue}' AS r (READ_ONLY)")
answers = {}
for question in questions:
    try:
        found = connection.execute(question)
        answers[question] = [[column[0] for column in found.description], *map(list, found.fetchall())]
    except duckdb.Error as error:
        answers[question] = " ".join(str(error).split())
json.dump([duckdb.__version__, answers], sys.stdout, default=str)
"""


def asked_by(packages: str, catalogue: Path, questions: list[str]) -> tuple[str, dict[str, Any]]:
    """The answers of the DuckDB in a folder of packages, and its version."""
    given = json.dumps([str(catalogue), questions])
    environment = {**os.environ, "PYTHONPATH": packages}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, input=given, env=environment, capture_output=True, text=True, check=True)
    version, answers = json.loads(done.stdout)
    return version, answers


@pytest.mark.soak
@pytest.mark.parametrize("version", OLDER)
def test_an_older_duckdb_gives_the_same_answers(tmp_path: Path, version: str) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "packages")]
    done = subprocess.run([*install, f"duckdb=={version}"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"DuckDB {version} cannot be installed: no package index is reachable")
    (tmp_path / "scratch").mkdir()
    store = scenario.published(tmp_path / "public", tmp_path / "scratch")
    by_hand.publish(tmp_path / "public", scenario.made("cells"), scenario.AXES, period="2026-05-04")
    build_catalogue(tmp_path / "public", tmp_path / "scratch")  # adds to a copy
    questions = [f"FROM r.{question.format('r.')}" for question in QUESTIONS.values()]
    questions += ["FROM r.weekly ORDER BY ALL", "FROM r.weekly_all ORDER BY ALL", "FROM r.dph_releases ORDER BY ALL"]
    questions += [f"FROM r.{QUESTIONS['dph_box'].format('r.main.')}", f"SELECT * FROM ({LISTED}) ORDER BY ALL"]
    questions += ["FROM r.dph_share('r.weekly', {'state': 'A'}, by := ['age'])"]
    questions += ["FROM r.dph_changes('r.weekly', by := ['state', 'age'])"]
    # A subquery may give the period; a column of another table may not (docs/how-to/from-your-client.md).
    questions += ["FROM r.dph_total('r.weekly', period := (SELECT max(period) FROM r.dph_releases))"]
    questions += ["FROM r.dph_box('r.weekly', 'A')", "FROM r.dph_total('weekly')", "FROM r.dph_total('r.wekly')"]
    questions += ["FROM r.dph_quality('r.wekly')"]  # asks no inner macro
    here, expected = asked_by(os.environ.get("PYTHONPATH", ""), store.catalogue, questions)
    there, answers = asked_by(str(tmp_path / "packages"), store.catalogue, questions)
    assert (there, here != there) == (version, True)
    for question in questions[:-4]:
        names, *rows = expected[question]
        assert answers[question][0] == names and len(answers[question]) == len(rows) + 1, question
        for found, row in zip(answers[question][1:], rows, strict=True):
            assert found == [pytest.approx(value, rel=1e-12) if isinstance(value, float) else value for value in row]
    for question in questions[-4:]:
        assert "weekly" in answers[question] or "the box is a struct" in answers[question], answers[question]
        assert "dph_asked" not in answers[question] and "internals" not in answers[question]
