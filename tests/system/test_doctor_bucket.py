"""`dphist doctor` looks at the bucket and its catalogue, `dphist store publish --to` names one: faults have mends."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable

import pytest
from object_server import ObjectServer
from office import OPEN_HEALTH, Office
from system.copied import ADDRESS, BUCKET, assert_same, bucket, client, object_server, objects, one_client
from system.doctored import all_well, examined

from dphist_pipeline.publishing.manifest import NAME
from dphist_pipeline.releasing.store import FOLDER, Store

pytestmark = [
    pytest.mark.stand_in("pictures", why="doctor compares the digests of files, whatever they hold"),
    pytest.mark.draws_alike,
]

__all__ = ["bucket", "client", "object_server", "one_client"]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """An office with one release and no bucket, whose copies spare each test the making of one."""
    made = Office(tmp_path_factory.mktemp("prepared") / "office").opened()
    with made.witnessed():
        assert made.run("release", made.folder / "spec.yaml", "--store", made.store).code == 0
    return made


@pytest.fixture
def office(office: Office, prepared: Office) -> Office:
    """A copy of the prepared office, witness and all."""
    return prepared.copied_to(office.folder)


@pytest.fixture
def released(office: Office, bucket: ObjectServer, one_client: None) -> Office:
    """An office whose one release is in the bucket."""
    named = office.run("store", "publish", "--to", ADDRESS, "--store", office.store)
    assert named.code == 0, named.err
    return office


def test_a_bucket_that_is_up_to_date_is_well_and_nothing_is_left_there(released: Office, bucket: ObjectServer) -> None:
    before = objects(bucket)
    found = examined(released)
    all_well(found)
    assert f"{ADDRESS} has all 1 publications" in found["bucket"]["seen"]
    assert objects(bucket) == before


def test_a_look_gives_no_host_an_id(released: Office, bucket: ObjectServer) -> None:
    name = released.store / "confidential" / FOLDER
    name.unlink()
    assert "holds the releases of another host" in examined(released)["bucket"]["seen"]
    assert not name.exists()


@pytest.mark.slow
def test_a_store_without_a_bucket_is_well(office: Office) -> None:
    assert "copied to no bucket" in examined(office)["bucket"]["seen"]


def denied(method: str) -> Callable[[ObjectServer], None]:
    def deny(bucket: ObjectServer) -> None:
        bucket.rule = lambda asked, path: "AccessDenied" if asked == method else ""

    return deny


def gone(bucket: ObjectServer) -> None:
    bucket.clear()


def damaged(bucket: ObjectServer) -> None:
    bucket.put(BUCKET, f"counts/{NAME}", b"{}")


def of_another(bucket: ObjectServer) -> None:
    told = json.loads(objects(bucket)[NAME])
    bucket.put(BUCKET, f"counts/{NAME}", json.dumps({**told, "ledger": "another"}).encode())


def careless(bucket: ObjectServer) -> None:
    bucket.ignores_conditions = True


FAULTS = {
    "denied to read": (denied("GET"), "access was denied", "Check the keys"),
    "denied to write": (denied("PUT"), "access was denied", "Check the keys"),
    "no bucket": (gone, "there is no such bucket", "AWS_ENDPOINT_URL"),
    "damaged manifest": (damaged, "is not a manifest", "Update dphist"),
    "another ledger's": (of_another, "releases of another ledger", "prefix of its own"),
    "ignores conditions": (careless, "ignores the conditions of writes", "dphist store publish --to"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_bucket_is_told_with_its_mend(released: Office, bucket: ObjectServer, fault: str) -> None:
    make, says, mend = FAULTS[fault]
    make(bucket)
    before = None if fault == "no bucket" else objects(bucket)
    found = examined(released)["bucket"]
    assert found["state"] == "fault"
    assert says in found["seen"] and mend in found["mend"], found
    assert before is None or objects(bucket) == before


def test_no_keys_and_no_server_are_told(
    released: Office, bucket: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dphist_pipeline.publishing import object_store

    monkeypatch.setattr(object_store, "_client", object_store._client.__wrapped__)  # type: ignore[attr-defined]
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    found = examined(released)["bucket"]
    assert found["state"] == "fault" and "there are no keys" in found["seen"] and "AWS_ACCESS_KEY_ID" in found["mend"]


def test_what_is_not_sent_and_what_the_folder_lost_is_told_until_it_is_mended(
    released: Office, bucket: ObjectServer
) -> None:
    denied("PUT")(bucket)
    assert released.run("withdraw", "wards", "all", "--reason", "wrong", "--store", released.store).code == 1
    bucket.rule = lambda method, path: ""
    found = examined(released)["bucket"]
    assert found["state"] == "warning" and "wards/period=all/revision=1" in found["seen"]
    assert released.run("store", "publish", "--store", released.store).code == 0
    all_well(examined(released))
    folder = released.store / "public" / "wards" / "period=all" / "revision=1"
    folder.rename(released.folder / "backup")
    found = examined(released)["bucket"]
    assert found["state"] == "fault" and "what the public folder does not have: wards/period=all" in found["seen"]
    assert "backup" in found["mend"]
    (released.folder / "backup").rename(folder)
    all_well(examined(released))


def test_a_bucket_is_named_and_changed_after_the_store_was_made(
    office: Office, bucket: ObjectServer, one_client: None
) -> None:
    (office.store / "store.json").chmod(0o644)
    named = office.run("store", "publish", "--to", f"{ADDRESS}/", "--store", office.store)
    assert named.code == 0 and "sent" in named.out, named.err
    assert Store.open(office.store).public_address == ADDRESS
    assert stat.S_IMODE((office.store / "store.json").stat().st_mode) == 0o644
    assert_same(bucket, office)
    before = objects(bucket)
    bucket.make_bucket("elsewhere")
    changed = office.run("store", "publish", "--to", "s3://elsewhere/new", "--store", office.store)
    assert changed.code == 0 and f"{ADDRESS} stays as it is" in changed.out
    assert f"new/{NAME}" in bucket.objects("elsewhere") and objects(bucket) == before
    all_well(examined(office))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("https://bucket/x", "is not an address that releases can be copied to"),
        ("s3://bucket/../x", "is not the address of a bucket"),
        ("s3://k:s@bucket", "is not the address of a bucket"),
        ("s3://no-such-bucket/x", "there is no such bucket"),
        (ADDRESS, "holds the releases of another ledger"),
    ],
)
def test_an_address_that_cannot_serve_is_refused_and_forgotten(
    released: Office, bucket: ObjectServer, address: str, says: str
) -> None:
    other = released.folder / "other"
    assert released.run("init", "--store", other).code == 0
    assert released.run("ledger", *OPEN_HEALTH, "--store", other).code == 0
    before = (other / "store.json").read_bytes()
    refused = released.run("store", "publish", "--to", address, "--store", other)
    assert refused.code == 1 and says in refused.err
    assert (other / "store.json").read_bytes() == before
