"""Which versions run here, and whether they are those that this package needs."""

from __future__ import annotations

import re
import sys
from importlib import metadata

from dphist_pipeline.base.engine_versions import HELD, SUITE, installed_minor, untested_engines
from dphist_pipeline.errors import how_to_install
from dphist_pipeline.health.finding import CheckResult, Examined, fault, ok, warning
from dphist_pipeline.ledger.entries import SCHEMA_VERSION as NEWEST_LEDGER

PACKAGE = "dphist-pipeline"
MEND = f"Install by the pins: {how_to_install()}."
SHOWN = ("duckdb", "polars", "pyarrow", "numpy", "sqlalchemy", "cryptography", "dagster", "psycopg")
# `name>=1.2` or `name<1.3,>=1.2`, as metadata have it; what belongs to an extra has a marker behind it.
_NEEDED = re.compile(r"([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?(?:<[0-9.]+,)?>=([0-9.]+)(?:,<[0-9.]+)?")


def versions(subject: Examined) -> CheckResult:
    """Versions of the package, of Python and of what it needs, and those that store and ledger were written by."""
    check, installed = "versions", _installed_versions()
    if PACKAGE not in installed:
        return fault(check, f"{PACKAGE} is not installed, only its files are found", MEND)
    for name, least in _needed_versions():
        if name not in installed:
            return fault(check, f"{name} is not installed", MEND)
        if _numbers(installed[name]) < _numbers(least):
            return fault(check, f"{name} is version {installed[name]}, and at least {least} is needed", MEND)
    other = _untested_engines(subject)
    if other is not None:
        return other
    python = ".".join(map(str, sys.version_info[:3]))
    versions_text = ", ".join(f"{name} {installed[name]}" for name in SHOWN if name in installed)
    return ok(check, f"{PACKAGE} {installed[PACKAGE]}, Python {python}; {versions_text}{_form_versions(subject)}")


def _untested_engines(subject: Examined) -> CheckResult | None:
    """Engines of other minor versions than the suite's: with DuckDB and Polars nothing is read, PyArrow goes on."""
    sentences = {
        name: f"{name} {installed_minor(name)} is not the {SUITE[name]} that the suite passed with" for name in SUITE
    }
    for version in untested_engines():
        if subject.ledger is None or subject.ledger.books().permissions.version(version) is None:
            name = version.partition("=")[0]
            allow = f" Or an operator allows it: dphist ledger allow --engine {version} --reason TEXT"
            return fault("versions", sentences[name], MEND + (allow if name == "duckdb" else ""))
    others = [name for name in SUITE if name not in HELD and installed_minor(name) != SUITE[name]]
    return warning("versions", "; ".join(sentences[name] for name in others), MEND) if others else None


def _form_versions(subject: Examined) -> str:
    """The versions of the forms of store and ledger; those that cannot be read are other checks' faults."""
    if subject.store is None or subject.ledger is None:
        return ""
    form = subject.ledger.entries()[0].facts["schema_version"]
    older = "" if form == NEWEST_LEDGER else ", made by an earlier version"
    return f"; the store's form is {subject.store.form}, the ledger's {form}{older}"


def _installed_versions() -> dict[str, str]:
    """Versions by name, of those that matter here."""
    by_name = {}
    for name in {PACKAGE, *SHOWN, *(name for name, _ in _needed_versions())}:
        try:
            by_name[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return by_name


def _needed_versions() -> list[tuple[str, str]]:
    """What the package needs without any extra, and the least version of each."""
    try:
        lines = metadata.requires(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return []
    matched = [_NEEDED.fullmatch(line.replace(" ", "")) for line in lines]
    return [(match[1], match[2]) for match in matched if match is not None]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("+")[0])[:3])
