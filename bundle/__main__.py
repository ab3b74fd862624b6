"""Makes the archive, in order: wheel, packages, files, a trial installation, bill of materials, digests, archive."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bundle.archive import pack, write_sums
from bundle.bill import write_bill, write_licences
from bundle.targets import PLATFORMS, PYTHONS, BundleError, Target
from bundle.wheels import Shelf, build, digest, megabytes_installed, read_pins, requirement_lines
from dphist_pipeline.errors import first_of

PROJECT = Path(__file__).resolve().parent.parent
WORK = PROJECT / ".bundle"
# `command-line` serves whoever runs `dphist` by hand or from cron.
PARTS: dict[str, tuple[str, ...]] = {"office": ("dagster", "export", "postgresql", "bucket"), "command-line": ()}
# A Dagster project that is ready to run, and what the pages speak of.
SHIPPED = ("dagster_project", "examples", "pyproject.toml", "constraints.txt")
TEXTS = ("CHANGELOG.md", "LICENSE", "SECURITY.md")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", ".*", "store", "demo", "reports", "data")


def main(words: Sequence[str] | None = None) -> int:
    """Makes an archive, and prints where it is and its digest."""
    asked = _options(words)
    try:
        machines = _machines(asked.platform, asked.python)
        path = make(machines, PROJECT / "dist", site=not asked.without_site)
    except BundleError as problem:
        print(f"bundle: {problem}", file=sys.stderr)
        return 1
    if changed := _changed_since_commit():
        print(f"bundle: this is not the archive of the last commit: {changed}", file=sys.stderr)
    line = f"{digest(path)}  {path.name}\n"
    path.with_name(f"{path.name}.sha256").write_text(line, encoding="utf-8")
    print(f"{path}\n{path.stat().st_size / 1e6:,.0f} MB, for {', '.join(map(str, machines))}\n{line}", end="")
    return 0


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    options = argparse.ArgumentParser(prog="make bundle", description=__doc__)
    options.add_argument("--platform", nargs="*", default=[], help=f"more platforms: {', '.join(PLATFORMS)}")
    options.add_argument("--python", nargs="*", default=[], help=f"more versions of Python: {', '.join(PYTHONS)}")
    options.add_argument("--without-site", action="store_true", help="leave the documentation out")
    return options.parse_args(words)


def _machines(platforms: Sequence[str], pythons: Sequence[str]) -> list[Target]:
    """This machine, on which the installation is tried, and every named platform with every named Python."""
    here = Target.here()
    named = [
        Target(platform, python) for platform in platforms or [here.platform] for python in pythons or [here.python]
    ]
    return [here, *(each for each in named if each != here)]


def make(machines: Sequence[Target], folder: Path, *, site: bool = True) -> Path:
    """Makes an archive for some machines in a folder, and gives its path.

    Raises:
        BundleError: something cannot be fetched, built or installed.
    """
    WORK.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WORK, prefix="packed_") as place:
        work = Path(place)
        work.chmod(0o755)
        ours = build(PROJECT, work / "ours")
        version = ours.name.split("-")[1]
        packed = work / f"dphist-{version}"
        held = _with_wheels(packed, ours, machines)
        _with_files(packed)
        if site:
            _with_site(packed / "site")
        write_sums(packed)  # the installation that is tried compares them
        python = _tried(packed, work / "tried")
        (packed / "licences").mkdir()
        tools = WORK / "tools" / "bin"
        write_licences(tools, python, packed / "licences")
        write_bill(tools, python, PROJECT, held, packed / "licences" / "table.csv", packed / "bom.cdx.json")
        write_sums(packed)
        folder.mkdir(exist_ok=True)
        path = folder / f"dphist-{version}-{'-'.join(sorted({each.platform for each in machines}))}.tar.gz"
        pack(packed, path, time_of_commit())
    return path


def _with_wheels(packed: Path, ours: Path, machines: Sequence[Target]) -> list[Path]:
    """Copies the wheels of all machines; gives those files."""
    shelf = Shelf(WORK / "wheels", read_pins((PROJECT / "constraints.txt").read_text(encoding="utf-8")))
    held: set[Path] = set()
    for machine in machines:
        lists = packed / "requirements" / str(machine)
        lists.mkdir(parents=True)
        for part, extras in PARTS.items():
            needed = shelf.needed(ours, extras, machine, "pip")
            size = f"# {megabytes_installed(needed)} MB on disk\n"  # `install.sh` reads it
            (lists / f"{part}.txt").write_text(size + requirement_lines(needed), encoding="utf-8")
            held.update(needed)
    (packed / "wheels").mkdir()
    return [Path(shutil.copy(path, packed / "wheels")) for path in sorted(held)]


def _with_files(packed: Path) -> None:
    for path in (PROJECT / "bundle" / "files").iterdir():
        shutil.copy(path, packed)
    for name in TEXTS:
        shutil.copy(PROJECT / name, packed)
    (packed / "project").mkdir()
    for name in SHIPPED:
        path = PROJECT / name
        if path.is_dir():
            shutil.copytree(path, packed / "project" / name, ignore=LEFT_OUT)
        else:
            shutil.copy(path, packed / "project")


def _with_site(folder: Path) -> None:
    """Builds the documentation so that it opens from a disk."""
    more = {"OFFLINE": "true", "NO_MKDOCS_2_WARNING": "1", "SOURCE_DATE_EPOCH": str(time_of_commit())}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=PROJECT, env=os.environ | more, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundleError(f"the documentation cannot be built:\n{done.stderr.strip()}")
    for path in folder.glob("sitemap.xml*"):  # for search engines, which do not come to a disk
        path.unlink()


def _tried(packed: Path, folder: Path) -> Path:
    """Installs the archive's files on this machine and runs their check; gives the Python of that environment."""
    for words in (["install.sh", "--python", sys.executable, str(folder)], ["check.sh", str(folder)]):
        done = subprocess.run(["sh", packed / words[0], *words[1:]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BundleError(f"{words[0]} fails on this machine:\n{done.stdout.strip()}\n{done.stderr.strip()}")
    return folder / "bin" / "python"


def time_of_commit() -> int:
    """The time that files of the archive carry: that of the commit, unless SOURCE_DATE_EPOCH says another."""
    if (said := os.environ.get("SOURCE_DATE_EPOCH", "")).isdigit():
        return int(said)
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip().isdigit() else 0


def _changed_since_commit() -> str:
    """The first files that are not as they were committed; empty where all are, or git knows nothing of this folder."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    return first_of([line[3:] for line in done.stdout.splitlines()], 3) if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
