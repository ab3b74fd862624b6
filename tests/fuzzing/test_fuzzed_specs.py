"""Any spec, code list or row query is taken or refused: by one message of ours, in time, and with nothing spent."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

import pytest
from byte_mutations import byte_change, mixed, token_change
from declared_lists import below
from guided_loop import Check, Mutate, fuzz
from office import SPEC, Office
from spec_seeds import (
    CODES,
    ENVIRONMENT,
    HEAD,
    PROJECT,
    QUERIES,
    SAID_OF_IT,
    SPECS,
    SQL_TOKENS,
    TOKENS,
    TREE,
    annotated_spec,
    written,
)
from yaml_mutations import structure_change

from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec._yaml_rules import read_yaml
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.mistakes import SpecError

pytestmark = pytest.mark.slow

WATCHED = [PROJECT / "dphist_pipeline" / "spec"]
LONGEST_MESSAGE = 20_000
# Of processor time, on any machine: what is usual takes some thousandths of it.
SECONDS = 20
# DuckDB's parser needs time that grows faster than a query whose brackets or signs are all opened and never closed.
LONGEST_QUERY = 2_000

spec_change = mixed(
    byte_change, token_change(TOKENS), structure_change([token.decode() for token in TOKENS if token.isalpha()])
)
list_change = mixed(byte_change, token_change([*TOKENS, b"code", b"A", b"11", b"20", b"\r"]))
query_change = mixed(byte_change, token_change(SQL_TOKENS), longest=LONGEST_QUERY)
Load = Callable[[], ReleaseSpec]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with code lists, a query and records, and an environment that may not be told."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "office").mkdir()
    (tmp_path / "office" / "loop.csv").symlink_to("loop.csv")
    return written(tmp_path / "office")


def check_message(error: DphistError) -> None:
    """One message of ours, that can be printed, is not too long, and tells nothing of the environment."""
    message = str(error)
    assert isinstance(error, SpecError), repr(error)
    assert len(message) < LONGEST_MESSAGE
    assert all(letter.isprintable() for letter in message.replace("\n", ""))
    assert [said for said in SAID_OF_IT if said in message] == []
    assert "Traceback" not in message and "pydantic" not in message
    assert error.__cause__ is None and error.__context__ is None


def check_round_trip(spec: ReleaseSpec, load: Load) -> None:
    """What was accepted is the same when it is read again, from its file and from its own description."""
    described = spec.as_json()
    text = json.dumps(described, allow_nan=False)
    again = load()
    assert again.digest == spec.digest and again.as_json() == described
    assert domain_of(json.loads(text)["axes"]) == spec.domain
    if spec.source_sql is None and "{{" not in text:
        told = ReleaseSpec.from_attributes(json.loads(text), spec.base)
        # A description has words of codes as labels, which are in digests.
        assert told.digest_facts == {**spec.digest_facts, "axes": described["axes"]}
        assert told.digest == spec.digest or spec.digest_facts["axes"] != described["axes"]
        assert told.as_json() == described


def accepts(load: Load) -> bool:
    """Whether a spec is accepted; the message of a refusal, and what is accepted, are checked."""
    started = time.process_time()
    try:
        spec = load()
    except DphistError as error:
        check_message(error)
        accepted = False
    else:
        check_round_trip(spec, load)
        accepted = True
    assert time.process_time() - started < SECONDS
    return accepted


def run(check: Check, seeds: Sequence[str], mutate: Mutate, inputs: int, seed: int, folder: Path) -> None:
    accepted = 0

    def counted(content: bytes) -> set[Hashable]:
        nonlocal accepted
        facts = set(check(content))
        accepted += "accepted" in facts
        return facts

    report = fuzz(
        counted,
        [text.encode("utf-8", "surrogateescape") for text in seeds],
        mutate,
        inputs=inputs,
        seed=seed,
        watched=WATCHED,
        folder=folder.parent,
    )
    print(f"\n{report}; {accepted:,} accepted")
    assert report.edges > report.first_edges > 100
    assert 0 < accepted < inputs


def fuzz_specs(folder: Path, inputs: int, seed: int) -> None:
    file = folder / "defs.yaml"

    def check(content: bytes) -> set[Hashable]:
        file.write_bytes(content)
        return {"accepted"} if accepts(lambda: ReleaseSpec.load(file, below(folder))) else set()

    run(check, [*SPECS, annotated_spec()], spec_change, inputs, seed, folder)


def check_beside(folder: Path, changed: str, spec: str) -> Check:
    """A check that writes its input into one of the files beside a spec."""
    document = read_yaml(spec)
    assert isinstance(document, Mapping)

    def check(content: bytes) -> set[Hashable]:
        (folder / changed).write_bytes(content)
        return (
            {"accepted"}
            if accepts(lambda: ReleaseSpec.of_fields(document["attributes"], folder, (), below(folder)))
            else set()
        )

    return check


def fuzz_code_lists(folder: Path, inputs: int, seed: int) -> None:
    run(check_beside(folder, "codes.csv", SPECS[3]), [CODES], list_change, inputs // 2, seed, folder)
    (folder / "codes.csv").write_text(CODES)
    run(check_beside(folder, "tree.csv", SPECS[3]), [TREE], list_change, inputs // 2, seed, folder)


def fuzz_queries(folder: Path, inputs: int, seed: int) -> None:
    for trusted in ("", "  trusted_sql: true\n"):
        check = check_beside(folder, "query.sql", SPECS[4] + trusted)
        run(check, [*QUERIES, "SELECT '\udcff' AS x FROM source"], query_change, inputs // 2, seed, folder)


def fuzz_releases(office: Office, inputs: int, seed: int) -> None:
    """Through the command line, with a ledger that has an account and records that are there."""
    plain = f"{HEAD.rstrip()} {json.dumps(SPEC)}\n"
    file, ended = office.opened().folder / "spec.yaml", set[tuple[bool, int]]()

    def check(content: bytes) -> set[Hashable]:
        file.write_bytes(content)
        before, entries = office.state(), office.entries()
        try:
            ReleaseSpec.load(file)
        except DphistError as error:
            refused = str(error)
        else:
            refused = ""
        ran = office.release()
        assert "Traceback" not in ran.err and "something unexpected failed" not in ran.err, ran.err
        if refused:
            assert ran.code == 1 and ran.out == "" and ran.err.startswith("error: ")
        if ran.code:
            assert office.entries() == entries
        if refused:
            assert office.state() == before
        ended.add((bool(refused), ran.code))
        return set()

    report = fuzz(
        check,
        [plain.encode()],
        spec_change,
        inputs=inputs,
        seed=seed,
        watched=WATCHED,
        folder=office.folder.parent,
    )
    print(f"\n{report}; {len(office.entries())} entries in the ledger")
    assert {(True, 1), (False, 0)} <= ended


def test_any_spec_is_read_or_refused_by_one_message(folder: Path):
    fuzz_specs(folder, 300, seed=1)


def test_any_code_list_is_read_or_refused_by_one_message(folder: Path):
    fuzz_code_lists(folder, 200, seed=1)


def test_any_query_is_taken_or_refused_by_one_message(folder: Path):
    fuzz_queries(folder, 40, seed=1)


def test_a_refused_spec_spends_nothing_whatever_is_wrong_with_it(office: Office):
    fuzz_releases(office, 20, seed=1)


@pytest.mark.soak
def test_any_spec_is_read_or_refused_in_long_runs(folder: Path):
    fuzz_specs(folder, 60_000, secrets.randbits(32))


@pytest.mark.soak
def test_any_code_list_is_read_or_refused_in_long_runs(folder: Path):
    fuzz_code_lists(folder, 32_000, secrets.randbits(32))


@pytest.mark.soak
def test_any_query_is_taken_or_refused_in_long_runs(folder: Path):
    fuzz_queries(folder, 2_000, secrets.randbits(32))


@pytest.mark.soak
def test_a_refused_spec_spends_nothing_in_long_runs(office: Office):
    fuzz_releases(office, 500, secrets.randbits(32))
