"""Mechanisms that installed packages bring by an entry point: found, used, and named as foreign."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from office import Office

from dphist_pipeline import mechanisms

MODULE = '''"""Halves: every noisy count halved, as no office would.

Privacy:  epsilon, all on the counts.
"""

from dataclasses import dataclass

from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism


@dataclass(frozen=True)
class Halves(Mechanism):
    """Settings: none."""

    def release(self, counts, budget):
        noisy = counts.noisy_cells(budget)
        return Estimate(counts.domain, noisy.values / 2, charges=budget.charges, unbiased=noisy)
'''


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of installed packages, of which mechanisms are found anew."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    mechanisms._homes.cache_clear()
    yield folder
    mechanisms._homes.cache_clear()
    for name in ("office_halves", "office_other"):
        sys.modules.pop(name, None)


def install(folder: Path, package: str, points: dict[str, str], modules: dict[str, str]) -> None:
    """Lays down what an installer would: modules, and the package's own description."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / f"{package}-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
    listed = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[dphist_pipeline.mechanisms]\n{listed}")


@pytest.mark.slow
def test_a_package_brings_a_mechanism_which_audit_and_card_name_as_foreign(packages: Path, office: Office) -> None:
    install(packages, "office-halves", {"halves": "office_halves"}, {"office_halves": MODULE})
    listed = office.run("mechanisms", "--json").json
    assert "office-halves 1.5" in listed["halves"]["card"] and "Not part of dphist" not in listed["geometric"]["card"]
    assert "office-halves" in office.run("mechanisms").out
    office.opened().write_spec(mechanism="halves", settings={})
    path = Path(office.released("--json").json["path"])
    audit = json.loads((path / "audit.json").read_text())
    assert audit["mechanism_package"] == {"name": "office-halves", "version": "1.5"}
    assert "The package office-halves\n1.5 brings this mechanism" in (path / "card.html").read_text()
    assert "Mechanism halves of office-halves 1.5" in (path / "deployment.yaml").read_text()


@pytest.mark.slow
def test_our_own_mechanisms_are_not_called_foreign(office: Office) -> None:
    path = Path(office.opened().released("--json").json["path"])
    assert "mechanism_package" not in json.loads((path / "audit.json").read_text())


def test_a_name_that_two_have_is_refused_by_both_names(packages: Path, office: Office) -> None:
    install(packages, "office-other", {"geometric": "office_other"}, {"office_other": MODULE})
    ran = office.opened().release()
    assert ran.code == 1 and "office-other 1.5" in ran.err and "dphist" in ran.err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("raise RuntimeError('13 rows of ward surgery')", "cannot be imported (RuntimeError)"),
        ("'''No mechanism.'''", "defines 0 mechanisms"),
        (f"{MODULE}\n\nclass More(Halves): ...\n", "defines 2 mechanisms"),
    ],
)
def test_a_package_that_does_not_work_is_named(packages: Path, office: Office, text: str, problem: str) -> None:
    install(packages, "office-halves", {"halves": "office_halves"}, {"office_halves": text})
    office.opened().write_spec(mechanism="halves", settings={})
    ran = office.release()
    assert ran.code == 1 and problem in ran.err and "13 rows" not in ran.err
    assert "geometric" in office.run("mechanisms").out
