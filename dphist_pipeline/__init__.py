"""Publishes differentially private histograms on a schedule.

The public names are listed here and loaded on first use, so that the import of the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dphist_pipeline import mechanisms as mechanisms
    from dphist_pipeline.errors import DphistError
    from dphist_pipeline.estimates.estimate import Estimate
    from dphist_pipeline.integrations.dagster import HistogramRelease, LocalCollection
    from dphist_pipeline.local.publication import count_reports, publish_collection
    from dphist_pipeline.releasing.frames import count_cube
    from dphist_pipeline.releasing.release import release
    from dphist_pipeline.releasing.release_spec import ReleaseSpec
    from dphist_pipeline.releasing.releases import Release
    from dphist_pipeline.releasing.sanitizing import sanitize
    from dphist_pipeline.releasing.spec_check import load_spec
    from dphist_pipeline.releasing.store import Store
    from dphist_pipeline.spec.collection import load_collection

_HOMES = {
    "DphistError": "errors",
    "Estimate": "estimates.estimate",
    "HistogramRelease": "integrations.dagster",
    "LocalCollection": "integrations.dagster",
    "Release": "releasing.releases",
    "ReleaseSpec": "releasing.release_spec",
    "Store": "releasing.store",
    "count_cube": "releasing.frames",
    "count_reports": "local.publication",
    "load_collection": "spec.collection",
    "load_spec": "releasing.spec_check",
    "publish_collection": "local.publication",
    "release": "releasing.release",
    "sanitize": "releasing.sanitizing",
}

__all__ = [
    "DphistError",
    "Estimate",
    "HistogramRelease",
    "LocalCollection",
    "Release",
    "ReleaseSpec",
    "Store",
    "count_cube",
    "count_reports",
    "load_collection",
    "load_spec",
    "mechanisms",
    "publish_collection",
    "release",
    "sanitize",
]


def __getattr__(name: str) -> Any:
    if name == "mechanisms":
        return import_module("dphist_pipeline.mechanisms")
    if name not in _HOMES:
        raise AttributeError(f"module 'dphist_pipeline' has no attribute {name!r}")
    return getattr(import_module(f"dphist_pipeline.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
