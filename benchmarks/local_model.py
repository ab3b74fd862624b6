"""How long do encoding and decoding reports of the local model take beside writing and reading the same bytes?

291,825 contributors, as many as the paper's San Francisco, and consumers of 3, 5, 7, 10 and 15 equal intervals whose
boundaries are merged (CHP). Encoding finds every value's interval and tosses exact coins; decoding checks the reports
and counts the ones of each interval. Both are compared with NumPy on the same reports, in one process and in turns, by
processor time, the system's included, and the best of several runs:

    disk    numpy.save and numpy.load of the packed reports; the system holds the file, and no disk is waited for
    bits    numpy.packbits and numpy.unpackbits, from a byte for each bit and back; no coin, no check, no count

With --large, 10^8 contributors are decoded in batches, each encoding in a process of its own whose peak memory is
shown: a batch repeats reports that were encoded once, and its making is not timed. Values are invented, from a seeded
generator; coins never are. Prints tables, and writes JSON to benchmarks/results/.

    python benchmarks/local_model.py [--repeats 9] [--large] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, get_args

import cryptography
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local.encoding import encode
from dphist_pipeline.local.partition import merge_boundaries
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally

PROJECT = Path(__file__).resolve().parent.parent
CONTRIBUTORS, LARGE, BATCH = 291_825, 10**8, 1 << 20
FOLDS = (3, 5, 7, 10, 15)
EPSILONS = (1, 3, 15)
TOP = 520_000
GIGABYTES = 1


def asked(encoding: Encoding, epsilon: int) -> Question:
    """One part: the intervals of all consumers, merged."""
    edges = merge_boundaries([Fraction(TOP * place, fold) for place in range(fold + 1)] for fold in FOLDS)
    return Question("salaries", (Part(edges, Fraction(epsilon), encoding),))


def salaries(contributors: int) -> np.ndarray:
    """Invented, one a contributor; shape (contributors, 1)."""
    return np.minimum(np.random.default_rng(7).lognormal(11, 0.6, (contributors, 1)), TOP)


def counted(question: Question, reports: np.ndarray) -> Tally:
    """The count of all reports."""
    tally = Tally(question)
    tally.add(reports)
    return tally


def best(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The best seconds of each, of processor time, which is the clock's where nothing else runs; they take turns."""
    found = [math.inf] * len(calls)
    for _ in range(repeats):
        for number, call in enumerate(calls):
            start = time.process_time()
            call()
            found[number] = min(found[number], time.process_time() - start)
    return found


def measure(encoding: Encoding, epsilon: int, contributors: int, repeats: int, folder: Path) -> dict[str, Any]:
    """One encoding at one epsilon: seconds, and ratios to NumPy's."""
    question, values, file = asked(encoding, epsilon), salaries(contributors), folder / "reports.npy"
    reports = encode(question, values)
    bits = np.unpackbits(reports, axis=1)
    calls = {
        "encode": lambda: encode(question, values),
        "save": lambda: np.save(file, reports),
        "packbits": lambda: np.packbits(bits, axis=1),
        "decode": lambda: counted(question, reports),
        "load": lambda: np.load(file),
        "unpackbits": lambda: np.unpackbits(reports, axis=1),
    }
    seconds = dict(zip(calls, best(list(calls.values()), repeats), strict=True))
    return {
        "encoding": encoding,
        "epsilon": epsilon,
        "contributors": contributors,
        "intervals": question.parts[0].intervals,
        "bytes_per_contributor": question.report_bytes,
        "seconds": seconds,
        "encode_per_save": seconds["encode"] / seconds["save"],
        "encode_per_packbits": seconds["encode"] / seconds["packbits"],
        "decode_per_load": seconds["decode"] / seconds["load"],
        "decode_per_unpackbits": seconds["decode"] / seconds["unpackbits"],
    }


