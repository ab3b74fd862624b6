"""A command imports what it works with: a question opens no ledger, and nothing but a solver needs a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from office import Office

LEDGER = ("sqlalchemy", "cryptography")
ASKS = (*LEDGER, "polars", "jinja2", "numba", "dphist_pipeline.ledger.ledger")
OPERATES = ("numba", "pandas", "pyspark")
# A ledger is shown, and a store made, without the model of specs and without arrays.
SHOWS = (*OPERATES, "numpy", "pydantic", "yaml", "duckdb", "polars", "jinja2", "dphist_pipeline.spec.model")


def imported(code: str) -> set[str]:
    """The modules of a new process that ran some code."""
    told = f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True).stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("commands", "spared"),
    [
        (["answer", "export", "quality", "plot"], ASKS),
        (["release"], OPERATES),
        (["check"], (*OPERATES, "polars", "pyarrow", "jinja2", "dphist_pipeline.answering.doubts")),
        (["ledger", "init"], SHOWS),
    ],
)
def test_a_command_is_loaded_without_what_others_need(commands: list[str], spared: tuple[str, ...]) -> None:
    loaded = imported(f"from dphist_pipeline.cli.commands import load\nfor name in {commands}: load(name)")
    assert loaded & set(spared) == set()


@pytest.mark.slow
def test_questions_open_no_ledger_and_arrow_looks_for_no_pandas(office: Office, tmp_path: Path) -> None:
    released = office.with_release()
    (released.store / "ledger.sqlite").unlink(missing_ok=True)
    for words in (["answer", "wards"], ["export", "wards", "--to", "csv", "--output", str(tmp_path / "wards.csv")]):
        command = ["dphist", *words, "--store", str(released.store)]
        run = f"from dphist_pipeline.cli.app import app\nsys.argv = {command}\napp(standalone_mode=False)"
        assert imported(run) & {*LEDGER, "pandas", "polars", "numba"} == set()


@pytest.mark.slow
def test_arrow_finds_no_pandas_and_others_do() -> None:
    hidden = "from dphist_pipeline.base.arrow_without_pandas import arrow_without_pandas as hide\nhide()\n"
    assert "pandas" not in imported(f"{hidden}import pyarrow as pa\npa.table({{'a': [1]}}).column(0).to_pylist()")
    assert "pandas" in imported(f"{hidden}import pandas")
    later = "import pandas as pd, pyarrow as pa\nassert pa.array(pd.Series([0.5, None])).null_count == 1"
    imported(f"{hidden}{later}\nhide()\nassert pa.table(pd.DataFrame({{'a': [1]}})).num_rows == 1")
