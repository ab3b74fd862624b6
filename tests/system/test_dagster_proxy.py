"""Dagster's page as an office serves it: read-only, on the loopback address, behind a proxy with a log-in."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from requiring import missing

pytestmark = pytest.mark.soak

PROJECT = Path(__file__).resolve().parents[2]
FILES = PROJECT / "examples" / "deployment"
HOST = "dagster.office.example"
DEFINITIONS = (
    "import dagster as dg\n\n\n@dg.asset\ndef raw() -> int:\n    return 1\n\n\ndefs = dg.Definitions(assets=[raw])\n"
)
LAUNCH = """mutation { launchRun(executionParams: {mode: "default", runConfigData: {}, selector: {
  repositoryLocationName: "project.py", repositoryName: "__repository__", pipelineName: "__ASSET_JOB"}})
  { __typename } }"""
PASSWORD = {"Authorization": "Basic " + base64.b64encode(b"anna:a long secret").decode()}
SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
    "Sec-WebSocket-Protocol": "graphql-ws",
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def unit_words(name: str, program: str) -> list[str]:
    """The command of a unit of the page, after its program."""
    found = re.search(rf"^ExecStart=/opt/dphist/bin/{program} (.*)$", (FILES / name).read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


def tree(process: int) -> set[int]:
    """A process and all that it started."""
    below = {process}
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return below


def listening(process: int) -> set[str]:
    """The addresses on which a process and all that it started wait for connections, as `127.0.0.1:3000`."""
    held = set()
    for each in tree(process):
        for link in Path(f"/proc/{each}/fd").glob("*"):
            with suppress(OSError):
                held.add(str(link.readlink()))
    found = set()
    for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            _, local, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in held:
                place, _, port = local.partition(":")
                words = [int(place[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(place), 8)]
                found.add(f"{socket.inet_ntop(family, b''.join(words))}:{int(port, 16)}")
    return found


def started(words: list[str | Path], folder: Path, log: str, **more: str) -> subprocess.Popen[bytes]:
    with (folder / log).open("wb") as file:
        return subprocess.Popen(words, cwd=folder, env=os.environ | more, stdout=file, stderr=file)


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(timeout=120)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with definitions, and Dagster's settings of the page."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "project.py").write_text(DEFINITIONS)
    (folder / "home").mkdir()
    shutil.copy(FILES / "dagster.yaml", folder / "home")
    return folder


@pytest.fixture(scope="module")
def page(home: Path) -> Iterator[tuple[int, int]]:
    """Dagster's page by the command of its unit: its port and its process."""
    port = free_port()
    words = [
        str(port) if word == "3000" else word for word in unit_words("dphist-webserver.service", "dagster-webserver")
    ]
    words[words.index("-m") :] = ["-f", "project.py"]
    program = [sys.executable, "-m", "dagster_webserver", *words]
    served = started(program, home, "page.log", DAGSTER_HOME=str(home / "home"))
    try:
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert served.poll() is None, (home / "page.log").read_text()
            time.sleep(0.5)
        yield port, served.pid
    finally:
        ended(served)


@pytest.fixture(scope="module")
def proxy(home: Path, page: tuple[int, int]) -> Iterator[int]:
    """nginx with the file of the page, but for ports and places: its port."""
    program = next((found for place in (None, "/usr/sbin") if (found := shutil.which("nginx", path=place))), None)
    if program is None or shutil.which("openssl") is None:
        missing("nginx", "nginx or openssl is not installed")
    port = free_port()
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}"]
    made += ["-addext", f"subjectAltName=DNS:{HOST}", "-keyout", "office.key", "-out", "office.pem"]
    subprocess.run(["openssl", *made], cwd=home, capture_output=True, check=True)
    secret = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input="a long secret", capture_output=True, text=True, check=True
    )
    (home / "dagster.users").write_text(f"anna:{secret.stdout}")
    site = (FILES / "dagster.nginx").read_text()
    for theirs, ours in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("http://127.0.0.1:3000", f"http://127.0.0.1:{page[0]}"),
        (f'"https://{HOST}" 0', f'"https://{HOST}:{port}" 0'),
        ("/etc/ssl/office.pem", f"{home}/office.pem"),
        ("/etc/ssl/private/office.key", f"{home}/office.key"),
        ("/etc/nginx/dagster.users", f"{home}/dagster.users"),
    ):
        assert theirs in site, theirs
        site = site.replace(theirs, ours)
    (home / "site").write_text(site)
    places = "".join(
        f"{kind}_temp_path {home}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # the folders of tests are closed to others
    (home / "nginx.conf").write_text(
        f"{user} daemon off; pid {home}/pid; error_log {home}/error.log; events {{}}\n"
        f"http {{ access_log off; {places} include {home}/site; }}\n"
    )
    served = started([program, "-e", home / "first.log", "-c", home / "nginx.conf"], home, "nginx.log")
    try:
        for _ in range(100):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert served.poll() is None, (home / "nginx.log").read_text()
            time.sleep(0.1)
        yield port
    finally:
        ended(served)


class Answers:
    """Asks through the proxy, as a browser that takes its certificate for the office's."""

    def __init__(self, home: Path, port: int) -> None:
        self.port = port
        self.context = ssl.create_default_context(cafile=home / "office.pem")

    def ask(self, method: str, path: str, headers: dict[str, str], body: str = "", host: str = HOST) -> tuple[int, str]:
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.context)
        plain = socket.create_connection(("127.0.0.1", self.port), 60)
        connection.sock = self.context.wrap_socket(plain, server_hostname=HOST)
        try:
            connection.request(method, path, body, {"Host": f"{host}:{self.port}", **headers})
            answer = connection.getresponse()
            with answer:
                return answer.status, "" if answer.status == 101 else answer.read().decode(errors="replace")
        finally:
            connection.close()

    def query(self, text: str) -> tuple[int, str]:
        theirs = {**PASSWORD, "Content-Type": "application/json", "Origin": f"https://{HOST}:{self.port}"}
        return self.ask("POST", "/graphql", theirs, json.dumps({"query": text}))


