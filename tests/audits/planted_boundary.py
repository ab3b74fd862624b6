"""Walls taken down one by one: what an operator decided is not compared, the witness forgets, signatures are not read.

Each fault comes with the attack that it lets in, from a spec or a copied store to what is published, and with the test
of the suite that fails under it.
"""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from office import OPEN_HEALTH, Office, left_by_older_version

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential import _queries as questions
from dphist_pipeline.confidential.engines import spark
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading._source_files import find_files
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.ledger.entries import Entry, exact_text, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.witness import Witness
from dphist_pipeline.releasing import _engine_choice as engines
from dphist_pipeline.releasing import sanitizing
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec import model, sources

Planted = Callable[[], AbstractContextManager[Any]]
SECRET = "s3cret-of-the-service"


@dataclass(frozen=True)
class Wall:
    """A wall, how to take it down, the attack that then succeeds, and the test that says so."""

    name: str
    planted: Planted
    attack: Callable[[Office], bool]
    test: str


def nothing(*given: object, **more: object) -> None:
    """What a wall does that is not there."""


def killed(*given: object, **more: object) -> None:
    raise KeyboardInterrupt


def reached_then_killed(connect: Callable[..., socket.socket], *arguments: Any) -> None:
    connect(*arguments).close()
    raise KeyboardInterrupt


def written(office: Office, **changes: Any) -> None:
    """Writes a spec and decides nothing."""
    with patch.object(Office, "allow", nothing):
        office.write_spec(**changes)


def succeeded(office: Office, *words: str | Path) -> bool:
    return office.run(*words, "--store", office.store).code == 0


def released(office: Office, **changes: Any) -> bool:
    written(office, **changes)
    return succeeded(office, "release", office.folder / "spec.yaml")


# Attacks


def reads_with_another_quote(office: Office) -> bool:
    (office.folder / "data" / "a.csv").write_text("patient,age,ward\n'ann,3,surgery\nbob,30,surgery\n")
    assert succeeded(office, "ledger", "allow", "health", "--source", "data/a.csv")
    return released(office, source="data/a.csv", csv_quote="'")


def reads_through_a_link(office: Office) -> bool:
    (office.folder / "private").mkdir()
    (office.folder / "data" / "admissions.parquet").rename(office.folder / "private" / "staff.parquet")
    (office.folder / "data" / "admissions.parquet").symlink_to("../private/staff.parquet")
    return released(office)


def asks_another_server(office: Office) -> bool:
    """Whether a server is called that the environment named after another one was allowed."""
    office.write_records({"patient": [1], "age": [3.0]})
    with socket.socket() as listening, patch.dict(os.environ, {"SPARK_REMOTE": "sc://127.0.0.1:1"}):
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        assert succeeded(office, "ledger", "allow", "health", "--spark", "{{ env.SPARK_REMOTE }}")
        os.environ["SPARK_REMOTE"] = f"sc://127.0.0.1:{listening.getsockname()[1]}"
        # Killed once it is called: PySpark would ask a server that says nothing for ten minutes.
        reached = partial(reached_then_killed, socket.create_connection)
        with patch.object(spark.socket, "create_connection", reached), suppress(KeyboardInterrupt):
            released(office, engine="spark", axes=[{"column": "age", "start": 0, "stop": 100, "width": 25}])
        with suppress(BlockingIOError):
            listening.accept()[0].close()
            return True
    return False


def reads_what_was_disallowed(office: Office) -> bool:
    assert succeeded(office, "ledger", "disallow", "3", "--reason", "wrong folder")
    return released(office)


def publishes_records_as_codes(office: Office) -> bool:
    axis = {"column": "ward", "values_from": "data/admissions.parquet", "values_column": "age", "other": True}
    office.write_records({"patient": ["ann"], "age": [3.5], "ward": ["surgery"]})
    released(office, axes=[axis])
    return any(b"3.5" in path.read_bytes() for path in (office.store / "public").rglob("audit.json"))


def edits_an_allowed_query(office: Office) -> bool:
    query = office.folder / "units.sql"
    query.write_text("SELECT patient, age, ward FROM source ORDER BY age")
    assert succeeded(office, "ledger", "allow", "health", "--query", query, "--reason", "in order of age")
    query.write_text("SELECT ward AS patient, age, ward FROM source")
    return released(office, source_sql="units.sql")


def publishes_a_secret(office: Office) -> bool:
    with patch.dict("os.environ", {"SECRET": SECRET}):
        released(office, title="T {{ env.SECRET }}")
    return any(SECRET.encode() in path.read_bytes() for path in (office.store / "public").rglob("audit.json"))


