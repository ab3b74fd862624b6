"""`audit.json` by its one description: every fact has a line there, and stands in its order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from carded_reports import made
from office import AGE, WARD, Office
from pydantic import ValidationError

from dphist_pipeline.publishing.audit import Audit, in_order, is_audit

KINDS: dict[str, dict[str, Any]] = {
    "cells": {"axes": [AGE, WARD], "title": "Patients", "quality": {"share": "1/10", "by": ["ward"]}},
    "groups": {"axes": [AGE], "mechanism": "dpcube"},
    "a tree": {"axes": [AGE], "mechanism": "boost"},
    "experts": {"axes": [AGE, WARD], "mechanism": "adaptive"},
    "a family": {"axes": [AGE, WARD], "mechanism": "tables", "tables": {"list": [["age"], ["ward"]]}},
}


def audits(public: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(public.glob("**/audit.json")):
        yield json.loads(path.read_bytes())


def check(audit: dict[str, Any]) -> None:
    known = [name for name in Audit.model_fields if name in audit]
    assert list(audit) == known, set(audit) - set(known)
    assert known[-1] == "audit_digest" and all(fact.description for fact in Audit.model_fields.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_fact_is_described_and_stands_in_its_order(office: Office, kind: str) -> None:
    office.opened().write_spec(**KINDS[kind])
    office.released()
    found = list(audits(office.store / "public"))
    assert len(found) == (3 if kind == "a family" else 1)
    for audit in found:
        check(audit)


@pytest.mark.slow
def test_so_it_is_in_the_local_model(office: Office) -> None:
    made(office.store)
    for audit in audits(office.store / "public"):
        assert audit["model"] == "local"
        check(audit)


FACTS = {
    **{"release": "wards", "period": "all", "revision": 1, "epsilon": "1/2", "files": {}},
    **{"values_digest": "a" * 64, "audit_digest": "b" * 64},
}


def test_facts_of_other_versions_come_first_and_a_wrong_type_is_not_written() -> None:
    assert [*in_order({"audit_digest": "b" * 64, "later": 1, **FACTS})][:2] == ["later", "release"]
    assert [*in_order({**FACTS, "reason": "x"})][-1] == "audit_digest"
    with pytest.raises(ValidationError):
        in_order({**FACTS, "revision": "1"})
    assert not is_audit({**FACTS, "revision": "1"}) and not is_audit([])
