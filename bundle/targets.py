"""The machines for which wheels are fetched: platform and Python, and the tags and markers of both."""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass

from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms


class BundleError(Exception):
    """No archive can be made; the message says why and how to mend it."""


def _manylinux(machine: str) -> list[str]:
    """Newest first; NumPy's wheels need glibc 2.28, and so do we."""
    return [*(f"manylinux_2_{minor}_{machine}" for minor in range(28, 16, -1)), f"manylinux2014_{machine}"]


PLATFORMS = {
    "linux-x86_64": _manylinux("x86_64"),
    "linux-aarch64": _manylinux("aarch64"),
    "macos-arm64": [*mac_platforms((14, 0), "arm64")],
}
SYSTEMS = {"linux": ("Linux", "linux"), "macos": ("Darwin", "darwin")}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True)
class Target:
    """One kind of machine.

    Args:
        platform: a name in `PLATFORMS`.
        python: major and minor version of CPython.
    """

    platform: str
    python: str

    def __post_init__(self) -> None:
        for named, known, word in ((self.platform, PLATFORMS, "platform"), (self.python, PYTHONS, "Python")):
            if named not in known:
                raise BundleError(f"there is no {word} {named!r} here; give one of {', '.join(known)}")

    @classmethod
    def here(cls) -> Target:
        """This machine.

        Raises:
            BundleError: no archive is made on such machines.
        """
        system = {"Linux": "linux", "Darwin": "macos"}.get(platform.system(), platform.system())
        return cls(f"{system}-{platform.machine()}", f"{sys.version_info[0]}.{sys.version_info[1]}")

    def __str__(self) -> str:
        return f"{self.platform}-py{self.python}"

    @property
    def platform_tags(self) -> list[str]:
        """What `pip download --platform` takes, best first."""
        return PLATFORMS[self.platform]

    @property
    def tags(self) -> frozenset[Tag]:
        """Every tag of a wheel that can be installed there."""
        version = tuple(int(part) for part in self.python.split("."))
        interpreter = f"cp{version[0]}{version[1]}"
        ours = cpython_tags(version, [interpreter], self.platform_tags)
        return frozenset([*ours, *compatible_tags(version, interpreter, self.platform_tags)])

    @property
    def markers(self) -> dict[str, str]:
        """The values by which a requirement says on which machines it counts."""
        system, _, machine = self.platform.partition("-")
        named, word = SYSTEMS[system]
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{self.python}.0",
            "os_name": "posix",
            "platform_machine": machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": named,
            "platform_version": "",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": word,
        }
