"""The example project runs from a built wheel in an environment of its own, where this checkout cannot be imported."""

from __future__ import annotations

import os
import re
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.outside  # this suite's Python starts others

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLE = PROJECT / "examples" / "hospital"
WEEK = "2026-01-05"
# What the README's `dg launch` does, in one process.
RUN = """
import sys
import dagster as dg
import dphist_pipeline
from hospital.definitions import defs

assert sys.prefix in dphist_pipeline.__file__, dphist_pipeline.__file__
definitions, week = defs(), "2026-01-05"
visits, report = (definitions.resolve_assets_def(dg.AssetKey(key)) for key in (["raw", "visits"], ["ward_report"]))
with dg.DagsterInstance.ephemeral() as instance:
    def ran(job, partition, **more):
        return job.execute_in_process(instance=instance, partition_key=partition, raise_on_error=False, **more)

    def ingested(day):
        assert dg.materialize([visits], instance=instance, partition_key=f"2026-01-{day:02}").success

    for day in range(5, 11):
        ingested(day)
    weekly = definitions.resolve_job_def("weekly_wards_job")
    refused = ran(weekly, week)
    (failed,) = [event.step_failure_data for event in refused.all_events if event.is_step_failure]
    assert "raw/visits 2026-01-11" in failed.user_failure_data.description
    ingested(11)
    assert ran(weekly, week).success
    wards = definitions.resolve_asset_graph().get(dg.AssetKey(["weekly_wards", "published"]))
    assert wards.parent_keys == {dg.AssetKey(["weekly_wards", "sanitized"])}
    done = dg.materialize([report], instance=instance, partition_key=week)
    assert done.success
"""


def wheel(folder: Path) -> Path:
    """The wheel of this checkout."""
    pytest.importorskip("hatchling", reason="builds the wheel")
    source = folder / "source"  # a copy, so that nothing is written into the checkout
    for name in ("dphist_pipeline", "sql"):
        shutil.copytree(PROJECT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = (folder / "dist").iterdir()
    return made


def environment(folder: Path, made: Path) -> Path:
    """The Python of a fresh environment with the wheel; what it depends on is this environment's, without its links."""
    venv.create(folder, with_pip=False, symlinks=True)
    (library,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(made) as archive:  # as an installer does, for a wheel of Python alone
        archive.extractall(library)
    # A folder that a .pth file names is searched, but its own .pth files, such as of this checkout, are not read.
    (library / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    return folder / "bin" / "python"


def ran(python: Path, folder: Path, *words: str) -> str:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_", "PYTHON"))}
    clean = {**ours, "PYTHONPATH": str(folder), "DAGSTER_DISABLE_TELEMETRY": "1", "VIRTUAL_ENV": str(python.parents[1])}
    done = subprocess.run([python, *words], cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_wheel_holds_all_that_the_package_reads(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel(tmp_path)) as archive:
        held = set(archive.namelist())
    package = PROJECT / "dphist_pipeline"
    files = [path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    expected = {str(path.relative_to(PROJECT)) for path in files}
    expected |= {f"dphist_pipeline/{path.relative_to(PROJECT)}" for path in (PROJECT / "sql").rglob("*.sql")}
    assert expected <= held and len([name for name in held if name.endswith(".sql")]) > 20


def test_a_wheel_that_is_built_again_elsewhere_has_the_same_bytes(tmp_path: Path) -> None:
    """The wheel holds neither the folder nor the time of its build."""
    first = wheel(tmp_path / "one").read_bytes()
    assert wheel(tmp_path / "another" / "place").read_bytes() == first


def test_the_example_runs_from_records_to_report_in_a_fresh_environment(tmp_path: Path) -> None:
    python, project = environment(tmp_path / "env", wheel(tmp_path)), tmp_path / "hospital"
    shutil.copytree(EXAMPLE, project)
    for words in setting_up(project):
        ran(python, project, "-c", "from dphist_pipeline.cli.app import main; main()", *words)
    ran(python, project, "-c", RUN)
    report = (project / "reports" / f"{WEEK}.md").read_text(encoding="utf-8")
    # That process drew really: what it drew is read, not known.
    (published,) = (project / "store" / "public" / "weekly_wards" / f"period={WEEK}").glob("*/histogram.parquet")
    cells = pq.read_table(published).to_pylist()
    assert re.findall(r"^\| (\w+) \| (-?[\d,]+) \|", report, re.MULTILINE) == [
        (ward, f"{cell['estimate']:,.0f}")
        for ward in ("surgery", "medicine", "maternity", "paediatrics")
        for cell in cells
        if cell["ward"] == ward
    ]


def setting_up(project: Path) -> list[list[str]]:
    """The README's own commands of `dphist`."""
    import shlex

    lines = (project / "README.md").read_text(encoding="utf-8").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("dphist ")]


@pytest.mark.soak
def test_every_command_of_the_examples_readme_runs(tmp_path: Path) -> None:
    python, project = environment(tmp_path / "env", wheel(tmp_path)), tmp_path / "hospital"
    shutil.copytree(EXAMPLE, project)
    for name, module in (("dphist", "dphist_pipeline.cli.app"), ("dg", "dagster_dg_cli.cli")):
        program = f"#!{python}\nfrom {module} import main\nif __name__ == '__main__':\n    main()\n"
        (tmp_path / "env" / "bin" / name).write_text(program)
        (tmp_path / "env" / "bin" / name).chmod(0o755)
    blocks = re.findall(r"```bash\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    script = "\n".join(blocks)
    (project / "home").mkdir()
    lines = f"set -eu\nexport PATH={python.parent}:$PATH DAGSTER_HOME={project / 'home'}\n{script}"
    ran(python, project, "-c", f"import subprocess; subprocess.run(['bash', '-c', {lines!r}], check=True)")
    assert (project / "reports" / f"{WEEK}.md").is_file()
