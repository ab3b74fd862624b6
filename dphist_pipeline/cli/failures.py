"""What the command line says of an error: its message, the exit code, and facts for a program."""

from __future__ import annotations

import os
from typing import Any
from unicodedata import category

from dphist_pipeline.errors import DphistError

TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
NOT_ALLOWED = (
    "this user may not read or change a file that the command needs. `dphist doctor` says which user releases here; "
    "run the same command again as that user. Nothing is spent twice."
)


def failure_of(error: Exception) -> tuple[str, int, dict[str, Any]]:
    """The message, the exit code and the facts of an error; an engine's message is withheld.

    Raises:
        Exception: the error itself, if it is not our own and DPHIST_DEBUG=1.
    """
    facts: dict[str, Any] = {"code": "unexpected", "try_again": False, "charged": None}
    if isinstance(error, DphistError):
        facts = {"code": error.code, "try_again": error.try_again, "charged": error.charged}
        return error.told, TRY_AGAIN if error.try_again else 1, facts
    if os.environ.get("DPHIST_DEBUG") == "1":
        raise error
    if isinstance(error, PermissionError):
        return NOT_ALLOWED, 1, {**facts, "code": "permission_denied"}
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno:
        # The operating system's text for an error number holds no values.
        kind += f", {os.strerror(error.errno)}"
    return (
        f"something unexpected failed ({kind}; its message is withheld, because it may hold values from records). "
        "Nothing is spent twice: run the same command again. If you may see records, set DPHIST_DEBUG=1 to read it.",
        1,
        facts,
    )


def without_control(message: str) -> str:
    """A message whose parts from files of others cannot steer the terminal."""
    return "".join(repr(sign)[1:-1] if category(sign) == "Cc" and sign != "\n" else sign for sign in message)
