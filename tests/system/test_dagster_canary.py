"""Rule 4 under Dagster: DAGSTER_HOME, logs and the public store hold nothing that was computed from records.

With default compute logs and a retry policy forced on, since a project that uses the component may have both.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import canary
import dagster as dg
import numpy as np
import pytest
from canary import fails
from office import Office
from system.orchestrated import charges, events, key, said

from dphist_pipeline.confidential import cube, noise
from dphist_pipeline.integrations import dagster as integration
from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing.release_spec import ReleaseSpec

pytestmark = pytest.mark.outside

Patch = pytest.MonkeyPatch
SECRET = f"{canary.UNDECLARED} {canary.NUMBER} {canary.TOTAL}"


class Watched:
    """An office with planted records, whose Dagster keeps everything it is told in `dagster_home`."""

    def __init__(self, office: Office, capfd: pytest.CaptureFixture[str], monkeypatch: Patch) -> None:
        self.office, self._capfd = office, capfd
        for name, folder in (("TMPDIR", "tmp"), ("HOME", "home"), ("DAGSTER_HOME", "dagster_home")):
            (office.folder / folder).mkdir()
            monkeypatch.setenv(name, str(office.folder / folder))
        monkeypatch.setattr("tempfile.tempdir", None)
        monkeypatch.setenv("DAGSTER_DISABLE_TELEMETRY", "1")
        monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: canary.frozen_noise(size))
        office.opened().write_spec(**canary.CHANGES)
        office.write_records(canary.records())

    def run(self) -> dg.ExecuteInProcessResult:
        """A run of all assets in this process, whatever its end."""
        definitions = integration.release_definitions(ReleaseSpec.load(self.office.folder / "spec.yaml"))
        job = dg.define_asset_job("all_of_it", selection="*", op_retry_policy=dg.RetryPolicy(max_retries=3))
        merged = dg.Definitions.merge(definitions, dg.Definitions(jobs=[job]))
        with dg.DagsterInstance.get() as instance:
            return merged.resolve_job_def("all_of_it").execute_in_process(instance=instance, raise_on_error=False)

    def leaks(self, *said: str) -> list[str]:
        """All that leaked by now, into files and streams and what was said."""
        outside = self._capfd.readouterr()
        return canary.leaks(self.office, out=outside.out, err=outside.err, said="\n".join(said))


@pytest.fixture
def watched(office: Office, capfd: pytest.CaptureFixture[str], monkeypatch: Patch) -> Watched:
    return Watched(office, capfd, monkeypatch)


def attempts(run: dg.ExecuteInProcessResult) -> int:
    """How often steps were started, those that were tried again included."""
    return sum(event.event_type_value in ("STEP_START", "STEP_RESTARTED") for event in run.all_events)


def no_source(office: Office, patch: Patch) -> None:
    source = office.folder / "data" / "admissions.parquet"
    source.write_bytes(source.read_bytes()[:-30])


def counting_fails(office: Office, patch: Patch) -> None:
    patch.setattr(cube, "count_bounded", fails(ValueError(SECRET)))


def mechanism_fails(office: Office, patch: Patch) -> None:
    patch.setattr(Geometric, "release", fails(RuntimeError(SECRET)))


def test_failures_success_and_replay_leak_nothing_and_nothing_is_tried_again(
    watched: Watched, monkeypatch: Patch
) -> None:
    for harm, steps in ((no_source, 1), (counting_fails, 1), (mechanism_fails, 1)):
        with monkeypatch.context() as broken:
            harm(watched.office, broken)
            failed = watched.run()
        assert not failed.success and attempts(failed) == steps
        assert watched.leaks(said(failed)) == []
        watched.office.write_records(canary.records())
    for replayed in (False, True):
        run = watched.run()
        assert run.success, said(run)
        (published,) = [made for made in events(run) if made.asset_key == key("published")]
        assert published.metadata["replayed"].value is replayed
    assert watched.leaks() == []
    assert charges(watched.office) == 1
    databases = list((watched.office.folder / "dagster_home").rglob("*.db"))
    assert len(databases) > 3, "the search looked at Dagster's own records"
    assert (watched.office.store / "public" / "catalog.duckdb").exists()


def prints(counts: np.ndarray) -> None:
    print(f"counted {counts.sum():,} rows")


def logs(counts: np.ndarray) -> None:
    dg.get_dagster_logger().debug("largest cell: %d", counts.max())


def logs_in_the_run(counts: np.ndarray) -> None:
    dg.AssetExecutionContext.get().log.info(f"{counts.max()} rows")


def adds_metadata(counts: np.ndarray) -> None:
    context = dg.AssetExecutionContext.get()
    context.log_event(dg.AssetObservation(key("cube"), metadata={"dagster/row_count": int(counts.sum())}))


LEAKS = [logs_in_the_run, *(pytest.param(leak, marks=pytest.mark.soak) for leak in (prints, logs, adds_metadata))]


@pytest.mark.parametrize("leak", LEAKS)
def test_the_canary_notices_what_a_confidential_step_tells_dagster(
    watched: Watched, monkeypatch: Patch, leak: Callable[[np.ndarray], None]
) -> None:
    load = cube.load_cube

    def leaking(path: Path) -> np.ndarray:
        counts: np.ndarray = load(path)
        leak(counts)
        return counts

    monkeypatch.setattr(cube, "load_cube", leaking)
    assert watched.run().success
    places = watched.leaks()
    assert any("dagster_home" in place for place in places), places


@contextmanager
def as_context_manager(step: str) -> Iterator[None]:
    """What looks careful and is not: the first exception goes along as the context of the second."""
    failed = False
    try:
        yield
    except Exception:
        failed = True
    if failed:
        raise dg.Failure(f"{step} failed (message withheld)", allow_retries=False)


def raised_later(step: str, work: Callable[[], Any], held: str, context: Any) -> Any:
    with as_context_manager(step):
        return work()


def raised_inside(step: str, work: Callable[[], Any], held: str, context: Any) -> Any:
    try:
        return work()
    except Exception:
        raise dg.Failure(f"{step} failed (message withheld)", allow_retries=False)  # noqa: B904


@pytest.mark.parametrize("mutant", [raised_later, pytest.param(raised_inside, marks=pytest.mark.soak)])
def test_an_exception_that_carries_another_is_told_by_its_own_words_alone(
    watched: Watched, monkeypatch: Patch, mutant: Callable[..., Any]
) -> None:
    monkeypatch.setattr(base, "withheld", mutant)
    counting_fails(watched.office, monkeypatch)
    assert not watched.run().success
    assert watched.leaks() == []


def test_the_canary_notices_an_engines_message(watched: Watched, monkeypatch: Patch) -> None:
    monkeypatch.setattr(base, "withheld", lambda step, work, *_: work())
    counting_fails(watched.office, monkeypatch)
    assert not watched.run().success
    assert any("dagster_home" in place for place in watched.leaks())


PROJECT = """
import os
from pathlib import Path

