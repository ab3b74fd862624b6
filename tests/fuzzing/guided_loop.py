"""A fuzzer that follows coverage: inputs that take a new way through the code are kept, and changed further.

Same seed, same inputs. What fails is saved, and told with its seed.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traced_edges import Edges

SLOW = 0.1
NEWEST = 32

Check = Callable[[bytes], Iterable[Hashable]]
Mutate = Callable[[random.Random, bytes, Sequence[bytes]], bytes]


@dataclass
class Report:
    """What a run did.

    Attributes:
        inputs: how many were tried, seeds included.
        seeds: how many of them were seeds.
        corpus: inputs that took a new way, seeds included.
        first_edges: steps that the seeds alone took.
        edges: steps that were seen in the end.
        outcomes: different facts that checks told.
        seconds: of processor time, of all threads.
    """

    inputs: int = 0
    seeds: int = 0
    corpus: list[bytes] = field(default_factory=list)
    first_edges: int = 0
    edges: int = 0
    outcomes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        rate = self.inputs / max(self.seconds, 1e-9)
        return (
            f"{self.inputs:,} inputs in {self.seconds:,.0f} s of processor time ({rate:,.0f} a second), "
            f"{self.edges:,} edges ({self.first_edges:,} by the {self.seeds} seeds), {self.outcomes:,} outcomes, "
            f"a corpus of {len(self.corpus)}"
        )


def fuzz(
    check: Check,
    seeds: Sequence[bytes],
    mutate: Mutate,
    *,
    inputs: int,
    seed: int,
    watched: Sequence[Path],
    folder: Path,
) -> Report:
    """Tries the seeds, then changes of what took new ways.

    Args:
        check: fails where the input is handled wrongly; else tells what came of it, which counts as a way, too.
        seeds: what to begin with.
        mutate: makes a new input of one of the corpus, which it is given too.
        inputs: how many to try.
        seed: of every choice.
        watched: folders whose code leads.
        folder: where a failing input is saved.

    Raises:
        AssertionError: with the seed, the number of the input and its file.
    """
    choice, edges, report = random.Random(seed), Edges(*watched), Report(seeds=len(seeds))
    started, told = time.process_time(), set[Hashable]()
    with edges.apart():
        for number in range(inputs):
            fresh = number < len(seeds)
            content = seeds[number] if fresh else mutate(choice, _parent(choice, report), report.corpus)
            before, since = len(edges.seen) + len(told), time.process_time()
            try:
                with edges.watching():
                    facts = check(content)
            except Exception as error:
                saved = folder / f"failing-input-{seed}-{number}"
                saved.write_bytes(content)
                raise AssertionError(f"seed {seed}, input {number}, saved as {saved}: {error!r}") from error
            told.update(facts)
            quick = time.process_time() - since < SLOW
            if fresh or (quick and len(edges.seen) + len(told) > before):
                report.corpus.append(content)
            if fresh:
                report.first_edges = len(edges.seen)
            report.inputs += 1
    report.edges, report.outcomes, report.seconds = len(edges.seen), len(told), time.process_time() - started
    return report


def _parent(choice: random.Random, report: Report) -> bytes:
    """A seed, one of the newest, which lie at the edge of what is known, or any."""
    return choice.choice(choice.choice([report.corpus[: report.seeds], report.corpus[-NEWEST:], report.corpus]))
