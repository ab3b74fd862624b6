"""Runs every check, in an order in which an earlier one explains a later one. Changes nothing, and opens no record."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dphist_pipeline.errors import DphistError
from dphist_pipeline.health import _places as places
from dphist_pipeline.health import _publications as publications
from dphist_pipeline.health import _spending as spending
from dphist_pipeline.health._versions import versions
from dphist_pipeline.health._zones import zone_data
from dphist_pipeline.health.finding import CheckResult, Examined, finding_of, name_of, not_looked_at, worst
from dphist_pipeline.health.overdue import due
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.published_files import forget_digests
from dphist_pipeline.releasing.store import Store

SCHEMA_VERSION = 1
CHECKS = (
    places.store,
    places.about,
    places.user,
    places.confidential,
    places.operator_key,
    spending.ledger,
    spending.ledger_access,
    spending.witness,
    spending.witness_access,
    publications.publications,
    publications.pages,
    publications.doubtful,
    publications.bucket,
    spending.clock,
    places.disk,
    versions,
    zone_data,
    spending.runs,
    spending.approvals,
    due,
)


def examine(root: Path, releases_only: bool = False) -> list[CheckResult]:
    """What every check finds of the store in a folder, one finding a check, in the order of `CHECKS`.

    `releases_only`: this user must release, and must not be able to decide.
    """
    subject = open_what_can_be(root.absolute(), releases_only)
    return [_run_check(check, subject) for check in CHECKS]


def as_json(root: Path, findings: list[CheckResult]) -> dict[str, Any]:
    """Findings, in their order, for a script; names and states stay from version to version, texts may change."""
    return {
        "schema_version": SCHEMA_VERSION,
        "store": str(root.absolute()),
        "at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "user": name_of(os.geteuid()),
        "state": worst(findings),
        "checks": [vars(finding) for finding in findings],
    }


def _run_check(check: Callable[[Examined], CheckResult], subject: Examined) -> CheckResult:
    try:
        return check(subject)
    except DphistError as error:  # it came between opening and looking: a file that was moved a moment ago
        return finding_of(check.__name__, error)
    except OSError as error:
        return not_looked_at(check.__name__, f"{error.strerror}: {error.filename}")


def open_what_can_be(root: Path, releases_only: bool) -> Examined:
    """Opens what can be opened of the store in an absolute path, and keeps why the rest cannot be."""
    forget_digests()
    store: Store | None = None
    ledger: Ledger | None = None
    errors: dict[str, DphistError] = {}
    try:
        store = Store.open(root)
    except DphistError as error:
        errors["store"] = error
    except OSError as error:
        errors["store"] = Store.cannot_open(root, error)
    if store is not None:
        try:
            ledger = store.ledger()
        except DphistError as error:
            errors["ledger"] = error
    return Examined(root, datetime.now(UTC), store, ledger, errors, releases_only)
