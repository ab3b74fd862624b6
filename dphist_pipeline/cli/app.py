"""The command line `dphist`: one command for each task, and one clear message for each failure.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. With `--json`, results go to standard output as JSON.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

import typer
from rich.markup import escape

from dphist_pipeline.cli.answer import answer
from dphist_pipeline.cli.check import check
from dphist_pipeline.cli.compare import SeveralEpsilons, compare
from dphist_pipeline.cli.decide import publish, reject, withdraw
from dphist_pipeline.cli.export import export
from dphist_pipeline.cli.forecast import forecast
from dphist_pipeline.cli.init import init
from dphist_pipeline.cli.ledger import ledger_app
from dphist_pipeline.cli.local import local_app
from dphist_pipeline.cli.local_encode import encode
from dphist_pipeline.cli.local_publish import publish as publish_reports
from dphist_pipeline.cli.mechanisms import show_mechanisms
from dphist_pipeline.cli.new import new
from dphist_pipeline.cli.plot import plot
from dphist_pipeline.cli.quality import quality
from dphist_pipeline.cli.rehearse import rehearse
from dphist_pipeline.cli.release import release
from dphist_pipeline.cli.store import store_app
from dphist_pipeline.cli.synthesize import synthesize
from dphist_pipeline.cli.terminal import err
from dphist_pipeline.errors import DphistError

INTERRUPTED = 130

app = typer.Typer(
    help="Publish differentially private histograms: spec in, published tables out, charged once.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(ledger_app, name="ledger")
app.add_typer(store_app, name="store")
app.add_typer(local_app, name="local")
local_app.command()(encode)
local_app.command()(publish_reports)
command: Callable[..., None]
for command in (init, check, release):
    app.command()(command)
app.command(name="mechanisms")(show_mechanisms)
for command in (answer, quality, publish, reject, withdraw, new, rehearse, plot, export, synthesize):
    app.command()(command)
for command in (forecast, compare):
    app.command(cls=SeveralEpsilons)(command)


def main() -> None:
    """Runs the command line. Prints no message of an engine, because it may hold values from records."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    message, code = _run()
    if message:
        err.print(f"[bold red]error:[/] {escape(message)}")
    sys.exit(code)


def _run() -> tuple[str, int]:
    """Runs the command, and returns the error message (empty if there is none) and the exit code."""
    try:
        code = app(prog_name="dphist", standalone_mode=False) or 0
    except DphistError as error:
        return str(error), 1
    except typer.TyperException as error:
        return _usage(error), error.exit_code
    except Exception as error:
        if os.environ.get("DPHIST_DEBUG") == "1":
            raise
        kind = type(error).__name__
        if isinstance(error, OSError) and error.errno:
            # The operating system's text for an error number holds no values.
            kind += f", {os.strerror(error.errno)}"
    else:
        interrupted = "interrupted. Nothing is lost: run the same command again to continue."
        return interrupted if code == INTERRUPTED else "", code
    return (
        f"something unexpected failed ({kind}; its message is withheld, because it may hold values from records). "
        "Nothing is spent twice: run the same command again. If you may see records, set DPHIST_DEBUG=1 to read it.",
        1,
    )


def _usage(error: typer.TyperException) -> str:
    """The message for a wrong usage, with a hint at the help; empty if help was shown."""
    context = getattr(error, "ctx", None)
    problem = error.format_message()
    if context is None or not problem:
        return problem
    end = "" if problem.endswith((".", "?")) else "."
    return f"{problem[0].lower()}{problem[1:]}{end} See `{context.command_path} --help`."
