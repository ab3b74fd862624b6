"""What a process and all that it started use, as Linux tells it: memory now, and processor time so far."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Use of a tree of processes.

    Attributes:
        bytes: most memory of all processes together, pages that two share counted twice.
        by_process: processor seconds of each process so far, of those that ended, too.
        at_start: processor seconds of all until the start was over.
    """

    bytes: int = 0
    by_process: dict[int, float] = field(default_factory=dict)
    at_start: float = 0.0

    @property
    def processor(self) -> float:
        """Processor seconds of all processes."""
        return sum(self.by_process.values())


def usage_of(root: int, before: Usage, *, started: bool) -> Usage:
    """Adds what can be seen now to what was seen before.

    Args:
        root: the first process of the tree.
        before: as given by the last call.
        started: whether the start is still under way.
    """
    children, memory, seconds = defaultdict(list), {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            process = int(entry.name)
            children[int(stat[1])].append(process)
            memory[process] = int(stat[21]) * PAGE
            seconds[process] = (int(stat[11]) + int(stat[12])) / TICKS
    tree, left = set(), [root]
    while left:
        process = left.pop()
        tree.add(process)
        left += children[process]
    found = before.by_process | {process: seconds[process] for process in tree if process in seconds}
    used = replace(before, bytes=max(before.bytes, sum(memory.get(process, 0) for process in tree)), by_process=found)
    return replace(used, at_start=used.processor) if started else used
