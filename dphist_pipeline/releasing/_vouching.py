"""Compares publications with the ledger: it holds the digest of their values, what they cost, and the spec's digest.

The spec of that digest is kept in the store, which publishes what it promised: unit, bound, mechanism.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder, read_audit

if TYPE_CHECKING:
    from dphist_pipeline.releasing.store import Store

_OF_SPEC = ("privacy_unit", "max_rows_per_unit", "take", "neighbours", "mechanism", "settings", "derive", "keep")


def read_vouched_audit(
    store: Store, published: Path, charge: Charge, recorded: str | None, audit: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Reads the audit of a publication, and compares what it says with the ledger, and with the spec that was charged.

    Args:
        audit: as `read_audit` gave it a moment ago, if it was read.
        recorded: the digest of its values in the ledger; None where the ledger does not say yet that it is published.

    Raises:
        PublishedFilesDamaged: a file is missing or altered, is not what the ledger recorded, or its folder is a link.
    """
    PublishedFolder(published).refuse_links(store.public)
    audit = read_audit(published) if audit is None else audit
    tables = [read_audit(PublishedFolder(published).table(name)) for name in audit.get("tables", {})]
    spec = _charged_spec(store, charge.digest)
    if "withdrawn" in audit and "withdrawn" not in store.ledger().notes(charge):
        raise PublishedFilesDamaged(published, "is not withdrawn by the ledger, and its audit says that it is")
    if recorded in (None, audit["values_digest"]) and all(
        _matches_charge(one, charge) and _matches_spec(one, spec) for one in (audit, *tables)
    ):
        return audit
    raise PublishedFilesDamaged(published, "is not what the ledger recorded")


def _matches_charge(audit: dict[str, Any], charge: Charge) -> bool:
    """Whether an audit, or that of a table, says what the ledger says of its charge; older ones say less."""
    try:
        bought = charge.granted.left_out if charge.granted is not None else 0
        facts = {"epsilon": Fraction(audit["epsilon"]) - bought, "release": audit.get("family", audit["release"])}
        facts |= {name: audit[name] for name in ("period", "revision", "account", "reason") if name in audit}
        facts |= {"digest": audit["spec_digest"], "number": audit["ledger"]["number"], "hash": audit["ledger"]["hash"]}
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return False
    return all(fact == getattr(charge, name) for name, fact in facts.items())


def _charged_spec(store: Store, digest: str) -> Mapping[str, Any] | None:
    """The spec that was charged, as the store kept it; None where it has none that this user may read."""
    with suppress(OSError, ValueError, RecursionError):
        spec = json.loads((store.root / "specs" / f"{digest}.json").read_bytes())
        if sha256(spec) == digest:
            return dict(spec)
    return None


def _matches_spec(audit: dict[str, Any], spec: Mapping[str, Any] | None) -> bool:
    """Whether an audit, or that of a table, promises what the spec says; older ones say less."""
    if spec is None:
        return True
    unit = spec.get("privacy_unit")
    promised = {**spec, "privacy_unit": ",".join(unit) if isinstance(unit, list) else unit}
    return all(audit[name] == promised.get(name) for name in _OF_SPEC if name in audit)


def vouching_reader(store: Store) -> Callable[[Path], dict[str, Any]]:
    """A reader of audits that compares each with the ledger, which knows nothing of collections of the local model.

    The ledger is opened when the first folder is read.
    """
    ledger = cache(store.ledger)

    def read(published: Path) -> dict[str, Any]:
        audit, charge = read_audit(published), None
        if (key := store.key_of(published)) is not None:
            charges = ledger().charges(key.release, key.period)
            charge = next((charge for charge in charges if charge.revision == key.revision), None)
        if audit.get("model") == "local" and charge is None:
            return audit
        if charge is None:
            raise PublishedFilesDamaged(published, "is not what the ledger recorded: it has no such charge")
        if charge.lost:
            return audit
        return read_vouched_audit(store, published, charge, ledger().published_digest(charge), audit)

    return read
