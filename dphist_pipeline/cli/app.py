"""The command line `dphist`: one command for each task, and one clear message for each failure.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 75 failed where the same call may be tried again. With `--json`,
results and errors go to standard output as JSON; an error's message goes to standard error, too.
"""

from __future__ import annotations

import gc
import io
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from dphist_pipeline.base.files import named_store
from dphist_pipeline.cli.commands import LazyCommands
from dphist_pipeline.cli.failures import failure_of, without_control
from dphist_pipeline.cli.terminal import err, out, print_json

INTERRUPTED = 130
MANY_OBJECTS = 500_000  # more than imports and a small release make, which nobody frees again
PACKAGE = "dphist-pipeline"
# The base of typer's errors of usage: its own in new versions, click's in those that Dagster's tools ask for.
WRONG_USAGE: type[Exception] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ in ("TyperException", "ClickException")
)
STOPPED = "stopped at a question. Nothing was written, decided or spent."

app = typer.Typer(
    cls=LazyCommands,
    help="Publish differentially private histograms: spec in, published tables out, charged once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(version_asked: bool) -> None:
    if version_asked:
        out.print(f"dphist {version(PACKAGE)}")
        raise typer.Exit


@app.callback()
def _group(
    store: Annotated[
        Path | None, typer.Option("--store", metavar="DIR", help="The store, for the command that follows.")
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Makes `dphist` a group, whose commands `LazyCommands` knows."""
    named_store.set(store)


def main() -> None:
    """Runs the command line. Prints no message of an engine, because it may hold values from records."""
    gc.set_threshold(MANY_OBJECTS)  # to look for garbage among what is imported takes a tenth of a release
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to find plugins, it reads about every package
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    message, code, facts = _run()
    if message:
        err.print(f"[bold red]error:[/] {escape(without_control(message))}")
        if "--json" in sys.argv:
            print_json({"error": {"message": without_control(message), **facts}})
    sys.exit(code)


def _run() -> tuple[str, int, dict[str, Any]]:
    """Runs the command; gives the error's message (empty if there is none), the exit code, and facts for a program."""
    facts: dict[str, Any] = {"try_again": False, "charged": None}
    try:
        code = app(prog_name="dphist", standalone_mode=False) or 0
    except typer.Abort:
        return STOPPED, INTERRUPTED, {**facts, "code": "interrupted"}
    except WRONG_USAGE as error:
        return _usage(error), getattr(error, "exit_code", 2), {**facts, "code": "usage"}
    except Exception as error:
        return failure_of(error)
    interrupted = "interrupted. Nothing is lost: run the same command again to continue."
    return interrupted if code == INTERRUPTED else "", code, {**facts, "code": "interrupted"}


def _usage(error: Any) -> str:
    """The message for a wrong usage, with a hint at the help; empty if help was shown."""
    context = getattr(error, "ctx", None)
    problem: str = error.format_message()
    if context is None or not problem:
        return problem
    end = "" if problem.endswith((".", "?")) else "."
    return f"{problem[0].lower()}{problem[1:]}{end} See `{context.command_path} --help`."
