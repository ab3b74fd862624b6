"""How a release's assets look in Dagster, where its own names do not fit a project."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dphist_pipeline.spec._upstream import AssetName
from dphist_pipeline.spec.fields import Owners, Text
from dphist_pipeline.spec.mistakes import mapping_of, shown

TAG_KEY = r"^([A-Za-z0-9_.-]{1,63}/)?[A-Za-z0-9_.-]{1,63}$"
TAG_VALUE = r"^[A-Za-z0-9_.-]{0,63}$"
OURS = ("dp/", "dagster/")


def _not_ours(key: str) -> str:
    if key.startswith(OURS):
        raise ValueError(f"{shown(key)} begins with {' or '.join(OURS)}, which are not yours to set; choose another")
    return key


TagKey = Annotated[
    Text,
    Field(pattern=TAG_KEY, description="letters, digits, _, -, . and one slash"),
    AfterValidator(_not_ours),
]
TagValue = Annotated[str, Field(strict=True, pattern=TAG_VALUE, description="at most 63 letters, digits, _, - and .")]
Group = Annotated[Text, Field(pattern=r"^[A-Za-z0-9_]+$", description="letters, digits and _")]


class Translation(BaseModel):
    """What the assets are called and how they are marked; no part of the digest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: AssetName | None = None
    group: Group | None = None
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=20)] = Field(default={})
    owners: Owners = ()
    description: Annotated[Text | None, Field(description="text")] = None

    def normalised(self) -> dict[str, Any]:
        """As a JSON value."""
        return {**self.model_dump(), "owners": list(self.owners)}


TranslationField = Annotated[Translation | None, mapping_of(Translation, "{group: statistics}")]
