"""The command line: one command a task, one clear message a failure.

Exit codes: 0 done, 1 refused or failed, 2 wrong usage. With `--json`, what a script needs goes to standard output.
"""

from __future__ import annotations

import io
import os
import sys

import typer
from rich.markup import escape

from dphist_pipeline.cli.answer import answer
from dphist_pipeline.cli.check import check
from dphist_pipeline.cli.compare import SeveralEpsilons, compare
from dphist_pipeline.cli.decide import publish, reject, withdraw
from dphist_pipeline.cli.forecast import forecast
from dphist_pipeline.cli.init import init
from dphist_pipeline.cli.ledger import ledger_app
from dphist_pipeline.cli.local import local_app
from dphist_pipeline.cli.local_encode import encode
from dphist_pipeline.cli.local_publish import publish as publish_reports
from dphist_pipeline.cli.mechanisms import show_mechanisms
from dphist_pipeline.cli.new import new
from dphist_pipeline.cli.plot import plot
from dphist_pipeline.cli.rehearse import rehearse
from dphist_pipeline.cli.release import release
from dphist_pipeline.cli.store import store_app
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
app.command()(init)
app.command()(check)
app.command()(release)
app.command(name="mechanisms")(show_mechanisms)
app.command()(answer)
app.command()(publish)
app.command()(reject)
app.command()(withdraw)
app.command()(new)
app.command()(rehearse)
app.command()(plot)
app.command(cls=SeveralEpsilons)(forecast)
app.command(cls=SeveralEpsilons)(compare)


def main() -> None:
    """Runs the command line; nothing that an engine said reaches the terminal unasked."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    message, code = _run()
    if message:
        err.print(f"[bold red]error:[/] {escape(message)}")
    sys.exit(code)


def _run() -> tuple[str, int]:
    """What to say, if anything, and the exit code."""
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
            # The system's own words for the number hold nothing else.
            kind += f", {os.strerror(error.errno)}"
    else:
        interrupted = "interrupted. Nothing is lost: the same command goes on where this one stopped."
        return interrupted if code == INTERRUPTED else "", code
    return (
        f"something unexpected failed ({kind}; its message is withheld, because it may hold values from records). "
        "Nothing is spent twice: the same command goes on. Where you may see records, set DPHIST_DEBUG=1 to read it.",
        1,
    )


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the command as typed, and where to read how it goes; nothing where help was shown."""
    context = getattr(error, "ctx", None)
    problem = error.format_message()
    if context is None or not problem:
        return problem
    end = "" if problem.endswith((".", "?")) else "."
    return f"{problem[0].lower()}{problem[1:]}{end} See `{context.command_path} --help`."
