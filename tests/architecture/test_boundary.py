"""What may run on exact counts, by name; and that files of mechanisms use nothing else of `confidential`.

Whoever adds a class to a closed set changes a list here, too, and a reviewer asks for its proof.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

from dphist_pipeline import mechanisms
from dphist_pipeline.confidential import _queries as questions
from dphist_pipeline.confidential import row_queries, scores
from dphist_pipeline.errors import Halted, TryAgain
from dphist_pipeline.ledger import epsilon_text
from dphist_pipeline.ledger import errors as ledger_errors

ROOM = "dphist_pipeline.confidential"
SCORES = ["CutByBalance", "CutByDeviations", "LastStartByDeviations", "LastStartBySquares", "NextByNearness"]
QUERIES = ["Buckets", "Cells", "Choice", "Contrasts", "Sums", "WeightedSums"]
ROW_QUERIES = ["FailuresByAxis", "RowsByPlace", "RowsCut", "RowsCutBy", "RowsMisfiled", "UnitsByRows", "UnitsLeftOut"]
# A mechanism may name these of `confidential`.
ALLOWED = {f"{ROOM}.measurements": {"PrivateCounts"}, f"{ROOM}.scores": {*SCORES, "Score", "Centre"}}
FILES = sorted(Path(mechanisms.__file__).parent.glob("*.py"))
# Ways to look into other objects, or to change them, that no mechanism needs.
TOO_DEEP = {
    *("setattr", "delattr", "__setattr__", "vars", "globals", "gc", "ctypes"),
    *("_getframe", "__dict__", "__closure__", "__globals__"),
}


def defined_in(module: object, above: type) -> list[str]:
    """Every class of a module below another one that can be made: has no abstract method left."""
    found = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, above)]
    return sorted(kind.__name__ for kind in found if not getattr(kind, "__abstractmethods__", None))


def test_the_closed_set_of_scores_is_this_and_holds_every_class_of_its_file() -> None:
    assert sorted(kind.__name__ for kind in scores.SCORES) == SCORES == defined_in(scores, scores.Score)


def test_the_closed_set_of_questions_is_this_and_holds_every_class_of_its_file() -> None:
    assert sorted(kind.__name__ for kind in questions.QUERIES) == QUERIES
    assert defined_in(questions, questions.Query) == QUERIES


def test_the_closed_set_of_questions_about_rows_is_this_too() -> None:
    assert sorted(kind.__name__ for kind in row_queries.ROW_QUERIES) == ROW_QUERIES
    assert defined_in(row_queries, row_queries.RowQuery) == ROW_QUERIES


@pytest.mark.parametrize(
    "kind", [*scores.SCORES, *questions.QUERIES, *row_queries.ROW_QUERIES], ids=lambda kind: kind.__name__
)
def test_every_class_is_frozen_and_gives_its_sensitivity_with_a_reason(kind: type) -> None:
    assert kind.__dataclass_params__.frozen and "__dict__" not in dir(object.__new__(kind))
    assert kind.__doc__
    if issubclass(kind, scores.Score):
        assert "Constant" in kind.__doc__
    else:
        assert kind.sensitivity.__doc__ and (": " in kind.sensitivity.__doc__)


def used_of_the_room(tree: ast.AST) -> list[str]:
    """What a file imports of `confidential` beyond what it may; the package itself and its modules, too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names if name.name.startswith(ROOM)]
        elif isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith(ROOM)):
            allowed = ALLOWED.get(node.module or "", set())
            found += [f"{node.module}.{name.name}" for name in node.names if name.name not in allowed]
        elif isinstance(node, ast.ImportFrom) and node.module == "dphist_pipeline":
            found += [name.name for name in node.names if name.name == "confidential"]
    return found


