"""Where store and ledger are: as named, else as the environment says, else in the project of the working folder."""

from __future__ import annotations

import os
from contextvars import ContextVar
from pathlib import Path

from sqlalchemy import URL

from dphist_pipeline.files import project_folder

named_first: ContextVar[Path | None] = ContextVar("named_first", default=None)  # `dphist --store DIR COMMAND`


def store_folder(named: Path | None) -> Path:
    """The store to use: as named, else $DPHIST_STORE, else `store/` in the project of the working folder.

    Never at a spec's place: who writes specs would bring a ledger of their own.

    Args:
        named: with `--store`; None where it was left out.
    """
    if (named := named or named_first.get()) is not None:
        return named
    return Path(os.environ["DPHIST_STORE"]) if os.environ.get("DPHIST_STORE") else project_folder(Path.cwd()) / "store"


def ledger_url(root: Path) -> str | URL:
    """Where the ledger of a store is: $DPHIST_LEDGER, else a file in the store.

    Args:
        root: folder of the store, absolute.
    """
    # Built from its parts: in a text, signs such as % in the folder's name would be decoded.
    return os.environ.get("DPHIST_LEDGER") or URL.create("sqlite", database=str(root / "ledger.sqlite"))
