"""The command `dphist compare`: compares mechanisms on public or synthetic counts, or on what was published."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from dphist_pipeline.cli.options import DecimalsOption, MechanismsOption, StoreOption
from dphist_pipeline.cli.terminal import err, out, print_json, print_lines, print_tables, progress_bar
from dphist_pipeline.spec.fields import parse_epsilon

if TYPE_CHECKING:
    from dphist_pipeline.workbench.planning.stand_ins import EarlierPeriod

EPSILON = "--epsilon"
NUMBER = re.compile(r"[0-9.][0-9./eE+-]*")
FIRST_LINE = "Compares with exact counts: public or synthetic data only. Nothing is charged."
OF_A_RELEASE = "Compares with estimates that were published, noise and all. Nothing is charged."
MOST_REPEATS = 100_000
SHAPE = re.compile(r"[1-9][0-9]{0,8}([x,][1-9][0-9]{0,8})*")


class SeveralEpsilons(TyperCommand):
    """Reads `--epsilon 1 0.1 0.01` as `--epsilon 1 --epsilon 0.1 --epsilon 0.01`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses the words after `expand_epsilons`."""
        return super().parse_args(ctx, expand_epsilons(args))


def expand_epsilons(words: list[str]) -> list[str]:
    """The same words, with `--epsilon` before every further number of a list."""
    mechanisms, in_list = list[str](), False
    for word in words:
        is_named = bool(mechanisms) and mechanisms[-1] == EPSILON
        if in_list and not is_named and NUMBER.fullmatch(word):
            mechanisms.append(EPSILON)
        else:
            in_list = is_named or word == EPSILON or word.startswith(f"{EPSILON}=")
        mechanisms.append(word)
    return mechanisms


def compare(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Public counts as Parquet or CSV: a row per cell, with its position along every axis from 0, and "
            "`count`; or synthetic:NAME with waitakere, search_log, net_trace or social_network; or the name of a "
            "release, for its latest published period.",
        ),
    ],
    epsilon: Annotated[
        list[str] | None,
        typer.Option(EPSILON, metavar="NUMBERS", help="One or several, as in 1 0.1 1/3. Default: 1 0.1 0.01."),
    ] = None,
    mechanism: MechanismsOption = None,
    repeat: Annotated[int, typer.Option(min=1, max=MOST_REPEATS, help="Releases for each mechanism and epsilon.")] = 20,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="`ranges` or `ranges:1,50` (one axis), `boxes` or `boxes:1000`, `prefixes`, `windows:7`. Repeat it.",
        ),
    ] = None,
    sensitivity: Annotated[
        int | None,
        typer.Option(min=1, help="Largest change of the counts by one privacy unit. Default: the release's, else 1."),
    ] = None,
    shape: Annotated[
        str | None, typer.Option(metavar="SIDES", help="Cells along each axis, as in 256x256. Default: as needed.")
    ] = None,
    with_methods: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="METHODS",
            help="Methods without epsilon beside the mechanisms: cell_key, rounding, suppression; also "
            "rounding:base=5, cell_key:most=5,variance=3,small=2, suppression:below=5.",
        ),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write JSON; - prints it.")] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw pictures there.")] = None,
    decimals: DecimalsOption = None,
    store: StoreOption = None,
) -> None:
    """Compares mechanisms on public counts, by many releases of each.

    Shows errors over cells and over ranges or boxes, with standard
    errors. It reads exact counts, so use it on public records only, or
    on what a release of the store published, which costs nothing.
    """
    quiet = json_file == "-"
    sides = _sides(shape)
    _check_places(json_file, plots)
    from dphist_pipeline.workbench.evaluation.comparison import prepare

    epsilons = [parse_epsilon(text) for text in epsilon or ["1", "0.1", "0.01"]]
    released = _earlier_period(data, sides, store)
    settings = epsilons, mechanism or [], workload or [], repeat
    if released is None:
        study = prepare(data, *settings, sensitivity or 1, sides, office_methods=with_methods or [])
    else:
        study = prepare(
            released.about,
            *settings,
            sensitivity or released.sensitivity,
            published=released.counts,
            office_methods=with_methods or [],
        )
    (err if quiet else out).print(FIRST_LINE if released is None else OF_A_RELEASE)
    if not quiet:
        out.print(escape(study.about()))
    with progress_bar(study.releases, quiet) as step:
        comparison = study.run(step)
    if json_file is not None and not quiet:
        Path(json_file).write_text(json.dumps(comparison.facts(), indent=2) + "\n", encoding="utf-8")
    files = comparison.draw(plots) if plots is not None else []
    if quiet:
        print_json(comparison.facts())
        return
    print_tables(comparison.tables(decimals))
    print_lines(["", *comparison.notes(), *(f"  drawn: {path}" for path in files)])


def _earlier_period(data: str, sides: tuple[int, ...] | None, store: Path | None) -> EarlierPeriod | None:
    """What the named release published; None if a file or a synthetic set is named."""
    from dphist_pipeline.workbench.planning.stand_ins import folder_if_any, names_release, read_publication

    if not names_release(data):
        return None
    if sides is not None:
        raise typer.BadParameter("is for files of counts; a release has its own grid", param_hint="--shape")
    return read_publication(data, folder_if_any(store))


def _sides(shape: str | None) -> tuple[int, ...] | None:
    if shape is None:
        return None
    if not SHAPE.fullmatch(shape):
        raise typer.BadParameter("must be whole numbers with an x between them, as in 256x256", param_hint="--shape")
    return tuple(map(int, re.split("[x,]", shape)))


def _check_places(json_file: str | None, plots: Path | None) -> None:
    """Refuses paths that cannot be written, before the comparison starts."""
    if json_file not in (None, "-") and (Path(json_file).is_dir() or not Path(json_file).parent.is_dir()):
        raise typer.BadParameter("must be a file in a folder that exists, or -", param_hint="--json")
    if plots is not None and plots.exists() and not plots.is_dir():
        raise typer.BadParameter("must be a folder", param_hint="--plots")
