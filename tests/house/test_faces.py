"""The face of each room: which of its names other rooms import. `faces.txt` holds it, and only a decision changes it.

A module whose name begins with `_` is imported by its own room alone. Run this file to write the table anew.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dphist_pipeline

PACKAGE = Path(dphist_pipeline.__file__).parent
TABLE = Path(__file__).with_name("faces.txt")
# So many names a room gives others at most: lower one when fewer are left.
MOST_NAMES = {"answering": 28, "estimates": 60, "publishing": 30, "releasing": 25, "solvers": 69, "spec": 43}

# Rooms of which each file is found by its name.
BY_NAME = {"mechanisms", "cli"}
# What no other room imports, but users, benchmarks or contributors do.
FOR_OTHERS = {
    "applications.coded_records",
    "confidential.noise",
    "evaluation.metrics",
    "evaluation.synthetic_sets",
    "integrations.duckdb",
    "integrations.polars",
    "ledger.database",
    "local.contributor",
    "local.encoding",
    "local.law",
    "local.tally",
}


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
        for path in PACKAGE.rglob("*.py")
    }


def imported(path: Path, known: dict[str, Path]) -> Iterator[tuple[str, str]]:
    """Each name that a file imports from the package, with its module; a whole module is `*`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        module = getattr(node, "module", None)
        if isinstance(node, ast.ImportFrom) and module and f"{module}.".startswith("dphist_pipeline."):
            home = module.removeprefix("dphist_pipeline").lstrip(".")
            for name in (alias.name for alias in node.names):
                whole = f"{home}.{name}".lstrip(".")
                yield (whole, "*") if whole in known else (home, name)


def room(module: str) -> str:
    return module.partition(".")[0]


@cache
def faces() -> dict[str, set[str]]:
    """The names of each module that other rooms import; modules of no room, such as `errors`, are for all."""
    known, found = modules(), defaultdict[str, set[str]](set)
    for user, path in known.items():
        for module, name in imported(path, known):
            if room(module) != room(user) and (PACKAGE / room(module)).is_dir() and module:
                found[module].add(name)
    return dict(found)


def as_text(found: dict[str, set[str]]) -> str:
    return "".join(f"{module}: {', '.join(sorted(names))}\n" for module, names in sorted(found.items()))


def test_rooms_give_each_other_what_the_table_says() -> None:
    told, found = TABLE.read_text(encoding="utf-8").splitlines(), as_text(faces()).splitlines()
    assert sorted(set(found) - set(told)) == [], "a new name for other rooms: is there one in the table that serves?"
    assert sorted(set(told) - set(found)) == [], "no longer imported: run this file"


def test_a_room_gives_no_more_names_than_it_did() -> None:
    many = defaultdict[str, int](int)
    for module, names in faces().items():
        many[room(module)] += len(names)
    assert {name: number for name, number in many.items() if number > MOST_NAMES.get(name, 60)} == {}


def test_what_is_private_to_a_room_is_imported_by_it_alone() -> None:
    private = [module for module in faces() if any(part.startswith("_") for part in module.split("."))]
    assert private == []


def test_what_only_its_own_room_imports_begins_with_a_line() -> None:
    given = set(faces()) | FOR_OTHERS
    known = [module for module, path in modules().items() if "." in module and path.name != "__init__.py"]
    public = [name for name in known if not name.rpartition(".")[2].startswith("_") and room(name) not in BY_NAME]
    assert sorted(set(public) - given) == [], "rename these to _NAME"
    assert sorted(FOR_OTHERS - set(known)) == []


if __name__ == "__main__":
    TABLE.write_text(as_text(faces()), encoding="utf-8")
