"""Does any mechanism lose more than it declares, and would these audits notice?

Prints two tables and writes them as JSON to benchmarks/results/audit.json: for every way through every mechanism, what
replays on neighbours found and the empirical lower bound on epsilon; for every planted fault, which audit caught it;
for every wall that was taken down, the test of the suite that fails then.
The tightest replay is the largest part that a kind of measurement lost of what it may lose: 1 reaches its bound.
In the local model the likelihoods of all reports stand for the replay: they are exact, and the tightest is the largest
part of epsilon that a report tells.
Ends with 1 if one of them finds anything, a bound at 1 - 10^-6 exceeds its epsilon, or a planted fault passes.

    python tests/audits/audit_report.py [--seconds 2] [--most 100000] [--processes N] [--replays 20]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, contextmanager, nullcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

PROJECT = Path(__file__).resolve().parents[2]
sys.path.append(str(PROJECT / "tests"))

import numpy as np  # noqa: E402
from audited_ways import WAYS, Way  # noqa: E402
from black_box import Bound, cells_as_trials  # noqa: E402
from grey_box import Audited, Verdict  # noqa: E402
from local_ways import LOCAL_FAULTS, LOCAL_WAYS  # noqa: E402
from neighbours import audit, bounded  # noqa: E402
from office import Office  # noqa: E402
from planted import FAULTS, Fault, caught_by_replay  # noqa: E402
from planted_boundary import WALLS  # noqa: E402
from test_records_on_neighbours import FAULTS as RECORD_FAULTS  # noqa: E402
from test_records_on_neighbours import found_in_records  # noqa: E402
from test_replay_on_neighbours import replayed  # noqa: E402

from dphist_pipeline import mechanisms  # noqa: E402

EPSILON = Fraction(1)
CELLS = 10**7
Row = dict[str, Any]


def geometric() -> Row:
    """Every cell of a large grid as a trial."""
    bound = cells_as_trials(lambda grid: Audited(mechanisms.build("geometric", {}), grid, 1, EPSILON), CELLS)
    return _row("geometric, each cell a trial", "0 | 1", bound, Verdict([]))


def audited(way: Way, seconds: float, most: int, replays: int) -> Row:
    """One way: replays on many neighbours, then the bound on the worst small ones."""
    mechanism = way.built()
    assert mechanism is not None
    pair, bound = audit(mechanism, EPSILON, seconds, most)
    return _row(str(way), str(pair), bound, replayed(way, replays))


def audited_locally(number: int) -> Row:
    """One way in which contributors answer."""
    way = LOCAL_WAYS[number]
    exact = way.likelihoods()
    here, there = (", ".join(map(str, values)) for values in way.pair)
    verdict = Verdict(exact.findings, {"likelihood": exact.most})
    return _row(way.name, f"{here} | {there}", way.bound(), verdict, way.question.epsilon)


def _row(name: str, pair: str, bound: Bound, replays: Verdict, epsilon: Fraction = EPSILON) -> Row:
    facts = {"epsilon": float(epsilon), "at_95": bound.shown, "at_1e-6": bound.sure}
    facts |= {"trials": bound.trials, "neighbours": pair, "event": bound.event}
    facts |= {"replay": replays.findings, "tightness": replays.tightness}
    facts |= {"passed": bound.sure <= epsilon and not replays.findings}
    return {"way": name, **facts}


def planted(number: int) -> Row:
    """Which audit catches a fault of a mechanism or a measurement."""
    fault: Fault = FAULTS[number]
    by_replay = caught_by_replay(fault)
    bound = None
    if fault.trials:
        with fault.within():
            bound = bounded(fault.audited, fault.pair, fault.trials)
    return _fault_row(fault.name, by_replay, bound, fault.epsilon)


def planted_locally(number: int) -> Row:
    """Which audit catches a fault of a contributor's program."""
    fault = LOCAL_FAULTS[number]
    return _fault_row(fault.name, fault.likelihoods().findings, fault.bound(), fault.question.epsilon, "likelihood")


def _fault_row(name: str, found: list[str], bound: Bound | None, epsilon: Fraction, exact: str = "replay") -> Row:
    return {
        "fault": name,
        "replay": found,
        "exact": exact,
        "epsilon": float(epsilon),
        "at_95": bound and bound.shown,
        "at_1e-6": bound and bound.sure,
        "caught": bool(found) or bool(bound and bound.sure > epsilon),
    }