def draws_from_two_copies(office: Office) -> bool:
    with patch.object(sanitizing, "PrivateCounts", killed):
        assert not released(office)
    copy = shutil.copytree(office.store, office.folder.with_name("copy"))
    spec = office.folder / "spec.yaml"
    return all(office.run("release", spec, "--store", store).code == 0 for store in (office.store, copy))


def draws_again_from_a_backup(office: Office) -> bool:
    backup = shutil.copytree(office.store, office.folder.with_name("backup"))
    assert released(office)
    shutil.rmtree(office.store)
    shutil.copytree(backup, office.store)
    return released(office)


def draws_again_after_an_adoption(office: Office) -> bool:
    backup = shutil.copytree(office.store, office.folder.with_name("backup"))
    assert released(office)
    shutil.rmtree(office.store)
    shutil.copytree(backup, office.store)
    assert succeeded(office, "store", "adopt", "--reason", "put back")
    return released(office)


def raises_by_hand(office: Office) -> bool:
    """Writes a raise past our code, rightly chained and unsigned."""
    with closing(sqlite3.connect(office.store / "ledger.sqlite")) as connection, connection:
        last = Entry(*connection.execute("SELECT * FROM ledger_entry ORDER BY number DESC LIMIT 1").fetchone())
        facts = {"total": exact_text(Fraction(99)), "reason": "mine", "year": last.facts["year"]}
        made = replace(last, number=last.number + 1, previous_hash=last.hash, kind="raised", account="health", hash="")
        made = replace(made, body=canonical_json(facts), release=None, period=None, revision=None)
        values = list(vars(replace(made, hash=seal(made))).values())
        connection.execute(f"INSERT INTO ledger_entry VALUES ({', '.join('?' * len(values))})", values)
    return released(office, epsilon=50)


def signs_twice_alone(office: Office) -> bool:
    words = ["two" if word == "health" else word for word in OPEN_HEALTH]
    keys = {}
    for name in ("ben", "puppet"):
        with patch.dict("os.environ", {"DPHIST_OPERATOR_KEY": str(office.folder.with_name(f"{name}.key"))}):
            keys[name] = office.run("ledger", "key").out.split()[0]
    assert succeeded(office, "ledger", "add-key", keys["ben"], "--name", "ben")
    assert succeeded(office, "ledger", *words, "--signatures", "2")
    assert succeeded(office, "ledger", "add-key", keys["puppet"], "--name", "puppet")
    assert succeeded(office, "ledger", "raise", "two", "--total", "40", "--reason", "more")
    with patch.dict("os.environ", {"DPHIST_OPERATOR_KEY": str(office.folder.with_name("puppet.key"))}):
        return succeeded(office, "ledger", "sign", str(len(office.entries())))


def takes_the_source_of_another_account(office: Office) -> bool:
    words = ["own" if word == "health" else word for word in OPEN_HEALTH]
    assert succeeded(office, "ledger", *words)
    assert succeeded(office, "ledger", "allow", "health", "--source", "s3://bucket/*.parquet")
    assert succeeded(office, "ledger", *["third" if word == "health" else word for word in OPEN_HEALTH])
    return succeeded(office, "ledger", "allow", "own", "--source", "s3://bucket/*.parquet")


def leaves_exact_files(office: Office) -> bool:
    cube = left_by_older_version(office.store, "wards", "all", 1, "killed")
    assert released(office)
    return cube.exists()


class Nosy:
    """A score of the mechanism's own, which keeps what it is shown."""

    constant = 1
    seen: ClassVar[list[int]] = []

    def candidates(self, size: int) -> int:
        return size

    def sensitivity(self, delta: int) -> int:
        return 2 * delta

    def scores(self, exact: Any) -> Any:
        Nosy.seen = exact.tolist()
        return exact


def keeps_exact_counts(office: Office) -> bool:
    Nosy.seen = []
    counts = PrivateCounts(Domain.from_shape((3,)), 1, lambda: np.array([918_273, 2, 3]))
    with suppress(MeasurementMisuse):
        counts.choose([np.arange(3)], Nosy(), Budget(Fraction(1)))  # type: ignore[arg-type]
    return 918_273 in Nosy.seen


# Faults


@contextmanager
def no_witness() -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("vouch", "check", "vouch_answer", "note_place", "note_head", "head"):
            stack.enter_context(patch.object(Witness, name, nothing))
        yield


def any_query(permissions: Permissions, request: Any) -> Any:
    return next(decision for decision in permissions.of(request.account) if decision.query is not None)


def same_whatever(reading: Reading, allowed: Reading) -> list[tuple[str, str, str]]:
    return []


def any_file(file: Path, rule: object) -> Path:
    return file.resolve()


def forgetful(ledger: Ledger, reason: str, carried: object, *more: Any, whole: Any = Ledger.adopt, **named: Any) -> Any:
    return whole(ledger, reason, [], *more, **named)