import dagster as dg
import numpy as np

from dphist_pipeline.confidential import cube
from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.confidential import noise
from dphist_pipeline.releasing.release_spec import ReleaseSpec

noise.discrete_laplace = lambda scale, size: np.arange(1, size + 1) ** 2 * {noise}


def fail(*_):
    raise ValueError("{secret}")


def tell(path, load=cube.load_cube):
    counts = load(path)
    print(counts)
    return counts


if os.environ.get("HARM") == "count":
    cube.count_bounded = fail
if os.environ.get("HARM") == "print":
    cube.load_cube = tell


def build():
    retries = dg.RetryPolicy(max_retries=3)
    job = dg.define_asset_job(
        "all_of_it", selection="*", op_retry_policy=retries, executor_def=dg.multiprocess_executor
    )
    ours = release_definitions(ReleaseSpec.load(Path(__file__).with_name("spec.yaml")))
    return dg.Definitions.merge(ours, dg.Definitions(jobs=[job])).resolve_job_def("all_of_it")


if __name__ == "__main__":
    import sys

    from dagster import DagsterInstance, execute_job, reconstructable
    import project

    config = {{"execution": {{"config": {{"max_concurrent": 1}}}}}}
    with DagsterInstance.get() as instance:
        for harm in sys.argv[1:]:
            os.environ["HARM"] = harm
            source = Path(__file__).with_name("data") / "admissions.parquet"
            whole = source.read_bytes()
            if harm == "source":
                source.write_bytes(whole[:-30])
            run = execute_job(reconstructable(project.build), instance=instance, run_config=config)
            source.write_bytes(whole)
            tried = sum(event.event_type_value in ("STEP_START", "STEP_RESTARTED") for event in run.all_events)
            print("RAN", harm, "succeeded" if run.success else "failed", tried)
"""


def in_processes(watched: Watched, *harms: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """One run after the other, each step in a process of its own: how each ended, and how many steps began.

    A release that succeeds is followed by the check `shows_latest`.
    """
    project = watched.office.folder / "project.py"
    project.write_text(textwrap.dedent(PROJECT.format(noise=canary.FROZEN_NOISE, secret=SECRET)))
    ended = subprocess.run(
        [sys.executable, "project.py", *harms],
        cwd=watched.office.folder,
        env={**os.environ, "PYTHONPATH": str(watched.office.folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    project.unlink()  # it spells out what it plants
    return [line.removeprefix("RAN ") for line in ended.stdout.splitlines() if line.startswith("RAN ")], ended


def test_processes_of_their_own_leak_nothing(watched: Watched) -> None:
    ran, ended = in_processes(watched, "none")
    assert ran == ["none succeeded 2"], ended.stderr
    assert watched.leaks(ended.stdout, ended.stderr) == []
    assert charges(watched.office) == 1 and watched.office.published().is_dir()
    assert list((watched.office.folder / "dagster_home" / "storage").rglob("*.err")), "compute logs were kept"


@pytest.mark.soak
def test_processes_of_their_own_leak_nothing_of_any_failure_or_replay(watched: Watched) -> None:
    ran, ended = in_processes(watched, "count", "source", "none", "none", "source")
    expected = ["count failed 1", "source failed 1", "none succeeded 2", "none succeeded 2", "source succeeded 2"]
    assert ran == expected, ended.stderr
    assert watched.leaks(ended.stdout, ended.stderr) == []
    assert charges(watched.office) == 1


@pytest.mark.soak
def test_the_canary_notices_what_a_process_of_its_own_prints(watched: Watched) -> None:
    ran, ended = in_processes(watched, "print")
    assert ran == ["print succeeded 1"], ended.stderr
    places = watched.leaks(ended.stdout, ended.stderr)
    assert any("compute_logs" in place for place in places), places
