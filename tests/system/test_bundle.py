"""The archive for offices without network: which wheels it holds, what its installer refuses, and that it installs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from requiring import missing

import bundle.__main__ as main
from bundle.archive import pack, write_sums
from bundle.bill import write_bill
from bundle.targets import BundleError, Target
from bundle.wheels import Shelf, megabytes_installed, read_pins, requirement_lines

PROJECT = Path(__file__).resolve().parents[2]
FILES = PROJECT / "bundle" / "files"
LINUX, MACOS = Target("linux-aarch64", "3.12"), Target("macos-arm64", "3.11")
PINS = "ours==1\nfor-linux==2\nfor_old==3\nextra-one==4\ndeep==5\npip==6\n"


def wheel(folder: Path, name: str, version: str, tags: str = "py3-none-any", needs: tuple[str, ...] = ()) -> Path:
    """A wheel with nothing but a name and what it needs."""
    path = folder / f"{name}-{version}-{tags}.whl"
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {each}" for each in needs),
    ]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", "\n".join(lines) + "\n")
    return path


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A folder with wheels of two machines."""
    wheel(tmp_path, "for_linux", "2", "cp312-cp312-manylinux_2_28_aarch64", ("deep[more]",))
    wheel(tmp_path, "for_linux", "2", "cp312-cp312-manylinux_2_28_x86_64", ("deep[more]",))
    wheel(tmp_path, "for_old", "3")
    wheel(tmp_path, "extra_one", "4", "cp311-abi3-macosx_11_0_arm64")
    wheel(tmp_path, "extra_one", "4", "cp311-abi3-manylinux_2_17_aarch64")
    wheel(tmp_path, "deep", "5", needs=('pip; extra == "more"',))
    wheel(tmp_path, "pip", "6")
    return Shelf(tmp_path, read_pins(PINS))


@pytest.fixture
def ours(shelf: Shelf) -> Path:
    needs = ('for-linux; sys_platform == "linux"', 'for-old; python_version < "3.12"', 'extra-one; extra == "export"')
    return wheel(shelf.folder, "ours", "1", needs=needs)


def test_what_a_machine_needs_is_judged_by_that_machine_and_not_by_this_one(shelf: Shelf, ours: Path) -> None:
    def needed(target: Target, *extras: str) -> list[str]:
        return [path.name for path in shelf.needed(ours, extras, target)[1:]]

    machine = "for_linux-2-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert needed(LINUX) == ["deep-5-py3-none-any.whl", machine, "pip-6-py3-none-any.whl"]
    assert "extra_one-4-cp311-abi3-manylinux_2_17_aarch64.whl" in needed(LINUX, "export")
    assert needed(MACOS) == ["for_old-3-py3-none-any.whl"]
    assert needed(MACOS, "export")[0] == "extra_one-4-cp311-abi3-macosx_11_0_arm64.whl"


def test_a_package_without_a_pin_is_refused_by_its_name(shelf: Shelf, ours: Path) -> None:
    without = Shelf(shelf.folder, read_pins(PINS.replace("deep==5\n", "")))
    with pytest.raises(BundleError, match=r"no version of deep is pinned, which linux-aarch64-py3\.12 needs"):
        without.needed(ours, (), LINUX)


def test_a_machine_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(BundleError, match="no platform 'windows-x86_64' here; give one of linux-x86_64, "):
        Target("windows-x86_64", "3.11")
    with pytest.raises(BundleError, match=r"no Python '3\.10' here; give one of 3\.11, "):
        Target("linux-x86_64", "3.10")


def test_every_requirement_carries_the_digest_of_its_wheel(shelf: Shelf, ours: Path) -> None:
    lines = requirement_lines(shelf.needed(ours, (), MACOS)).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["for-old==3", "ours==1"]
    assert all(len(line.partition(" --hash=sha256:")[2]) == 64 for line in lines)