@pytest.fixture
def answers(home: Path, proxy: int) -> Answers:
    return Answers(home, proxy)


def test_nobody_gets_in_without_the_password(answers: Answers) -> None:
    wrong = {"Authorization": "Basic " + base64.b64encode(b"anna:another").decode()}
    for path in ("/", "/graphql", "/server_info", "/logs/x", "/download_debug/x"):
        assert answers.ask("GET", path, {})[0] == answers.ask("GET", path, wrong)[0] == 401, path
    assert answers.ask("GET", "/graphql", SOCKET)[0] == 401
    status, text = answers.ask("GET", "/runs", PASSWORD)
    assert status == 200 and "Dagster" in text


def test_the_page_asks_and_nobody_starts_or_reports_anything_through_it(answers: Answers) -> None:
    status, text = answers.query("{ version }")
    assert status == 200 and '"version"' in text
    status, text = answers.query(LAUNCH)
    assert status == 200 and json.loads(text)["data"]["launchRun"]["__typename"] == "UnauthorizedError"
    assert answers.ask("POST", "/report_asset_materialization/raw", PASSWORD)[0] == 403


def test_a_page_of_another_site_asks_nothing_with_somebodys_password(answers: Answers) -> None:
    home, foreign = {"Origin": f"https://{HOST}:{answers.port}"}, {"Origin": "https://elsewhere.example"}
    assert answers.ask("GET", "/graphql", PASSWORD | SOCKET | home)[0] == 101
    assert answers.ask("GET", "/graphql", PASSWORD | SOCKET | foreign)[0] == 403
    assert answers.ask("GET", "/runs", PASSWORD, host="elsewhere.example")[0] == 403


def test_the_page_itself_starts_nothing_and_waits_on_the_loopback_address_alone(page: tuple[int, int]) -> None:
    port, process = page
    assert listening(process) == {f"127.0.0.1:{port}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("POST", "/graphql", json.dumps({"query": LAUNCH}), {"Content-Type": "application/json"})
    with connection.getresponse() as answer:
        assert "UnauthorizedError" in answer.read().decode()
    connection.close()


def test_the_daemon_waits_for_no_connection(home: Path) -> None:
    words = unit_words("dphist-daemon.service", "dagster-daemon")
    assert words == ["run", "-m", "pipelines.definitions"]
    program = [sys.executable, "-c", "from dagster._daemon.cli import main; main()", "run", "-f", "project.py"]
    served = started(program, home, "daemon.log", DAGSTER_HOME=str(home / "home"))
    try:
        for _ in range(600):
            if "following daemons" in (home / "daemon.log").read_text() and len(tree(served.pid)) > 1:
                break
            assert served.poll() is None, (home / "daemon.log").read_text()
            time.sleep(0.5)
        else:
            pytest.fail((home / "daemon.log").read_text())
        assert listening(served.pid) == set()
    finally:
        ended(served)


def test_the_rule_of_the_kernel_lets_the_proxy_through_alone(tmp_path: Path) -> None:
    tools = ("unshare", "nft", "ip", "runuser", "curl")
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if os.geteuid() != 0 or any(shutil.which(tool, path=path) is None for tool in tools):
        missing("nft", f"needs root and {', '.join(tools)}")
    script = f"""
ip link set lo up && nft -f {FILES}/dagster.nft || exit 1
{sys.executable} -m http.server -d {tmp_path} -b 127.0.0.1 3000 > log 2>&1 &
trap 'kill $!' EXIT
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:3000/ && break; sleep 0.1; done
for user in root www-data nobody; do
  runuser -u $user -- curl -s -o /dev/null -w "$user %{{http_code}}\\n" http://127.0.0.1:3000/ || :
done
"""
    done = subprocess.run(
        ["unshare", "-n", "sh", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    if "unshare failed" in done.stderr:
        missing("namespaces", done.stderr.strip())
    assert done.stdout == "root 200\nwww-data 200\nnobody 000\n", done.stdout + done.stderr