def reaching_too_deep(tree: ast.AST) -> list[str]:
    """Attributes that a file sets on other objects, and names by which it would look into them."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.append(ast.unparse(node))
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        if name in TOO_DEEP or (isinstance(name, str) and name.startswith("_PrivateCounts")):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Import | ast.ImportFrom):
            found += [one.name for one in node.names if one.name.partition(".")[0] in TOO_DEEP]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_mechanism_names_of_the_room_only_measurements_and_scores(path: Path) -> None:
    assert used_of_the_room(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "__init__.py"], ids=lambda path: path.name)
def test_a_mechanism_changes_no_other_object_and_looks_into_none(path: Path) -> None:
    assert reaching_too_deep(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "import dphist_pipeline.confidential.noise",
        "from dphist_pipeline import confidential",
        "from dphist_pipeline.confidential import scores",
        "from dphist_pipeline.confidential.measurements import _noisy",
        "from dphist_pipeline.confidential.scores import SCORES",
        "from dphist_pipeline.confidential._queries import Sums",
        "from ..confidential.measurements import noise",
    ],
)
def test_another_import_of_the_room_would_be_noticed(line: str) -> None:
    assert used_of_the_room(ast.parse(line))


@pytest.mark.parametrize(
    "line",
    [
        "counts._PrivateCounts__exact()",
        "CutByBalance.scores = spy",
        "absolute_deviation.deviations = spy",
        "setattr(CutByBalance, 'scores', spy)",
        "budget.epsilon = 50",
        "object.__setattr__(score, 'price', spy)",
        "import gc",
        "sys._getframe()",
    ],
)
def test_a_look_behind_the_measurements_would_be_noticed(line: str) -> None:
    assert reaching_too_deep(ast.parse(line))


# What an error of the ledger could do beside saying something: other statements, and functions by these names.
MORE_THAN_WORDS = (ast.Raise, ast.Try, ast.With, ast.Delete, ast.Global, ast.Yield, ast.Await)
ACTING = {"open", "print", "exec", "eval", "compile", "setattr", "delattr", "globals", "__import__", "input"}


def beyond_words(module: ModuleType) -> list[str]:
    """What the code of a module does beside making texts."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(module))))
    names = [node.id for node in nodes if isinstance(node, ast.Name) and node.id in ACTING]
    return [*names, *(type(node).__name__ for node in nodes if isinstance(node, MORE_THAN_WORDS))]


def test_errors_of_the_ledger_only_say_something_and_none_passes_for_another() -> None:
    known = vars(ledger_errors).values()
    kinds = [kind for kind in known if isinstance(kind, type) and kind.__module__ == ledger_errors.__name__]
    assert len(kinds) > 5
    assert {kind.__bases__ for kind in kinds} <= {
        (ledger_errors.LedgerError,),
        (ledger_errors.LedgerError, TryAgain),
        (Halted,),
    }
    assert beyond_words(ledger_errors) == []


def test_amounts_are_texts_too() -> None:
    assert beyond_words(epsilon_text) == ["With"]  # how many digits are told


# What changes the books of a ledger: it alone does, entry by entry.
CHANGES = {"post", "add_spent", "update", "pop", "clear", "append", "add", "setdefault", "sort"}


def changing_books(tree: ast.AST) -> list[str]:
    """What a file changes in the books that a ledger hands out to be read."""
    found = []
    for node in ast.walk(tree):
        changed = isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load)
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES
        if changed or called:
            found += [said for said in [ast.unparse(node)] if said.startswith("books.") or ".books()" in said]
    return found


@pytest.mark.slow
def test_whoever_reads_the_books_of_a_ledger_changes_nothing_in_them() -> None:
    package = Path(mechanisms.__file__).parents[1]
    files = [path for path in package.rglob("*.py") if "ledger" not in path.relative_to(package).parts[:1]]
    assert [path for path in files if changing_books(ast.parse(path.read_text(encoding="utf-8")))] == []


@pytest.mark.parametrize("line", ["books.add_spent('a', 1, -2)", "ledger.books().year = 1", "books.paid.clear()"])
def test_a_change_of_the_books_would_be_noticed(line: str) -> None:
    assert changing_books(ast.parse(line))


