"""Keeps plans that take long to compute, and follow from the program and declarations alone, for every process.

They lie among Python's compiled files, where these can be written.
"""

from __future__ import annotations

import hashlib
import platform
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.files import keeps_compiled

Numbers = NDArray[np.int64]
MOST = 32  # plans of one module, of at most a megabyte each; the oldest goes


def kept_numbers(source: str, declared: object, compute: Callable[[], Numbers]) -> Numbers:
    """Whole numbers as `compute` gives them, from a file where a process of this machine computed them before.

    Args:
        source: the module that computes them; a change of its file makes them anew.
        declared: all that they follow from, of numbers and texts, whose `repr` tells them apart.
    """
    made_by = (Path(source).read_bytes(), np.__version__, platform.machine(), declared)
    folder, stem = Path(cache_from_source(source)).parent, Path(source).stem
    file = folder / f"{stem}.{hashlib.sha256(repr(made_by).encode()).hexdigest()[:32]}.npy"
    with suppress(OSError, ValueError, EOFError):  # it is missing or damaged
        kept: Numbers = np.load(file, allow_pickle=False).astype(np.int64)
        return kept
    numbers = compute()
    if not keeps_compiled(folder):
        return numbers
    with suppress(OSError), tempfile.TemporaryDirectory(dir=folder) as beside:
        draft = Path(beside, file.name)
        small = numbers.astype(np.uint16)
        np.save(draft, small if np.array_equal(small, numbers) else numbers, allow_pickle=False)
        draft.replace(file)
        for older in sorted(folder.glob(f"{stem}.*.npy"), key=lambda path: path.stat().st_mtime)[:-MOST]:
            older.unlink()
    return numbers
