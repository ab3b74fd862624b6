"""How a release's assets look in Dagster, as a spec says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from office import SPEC

from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.mistakes import SpecError


def spec(translation: Any) -> ReleaseSpec:
    return ReleaseSpec.from_attributes({**SPEC, "translation": translation}, Path("/office"))


def test_keys_group_tags_owners_and_description_are_as_the_spec_says() -> None:
    look = {"key": "stats/beds", "group": "health", "tags": {"domain": "beds"}, "owners": ["a@b.example"]}
    made = spec({**look, "description": "For nurses"})
    found = {asset.key.to_user_string(): asset for asset in release_definitions(made).resolve_all_asset_specs()}
    assert found.pop("data/admissions.parquet").group_name == "default"  # the source, an external asset
    assert set(found) == {f"stats/beds/{name}" for name in ("records", "cube", "sanitized", "published")}
    for asset in found.values():
        assert asset.group_name == "health" and asset.owners == ["a@b.example"]
        assert asset.tags["domain"] == "beds" and asset.tags["dp/zone"]
        assert str(asset.description).startswith("For nurses")
    assert [dep.asset_key.to_user_string() for dep in found["stats/beds/cube"].deps] == ["stats/beds/records"]
    assert made.digest == ReleaseSpec.from_attributes(SPEC, Path("/office")).digest
    assert made.as_json()["translation"]["key"] == "stats/beds"  # type: ignore[index]


@pytest.mark.parametrize(
    ("translation", "where"),
    [
        ("beds", ""),
        ({"kye": "a"}, ".kye"),
        ({"key": "a b"}, ".key"),
        ({"group": "a/b"}, ".group"),
        ({"tags": {"dp/zone": "public"}}, ".tags['dp/zone']"),
        ({"tags": {"a": "b c"}}, ".tags.a"),
        ({"owners": ["nobody"]}, ".owners[0]"),
    ],
)
def test_a_mistake_is_told_at_its_place(translation: Any, where: str) -> None:
    with pytest.raises(SpecError) as refused:
        spec(translation)
    assert [at for at, _ in refused.value.problems] == [f"attributes.translation{where}"]