def never_taken_back(permissions: Permissions, entry: Any, facts: Any, whole: Any = Permissions.post) -> None:
    if entry.kind != "disallowed":
        whole(permissions, entry, facts)


def alone(permissions: Permissions, entry: Any, facts: Any, whole: Any = Permissions.waits) -> bool:
    return entry.kind != "keyed" and bool(whole(permissions, entry, facts))


def of_one_account(permissions: Permissions, reading: Reading, waiting: bool = False) -> set[str]:
    return set()


COPIES, SOURCES = "attacks/test_copies_that_draw_again.py", "attacks/test_sources_that_were_not_allowed.py"
BY_OTHERS, EXACT = "attacks/test_decisions_by_others.py", "attacks/test_exact_files_that_stay.py"
WALLS = [
    Wall(
        "a reading that differs in csv_quote is taken as allowed",
        lambda: patch.object(Reading, "differences", same_whatever),
        reads_with_another_quote,
        f"{SOURCES}::test_records_that_are_read_otherwise_than_decided_are_not_read",
    ),
    Wall(
        "files may lead out of the folder that was allowed",
        lambda: patch.object(ingest, "files_of", lambda source: find_files(source.pattern)),
        reads_through_a_link,
        f"{SOURCES}::test_a_file_that_became_a_link_out_of_its_folder_is_not_followed",
    ),
    Wall(
        "an engine's server is not compared with the decision",
        lambda: patch.object(engines, "server_of", lambda address: "sc://127.0.0.1:1"),
        asks_another_server,
        "attacks/test_engines_that_were_not_allowed.py::test_a_server_by_another_address_than_was_allowed_is_not_asked",
    ),
    Wall(
        "what was taken back is still allowed",
        lambda: patch.object(Permissions, "post", never_taken_back),
        reads_what_was_disallowed,
        f"{SOURCES}::test_a_charge_that_stands_lets_nobody_read_what_was_swapped_or_disallowed_since",
    ),
    Wall(
        "code lists are read anywhere",
        lambda: patch.object(sources, "_allowed_path", any_file),
        publishes_records_as_codes,
        f"{SOURCES}::test_no_records_are_published_as_the_codes_of_a_list",
    ),
    Wall(
        "a query's digest is not compared",
        lambda: patch.object(Permissions, "_query", any_query),
        edits_an_allowed_query,
        f"{SOURCES}::test_a_query_is_allowed_as_it_stood_and_not_as_it_stands",
    ),
    Wall(
        "templates are resolved in titles",
        lambda: patch.object(model, "ADDRESSES", ("source", "title")),
        publishes_a_secret,
        "attacks/test_templates_that_leak.py::test_a_dagster_project_shows_no_secret_that_attributes_ask_for",
    ),
    Wall(
        "the witness forgets answers",
        lambda: patch.object(Witness, "vouch_answer", nothing),
        draws_from_two_copies,
        f"{COPIES}::test_of_copies_of_a_killed_run_one_draws",
    ),
    Wall(
        "the witness is not asked",
        no_witness,
        draws_again_from_a_backup,
        f"{COPIES}::test_copies_that_were_made_before_a_charge_draw_nothing_after_it",
    ),
    Wall(
        "an adoption forgets what the witness held",
        lambda: patch.object(Ledger, "adopt", forgetful),
        draws_again_after_an_adoption,
        f"{COPIES}::test_a_store_that_is_put_back_draws_nothing_three_times_in_a_row",
    ),
    Wall(
        "signatures are not checked",
        lambda: patch.object(Permissions, "refuse_unsigned", nothing),
        raises_by_hand,
        f"{BY_OTHERS}::test_a_decision_that_is_inserted_by_hand_stops_everything",
    ),
    Wall(
        "one operator adds a key for the second signature",
        lambda: patch.object(Permissions, "waits", alone),
        signs_twice_alone,
        f"{BY_OTHERS}::test_an_operator_does_not_give_the_second_signature_by_a_second_key_of_ones_own",
    ),
    Wall(
        "a decision is judged by those of its own account",
        lambda: patch.object(Permissions, "owners", of_one_account),
        takes_the_source_of_another_account,
        "unit/test_decisions.py::test_a_source_of_another_account_is_refused_whatever_was_decided_since",
    ),
    Wall(
        "exact files of killed runs stay",
        lambda: patch.object(Store, "forget_kept_runs", nothing),
        leaves_exact_files,
        f"{EXACT}::test_a_periods_older_cubes_are_gone_and_those_of_other_periods_stay",
    ),
    Wall(
        "a score's class is not compared",
        lambda: patch.object(questions, "own_copy", lambda score: score),
        keeps_exact_counts,
        "attacks/test_mechanisms_that_peek.py"
        "::test_a_score_from_outside_the_closed_set_is_refused_before_anything_is_spent",
    ),
]