def test_the_same_files_give_the_same_archive_whenever_they_are_packed(tmp_path: Path) -> None:
    made = []
    for place, mode, time in (("one", 0o600, 1), ("two", 0o666, 10**9)):
        folder = tmp_path / place / "dphist-1"
        (folder / "wheels").mkdir(parents=True)
        for name in ("wheels/b.whl", "install.sh", "a.txt"):
            (folder / name).write_text(name)
            (folder / name).chmod(mode)
            os.utime(folder / name, (time, time))
        write_sums(folder)
        pack(folder, folder.parent / "made.tar.gz", 7)
        made.append((folder.parent / "made.tar.gz").read_bytes())
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "one" / "made.tar.gz") as archive:
        members = {each.name: (each.mode, each.uid, each.mtime) for each in archive.getmembers()}
    assert members["dphist-1/install.sh"] == (0o755, 0, 7) and members["dphist-1/a.txt"] == (0o644, 0, 7)


def test_lists_and_bill_are_the_same_in_whatever_order_and_place_wheels_lie(tmp_path: Path) -> None:
    made = []
    for place, turn in (("one", 1), ("two", -1)):
        folder = tmp_path / place
        folder.mkdir()
        named = [("a_b", "1"), ("c", "1"), ("c", "1", "cp311-cp311-macosx_11_0_arm64"), ("ours", "1")]
        wheels = [wheel(folder, *each) for each in named][::turn]
        # As the real one does, it tells the moment and a number of its own unless it is asked for the same bill again.
        program = folder / "cyclonedx-py"
        told = '"components": [{"name": "c"}], "metadata": {"component": {"name": "ours"}}}'
        asked = f'case "$*" in *--output-reproducible*) n= ;; *) n=\'"serialNumber": "{place}", \' ;; esac'
        program.write_text(f"#!/bin/sh\n{asked}\nprintf '{{%s%s' \"$n\" '{told}'\n")
        program.chmod(0o755)
        (folder / "table.csv").write_text('"Name","License"\n"c","MIT"\n"ours","Apache-2.0"\n')
        write_bill(folder, Path("python"), PROJECT, wheels, folder / "table.csv", folder / "bom.json")
        made.append((folder / "bom.json").read_bytes() + requirement_lines(wheels).encode())
    assert made[0] == made[1]
    assert b"wheels/a_b-1-py3-none-any.whl" in made[0] and str(tmp_path).encode() not in made[0]


def test_files_carry_the_time_that_was_asked_for_or_that_of_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert main.time_of_commit() == 86400
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    monkeypatch.setattr(main, "PROJECT", Path("/"))
    assert main.time_of_commit() == 0, "a folder without git"


