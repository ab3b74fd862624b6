"""`dphist` as a program that starts warm: a server has loaded the package, has run none of it, and forks for each call.

To load the package takes most of a second of processor, which pages would pay for every line that a shell runs.
Each call is a process of its own with the arguments, folder, environment and streams of its caller.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import pkgutil
import signal
import socketserver
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import recv_fds

# Python without the packages of its environment starts in some milliseconds.
CALLER = """#!{python} -IS
import json, os, socket, sys
if os.path.exists("dphist_pipeline"):  # a checkout, whose package a program that starts there takes
    os.execv({cold!r}, ["dphist", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    call = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(server, [len(call).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(call)
    code = server.recv(1)
sys.exit(code[0] if code else 70)
"""


class Call(socketserver.StreamRequestHandler):
    """One call, in a process that was forked for it."""

    def handle(self) -> None:
        """Takes the place of the caller, runs `dphist`, and answers with its exit code."""
        size, streams, *_ = recv_fds(self.request, 8, 3)
        words, environment, folder = json.loads(self.rfile.read(int.from_bytes(size, "big")))
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["dphist", *words]
        self.request.sendall(bytes([_ran()]))


def _ran() -> int:
    from dphist_pipeline.cli.app import main

    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return code


class Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    """Forks for each call, and waits for all when it ends, so that their processor seconds are counted."""

    request_queue_size = 20


@contextmanager
def warm_program(program: Path) -> Iterator[None]:
    """Meanwhile, a program that starts `dphist` calls it through a server."""
    address, cold = program.with_suffix(".socket"), program.with_suffix(".cold")
    ours = {name: value for name, value in os.environ.items() if not name.startswith("DPHIST_")}
    words = [sys.executable, "-P", __file__, str(address)]
    paths = ours | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(words, env=paths, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        program.rename(cold)
        program.write_text(CALLER.format(python=sys.executable, address=str(address), cold=str(cold)))
        program.chmod(0o755)
        try:
            yield
        finally:
            cold.replace(program)
            server.terminate()


def main() -> None:
    """Serves until it is told to end."""
    package = importlib.import_module("dphist_pipeline.cli")
    commands = [found.name for found in pkgutil.walk_packages(package.__path__, "dphist_pipeline.cli.")]
    for name in (*commands, "dphist_pipeline.releasing.release", "dphist_pipeline.publishing._card"):
        importlib.import_module(name)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with Server(sys.argv[1], Call) as server:
        print("ready", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
