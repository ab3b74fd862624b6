"""How far is each goal of a fast release: ratios of processor seconds, side by side, of one run?

Commands on 5,000 rows, to those of another checkout (`processor_time.py`); 100 weeks that are due at once, to one; a
release where 300 or 1,000 weeks are published, to one where none is (`many_periods.py`); a first release from nothing
(`init`, `ledger open` and `release`) of 10^6 rows, and a release of 10^7, to OpenDP's query of the same rows
(`peers/compare.py`, 400 cells, 2.42 rows a person). Whole processes with their child processes, in turns, each ratio
of medians; OpenDP with its start, in an environment of its own. The first turn of commands writes compiled modules, and
is left out. The JSON has the load beside it, and how fast the machine was.

    python benchmarks/fast_goals.py --beside CHECKOUT --weeks FOLDER [--turns 3] [--large-turns 1] [--to FILE]

`--weeks`: stores of `many_periods.py --keep`. Writes JSON to benchmarks/results/fast_goals.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import fixed_task
import many_periods
from processor_time import FIRST, SIZES, WEEKS, commands, due
from rows import PROJECT, timed
from startup import ROWS

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from compare import BOUND, EPSILON, HERE, SPEC, _environment, _write_records

SIDE, ROWS_A_PERSON = 20, 2.42
# Each goal has a name, what it is measured beside, and the most that the ratio may be.
GOALS = {
    "release, 5,000 rows": ("the version before", 0.55),
    "replay": ("the version before", 0.5),
    "init": ("the version before", 0.5),
    "check": ("the version before", 0.8),
    "answer": ("the version before", 0.8),
    "ledger show": ("the version before", 0.8),
    "first release from nothing, 10^6 rows": ("OpenDP", 1.0),
    "release, 300 periods published": ("release, 0 periods published", 1.2),
    "release, 1,000 periods published": ("release, 0 periods published", 1.5),
    f"release --all-due, {WEEKS} due": ("release --all-due, 1 due", 25.0),
    "release, 10^7 rows": ("OpenDP", 0.35),
}


class Turns:
    """Processor seconds of each thing that was measured, by whose program it was."""

    def __init__(self, base: Path, beside: Path, weeks: Path, environments: Path) -> None:
        self.base, self.beside, self.weeks, self.environments = base, beside, weeks, environments
        self.seconds = defaultdict[tuple[str, str], list[float]](list)
        self.load, self.fixed = list[float](), list[float]()

    def prepare(self) -> None:
        """Writes the rows, and makes the environment of OpenDP."""
        for rows in SIZES.values():
            copy = ROWS.replace("range(10000)", f"range({rows})").format(file=self.base / f"{rows}.parquet")
            duckdb.connect().execute(copy)
        days = f"SELECT DATE '{FIRST}' + CAST(i % {7 * WEEKS} AS INTEGER) AS day, i AS person,"
        copy = ROWS.replace("SELECT i AS person,", days).replace("range(10000)", f"range({200 * WEEKS})")
        duckdb.connect().execute(copy.format(file=self.base / "weeks.parquet"))
        for rows in (10**6, 10**7):
            _write_records(self.base / f"visits_{rows}.parquet", rows, SIDE, round(rows / ROWS_A_PERSON))
        for number in (300, 1000):  # the first release of a kept store makes its catalogue and pages
            many_periods.released(self.weeks / str(number))
        if problem := _environment(self.environments / "opendp", "opendp"):
            sys.exit(problem)

    def commands(self, turn: str) -> None:
        """Every command by both programs, and by ours what is due."""
        for checkout, whose in ((PROJECT, "ours"), (self.beside, "the version before")):
            folder = self.base / f"{turn} {whose}"
            folder.mkdir()
            os.environ["PYTHONPATH"] = str(checkout)
            for command, words in commands(folder, self.base):
                self.run(command, whose, words, folder)
        os.environ["PYTHONPATH"] = str(PROJECT)
        folder = self.base / f"{turn} due"
        folder.mkdir()
        for command, words in due(folder, self.base):
            if "due" in command:
                self.run(command, "ours", words, folder)
            else:
                timed(["-P", "-m", "dphist_pipeline", *words], folder, "")

    def periods(self, turn: str) -> None:
        """A release where nothing, 300 or 1,000 weeks are published."""
        for number in (0, 300, 1000):
            folder = self.weeks / str(number) if number else self.base / f"{turn} none"
            if not number:
                many_periods.prepare(folder, self.weeks / "rows.parquet", 0)
            spent = many_periods.released(folder)["processors"]
            self.seconds[f"release, {number:,} periods published", "ours"].append(spent)

    def beside_opendp(self, turn: str, rows: int) -> None:
        """A first release from nothing, and OpenDP's query of the same rows."""
        folder, records = self.base / f"{turn} {rows}", self.base / f"visits_{rows}.parquet"
        folder.mkdir()
        spec = SPEC.format(records=records, bound=BOUND, epsilon=EPSILON, side=SIDE)
        (folder / "spec.yaml").write_text(spec, encoding="utf-8")
        store = ["--store", str(folder / "store")]
        account = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "10", "--source", str(records)]
        spent = [
            timed(["-P", "-m", "dphist_pipeline", *words], folder, "")["processors"]
            for words in (
                ["init", *store],
                ["ledger", "open", "office", *account, *store],
                ["release", str(folder / "spec.yaml"), *store],
            )
        ]
        what = "first release from nothing, 10^6 rows" if rows == 10**6 else "release, 10^7 rows"
        self.seconds[what, "ours"].append(sum(spent) if rows == 10**6 else spent[-1])
        python = self.environments / "opendp" / "bin" / "python"
        query = [HERE / "peer_opendp.py", records, SIDE, BOUND, EPSILON, folder, time.time()]
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        process = subprocess.Popen([python, *map(str, query)], cwd=folder, env=alone)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if status:
            sys.exit("OpenDP failed")
        self.seconds[what, "OpenDP"].append(used.ru_utime + used.ru_stime)

    def run(self, command: str, whose: str, words: list[str], folder: Path) -> None:
        """Runs a command of `dphist`, and notes its seconds."""
        spent = timed(["-P", "-m", "dphist_pipeline", *words], folder, "")["processors"]
        self.seconds[command, whose].append(spent)

    def end_turn(self) -> None:
        """Notes how busy and how quick the machine is."""
        self.load.append(os.getloadavg()[0])
        self.fixed.append(fixed_task.seconds())

    def goals(self) -> list[dict[str, Any]]:
        """Each goal with its seconds, those beside it and their ratio."""
        found = []
        for what, (other, most) in GOALS.items():
            turns = self.seconds[what, "ours"]
            others = self.seconds[(what, other) if (what, other) in self.seconds else (other, "ours")]
            seconds, beside = statistics.median(turns), statistics.median(others)
            found.append(
                {
                    **{"what": what, "seconds": round(seconds, 3), "beside": other, "seconds_beside": round(beside, 3)},
                    **{"ratio": round(seconds / beside, 2), "fewest_ratio": round(min(turns) / min(others), 2)},
                    **{"goal": most, "turns": len(turns)},
                }
            )
        return found


