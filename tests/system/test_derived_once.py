"""A release derives each fact once and hands it on."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from office import Office

from dphist_pipeline import mechanisms
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing import published_files
from dphist_pipeline.releasing.release_spec import ReleaseSpec

MOST = {"opened": 1, "built": 1, "normalised": 1, "audits": 3, "digested": 7}


def counting(calls: Counter[str], name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def counted(*given: Any, **more: Any) -> Any:
        calls[name] += 1
        return work(*given, **more)

    return counted


def test_a_release_derives_each_fact_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    office.opened()
    monkeypatch.setattr(Ledger, "open", counting(calls, "opened", Ledger.open))
    monkeypatch.setattr(mechanisms, "build", counting(calls, "built", mechanisms.build))
    monkeypatch.setattr(ReleaseSpec, "as_json", counting(calls, "normalised", ReleaseSpec.as_json))
    monkeypatch.setattr(hashlib, "file_digest", counting(calls, "digested", hashlib.file_digest))
    real = published_files.read_audit
    for module in list(sys.modules.values()):
        if getattr(module, "read_audit", None) is real and module.__name__.startswith("dphist_pipeline"):
            monkeypatch.setattr(module, "read_audit", counting(calls, "audits", real))
    office.released()
    assert {name: calls[name] for name in MOST} == MOST