def _large(encoding: Encoding, epsilon: int, contributors: int) -> dict[str, Any]:
    question = asked(encoding, epsilon)
    once = encode(question, salaries(min(CONTRIBUTORS, contributors)))
    tally, seconds, first = Tally(question), 0.0, 0
    while first < contributors:
        last = min(first + BATCH, contributors)
        batch = once[np.arange(first, last) % len(once)]
        start = time.process_time()
        tally.add(batch)
        seconds, first = seconds + time.process_time() - start, last
    if not np.array_equal(tally.ones[0], _expected(question, once, contributors)) or tally.reports != contributors:
        raise AssertionError("the batches were not counted as their reports are")
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "encoding": encoding,
        "epsilon": epsilon,
        "contributors": contributors,
        "report_gigabytes": contributors * question.report_bytes / 2**30,
        "seconds": seconds,
        "peak_gigabytes": gigabytes,
    }


def _expected(question: Question, once: np.ndarray, contributors: int) -> np.ndarray:
    """What repeating the same reports must count."""
    rounds, rest = divmod(contributors, len(once))
    return rounds * counted(question, once).ones[0] + counted(question, once[:rest]).ones[0]


def in_own_process(call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Runs it where nothing ran before, so that its peak memory is its own, imports included."""
    # Not a `Pool`, whose end may wait for ever for a process that ignores its signal, as those below pytest-xdist do.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call).result()


def show(report: dict[str, Any], console: Console) -> None:
    """The tables."""
    head = ("encode ms", "× save", "× packbits", "decode ms", "× load", "× unpackbits")
    table = Table("encoding", "ε", "bytes", *head, title=f"{report['contributors']:,} contributors")
    for row in report["timed"]:
        table.add_row(
            row["encoding"],
            f"{row['epsilon']}",
            f"{row['bytes_per_contributor']}",
            f"{1000 * row['seconds']['encode']:.1f}",
            f"{row['encode_per_save']:.1f}",
            f"{row['encode_per_packbits']:.1f}",
            f"{1000 * row['seconds']['decode']:.2f}",
            f"{row['decode_per_load']:.1f}",
            f"{row['decode_per_unpackbits']:.1f}",
        )
    console.print(table)
    if not report["large"]:
        return
    table = Table("decoded", "encoding", "ε", "reports GB", "seconds", "peak GB", f"{GIGABYTES} GB")
    for row in report["large"]:
        numbers = [f"{row[name]:.2f}" for name in ("report_gigabytes", "seconds", "peak_gigabytes")]
        within = "within" if row["peak_gigabytes"] <= GIGABYTES else "[bold red]above[/]"
        table.add_row(f"{row['contributors']:,}", row["encoding"], f"{row['epsilon']}", *numbers, within)
    console.print(table)


def main() -> None:
    """Measures every encoding and shows the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="runs of each, of which the best counts")
    parser.add_argument("--large", action="store_true", help="decode 10^8 contributors too: seconds for each encoding")
    parser.add_argument("--quick", action="store_true", help="few contributors and two runs of each")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "local_model.json")
    arguments = parser.parse_args()
    contributors, repeats = (3_000, 2) if arguments.quick else (CONTRIBUTORS, arguments.repeats)
    console, encodings = Console(stderr=True), get_args(Encoding)
    cases = [(encoding, epsilon) for encoding in encodings for epsilon in EPSILONS]
    with tempfile.TemporaryDirectory(dir=arguments.to.parent if arguments.to.parent.is_dir() else None) as folder:
        timed = [
            measure(encoding, epsilon, contributors, repeats, Path(folder))
            for encoding, epsilon in track(cases, "local model", console=console)
        ]
    wanted = 50_000 if arguments.quick else LARGE
    large = [in_own_process(partial(_large, encoding, 3, wanted)) for encoding in encodings if arguments.large]
    report = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "versions": {"numpy": np.__version__, "cryptography": cryptography.__version__},
        "contributors": contributors,
        "folds": FOLDS,
        "repeats": repeats,
        "timed": timed,
        "large": large,
    }
    arguments.to.parent.mkdir(exist_ok=True)
    arguments.to.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(report, Console(width=140))
    print(f"JSON: {arguments.to}")


if __name__ == "__main__":
    main()
