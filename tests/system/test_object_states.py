"""What readers of a bucket, and of the catalogue there, see while a copy goes on, is cut short, or meets failures."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from object_server import ObjectServer
from system.copied import ADDRESS, bucket, client, content_of, copy, fetched, object_server, objects, one_client, states

from dphist_pipeline.publishing import bucket_copy, object_store
from dphist_pipeline.publishing.manifest import NAME, VERSIONS, Entry, Manifest, ManifestDamaged
from dphist_pipeline.publishing.object_store import ObjectStore
from dphist_pipeline.releasing.store import Store


class Cut(BaseException):
    """Ends a call as a kill would, where nothing catches it."""


def plain(bucket: ObjectServer, prefix: str = "") -> dict[str, bytes]:
    """The objects under their plain names, without the manifest and what only it names."""
    there = {name.removeprefix(prefix): of for name, of in objects(bucket).items() if name.startswith(prefix)}
    return {name: of for name, of in there.items() if name != NAME and not name.startswith(VERSIONS)}


def cut_short(after: int, cut_at: int, bucket: ObjectServer, states: list[Store], folder: Path) -> bool:
    """Copies one state over the one before, cut short right before a request; False if there are fewer.

    Then readers see one of the two, and the same call brings the bucket to the second.
    """
    address = f"{ADDRESS}/{cut_at}"
    if after:
        copy(states[after - 1], address)
    ask, asked = ObjectStore._asked, count(1)

    def cutting(self: ObjectStore, *arguments: Any, **more: Any) -> Any:
        if next(asked) == cut_at:
            raise Cut
        return ask(self, *arguments, **more)

    with mock.patch.object(ObjectStore, "_asked", cutting), mock.patch.object(bucket_copy, "AT_ONCE", 1):
        try:
            copy(states[after], address)
            return False
        except Cut:
            pass
    is_there = f"{cut_at}/{NAME}" in objects(bucket)
    assert is_there or not after
    if is_there:
        assert fetched(address, folder / "cut") in [content_of(state) for state in states[: after + 1][-2:]]
    copy(states[after], address)
    assert plain(bucket, f"{cut_at}/") == content_of(states[after]) == fetched(address, folder / "done")
    assert copy(states[after], address).sent == ()
    return True


@pytest.mark.outside
@pytest.mark.parametrize(("after", "cuts"), [(1, (11, 14)), (2, (12,))])
def test_a_copy_that_is_cut_short_shows_whole_states_and_goes_on(
    bucket: ObjectServer, states: list[Store], tmp_path: Path, one_client: None, after: int, cuts: tuple[int, ...]
):
    for cut_at in cuts:
        assert cut_short(after, cut_at, bucket, states, tmp_path / str(cut_at)), cut_at


@pytest.mark.soak
@pytest.mark.parametrize("after", range(3))
def test_a_copy_that_is_cut_short_anywhere_goes_on(
    bucket: ObjectServer, states: list[Store], tmp_path: Path, one_client: None, after: int
):
    cuts = 0
    while cut_short(after, cuts + 1, bucket, states, tmp_path / str(cuts)):
        cuts += 1
    assert cuts >= 13


@pytest.mark.outside
def test_readers_see_whole_states_while_somebody_publishes(
    bucket: ObjectServer, states: list[Store], tmp_path: Path, one_client: None
):
    known, done = [content_of(state) for state in states], threading.Event()
    seen: list[dict[str, bytes]] = []
    copy(states[0], ADDRESS)

    def read() -> None:
        for number in count():
            seen.append(fetched(ADDRESS, tmp_path / str(number)))
            if done.is_set():
                return

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for number in (1, 2):
            while len(seen) < number and not reading.done():
                time.sleep(0.01)
            copy(states[number], ADDRESS)
        done.set()
        reading.result()
    order = [known.index(one) for one in seen]
    assert order == sorted(order) and order[0] < 2
    assert fetched(ADDRESS, tmp_path / "last") == known[2]


def test_a_lost_answer_changes_nothing(states: list[Store], bucket: ObjectServer):
    once: set[str] = set()
    bucket.rule = lambda method, path: "lost" if method == "PUT" and not (path in once or once.add(path)) else ""
    assert copy(states[0], ADDRESS).sent == tuple(sorted(content_of(states[0])))
    assert plain(bucket) == content_of(states[0])


def test_what_was_replaced_is_kept_for_a_day(states: list[Store], bucket: ObjectServer, one_client: None):
    for state in states[:2]:
        copy(state, ADDRESS)
    store = ObjectStore(ADDRESS)
    found = bucket_copy.BucketCopy(ADDRESS).found(states[0].ledger_id, states[0].publisher())
    old = set(found.manifest.retired)
    assert old and old < set(objects(bucket))
    for hours, kept in ((23, old), (25, set[str]())):
        now = bucket_copy.commit(store, found, found.manifest.files, datetime.now(UTC) + timedelta(hours=hours))
        assert now is not None and set(now.manifest.retired) == kept
        found = now
        assert old & set(objects(bucket)) == kept


def test_large_files_go_up_in_parts(bucket: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_store, "MOST_IN_ONE_REQUEST", 1 << 20)
    file, store = tmp_path / "large.parquet", ObjectStore(ADDRESS)
    file.write_bytes(bytes(range(256)) * 40_000)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert store.upload_new("large.parquet", file, digest)
    assert "POST" in {method for method, _ in bucket.seen}
    assert objects(bucket)["large.parquet"] == file.read_bytes() and store.digest("large.parquet") == digest
    assert store.upload_new("large.parquet", file, digest) and not store.upload_new("large.parquet", file, "0" * 64)


WHOLE = Manifest("of", 3, {"wards/current.json": Entry(f"{VERSIONS}/2/{'a' * 64}/current.json", "a" * 64, 5)})
PATHS = ("../x.json", "/x.json", "a/../b.json", "x", "", "wards/period=a/revision=1/../../x.json", "a.html")
NAMES = ("../croissant.json", f"{VERSIONS}/2/{'b' * 64}/croissant.json", f"{VERSIONS}/../croissant.json")
HOSTILE: list[dict[str, Any]] = [
    {"schema_version": 2},
    {"generation": 0},
    {"generation": "3"},
    {"files": []},
    *({"files": {path: vars(Entry(path, "a" * 64, 1))}} for path in PATHS),
    *({"files": {"croissant.json": vars(Entry(name, "a" * 64, 1))}} for name in NAMES),
    {"files": {"croissant.json": vars(Entry("croissant.json", "A" * 64, 1))}},
    {"files": {"croissant.json": vars(Entry("croissant.json", "a" * 64, -1))}},
    {"retired": {"wards/current.json": "2026-01-01T00:00:00+00:00"}},
    {"retired": {f"{VERSIONS}/1": "2026-01-01"}},
]


@pytest.mark.parametrize("change", HOSTILE)
def test_a_manifest_that_names_anything_else_is_refused(change: dict[str, Any]):
    whole = json.loads(WHOLE.text())
    assert Manifest.read(WHOLE.text(), ADDRESS) == WHOLE
    for content in (json.dumps({**whole, **change}).encode(), WHOLE.text()[:-9], b"[" * 10_000, b"\xff"):
        with pytest.raises(ManifestDamaged, match=re.escape(f"{ADDRESS}/{NAME} is not a manifest")):
            Manifest.read(content, ADDRESS)