def test_nothing_that_a_build_leaves_behind_is_a_page() -> None:
    """What Python compiles holds the machine's paths."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
    from mkdocs.config import load_config

    left_out = load_config(str(PROJECT / "mkdocs.yml")).exclude_docs
    assert left_out is not None and left_out.match_file("__pycache__/hooks.cpython-311.pyc")
    assert all(left_out.match_file(path.name) for path in (PROJECT / "docs").glob("*.py"))
    assert not left_out.match_file("tutorial.md")


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """An archive for this machine whose wheels cannot be installed."""
    folder = tmp_path / "dphist-1"
    lists = folder / "requirements" / str(Target.here())
    lists.mkdir(parents=True)
    (folder / "wheels").mkdir()
    (lists / "office.txt").write_text("ours==1 --hash=sha256:" + "0" * 64 + "\n")
    wheel(folder / "wheels", "ours", "1")
    wheel(folder / "wheels", "pip", "6")
    for path in FILES.iterdir():
        shutil.copy(path, folder)
    write_sums(folder)
    return folder


def installing(folder: Path, *words: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    command = ["sh", folder / "install.sh", "--python", python, *words]
    return subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, check=False)


def test_an_altered_file_is_named_and_nothing_is_installed(unpacked: Path) -> None:
    with (unpacked / "wheels" / "ours-1-py3-none-any.whl").open("ab") as file:
        file.write(b"x")
    done = installing(unpacked, "program")
    assert done.returncode == 1 and "wheels/ours-1-py3-none-any.whl: FAILED" in done.stderr, done.stderr
    assert "OK" not in done.stderr and "not those that were packed" in done.stderr
    assert not (unpacked.parent / "program").exists()


def test_a_folder_that_is_there_already_stays_as_it_is(unpacked: Path) -> None:
    (unpacked.parent / "program").mkdir()
    (unpacked.parent / "program" / "kept").touch()
    (unpacked.parent / "link").symlink_to("nowhere")
    for name in ("program", "link"):
        done = installing(unpacked, name)
        assert done.returncode == 1 and f"{name} is there already" in done.stderr
    assert [path.name for path in (unpacked.parent / "program").iterdir()] == ["kept"]
    assert (unpacked.parent / "link").is_symlink()


@pytest.mark.slow
def test_a_machine_without_wheels_is_told_which_there_are(unpacked: Path) -> None:
    (unpacked / "requirements" / str(Target.here())).rename(unpacked / "requirements" / "other-machine-py9.9")
    write_sums(unpacked)
    done = installing(unpacked, "program")
    assert done.returncode == 1
    assert f"is {Target.here()}, and the wheels here are for other-machine-py9.9: name" in done.stderr
    assert installing(unpacked).returncode == installing(unpacked, "--no-such-option", "program").returncode == 2


def test_a_python_that_is_none_is_told_in_one_line(unpacked: Path) -> None:
    program = unpacked.parent / "broken"
    program.write_text("#!/bin/sh\necho what >&2\nexit 3\n")
    program.chmod(0o755)
    for python, told in (
        ("no-such-python", "there is no no-such-python: install a Python that README.txt names"),
        ("/no/such/python3", "there is no /no/such/python3: install a Python that README.txt names"),
        (str(program), f"{program} is no Python, or does not run"),
    ):
        done = installing(unpacked, "program", python=python)
        assert done.returncode == 1 and told in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_disk_without_room_and_a_place_that_cannot_be_are_told_before(unpacked: Path) -> None:
    listed = unpacked / "requirements" / str(Target.here()) / "office.txt"
    for size, room in ((999_999_999, True), (1, False)):
        listed.write_text(f"# {size} MB on disk\n" + listed.read_text().rpartition("MB on disk\n")[2])
        write_sums(unpacked)
        done = installing(unpacked, "deep/program")
        told = f"the program takes {size} MB and {unpacked.parent} has "
        assert done.returncode == 1 and (told in done.stderr) == room, done.stderr
        assert not (unpacked.parent / "deep" / "program").exists()
    (unpacked.parent / "file").touch()
    (unpacked.parent / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        done = installing(unpacked, f"{name}/program")
        assert done.returncode == 1 and f"{unpacked.parent / name} is no folder" in done.stderr, done.stderr


def test_what_is_said_of_the_disk_counts_blocks_and_compiled_files(tmp_path: Path) -> None:
    path = tmp_path / "a-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.py", "x" * 4097)
        archive.writestr("a.so", "x" * 5 * 1024**2)
    assert megabytes_installed([path] * 200) == (200 * (4 + 5 * 256)) // 256 + 1


@pytest.mark.slow
def test_a_half_made_installation_is_taken_away(unpacked: Path) -> None:
    done = installing(unpacked, "program")
    assert done.returncode == 1 and "pip installed nothing" in done.stderr, done.stderr
    assert not (unpacked.parent / "program").exists()


def test_pip_is_asked_for_nothing_but_the_wheels_of_the_folder_by_their_digests(unpacked: Path) -> None:
    (unpacked / "wheels" / "pip-6-py3-none-any.whl").unlink()
    with zipfile.ZipFile(unpacked / "wheels" / "pip-6-py3-none-any.whl", "w") as archive:
        told = "import os, sys; print(sys.argv[1:], os.environ['PIP_CONFIG_FILE'], file=sys.stderr); sys.exit(1)"
        archive.writestr("pip/__main__.py", told)
    write_sums(unpacked)
    done = installing(unpacked, "program")
    (said,) = (line for line in done.stderr.splitlines() if line.startswith("["))
    words = ("--isolated", "--no-index", "--find-links", "wheels", "--no-deps", "--require-hashes", "--only-binary")
    assert not [word for word in words if f"'{word}'" not in said], said
    assert said.endswith("] /dev/null") and f"requirements/{Target.here()}/office.txt" in said


def test_a_pip_that_was_not_packed_runs_nothing(unpacked: Path) -> None:
    wheel(unpacked / "wheels", "pip", "7")
    done = installing(unpacked, "program")
    assert done.returncode == 1 and "another pip than was packed" in done.stderr, done.stderr
    (unpacked / "wheels" / "pip-6-py3-none-any.whl").unlink()
    sums = unpacked / "SHA256SUMS"
    sums.write_text("".join(line for line in sums.read_text().splitlines(True) if "wheels/pip" not in line))
    done = installing(unpacked, "program")
    assert done.returncode == 1 and "another pip than was packed" in done.stderr, done.stderr
    assert not (unpacked.parent / "program").exists()


PACKED_AT = 1_750_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The archive for this machine."""
    if not (PROJECT / ".bundle" / "tools" / "bin" / "cyclonedx-py").exists():
        missing("bundle-tools", "make .bundle/tools/.ready installs what lists licences and materials")
    place = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(PACKED_AT))
        try:
            yield main.make([Target.here()], place)
        except BundleError as problem:
            if "pip cannot fetch" in str(problem):
                missing("package_index", str(problem))
            raise


