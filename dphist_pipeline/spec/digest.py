"""The digest of a spec, and the marks of the fields that are part of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from dphist_pipeline.canonical_json import sha256


def declared(digest: bool, later: bool = False, **more: Any) -> Any:
    """A field, marked as part of the spec's digest or not.

    Args:
        digest: whether a change to it changes what is released.
        later: added after specs were in use: out of the digest while it has its default, or else every period that was
            released before would ask for `--revise`.
        more: what pydantic takes.
    """
    return Field(json_schema_extra={"digest": digest, "later": later}, validate_default=True, **more)


def digested(spec: BaseModel, normalised: Mapping[str, object]) -> dict[str, object]:
    """The fields that are part of the digest, as JSON values.

    Args:
        spec: of a release or of a collection, checked.
        normalised: every field of the spec as a JSON value.
    """
    of, fields = type(spec), type(spec).model_fields
    unused = {
        name for name, field in fields.items() if _marks(of, name)["later"] and getattr(spec, name) == field.default
    }
    return {name: value for name, value in normalised.items() if in_digest(of, name) and name not in unused}


def digest_of(spec: BaseModel, normalised: Mapping[str, object]) -> str:
    """SHA-256 of the canonical JSON of all fields that are part of the digest, in hex.

    Args:
        spec: of a release or of a collection, checked.
        normalised: every field of the spec as a JSON value.
    """
    return sha256(digested(spec, normalised))


def in_digest(spec: type[BaseModel], field: str) -> bool:
    """Whether a field is part of the digest of its spec.

    Args:
        spec: the class, each of whose fields is marked; see `declared`.
        field: by its name in the class.

    Raises:
        KeyError: for a field without a mark.
    """
    return bool(_marks(spec, field)["digest"])


def _marks(spec: type[BaseModel], field: str) -> dict[str, Any]:
    marks = spec.model_fields[field].json_schema_extra
    if not isinstance(marks, dict):
        raise KeyError(field)
    return marks
