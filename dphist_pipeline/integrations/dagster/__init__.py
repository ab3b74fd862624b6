"""Dagster: components and functions that turn specs into assets, checks, jobs and schedules."""

from dphist_pipeline.integrations.dagster._collection_component import LocalCollection, collection_definitions
from dphist_pipeline.integrations.dagster._health import health_sensor
from dphist_pipeline.integrations.dagster._partitions import partitions_of
from dphist_pipeline.integrations.dagster._release_component import HistogramRelease, release_definitions
from dphist_pipeline.integrations.dagster._resources import DphistStore, PublishedTable

__all__ = [
    "DphistStore",
    "HistogramRelease",
    "LocalCollection",
    "PublishedTable",
    "collection_definitions",
    "health_sensor",
    "partitions_of",
    "release_definitions",
]
