"""An S3 server of the tests' own on this machine, which can be told to fail, to be slow and to lose answers."""

from __future__ import annotations

import importlib.util
import json
import threading
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote
from wsgiref.types import StartResponse, WSGIEnvironment

from requiring import missing

KEYS = {"AWS_ACCESS_KEY_ID": "AKIAOFFICE", "AWS_SECRET_ACCESS_KEY": "s3cret/w'rd+", "AWS_EC2_METADATA_DISABLED": "true"}
Rule = Callable[[str, str], str]  # of method and path: the code to fail with, `lost` for a lost answer, or nothing
ERROR = '<?xml version="1.0" encoding="UTF-8"?><Error><Code>{}</Code><Message>of {}</Message></Error>'


class ObjectServer:
    """A server with empty buckets.

    Attributes:
        address: what clients connect to.
        rule: asked about every request; see `Rule`.
        seen: method and path of every request since the last `clear`.
        ignores_conditions: whether conditional writes are taken as plain ones, as older servers do.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from moto.server import DomainDispatcherApplication, create_backend_app
            from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log(self, *arguments: Any) -> None:
                """Says nothing."""

        self.rule: Rule = lambda method, path: ""
        self.seen: list[tuple[str, str]] = []
        self.ignores_conditions = False
        self._lock = threading.Lock()
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def clear(self) -> None:
        """Forgets rules and what was seen, and deletes every object and bucket."""
        self.rule, self.seen, self.ignores_conditions = lambda method, path: "", [], False
        self._ask("POST", "moto-api/reset")
        self.seen.clear()

    def make_bucket(self, name: str) -> str:
        """Makes a bucket, and gives its address."""
        self._ask("PUT", name)
        return f"s3://{name}"

    def objects(self, bucket: str) -> dict[str, bytes]:
        """The content of every object of a bucket, by name."""
        return {name: content for name, (content, _) in self.saved(bucket).items()}

    def saved(self, bucket: str) -> dict[str, tuple[bytes, dict[str, str]]]:
        """Content and headers of every object of a bucket, by name, for `restore`."""
        keys = self._backend.buckets[bucket].keys
        return {name: (bytes(keys[name].value), dict(keys[name].metadata)) for name in keys}

    def restore(self, bucket: str, saved: Mapping[str, tuple[bytes, dict[str, str]]]) -> None:
        """Writes objects as they were in a bucket, without a request."""
        for name, (content, headers) in saved.items():
            self._backend.put_object(bucket, name, content).set_metadata(dict(headers))

    @property
    def _backend(self) -> Any:
        from moto.s3.models import s3_backends

        return s3_backends["123456789012"]["aws"]

    def put(self, bucket: str, name: str, content: bytes, states: str = "") -> None:
        """Writes an object, as somebody else would; it may state a digest of its own."""
        self._ask("PUT", f"{bucket}/{name}", content, {"x-amz-meta-sha256": states} if states else None)

    def delete(self, bucket: str, name: str) -> None:
        """Deletes an object, as somebody else would."""
        self._ask("DELETE", f"{bucket}/{name}")

    def environment(self) -> dict[str, str]:
        """What a client needs to find this server."""
        return {**KEYS, "AWS_ENDPOINT_URL": self.address}

    def _ask(self, method: str, path: str, content: bytes = b"", more: Mapping[str, str] | None = None) -> None:
        signed = {"Authorization": "AWS4-HMAC-SHA256 Credential=made/20260101/us-east-1/s3/aws4_request"}
        headers = {**signed, "Content-Type": "application/octet-stream", **(more or {})}
        request = urllib.request.Request(
            f"{self.address}/{quote(path)}", data=content or None, method=method, headers=headers
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status in (200, 204)

    def _answer(self, environ: WSGIEnvironment, start: StartResponse) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        failure = self.rule(method, path)
        if failure not in ("", "lost"):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _fail(environ, start, failure)
        if self.ignores_conditions:
            for name in ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"):
                environ.pop(name, None)
        # One request at a time: conditions hold while an object is written, as Amazon promises.
        with self._lock:
            self.seen.append((method, path))
            if failure == "lost":
                list(self._app(environ, lambda *given: lambda written: None))
                return _fail(environ, start, "InternalError")
            return list(self._app(environ, start))


def _fail(environ: WSGIEnvironment, start: StartResponse, code: str) -> list[bytes]:
    status = {"AccessDenied": "403 Forbidden", "InternalError": "500 Internal Server Error"}.get(code, "503 Slow Down")
    content = b"" if environ["REQUEST_METHOD"] == "HEAD" else ERROR.format(code, json.dumps(KEYS)).encode()
    start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
    return [content]


@contextmanager
def running_object_server() -> Iterator[ObjectServer]:
    """A server of this process; skips, saying so, where none can be had."""
    for name in ("moto", "flask", "flask_cors", "boto3"):
        if importlib.util.find_spec(name) is None:
            missing("moto", f"{name} is not installed")
    server = ObjectServer()
    try:
        yield server
    finally:
        server.stop()
