"""What is in the archive, for lawyers and security officers: a bill of materials and the licences of all packages.

Both are made by programs that others keep (CycloneDX, pip-licenses), from an environment that was installed from the
archive's own folder. The digests of the wheels of all machines are added to the bill.
"""

from __future__ import annotations

import csv
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename

from bundle.targets import BundleError
from bundle.wheels import digest


def write_bill(tools: Path, python: Path, project: Path, wheels: Iterable[Path], table: Path, path: Path) -> None:
    """Writes a bill of materials in CycloneDX, whose components name the files of the archive and their digests.

    Args:
        tools: folder of programs, with `cyclonedx-py`.
        python: of the environment that was installed.
        project: the folder of our `pyproject.toml`.
        wheels: of all machines.
        table: of licences, for packages that tell theirs in words that CycloneDX does not know.
        path: the file to write.

    Raises:
        BundleError: a program fails.
    """
    asked = ["environment", "--output-reproducible", "--pyproject", str(project / "pyproject.toml"), str(python)]
    bill: dict[str, Any] = json.loads(_output(tools / "cyclonedx-py", *asked))
    files: defaultdict[NormalizedName, list[Path]] = defaultdict(list)
    for wheel in sorted(wheels):
        files[parse_wheel_filename(wheel.name)[0]].append(wheel)
    listed = {canonicalize_name(part["name"]): part for part in bill["components"]}
    ours = bill["metadata"]["component"]
    listed[canonicalize_name(ours["name"])] = ours
    for name in sorted(files.keys() - listed.keys()):  # needed by other machines only
        version = str(parse_wheel_filename(files[name][0].name)[1])
        purl = f"pkg:pypi/{name}@{version}"
        listed[name] = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        bill["components"].append(listed[name])
    for name, held in files.items():
        listed[name].setdefault("externalReferences", []).extend(_reference(wheel) for wheel in held)
    with table.open(encoding="utf-8", newline="") as file:
        licences = {canonicalize_name(row["Name"]): row["License"] for row in csv.DictReader(file)}
    for name in listed.keys() & licences.keys():
        if not listed[name].get("licenses"):
            listed[name]["licenses"] = [{"license": {"name": licences[name]}}]
    path.write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _reference(wheel: Path) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": digest(wheel)}]
    return {"type": "distribution", "url": f"wheels/{wheel.name}", "hashes": hashes}


def write_licences(tools: Path, python: Path, folder: Path) -> None:
    """Writes a table of the licences of all installed packages, and their texts.

    Raises:
        BundleError: a program fails.
    """
    asked = ["--python", str(python), "--with-system", "--with-urls"]
    texts = ["--with-license-file", "--with-notice-file", "--no-license-path", "--format", "plain-vertical"]
    for name, more in (("table.csv", ["--format", "csv"]), ("texts.txt", texts)):
        (folder / name).write_text(_output(tools / "pip-licenses", *asked, *more), encoding="utf-8")


def _output(program: Path, *words: str) -> str:
    try:
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BundleError(f"there is no {program.name} here: `make bundle` installs it first") from None
    if done.returncode:
        raise BundleError(f"{program.name} failed:\n{done.stderr.strip()}")
    return done.stdout