# 8,120 until two signatures also guarded what else reads an account's records: a second account emptied the first.
# 7,900 until categories, edges and lengths of time were compared by the type of their column.
# 8,800 until columns were declared, a quality table also counted rows in files of another period, and a server refused
# what no list says. 9,000 until Polars counted, which may spill nothing: rows are taken in slices, passes and blocks.
# 9,150 until amounts split rows: their parts are staged, bounded, added up, and measured with noise of their own.
# 9,250 until individual accounts: a filter between reading and bounding, and what their charges may state.
# 9,750 until axes followed from several rows of one unit: six frozen classes with their proofs, and the walk over rows.
MOST_LINES = 10_300
# What the ledger says when it refuses decides nothing, as tests above hold: it is not among what a reviewer must trust.
WORDS = {"errors.py", "epsilon_text.py"}
# What runs only where an office has more than files here and a ledger in a file, and only where a spec asks for more.
ELSEWHERE = (
    *("engines/", "reading/_object_stores.py", "reading/_databases.py"),
    *("ledger/postgresql.py", "ledger/moving.py"),
)
MORE_TABLES = ("/row_queries.py", "/row_tables.py", "/_row_words.py", "/_table_counts.py")


def lines_of(files: dict[str, int], parts: tuple[str, ...] = ("",)) -> int:
    """The lines of the files whose path holds one of these."""
    found = [[lines for path, lines in files.items() if part in path] for part in parts]
    assert all(found)
    return sum(map(sum, found))


def test_what_a_reviewer_reads_to_trust_the_wall_stays_in_two_folders(capsys: pytest.CaptureFixture[str]) -> None:
    package = Path(mechanisms.__file__).parents[1]
    folders = [path for folder in ("confidential", "ledger") for path in (package / folder).rglob("*.py")]
    read = [path for path in folders if path.parent.name != "ledger" or path.name not in WORDS]
    assert len(folders) - len(read) == len(WORDS)
    files = {str(path.relative_to(package)): len(path.read_text(encoding="utf-8").splitlines()) for path in read}
    every, elsewhere, more = lines_of(files), lines_of(files, ELSEWHERE), lines_of(files, MORE_TABLES)
    with capsys.disabled():
        print(
            f"\nto be read: confidential/ {lines_of(files, ('confidential/',)):,} lines, ledger/ "
            f"{lines_of(files, ('ledger/',)):,} lines; of these {every:,}, {elsewhere:,} only for Spark, PostgreSQL, "
            f"object stores and other databases, {more:,} only for quality tables and families of tables"
        )
    assert every <= MOST_LINES
    readme = " ".join((package.parent / "README.md").read_text(encoding="utf-8").split())
    said = re.search(r"about ([\d,]+) lines together.* About ([\d,]+) of them run only .* about ([\d,]+) only", readme)
    assert said is not None
    for told, lines in zip(said.groups(), (every, elsewhere, more), strict=True):
        assert abs(int(told.replace(",", "")) - lines) <= 100


def test_what_the_proofs_rest_on_beside_the_folders_is_named_with_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    package = Path(mechanisms.__file__).parents[1]
    promise = (package.parent / "docs/explanation/promise.md").read_text(encoding="utf-8")
    (said,) = [part for part in promise.split("\n\n") if part.startswith("The proofs in these folders also rest on")]
    named = re.findall(r"`([\w/]+\.py)`", said)
    lines = sum(len((package / name).read_text(encoding="utf-8").splitlines()) for name in named)
    with capsys.disabled():
        print(f"\nthe proofs rest on {lines:,} lines beside them")
    assert {"base/random_words.py", "estimates/certified.py", "estimates/budget.py", "base/files.py"} <= {*named}
    told = re.search(r"about ([\d,]+) lines", said)
    assert told is not None and abs(int(told[1].replace(",", "")) - lines) <= 100