@pytest.fixture(scope="module")
def archive(made: Path) -> Path:
    """The archive for this machine, unpacked."""
    with tarfile.open(made) as packed:
        packed.extractall(made.parent, filter="data")
    (folder,) = (path for path in made.parent.iterdir() if path.is_dir())
    return folder


WITHOUT_ROUTE = 'ip link set lo up && [ -z "$(ip route; ip -6 route show default)" ] && exec "$@"'


def without_network(folder: Path, *words: str | Path) -> str:
    """Runs a command in a network that has the loopback address and no route, as a user with an empty home."""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        missing("namespaces", "unshare or ip is not installed")
    home = folder / "home"
    home.mkdir(exist_ok=True)
    command = ["unshare", "-rn", "sh", "-c", WITHOUT_ROUTE, "sh", *words]
    kept = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
    done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
    if "unshare failed" in done.stderr:
        missing("namespaces", done.stderr.strip())
    assert done.returncode == 0, f"{words}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(archive: Path) -> Iterator[Path]:
    """The folder of a program that was installed without network."""
    folder = archive.parent / "program"
    told = without_network(archive.parent, "sh", archive / "install.sh", "--python", sys.executable, folder)
    assert f"is in {folder}" in told
    yield folder
    shutil.rmtree(folder)


@pytest.mark.soak
def test_a_network_without_route_reaches_nothing(tmp_path: Path) -> None:
    code = "import socket, sys\ntry: socket.create_connection(('192.0.2.1', 80), 5)\nexcept OSError as e: print(e)"
    assert "unreachable" in without_network(tmp_path, sys.executable, "-I", "-c", code)


@pytest.mark.soak
def test_a_release_is_made_without_network(archive: Path, installed: Path) -> None:
    told = without_network(archive.parent, "sh", archive / "check.sh", installed)
    assert "ok      a release of one week" in told and told.rstrip().endswith("nothing of this check is left.")


@pytest.mark.soak
def test_the_demo_runs_without_network(archive: Path, installed: Path) -> None:
    told = without_network(archive / "project", installed / "bin" / "python", "-m", "dagster_project.demo")
    assert "What was spent, once and for all" in told
    assert "Replayed" in without_network(
        archive / "project", installed / "bin" / "python", "-m", "dagster_project.demo"
    )


@pytest.mark.soak
def test_the_command_line_alone_releases_and_is_without_dagster(archive: Path) -> None:
    folder = archive.parent / "alone"
    words = ("sh", archive / "install.sh", "--command-line", "--python", sys.executable, folder)
    without_network(archive.parent, *words)
    without_network(archive.parent, "sh", archive / "check.sh", folder)
    assert not list(folder.glob("lib/python*/site-packages/dagster*"))
    shutil.rmtree(folder)