def described(checkout: Path) -> str:
    """The commit of a checkout, with a `+` where some file differs from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    return subprocess.run(words, cwd=checkout, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    """Measures, and writes and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, required=True, help="a checkout of the version before")
    parser.add_argument("--weeks", type=Path, required=True, help="stores of `many_periods.py --keep`")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--large-turns", type=int, default=1, help="of 10^7 rows, which take the longest")
    parser.add_argument("--environments", type=Path, default=PROJECT / "benchmarks" / "results" / "peers")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/fast_goals.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        turns = Turns(Path(name), given.beside.resolve(), given.weeks.resolve(), given.environments.resolve())
        turns.prepare()
        turns.commands("first")
        turns.seconds.clear()
        for turn in range(given.turns):
            turns.commands(str(turn))
            turns.periods(str(turn))
            turns.beside_opendp(str(turn), 10**6)
            if turn < given.large_turns:
                turns.beside_opendp(str(turn), 10**7)
            turns.end_turn()
    result = {
        **{"date": str(date.today()), "commit": described(PROJECT), "commit_before": described(given.beside)},
        **{"processors": os.cpu_count(), "least_load": round(min(turns.load), 1)},
        **{"most_load": round(max(turns.load), 1), "fixed_task_seconds": round(min(turns.fixed), 3)},
        "goals": turns.goals(),
    }
    text = json.dumps(result, indent=1) + "\n"
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
