"""The notebooks in `examples/` run from top to bottom, and are kept without what they print."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pytest
from docs.pages import PROJECT
from nbclient import NotebookClient
from office import ran

NOTEBOOKS = sorted((PROJECT / "examples").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[Any]:
    return [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_code_of_a_notebook_runs_to_its_end(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, commands too; `make soak` has kernels of Jupyter run the notebooks."""
    for name in ("DPHIST_STORE", "DPHIST_LEDGER", "DPHIST_OPERATOR_KEY", "DPHIST_WITNESS"):
        monkeypatch.setenv(name, "")  # what a notebook sets is as before afterwards
        monkeypatch.delenv(name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    names: dict[str, Any] = {"__name__": "__main__"}

    def dphist(*words: str) -> None:
        with chdir(names["office"]):
            done = ran(*words)
        assert done.code == 0, done.err

    connection = duckdb.connect()
    monkeypatch.setattr(duckdb, "sql", lambda query: connection.sql(query))
    with connection:
        for number, cell in enumerate(code_cells(notebook)):
            exec(compile(cell.source, f"{notebook.name}, cell {number}", "exec"), names)
            names |= {"dphist": dphist} if "dphist" in names else {}


@pytest.mark.soak  # a kernel of Jupyter for each
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_to_its_end_without_an_error(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DPHIST_STORE", "DPHIST_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    done = NotebookClient(nbformat.read(notebook, as_version=4), timeout=300, kernel_name="python3").execute()
    cells = [cell for cell in done.cells if cell.cell_type == "code"]
    shown = "\n".join(str(output) for cell in cells for output in cell.outputs)
    assert "error:" not in shown and "Traceback" not in shown
    assert cells[-1].outputs and len(cells) >= 6


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    assert not [cell for cell in code_cells(notebook) if cell.outputs or cell.execution_count is not None]
