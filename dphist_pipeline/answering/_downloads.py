"""Files to download beside a card: the cells of one period as CSV and as a workbook, and its picture.

They are made from public files alone, once for each publication that stands: a publication writes its own, and those of
other periods stay. What no longer stands is emptied, so that copies are, too. A table of more cells than
`PublishedFolder.most_downloaded`, and a family of tables, has none: their cells are in `latest/`.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from dphist_pipeline.about_publisher import About
from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exported_rows import Exported
from dphist_pipeline.answering.exports import write_export
from dphist_pipeline.errors import DphistError
from dphist_pipeline.files import replace_public, sync_folder
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

_PICTURE = re.compile(r"<figure><svg role=\"img\"(.*?</svg>)", re.DOTALL)
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" style="background:#fff"'


def write_downloads(public: Path, scratch: Path) -> None:
    """Writes the files of publications that have none yet, by `current.json`; one process at a time."""
    for current in sorted(public.glob(f"*/{DerivedFiles.current}")):
        release, wanted = current.parent, set()
        for period, revision in _standing(current):
            folder = release / DerivedFiles.downloads / f"period={period}" / f"revision={revision}"
            wanted.add(folder)
            published = release / f"period={period}" / f"revision={revision}"
            if not folder.is_dir() and _cells(published) <= PublishedFolder.most_downloaded:
                _write(public, published, folder, scratch)
        for file in sorted(release.glob(f"{DerivedFiles.downloads}/period=*/revision=*/*")):
            if file.parent not in wanted and file.stat().st_size:
                replace_public(file, "", scratch)


def _standing(current: Path) -> Iterator[tuple[str, int]]:
    """The latest publication of each period."""
    for entry in json.loads(current.read_bytes())["periods"]:
        yield str(entry["period"]), int(entry["revision"])


def _cells(published: Path) -> float:
    """Cells of a table; infinite for a family, and where nothing tells."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        audit = json.loads((published / "audit.json").read_bytes())
        return float("inf") if "tables" in audit else int(audit["cells"])
    return float("inf")


def _write(public: Path, published: Path, folder: Path, scratch: Path) -> None:
    """Writes the files of a publication; its folder appears last, whole."""
    draft = scratch / DerivedFiles.downloads
    draft.mkdir(mode=0o755)
    try:
        publication = Publication(published, read_audit(published))
        exported = Exported((publication,), about=About.of(public), is_part=True).with_rows()
        write_export(exported, "csv", draft / "cells.csv")
        if find_spec("xlsxwriter") is not None:
            write_export(exported, "xlsx", draft / "cells.xlsx")
        if (picture := _picture(PublishedFolder(published).card)) is not None:
            (draft / "picture.svg").write_text(picture, encoding="utf-8")
        for file in draft.iterdir():
            file.chmod(0o644)
        (draft / "cells.datapackage.json").unlink(missing_ok=True)
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        draft.rename(folder)
        sync_folder(folder.parent)
    except (DphistError, OSError):
        # Nobody waits for a download: the release is published, and its cells lie in other files. Damaged ones are told
        # where the catalogue is built.
        pass
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _picture(card: Path) -> str | None:
    """The first picture of a card as a file of its own; None without one."""
    if not card.is_file():
        return None
    match = _PICTURE.search(card.read_text(encoding="utf-8"))
    return f"{_SVG}{match[1]}\n" if match is not None else None
