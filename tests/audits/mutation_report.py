"""What became of all mutations, as JSON and as the table of `docs/explanation/mutations.md`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean, median
from typing import Any

MEASURED, PAGE = Path("docs/measured/mutations.json"), Path("docs/explanation/mutations.md")
BEGIN, END = "<!-- written by mutations.py --report -->", "<!-- end -->"
ENDLESS = "no test within"  # the beginning of what is told of tests that were ended
BEFORE = ("noticed before", "survived before")  # in another version of the mutated file, or of its tests
VERDICTS = ("noticed", "equivalent", "survived", "not within the limit", *BEFORE)


def verdict(row: Mapping[str, Any]) -> str:
    """What a row of the table counts as: one of `VERDICTS`."""
    before = " before" if row.get("before") else ""
    if row["noticed_by"].startswith(ENDLESS):
        return f"survived{before}" if before else "not within the limit"
    if row["noticed_by"]:
        return f"noticed{before}"
    return "equivalent" if row["equivalent"] else f"survived{before}"


def summary(rows: Iterable[Mapping[str, Any] | None], of: Iterable[str]) -> dict[str, Any]:
    """Figures of a run, and every mutation that no test noticed.

    Args:
        rows: of mutations; None for those that were not tried.
        of: the file that each mutation changes, in the same order.
    """
    held = list(zip(rows, of, strict=True))
    found = [row for row, _ in held if row]
    files = {}
    for file in dict.fromkeys(file for _, file in held):
        kinds = Counter(verdict(row) if row else "not tried" for row, other in held if other == file)
        files[file] = {kind: kinds[kind] for kind in (*VERDICTS, "not tried")}
    seconds = [row["cpu"] for row in found]
    told = ("file", "why", "old", "new", "equivalent", "noticed_by")
    return {
        "first_day": min((row["date"] for row in found), default=""),
        "last_day": max((row["date"] for row in found), default=""),
        "mutations": len(held),
        "processor_seconds": {
            "mean": round(mean(seconds or [0]), 1),
            "median": round(median(seconds or [0]), 1),
            "sum": round(sum(seconds)),
        },
        "files": files,
        "unnoticed": [
            {key: row[key] for key in told} | {"verdict": verdict(row)}
            for row in found
            if verdict(row) not in ("noticed", "noticed before")
        ],
    }


def tables(held: Mapping[str, Any]) -> str:
    """The summary as text of Markdown: a sentence, a table of files, and a table of what no test noticed."""
    kinds = [kind for kind in (*VERDICTS, "not tried") if any(one[kind] for one in held["files"].values())]
    sums = {kind: sum(one[kind] for one in held["files"].values()) for kind in kinds}
    days = " to ".join(dict.fromkeys((held["first_day"], held["last_day"])))
    seconds = held["processor_seconds"]
    lines = [
        f"{held['mutations']} mutations, tried from {days}: "
        + ", ".join(f"{number} {kind}" for kind, number in sums.items()),
        f"One took {seconds['mean']} seconds of the processor on average (median {seconds['median']}).",
    ]
    text = [". ".join(lines), "", *_table(("file", *kinds), _counts(held["files"], kinds)), ""]
    rows = [
        (f"`{one['file']}`", one["why"], _code(one["old"]), _code(one["new"]), _reason(one))
        for one in held["unnoticed"]
    ]
    return "\n".join([*text, *_table(("file", "mistake", "code", "changed to", "why no test fails"), rows)])


def _counts(files: Mapping[str, Mapping[str, int]], kinds: Iterable[str]) -> list[tuple[str, ...]]:
    return [(f"`{file}`", *(str(of[kind] or "") for kind in kinds)) for file, of in files.items()]


def _reason(row: Mapping[str, Any]) -> str:
    if row["verdict"] == "equivalent":
        return f"equivalent: {row['equivalent']}"
    if row["verdict"] == "survived before":
        return "a gap in another version; not tried since"
    return "**a gap**" if row["verdict"] == "survived" else str(row["noticed_by"])


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`".replace("|", "\\|") if text.strip() else "nothing"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    return [f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)]


def page(text: str, held: Mapping[str, Any]) -> str:
    """The text of the page with its tables written anew."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{tables(held)}\n\n{END}{rest.partition(END)[2]}"


def write_report(project: Path, held: Mapping[str, Any]) -> None:
    """Writes the JSON file and the tables of the page."""
    (project / MEASURED).write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path = project / PAGE
    path.write_text(page(path.read_text(encoding="utf-8"), held), encoding="utf-8")
