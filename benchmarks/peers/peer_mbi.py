"""Fits noisy tables by mbi, as leaning_families asks: a graphical model with the same total, by mirror descent.

    python peer_mbi.py INPUT.npz OUTPUT.npz

INPUT has `shape` of the grid, `deviation` of the noise of a cell, and for each table `axes_N` and `noisy_N`; OUTPUT the
fitted `table_N`.
"""

from __future__ import annotations

import sys

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)  # before mbi is loaded

import mbi  # noqa: E402


def main() -> None:
    """Reads, fits and writes."""
    given = np.load(sys.argv[1])
    names = [f"a{axis}" for axis in range(given["shape"].size)]
    domain = mbi.Domain(tuple(names), tuple(map(int, given["shape"])))
    tables = [[names[axis] for axis in given[f"axes_{number}"]] for number in range(int(given["tables"]))]
    measured = [
        mbi.LinearMeasurement(given[f"noisy_{number}"], tuple(table), float(given["deviation"]))
        for number, table in enumerate(tables)
    ]
    model = mbi.estimation.MirrorDescent().estimate(domain, measured, iters=1000)
    fitted = {
        f"table_{number}": np.asarray(model.project(tuple(table)).datavector()) for number, table in enumerate(tables)
    }
    np.savez(sys.argv[2], **fitted)


main()
