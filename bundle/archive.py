"""The archive itself: the same files give the same bytes, whoever packs them and when."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

from bundle.wheels import digest

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> None:
    """Writes the digest of every file below a folder, for `sha256sum -c`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / SUMS)
    lines = [f"{digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def pack(folder: Path, path: Path, seconds: int) -> None:
    """Packs a folder under its own name.

    Args:
        folder: all of it.
        path: the archive to write, `.tar.gz`.
        seconds: the time that all files carry, since 1970.
    """
    draft = path.with_name(f"{path.name}.draft")
    with (
        draft.open("wb") as file,
        gzip.GzipFile("", "wb", 1, file, mtime=seconds) as zipped,
        tarfile.open(mode="w", fileobj=zipped, format=tarfile.PAX_FORMAT) as archive,
    ):
        for each in [folder, *sorted(folder.rglob("*"))]:
            entry = archive.gettarinfo(each, (Path(folder.name) / each.relative_to(folder)).as_posix())
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = seconds
            entry.mode = 0o755 if each.is_dir() or each.suffix == ".sh" else 0o644
            if each.is_file():
                with each.open("rb") as content:
                    archive.addfile(entry, content)
            else:
                archive.addfile(entry)
    draft.replace(path)
