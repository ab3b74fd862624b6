"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dphist_pipeline.workbench.planning.serving import Serves

SpecArgument = Annotated[
    Path, typer.Argument(metavar="SPEC", help="The release's YAML file; with `for_each`, FILE#RELEASE.")
]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="The store. Default: $DPHIST_STORE, else `store/` in the project of the working folder.",
    ),
]
MechanismsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--mechanism", metavar="NAME", help="Also NAME:SETTING=VALUE. Repeat for more. Default: all that serve."
    ),
]
ServesOption = Annotated[
    Serves | None,
    typer.Option(
        "--serves",
        metavar="WHAT",
        help="What must be answered well; a public rule names the mechanism for it: cells, ranges, boxes, prefixes or "
        "tables.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
DecimalsOption = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=15,
        metavar="N",
        help="Decimals of printed numbers. Default: as many as their noise justifies; expected errors have two or "
        "three digits.",
    ),
]