@contextmanager
def office_alone() -> Iterator[Office]:
    """An empty office with nothing of the caller's own environment, as the fixture of tests has it."""
    with tempfile.TemporaryDirectory() as folder:
        office = Office(Path(folder) / "office")
        places = {"DPHIST_WITNESS": office.witness, "DPHIST_STORE": office.store, "XDG_CONFIG_HOME": folder}
        with patch.dict(os.environ, {name: str(place) for name, place in places.items()}), chdir(office.folder):
            os.environ.pop("DPHIST_LEDGER", None)
            yield office


def planted_in_records(name: str) -> Row:
    """Whether the replay of records catches a fault on the way to the counts."""
    with office_alone() as office:
        found = found_in_records(office, name)
    return _fault_row(name, found, None, Fraction(1, 2))


def planted_boundary(number: int) -> Row:
    """Whether an attack succeeds where its wall is down, and fails where it stands."""
    wall = WALLS[number]
    ended = []
    for down in (True, False):
        with office_alone() as office:
            office.opened()
            with wall.planted() if down else nullcontext():
                ended.append(wall.attack(office))
    return _fault_row(wall.name, [wall.test] if ended == [True, False] else [], None, Fraction(1, 2), "attack")


def run(task: Callable[[], Row]) -> Row:
    """One task, in a process of its own or not."""
    start = time.perf_counter()
    return {**task(), "seconds": round(time.perf_counter() - start, 1)}


def tables(rows: Iterable[Row], faults: Iterable[Row]) -> str:
    """Both as Markdown."""
    lines = [
        "| way | ε | at 95 % | at 1 - 10⁻⁶ | trials | neighbours | replays or likelihoods, tightest |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        tight = ", ".join(f"{measurement} {part:.2f}" for measurement, part in row["tightness"].items()) or "–"
        verdict = "; ".join(row["replay"]) or tight
        bounds = f"{row['epsilon']:g} | {row['at_95']:.3f} | {row['at_1e-6']:.3f}"
        neighbours = row["neighbours"].replace("|", "→")
        lines.append(f"| {row['way']} | {bounds} | {row['trials']:,} | {neighbours} | {verdict} |")
    lines += [
        "",
        "| planted fault | replay or likelihood | black box at 95 % | at 1 - 10⁻⁶, of ε | caught by |",
        "|---|---|---|---|---|",
    ]
    for row in faults:
        seen = row["at_1e-6"] is not None
        bounds = f"{row['at_95']:.2f} | {row['at_1e-6']:.2f} of {row['epsilon']:g}" if seen else "– | –"
        by = [row["exact"]] * bool(row["replay"]) + ["black box"] * bool(seen and row["at_1e-6"] > row["epsilon"])
        replay = row["replay"][0] if row["replay"] else "–"
        lines.append(f"| {row['fault']} | {replay} | {bounds} | {' and '.join(by) or '**nobody**'} |")
    return "\n".join(lines)


def main() -> int:
    """Audits, prints and writes; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2, help="of trials for each way, of one core")
    parser.add_argument("--most", type=int, default=100_000, help="trials for a way")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="as many as there are processors")
    parser.add_argument("--replays", type=int, default=20, help="neighbours for each way")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "audit.json")
    asked = parser.parse_args()
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(asked.processes, maxtasksperchild=8) as pool:
        ways = [partial(audited, way, asked.seconds, asked.most, asked.replays) for way in WAYS]
        ways += [partial(audited_locally, number) for number in range(len(LOCAL_WAYS))]
        faults = [partial(planted, number) for number in range(len(FAULTS))]
        faults += [partial(planted_in_records, name) for name in RECORD_FAULTS]
        faults += [partial(planted_locally, number) for number in range(len(LOCAL_FAULTS))]
        faults += [partial(planted_boundary, number) for number in range(len(WALLS))]
        rows = pool.imap(run, [geometric, *ways])
        found = pool.imap(run, faults)
        made, caught = list(rows), list(found)
        pool.close()  # the end of `with` may wait for ever for a process that the pool just began
        pool.join()
    print(tables(made, caught))
    wrong = [row for row in made if not row["passed"]] + [row for row in caught if not row["caught"]]
    seconds = round(time.perf_counter() - start)
    facts = {"numpy": np.__version__, "seconds": seconds, "ways": made, "faults": caught, "failed": len(wrong)}
    asked.to.parent.mkdir(parents=True, exist_ok=True)
    asked.to.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(f"\n{seconds} s; {len(made)} ways, {len(caught)} planted faults, {len(wrong)} failed; numbers: {asked.to}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
