"""The notebooks in `examples/` run from top to bottom, and are kept without what they print."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from docs.pages import PROJECT
from nbclient import NotebookClient

NOTEBOOKS = sorted((PROJECT / "examples").glob("*.ipynb"))


@pytest.mark.outside  # a kernel of Jupyter for each
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
    ran = NotebookClient(nbformat.read(notebook, as_version=4), timeout=300, kernel_name="python3").execute()
    cells = [cell for cell in ran.cells if cell.cell_type == "code"]
    shown = "\n".join(str(output) for cell in cells for output in cell.outputs)
    assert "error:" not in shown and "Traceback" not in shown
    assert cells[-1].outputs and len(cells) >= 6


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert not [cell for cell in cells if cell.outputs or cell.execution_count is not None]


def test_there_is_a_notebook_for_statisticians_and_one_for_analysts() -> None:
    assert [path.name for path in NOTEBOOKS] == ["ask_a_catalogue.ipynb", "compare_mechanisms.ipynb"]
