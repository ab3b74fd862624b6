"""The files that a period needs, by the placeholders of its source: looked for by name, before any is opened."""

from __future__ import annotations

import glob
from collections.abc import Sequence

from dphist_pipeline.errors import Halted, first_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.periods import Period

MOST_NAMED = 10


class FilesMissing(Halted):
    """Files that a period needs and that are not there. Their names are public: the spec and the calendar give them."""

    def __init__(self, release: str, period: str, missing: Sequence[str], others: bool) -> None:
        self.release, self.period, self.missing = release, period, tuple(missing)
        counts = "`require: none` in the spec counts the others, and " if others else ""
        named = first_of(missing, MOST_NAMED)
        super().__init__(
            f"release '{release}', period {period}: needs files that are not there: {named}. Nothing was read or "
            f"spent. Put them there and run again; if they never come, {counts}dphist ledger waive {release} {period} "
            "--reason TEXT says so"
        )


def expected_patterns(spec: ReleaseSpec, period: Period) -> tuple[str, ...]:
    """Absolute globs, or addresses of an object store, of what a period needs; empty without placeholders.

    Objects are looked for when they are opened: keys that may read one need not be allowed to list a bucket.

    Args:
        spec: checked; its `require` says whether all files must be there, or one is enough.

    Raises:
        FilesMissing: with each that is not there.
    """
    expected = spec.expected_files(period)
    if not spec.has_files:
        return tuple(pattern for _, pattern in expected)
    there = [pattern for _, pattern in expected if glob.glob(pattern, recursive=True)]  # noqa: PTH207 - it is absolute
    missing = [called for called, pattern in expected if pattern not in there]
    if missing and ("files" in spec.requires or not there):
        raise FilesMissing(spec.release, period.key, missing, others=bool(there))
    return tuple(there)