@pytest.mark.soak
def test_every_wheel_stands_in_the_bill_and_every_package_among_the_licences(archive: Path) -> None:
    bill = json.loads((archive / "bom.cdx.json").read_text())
    parts = [bill["metadata"]["component"], *bill["components"]]
    files = {
        each["url"]: each["hashes"][0]["content"]
        for part in parts
        for each in part.get("externalReferences", [])
        if each["url"].startswith("wheels/")
    }
    sums = dict(reversed(line.split("  ")) for line in (archive / "SHA256SUMS").read_text().splitlines())
    assert files == {name: digest for name, digest in sums.items() if name.startswith("wheels/")}
    table = (archive / "licences" / "table.csv").read_text()
    texts = (archive / "licences" / "texts.txt").read_text()
    assert all(f'"{part["name"]}"' in table and f"{part['name']}\n{part['version']}\n" in texts for part in parts)
    assert all(part.get("licenses") for part in parts), [part["name"] for part in parts if not part.get("licenses")]
    for path in (archive / "bom.cdx.json", archive / "licences" / "table.csv"):
        assert str(PROJECT) not in path.read_text() and "/tmp/" not in path.read_text()


def digests(path: Path) -> dict[str, tuple[int, int, str]]:
    """Time, mode and digest of each member of an archive, in order."""
    with tarfile.open(path) as packed:
        read = {each: packed.extractfile(each) for each in packed}
        return {
            each.name: (int(each.mtime), each.mode, hashlib.sha256(file.read()).hexdigest() if file else "")
            for each, file in read.items()
        }


@pytest.mark.soak
def test_the_same_files_in_another_place_give_the_same_archive(made: Path, tmp_path: Path) -> None:
    """Another folder, folder for drafts, user's mask, time zone and language of the machine."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.split("\0")
    copy = tmp_path / "another" / "place"
    for name in filter(None, names):
        if (PROJECT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PROJECT / name, copy / name)
    (copy / ".bundle").mkdir()
    for name in ("tools", "wheels"):
        (copy / ".bundle" / name).symlink_to(PROJECT / ".bundle" / name)
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    odd = {"TMPDIR": str(drafts), "TZ": "Asia/Tokyo", "LC_ALL": "C", "SOURCE_DATE_EPOCH": str(PACKED_AT)}
    command = ["sh", "-c", 'umask 077 && exec "$@"', "sh", sys.executable, "-m", "bundle"]
    done = subprocess.run(command, cwd=copy, env=os.environ | odd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = (copy / "dist").glob("*.tar.gz")
    assert digests(again) == digests(made)
    assert again.read_bytes() == made.read_bytes()


@pytest.mark.soak
def test_an_archive_holds_no_path_of_the_machine_that_made_it(archive: Path) -> None:
    files = [path for path in archive.rglob("*") if path.is_file() and path.suffix != ".whl"]
    assert (archive / "site" / "index.html") in files
    assert [path for path in files if str(PROJECT).encode() in path.read_bytes()] == []


@pytest.mark.soak
def test_who_only_asks_needs_less_than_half(archive: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "without-network.md").read_text()
    (left_out,) = re.findall(r"grep -v -E '(\S+)'", page)
    lines = (archive / "requirements" / str(Target.here()) / "command-line.txt").read_text().splitlines()[1:]
    names = [line.partition("==")[0] for line in lines if not re.match(left_out, line)]
    files = {parse_wheel_filename(path.name)[0]: path for path in (archive / "wheels").glob("*.whl")}
    assert len(lines) - len(names) == 7
    assert megabytes_installed(files[canonicalize_name(name)] for name in names) * 1024**2 <= 450e6


@pytest.mark.soak
def test_an_archive_names_no_package_server(archive: Path) -> None:
    for path in archive.glob("requirements/*/*.txt"):
        assert "//" not in path.read_text()
