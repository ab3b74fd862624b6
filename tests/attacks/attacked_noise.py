"""Where an attacked office works, noise so large that no count appears by chance, and how an attack ended."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import typer
from office import Ran
from spec_parts import Attack

from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.cli import app as cli
from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates import whole_families
from dphist_pipeline.estimates.laws import _interface
from dphist_pipeline.publishing import _card as card
from dphist_pipeline.publishing import _family_card as family_card
from dphist_pipeline.releasing.run import Run

ENVIRONMENT = {"CANARY": "zyxwvEnvironment", "FOLDER": "data/zyxwvFolder", "DATA": "data", "COLUMNS": "80"}


@contextmanager
def at(folder: Path) -> Iterator[None]:
    """With this working folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def large_noise() -> Iterator[None]:
    """Large random noise and secrets in the environment; without waiting for disks, and no catalogue in between."""
    large, commands = np.random.default_rng(random_words(4)), typer.main.get_command(cli.app)
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, ENVIRONMENT))
        # Building the command line takes longer than most commands.
        stack.enter_context(patch.object(cli, "app", lambda **options: commands.main(**options)))
        stack.enter_context(patch.object(os, "fsync", lambda handle: None))
        stack.enter_context(patch.object(Run, "refresh_catalogue", lambda run: None))
        # Whole tables and widths are worked out from noisy numbers and from scales of noise alone.
        stack.enter_context(patch.object(whole_families, "MOST_RECORDS", 2_000))
        widths = patch.object(
            _interface, "_exact_half_width", lambda law, draws, _: int(draws * math.sqrt(law.variance))
        )
        stack.enter_context(widths)
        stack.enter_context(
            patch.object(
                noise, "discrete_laplace", lambda scale, size: large.integers(10**10, 10**12, size, dtype=np.int64)
            )
        )
        yield


def sensitivity_of(attack: Attack) -> int:
    """By how much one unit may move counts, as the attacker's spec says."""
    return int(attack.spec.get("max_rows_per_unit") or 1) * (1 if attack.spec["neighbours"] == "add_remove" else 2)


def sensitivity_of_rows(attack: Attack) -> dict[str, int]:
    """By how much one unit may move what is said of its rows, by measurement."""
    parts = 1 if attack.spec["neighbours"] == "add_remove" else 2
    by_row = attack.spec["privacy_unit"] == "row"
    seen = 1 if by_row else int((attack.spec.get("quality") or {}).get("rows", 10))
    cut = seen - int(attack.spec.get("max_rows_per_unit") or 1)
    failures = parts * seen * len(attack.spec["axes"])
    moved = {"units_by_rows": parts, "rows_cut": cut, "rows_cut_by": parts * cut}
    return moved | {"rows_by_place": parts * seen, "failures_by_axis": failures}


@contextmanager
def plain_card() -> Iterator[None]:
    """Publications without cards, which take half the time that publishing takes."""
    with ExitStack() as stack:
        for module, name in ((card, "release_card"), (family_card, "family_card")):
            stack.enter_context(patch.object(module, name, lambda estimate, audit, **more: ""))
        yield


def outcome(release: Ran, begun: bool) -> str:
    """How a release ended, whose spec was accepted if it was begun."""
    if release.code == 0:
        if "Published: " in release.out:
            return "released"
        return "replayed" if "Already published: " in release.out else "held"
    if release.code == 2:
        return "wrong usage"
    if not begun:
        return "refused at load"
    told = " ".join(release.err.split())
    return "not allowed" if "Whoever keeps the ledger can allow it" in told else "refused later"
