"""Where published files are read: in a store, or in a public folder that was fetched from a bucket or copied."""

from __future__ import annotations

from pathlib import Path

from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.manifest import Manifest
from dphist_pipeline.releasing.locations import store_folder
from dphist_pipeline.releasing.store import Store, StoreMissing


def public_folder(named: Path | str | None) -> Path:
    """The folder whose files answer questions; no ledger is opened.

    Args:
        named: a store, or a folder that `dphist store fetch` filled, or a copy of a store's public folder, which stays
            as it is; by default as `store_folder` says.

    Raises:
        StoreMissing, Halted: what is wrong, and the mend.
    """
    root = store_folder(None if named is None else Path(named))
    if not (root / "store.json").exists() and (
        (root / Manifest.name).is_file() or any(root.glob(f"*/{DerivedFiles.current}"))
    ):
        return root.absolute()
    return Store.open(root).public


def public_address(named: Path | None) -> str | None:
    """The bucket that a store's releases are copied to; None without one, or without a store yet.

    Args:
        named: folder of the store, as on the command line; None as `store_folder` says.
    """
    try:
        return Store.open(store_folder(named)).public_address
    except StoreMissing:
        return None
