"""Canonical JSON and its digest: equal values have equal texts, in every version of the package."""

from __future__ import annotations

import hashlib
import json

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical_json(facts: object) -> str:
    """The canonical JSON text of JSON values: sorted names, no spaces, ASCII.

    Raises:
        ValueError: a number is nan or infinite, which JSON cannot express.
    """
    return _encode(facts)


def sha256(facts: object) -> str:
    """The SHA-256 digest of the canonical JSON text, in hex."""
    return hashlib.sha256(canonical_json(facts).encode("ascii")).hexdigest()
