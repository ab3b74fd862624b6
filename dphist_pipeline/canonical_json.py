"""JSON with one spelling, and the digest of it: the same facts are the same text, in every version."""

from __future__ import annotations

import hashlib
import json

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


def canonical_json(facts: object) -> str:
    """Sorted names, no spaces, ASCII.

    Raises:
        ValueError: for nan and infinities, which JSON has not.
    """
    return _encode(facts)


def sha256(facts: object) -> str:
    """Of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_json(facts).encode("ascii")).hexdigest()
