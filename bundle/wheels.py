"""The wheels that a machine needs: ours, and what it depends on, each in the version that `constraints.txt` pins."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name, parse_wheel_filename

from bundle.targets import BundleError, Target

Pins = Mapping[NormalizedName, str]


def read_pins(text: str) -> dict[NormalizedName, str]:
    """Version by name, from lines `name==version`."""
    lines = (line.partition("==") for line in text.splitlines() if line.strip())
    return {canonicalize_name(name): version for name, _, version in lines}


def build(project: Path, folder: Path) -> Path:
    """Builds the project's own wheel, and gives its path.

    Raises:
        BundleError: it cannot be built.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundleError(f"the wheel cannot be built:\n{done.stderr.strip()}")
    (wheel,) = folder.glob("dphist_pipeline-*.whl")
    return wheel


class Shelf:
    """A folder of wheels, filled by pip from the index that is configured here, in pinned versions only.

    Args:
        folder: kept between calls, so that nothing is fetched twice.
        pins: the version of every package.
    """

    def __init__(self, folder: Path, pins: Pins) -> None:
        self.folder, self.pins = folder, pins
        folder.mkdir(parents=True, exist_ok=True)

    def needed(self, wheel: Path, extras: Iterable[str], target: Target, *more: str) -> list[Path]:
        """Our wheel and all that it needs on a machine, by name; fetches what is not here yet.

        pip judges markers by the machine on which it runs, so they are judged here, by those of the target.

        Args:
            wheel: ours.
            extras: of our wheel.
            target: the machine.
            more: names of packages that need no others.

        Raises:
            BundleError: a package has no pin, or no wheel for the target.
        """
        found = self._fetched([canonicalize_name(name) for name in more], target)
        seen: set[tuple[NormalizedName, str]] = set()
        waiting = [(wheel, extra) for extra in ("", *extras)]
        while waiting:
            asked = {
                (canonicalize_name(each.name), extra)
                for path, wanted in waiting
                for each in _requirements(path, wanted, target)
                for extra in ("", *each.extras)
            } - seen
            seen |= asked
            found |= self._fetched(sorted({name for name, _ in asked} - found.keys()), target)
            waiting = [(found[name], extra) for name, extra in sorted(asked)]
        return [wheel, *(path for _, path in sorted(found.items()))]

    def _fetched(self, names: list[NormalizedName], target: Target) -> dict[NormalizedName, Path]:
        if without := [name for name in names if name not in self.pins]:
            raise BundleError(
                f"no version of {', '.join(without)} is pinned, which {target} needs; add it to constraints.txt"
            )
        if missing := [name for name in names if self._held(name, target) is None]:
            self._download([f"{name}=={self.pins[name]}" for name in missing], target)
        fetched = {name: self._held(name, target) for name in names}
        if without := [name for name, path in fetched.items() if path is None]:
            raise BundleError(f"pip fetched nothing for {target} that is named {', '.join(without)}")
        return {name: path for name, path in fetched.items() if path is not None}

    def _held(self, name: NormalizedName, target: Target) -> Path | None:
        """A wheel that is here already, the one with the smallest name if several serve."""
        for path in sorted(self.folder.glob("*.whl")):
            named, version, _, tags = parse_wheel_filename(path.name)
            if named == name and str(version) == self.pins[name] and tags & target.tags:
                return path
        return None

    def _download(self, requirements: list[str], target: Target) -> None:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--implementation", "cp", "--python-version", target.python]
        for tag in target.platform_tags:
            command += ["--platform", tag]
        command += ["--dest", str(self.folder), *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [done.stderr.strip()]
            raise BundleError(
                f"pip cannot fetch what {target} needs. Leave this machine out, or ask again when the index answers. "
                + "pip says:\n"
                + "\n".join(said)
            )


def _requirements(wheel: Path, extra: str, target: Target) -> list[Requirement]:
    """What a wheel needs on a machine, for one of its extras; for none where `extra` is empty."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [each for each in archive.namelist() if each.count("/") == 1 and each.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(archive.read(name).decode())
    try:
        listed = [Requirement(line) for line in headers.get_all("Requires-Dist", [])]
    except InvalidRequirement as problem:
        raise BundleError(f"{wheel.name} says in its METADATA: {problem}") from None
    markers = {**target.markers, "extra": extra}
    return [each for each in listed if each.marker is None or each.marker.evaluate(markers)]


def digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def requirement_lines(wheels: Iterable[Path]) -> str:
    """A file for `pip install --require-hashes`: one line a wheel."""
    named = sorted((parse_wheel_filename(path.name)[:2], digest(path)) for path in wheels)
    return "".join(f"{name}=={version} --hash=sha256:{hexes}\n" for (name, version), hexes in named)


def megabytes_installed(wheels: Iterable[Path]) -> int:
    """What an installation takes on a disk with blocks of 4 KB, in units of 1024² bytes: within a tenth.

    Python compiles every text beside it, to a file that is about as large.
    """
    blocks = 0
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            for each in archive.infolist():
                blocks += -(-each.file_size // 4096) * (2 if each.filename.endswith(".py") else 1)
    return blocks // 256 + 1
