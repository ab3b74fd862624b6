"""The normalised specs that charges paid for, kept by their digests: a changed spec is explained by its fields."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from dphist_pipeline.base.canonical_json import canonical_json, sha256
from dphist_pipeline.base.files import make_folder, write_durably
from dphist_pipeline.base.reading import OPTIONS, quote_in_words
from dphist_pipeline.releasing.due import Cadence
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import one_line

MOST_SHOWN, MOST_COMPARED = 5, 10_000
_WEIGHTY = (
    *("epsilon", "neighbours", "privacy_unit", "max_rows_per_unit", "account", "quality", "mechanism", "settings"),
    *(*OPTIONS, "period_format", "source", "source_sql", "derive", "keep"),
    *("period", "period_column", "axes"),
)
LONGEST_SHOWN = 60
UNSET = "its default"

Change = tuple[str, str, str]  # the field, as charged, as asked


def keep_spec(store: Store, spec: ReleaseSpec) -> None:
    """Keeps the fields that are in a spec's digest; the same spec is kept once."""
    Cadence.of(spec).keep(store, spec.release)
    path, signed = _spec_path(store, spec.digest), _signed_spec_path(store, spec).parent
    if not path.exists():
        make_folder(path.parent)
        _write(path, spec)
    if not signed.is_dir():  # a store of an earlier version has none
        make_folder(signed)


def keep_signed_spec(store: Store, spec: ReleaseSpec) -> None:
    """Keeps the fields of the spec that an operator saw and signed for, in the place of earlier ones.

    Makes no folder: it would be the operator's, and the user who releases could not write beside it.

    Raises:
        OSError: the operator may not write to the store, or the folder is missing.
    """
    _write(_signed_spec_path(store, spec), spec, mode=0o644)  # the user who releases reads it, whoever wrote it


def changes_since_signed(store: Store, spec: ReleaseSpec) -> list[Change]:
    """The fields in which a spec differs from the one that an operator signed for; empty if none was kept.

    In order of weight: epsilon and who is protected, what the numbers are of, then all others.
    """
    with suppress(OSError, ValueError, RecursionError):  # the file is an operator's
        return _changes(json.loads(_signed_spec_path(store, spec).read_bytes()), spec)
    return []


def changes_since(store: Store, digest: str, spec: ReleaseSpec) -> list[Change]:
    """The first fields in which a spec differs from the one of a digest; empty if that one was not kept."""
    with suppress(OSError, ValueError):
        earlier = json.loads(_spec_path(store, digest).read_bytes())
        if sha256(earlier) == digest:
            return _changes(earlier, spec)[:MOST_SHOWN]
    return []


def _changes(earlier: Any, spec: ReleaseSpec) -> list[Change]:
    changes = _differences("", earlier, json.loads(canonical_json(spec.digest_facts)))
    return sorted(islice(changes, MOST_COMPARED), key=_weight)


def _weight(change: Change) -> int:
    """The place of a change among others, by the field that it is in."""
    field = re.split(r"[.\[]", change[0], maxsplit=1)[0]
    return _WEIGHTY.index(field) if field in _WEIGHTY else len(_WEIGHTY)


def _write(path: Path, spec: ReleaseSpec, mode: int = 0o600) -> None:
    draft = path.with_name(f".{uuid.uuid4().hex}")
    write_durably(draft, canonical_json(spec.digest_facts).encode("ascii"))
    draft.chmod(mode)
    draft.replace(path)


def _signed_spec_path(store: Store, spec: ReleaseSpec) -> Path:
    return store.root / "specs" / "signed" / f"{spec.release}.json"


def _spec_path(store: Store, digest: str) -> Path:
    return store.root / "specs" / f"{digest}.json"


def _differences(place: str, then: Any, now: Any) -> Iterator[Change]:
    """The innermost fields and entries of lists that differ, in order."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in sorted({*then, *now}):
            yield from _differences(f"{place}.{name}" if place else name, then.get(name), now.get(name))
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from _differences(f"{place}[{number}]", one, other)
    elif then != now and place == "csv_quote":
        default = ", the default from 0.3.0 on; write `csv_quote: none`" if (then, now) == ("", '"') else ""
        yield place, quote_in_words(then), quote_in_words(now) + default
    elif isinstance(then, list) and isinstance(now, list) and len(json.dumps([*then, *now])) > LONGEST_SHOWN:
        # Two long lists would look alike where they are cut: a code list with one value more.
        yield place, _entries(then, now), _entries(now, then)
    elif then != now:
        yield place, _value_text(then), _value_text(now)


def _entries(entries: list[Any], others: list[Any]) -> str:
    """How many entries a list has, and those that the other list lacks."""
    known = {json.dumps(other) for other in others}
    alone = [entry for entry in entries if json.dumps(entry) not in known]
    return f"{len(entries)} entries" + (f", among them {_value_text(alone)}" if alone else "")


def _value_text(value: Any) -> str:
    if value is None:
        return UNSET
    return one_line(value if isinstance(value, str) else json.dumps(value), LONGEST_SHOWN)
