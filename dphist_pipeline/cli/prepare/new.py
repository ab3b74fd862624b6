"""The command `dphist new`: drafts a spec from the names and types of columns."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from dphist_pipeline.cli.options import JsonOption, ServesOption
from dphist_pipeline.cli.terminal import out, print_json, print_lines
from dphist_pipeline.spec import fields
from dphist_pipeline.spec.mistakes import SpecError, echo


def new(
    release: Annotated[
        str,
        typer.Argument(
            metavar="RELEASE",
            help="The table's name, a plain identifier; or the file to draft from, whose name gives the table's.",
        ),
    ],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Parquet or CSV, or a glob in quotes: names and types of its columns become axes. No value is read.",
        ),
    ] = None,
    serves: ServesOption = None,
    mechanism: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="In place of --serves. Also NAME:SETTING=VALUE,SETTING=VALUE: written with settings that do better "
            "than defaults.",
        ),
    ] = None,
    code_lists: Annotated[
        list[Path] | None,
        typer.Option(
            "--code-list",
            metavar="FILE",
            help="A public CSV or Parquet file whose codes are the categories of --column. Repeat both for more.",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--column", metavar="NAME", help="The column that --code-list is for.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The spec to write. Default: RELEASE.yaml, here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Writes a draft of a spec, and says which decisions are still open.

    Each decision of a person is marked TO_DECIDE, with advice and the page to
    read beside it. Open the file in an editor; `dphist check` refuses it until
    no mark is left. Never overwrites a file. Bounds and categories never come
    from data: no value of the source is read, only names and types of columns.
    """
    if source is None and _is_file(release):
        name, source = _release_of(release), release
    else:
        name = _release_name(release)
    from dphist_pipeline.releasing.store import Store
    from dphist_pipeline.workbench.planning.columns import read_layout
    from dphist_pipeline.workbench.planning.drafting import draft, drafted_readings, write_draft
    from dphist_pipeline.workbench.planning.serving import mechanism_for

    if serves is not None and mechanism is not None:
        raise typer.BadParameter("--serves names a mechanism by a rule, --mechanism without one: give one of them")
    columns, code_lists = columns or [], code_lists or []
    if len(code_lists) != len(columns) or len({*columns}) < len(columns):
        raise typer.BadParameter("give each --code-list the --column that it is for, and no column twice")
    serving = mechanism_for(serves) if serves is not None else None
    file = output or Path(f"{name}.yaml")
    layout = read_layout(source) if source is not None else None
    mechanism_name, settings = _with_advice(serving.written if serving else mechanism or "adaptive")
    lists = dict(zip(columns, map(str, code_lists), strict=True))
    write_draft(draft(name, file, source, layout, mechanism_name, settings, serving, lists), file)
    open_decisions = _problems(file)
    readings = drafted_readings(layout, lists) if layout is not None else []
    if as_json:
        print_json(
            {
                "spec": str(file),
                "columns": len(layout.columns) if layout else 0,
                "to_decide": [place.removeprefix("attributes.") for place, _ in open_decisions],
                "columns_read": readings,
            }
        )
        return
    out.print(f"[green]Wrote a draft[/] to {escape(str(file))}")
    if readings:
        print_lines(["How columns will be read, by header and types (no value was read):"])
        print_lines(f"  {line}" for line in readings)
    argument = shlex.quote(str(file))
    print_lines(
        [
            f"{len(open_decisions)} decisions are left to you, with advice in the file. `dphist check` says:",
            *(f"  {place.removeprefix('attributes.')}: {problem}" for place, problem in open_decisions),
            "Once they are made, in this order:",
            f"  dphist check {argument}",
            f"  dphist ledger open --for {argument} --total EPSILON",
            f"  dphist release {argument}",
        ]
    )
    if not (Store.folder() / "public").is_dir():
        if lists:
            folders = sorted({str(path.parent) for path in code_lists})
            public = " ".join(f"--code-lists {shlex.quote(folder)}" for folder in folders)
            out.print(f"There is no store yet: dphist init {public} makes one, before the first.", soft_wrap=True)
        else:
            out.print("There is no store yet: dphist init makes one, before the second.")


def _problems(file: Path) -> Sequence[tuple[str, str]]:
    """What `check` says of a draft: pairs of place and problem."""
    from dphist_pipeline.releasing.spec_check import load_spec

    try:
        load_spec(file)
    except SpecError as error:
        return error.problems
    return ()


def _release_name(name: str) -> str:
    try:
        return fields.release_name(name)
    except ValueError as error:
        problem = str(error)
    hint = ". To draft from a file: dphist new RELEASE --from FILE" if {"/", "."} & {*name} else ""
    raise typer.BadParameter(f"{problem.rstrip('.')}{hint}", param_hint="RELEASE")


def _is_file(argument: str) -> bool:
    """Whether a text in place of a release's name is a file of records, by its ending."""
    from dphist_pipeline.spec.sources import FORMATS, ending_of

    return FORMATS.get(ending_of(argument) or "") in ("parquet", "csv")


def _release_of(file: str) -> str:
    """The release's name that a file's name gives; its folder's where the file is a glob."""
    from dphist_pipeline.spec.sources import ending_of

    *folders, last = file.replace("\\", "/").split("/")
    stem = last[: -len(ending_of(last) or "")]
    for part in (stem, *folders[-1:]):
        with suppress(ValueError):
            return fields.release_name(fields.suggestion(part))
    command = f"dphist new RELEASE --from {shlex.quote(file)}"
    raise typer.BadParameter(f"{echo(file)} gives the table no name; name it: {command}", param_hint="RELEASE")


def _with_advice(mechanism: str) -> tuple[str, dict[str, object]]:
    """A mechanism and its settings, with those that do better than its defaults."""
    from dphist_pipeline.mechanisms import advice_beside, build
    from dphist_pipeline.workbench.evaluation.contenders import parse_contender

    contender = parse_contender(mechanism)
    settings = dict(contender.settings)
    return contender.mechanism, {**settings, **advice_beside(build(contender.mechanism, settings), settings)}
