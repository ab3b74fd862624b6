"""The page on deploying: its units are the files of `examples/deployment`, and its two users are tried for real."""

from __future__ import annotations

import grp
import os
import pwd
import re
import shlex
import shutil
import site
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from docs.pages import FENCE, PROJECT

GROUPS = ("ledger-users", "spec-writers")
PAGE = (PROJECT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
FILES = PROJECT / "examples" / "deployment"
AT_THE_OFFICE = re.compile(r"as (root|olga|publisher), at the office(; files of the repository)?")
SPEC = """type: dphist_pipeline.HistogramRelease
attributes: {release: weekly_wards, source: /srv/dphist/sources/admissions.csv, privacy_unit: patient,
  max_rows_per_unit: 3, neighbours: add_remove, epsilon: 0.5, account: health, mechanism: geometric, period: week,
  period_column: admitted_on, period_format: iso, axes: [{column: ward, values: [surgery, medicine], other: true}]}
"""


def test_the_units_on_the_page_are_the_files_of_the_repository() -> None:
    shown = {found["title"]: found["text"] for found in FENCE.finditer(PAGE) if found["language"] == "text"}
    files = {path.name: path.read_text(encoding="utf-8") for path in FILES.iterdir()}
    assert {name: text for name, text in shown.items() if not name.startswith("/")} == files


def test_systemd_finds_nothing_wrong_with_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    for unit in FILES.glob("dphist-*"):
        text = unit.read_text(encoding="utf-8")
        programs = set(re.findall(r"/opt/dphist/bin/([\w-]+)", text))
        assert programs <= {"dphist", "dagster-daemon", "dagster-webserver"}
        (tmp_path / unit.name).write_text(text.replace("/opt/dphist/bin/", f"{tmp_path}/"))
        for program in programs:
            (tmp_path / program).write_text("#!/bin/sh\n")
            (tmp_path / program).chmod(0o755)
    units = sorted(path for path in tmp_path.glob("dphist-*") if path.suffix in (".service", ".timer"))
    assert len(units) == 7

    def verified() -> str:
        done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    if "Failed to" in (told := verified()) and "bus" in told:
        pytest.skip(f"systemd-analyze does not work here: {told.splitlines()[0]}")
    assert told == ""
    units[0].write_text(units[0].read_text().replace("ExecStart=", "ExecStarts="))
    assert "ExecStarts" in verified()


class Machine:
    """A machine with the folders of the page, but for those of /srv and /etc, which lie elsewhere here."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.srv, self.programs = place / "srv", place / "bin"
        for folder in (self.srv, self.programs, place / "etc"):
            folder.mkdir()
        program, path = _python_for_all()
        self.environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "NUMBA_DISABLE_JIT": "1",
        }
        for name, words in (("dphist", "-m dphist_pipeline"), ("python-of-dphist", "")):
            text = f'#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH={path} exec {program} {words} "$@"\n'
            (self.programs / name).write_text(text)
            (self.programs / name).chmod(0o755)

    def here(self, text: str) -> str:
        """A text of the page with this machine's folders."""
        return text.replace("/srv/", f"{self.srv}/").replace("/etc/dphist", f"{self.place}/etc/dphist")

    def run(self, user: str, script: str, code: int = 0) -> str:
        """Runs a script as a user of this machine."""
        found = pwd.getpwnam(user)
        folder = PROJECT if user == "root" else Path(found.pw_dir)
        done = subprocess.run(
            ["runuser", "-u", user, "--", "bash", "-euo", "pipefail", "-c", self.here(script)],
            cwd=folder,
            env={**self.environment, "HOME": found.pw_dir, "USER": user, "LOGNAME": user},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{user}: {script}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


def _python_for_all() -> tuple[str, str]:
    """A Python that every user may run, and the path on which it finds this package and what it needs."""
    nobody = ["runuser", "-u", "nobody", "--"]

    def serves(program: str) -> bool:
        code = "import sys; print(*sys.version_info[:2])"
        with suppress(OSError):
            done = subprocess.run([*nobody, program, "-c", code], capture_output=True, text=True, check=False, cwd="/")
            return done.stdout.split() == [str(part) for part in sys.version_info[:2]]
        return False

    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for program in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        if serves(program):
            folders = [str(PROJECT), *site.getsitepackages()]
            if not subprocess.run([*nobody, "ls", *folders], capture_output=True, check=False, cwd="/").returncode:
                return program, ":".join(folders)
    pytest.skip("no Python of this version, or not this package, can be used by other users")


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with the user olga; the page makes the other one."""
    if os.geteuid() != 0 or shutil.which("useradd") is None or shutil.which("runuser") is None:
        pytest.skip("only root can make users")
    for name, known in (
        *((user, pwd.getpwnam) for user in ("olga", "publisher")),
        *((one, grp.getgrnam) for one in GROUPS),
    ):
        if _is_known(known, name):
            pytest.skip(f"{name} is a user or group of this machine")
    # Not below pytest's own folder, which root alone may enter.
    with tempfile.TemporaryDirectory(prefix="dphist_machine_") as place:
        Path(place).chmod(0o755)
        made = Machine(Path(place))
        subprocess.run(["useradd", "--create-home", "--home-dir", f"{place}/olga", "olga"], check=True)
        try:
            yield made
        finally:
            for command in (("userdel", "olga"), ("userdel", "publisher"), *(("groupdel", name) for name in GROUPS)):
                subprocess.run(command, capture_output=True, check=False)


def _is_known(look: Callable[[str], object], name: str) -> bool:
    with suppress(KeyError):
        return bool(look(name))
    return False


@pytest.mark.outside
def test_two_users_of_one_machine_follow_the_page_to_its_services(machine: Machine) -> None:
    done = []
    for found in FENCE.finditer(PAGE):
        user = AT_THE_OFFICE.fullmatch(found["reason"] or "")
        if user is None:
            continue
        machine.run(user[1], found["text"])
        done.append(user[1])
        if user[2]:
            environment = machine.place / "etc" / "dphist" / "environment"
            environment.write_text(machine.here(environment.read_text()))
            project = machine.srv / "dphist" / "project"
            (project / "pyproject.toml").touch()
            (project / "specs" / "weekly_wards.yaml").write_text(machine.here(SPEC))
            rows = "".join(f"{patient},surgery,2026-01-0{5 + patient % 5}\n" for patient in range(50))
            records = machine.srv / "dphist" / "sources" / "admissions.csv"
            records.write_text(f"patient,ward,admitted_on\n{rows}")
            records.chmod(0o600)
            shutil.chown(records, "publisher")
    assert done == ["root", "root", "olga", "root", "publisher", "olga"]
    known = "set -a; . /etc/dphist/environment; set +a; cd /srv/dphist/project; "
    refused = machine.run("publisher", f"{known} dphist ledger raise health --total 50 --reason mine", 1)
    assert "Decisions are signed with it" in refused
    machine.run("olga", f"{known} ls /srv/dphist/store/confidential", 2)
    machine.run("olga", "ls /srv/dphist/sources/admissions.csv; cat /srv/dphist/sources/admissions.csv", 1)
    machine.run("root", "runuser -u nobody -- ls /srv/dphist/sources", 2)
    machine.run("publisher", "touch /srv/dphist/project/duckdb.py", 1)
    machine.run("olga", f"{known} dphist ledger verify; cat /srv/dphist/store/public/weekly_wards/*/*/audit.json")
    machine.run("publisher", f"cat {machine.place}/olga/.config/dphist/operator.key", 1)
    machine.run("publisher", f"{known} dphist release specs/weekly_wards.yaml --period 2026-01-05")
    _check_what_the_page_of_dagster_needs(machine, known)
    _check_what_olga_signs_in_a_store_of_another(machine, known)
    ledger = machine.srv / "dphist" / "ledger" / "ledger.sqlite"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o660 and list(ledger.parent.iterdir()) == [ledger]
    key = machine.place / "olga" / ".config" / "dphist" / "operator.key"
    key.chmod(0o644)
    for folder in (key.parent, key.parent.parent, key.parent.parent.parent):
        folder.chmod(0o755)
    told = machine.run("publisher", f"{known} DPHIST_OPERATOR_KEY={key} dphist doctor --releases-only", 1)
    assert "others may read or change it" in told


def _check_what_the_page_of_dagster_needs(machine: Machine, known: str) -> None:
    """Its unit closes records, answers and the witness: definitions load without, and a release does not."""
    project = machine.srv / "dphist" / "project"
    (project / "codes" / "wards.csv").write_text("ward\nsurgery\nmedicine\n")
    machine.run("olga", f"{known} dphist ledger allow --code-lists codes")
    listed = (
        SPEC.replace("weekly_wards", "listed_wards")
        .replace("values: [", "values_from: codes/wards.csv")
        .replace("surgery, medicine], other", ", values_column: ward, other")
    )
    (project / "specs" / "listed_wards.yaml").write_text(machine.here(listed))
    unit = (FILES / "dphist-webserver.service").read_text(encoding="utf-8")
    (closed,) = re.findall("^InaccessiblePaths=(.*)$", unit, re.MULTILINE)
    assert closed.split() == ["/srv/dphist/store/confidential", "/srv/dphist/sources", "/srv/witness"]
    loads = "from dphist_pipeline import load_spec; from dphist_pipeline.integrations import dagster"
    loads += "; made = dagster.release_definitions(load_spec('specs/listed_wards.yaml'))"
    loads += "; print([job.name for job in made.resolve_all_job_defs()])"
    releases = "dphist release specs/weekly_wards.yaml --period 2026-01-12"
    tried = f'{known} python-of-dphist -c "{loads}"; ! cat {closed}; ! {releases}'
    script = "".join(f"mount -t tmpfs -o mode=000 none {path}\n" for path in closed.split())
    script += f"runuser -u publisher -- bash -euc {shlex.quote(tried)}"
    told = machine.run("root", f"unshare -m bash -euc {shlex.quote(script)}")
    assert "'listed_wards_job'" in told, told
    assert told.count("Permission denied") == 3 and "confidential/ that you may not use" in told, told


def _check_what_olga_signs_in_a_store_of_another(machine: Machine, known: str) -> None:
    """Her decision stands whether or not she may write to the store, and the other user goes on."""
    project, specs = machine.srv / "dphist" / "project", machine.srv / "dphist" / "store" / "specs"
    lost = "its first release will not be able to say what changed since"

    def signed(name: str) -> str:
        spec = SPEC.replace("weekly_wards", name).replace("admissions.csv", f"{name}.csv")
        (project / "specs" / f"{name}.yaml").write_text(machine.here(spec))
        machine.run("publisher", f"cp -p /srv/dphist/sources/admissions.csv /srv/dphist/sources/{name}.csv")
        sign = f"{known} dphist ledger allow --for specs/{name}.yaml"
        digest = machine.run("olga", sign, 1).split("--yes ")[-1].split()[0]
        told = machine.run("olga", f"{sign} --yes {digest}")
        assert lost not in machine.run("olga", sign), "nothing is left to sign"
        return told

    def released(name: str) -> str:
        spec = project / "specs" / f"{name}.yaml"
        spec.write_text(spec.read_text().replace("max_rows_per_unit: 3", "max_rows_per_unit: 2"))
        return machine.run("publisher", f"{known} dphist release specs/{name}.yaml --period 2026-01-05")

    assert lost not in signed("transfers")
    assert "`max_rows_per_unit` was 3 and is 2" in released("transfers")
    for name, mode in (("closed", 0o700), ("gone", 0o711)):
        specs.chmod(mode)
        if name == "gone":
            shutil.rmtree(specs / "signed")
        assert lost in signed(name)
        assert "changed since" not in released(name)
    assert specs.owner() == (specs / "signed").owner() == "publisher"
