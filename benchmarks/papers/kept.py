"""What the documentation keeps of the studies, and of which code their mechanisms were then."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from public_data import PROJECT, needed
from report import Section, rewrite

from dphist_pipeline import mechanisms

KEPT = PROJECT / "docs" / "measured" / "papers.json"
COMPILER = "dphist_pipeline.solvers._compiled"  # how machine code is made and kept, not what is computed
FOLLOWED = ("dphist_pipeline.solvers.", "dphist_pipeline.mechanisms._")  # what a mechanism computes by


def studies() -> dict[str, dict[str, Any]]:
    """All that is kept, by the name of the study."""
    held: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    return held


def keep(name: str, section: Section, day: str, quick: bool, seconds: float) -> None:
    """Puts a study in the place of what was kept under its name.

    Args:
        name: of the study.
        section: what it found.
        day: of the measurement.
        quick: whether with few releases.
        seconds: how long it took.
    """
    if not section.claims:
        raise ValueError(f"{name} found nothing to keep")
    used = sorted(set(mechanisms.names()) & {told.partition(":")[0] for told in section.contenders.values()})
    facts = {"measured": day, "quick": quick, "mechanisms": {one: code_of(one) for one in used}, **section.kept()}
    if old := studies().get(name, {}).get("takes"):
        facts["takes"] = old
    _write(name, facts)
    time(name, section, quick, seconds)


def time(name: str, section: Section, quick: bool, seconds: float) -> None:
    """Notes what a study needs and how long it takes, and leaves what it found as it was kept.

    Args:
        name: of the study.
        section: what it found.
        quick: whether with few releases.
        seconds: how long it took.
    """
    facts = studies()[name]
    takes = {**facts.get("takes", {}), "quick" if quick else "whole": round(seconds)}
    _write(name, {**facts, "files": needed(name), "few": section.few, "takes": takes})


def _write(name: str, facts: dict[str, Any]) -> None:
    held = dict(sorted({**studies(), name: facts}.items()))
    rewrite(KEPT, json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def code_of(mechanism: str) -> str:
    """A digest of a mechanism's code and of the solvers that it computes by, without their words.

    Docstrings, comments, the descriptions of settings and where a module lies play no part, so that other words and
    other folders do not make a study old.

    Args:
        mechanism: its name.
    """
    found: dict[str, str] = {}
    waiting = [f"dphist_pipeline.mechanisms.{mechanism}"]
    while waiting:
        if (module := waiting.pop()) not in found:
            tree = ast.parse(_path(module).read_text(encoding="utf-8"))
            waiting += [name for name in _imported(tree) if name.startswith(FOLLOWED) and name != COMPILER]
            found[module] = ast.unparse(_Wordless().visit(tree))  # not `dump`, whose text depends on Python's version
    return sha256("".join(sorted(found.values())).encode()).hexdigest()[:16]


def _path(module: str) -> Path:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ValueError(f"no module {module}")
    return Path(spec.origin)


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


class _Wordless(ast.NodeTransformer):
    """Leaves out imports, statements that are only text, what a `Setting` tells, and what follows a release."""

    def visit_Import(self, node: ast.Import) -> None:
        """Nothing: what is imported is followed."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Nothing: what is imported is followed."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Nothing for how readers fit whole counts to a table that is published: no study measures that."""
        return None if isinstance(node.target, ast.Name) and node.target.id == "whole_way" else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Nothing in the place of a docstring."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`Setting()` in the place of its words."""
        if isinstance(node.func, ast.Name) and node.func.id == "Setting":
            return ast.copy_location(ast.Name("Setting", ast.Load()), node)
        return self.generic_visit(node)
