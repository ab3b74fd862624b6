"""A fixed task of the processor, in seconds: times of two machines compare as multiples of it.

    python benchmarks/fixed_task.py

`make test` prints its processor seconds as a multiple of it, and `processor_time.py` keeps it beside its
figures. The fewest seconds of some repetitions are taken, which others on the machine disturb least.
"""

from __future__ import annotations

import time


def seconds(repetitions: int = 7) -> float:
    """Processor seconds of the fastest repetition: 2,000,000 turns of a plain Python loop."""

    def once() -> float:
        begun, total = time.process_time(), 0
        for number in range(2_000_000):
            total += number * number % 7
        assert total == 3_999_997
        return time.process_time() - begun

    return min(once() for _ in range(repetitions))


if __name__ == "__main__":
    print(f"{seconds():.3f}")
