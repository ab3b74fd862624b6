"""One prefix of an S3 bucket: reads, conditional writes, and one clear message for each failure.

Amazon's S3 and every server that speaks its protocol and honours conditional writes. Keys, region and server come from
where boto3 looks (the environment, the user's AWS files, the machine's role), never from a spec or an address.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from dphist_pipeline.errors import Halted, how_to_install

SCHEME = "s3://"
DIGEST = "sha256"  # the name under which an object says what it holds
MOST_READ = 256 << 20  # bytes of an object that is read into memory
MOST_IN_ONE_REQUEST = 64 << 20  # bytes; what is larger goes up in parts
USUAL_REGION = "us-east-1"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml",
    ".csv": "text/csv; charset=utf-8",
    ".svg": "image/svg+xml",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_FOLDER = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*", re.ASCII)
_OTHERS = re.compile(r"(?:gs|gcs|az|azure|abfss?|adl|wasbs?|https?|hdfs|s3[an])://", re.ASCII | re.IGNORECASE)
_DENIED = {"AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch", "403"}
_CHANGED = {"PreconditionFailed", "ConditionalRequestConflict", "412", "409"}
_PASSING = {"SlowDown", "InternalError", "ServiceUnavailable", "Throttling", "500", "502", "503", "504"}
_ABSENT = {"NoSuchKey", "NotFound", "404"}
Answer = TypeVar("Answer")


def bucket_refused(address: str) -> Halted:
    """Something else where the address of a bucket is asked for."""
    quoted = repr(address[:80])
    if _OTHERS.match(address):
        return Halted(
            f"{quoted} is not an address that releases can be copied to: only S3, and servers that speak its "
            "protocol, as `s3://bucket/prefix`. For other stores, copy the public folder with their own tools.",
            code="bucket_refused",
        )
    else:
        return Halted(
            f"{quoted} is not the address of a bucket: write `s3://bucket` or `s3://bucket/prefix`, the bucket's "
            "whole name, then folders of letters, digits and _ . = -. Keys and servers stand in the environment "
            "(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL).",
            code="bucket_refused",
        )


class ObjectStoreFailed(Halted):
    """A bucket that cannot be reached, read or written; `try_again` where nothing need be mended."""

    def __init__(self, address: str, problem: str, try_again: bool = False, code: str = "") -> None:
        self.address, self.problem, self.try_again = address, problem, try_again
        super().__init__(f"{address} {problem}", code=code)


@dataclass(frozen=True)
class Stored:
    """The content of an object, and the tag of this version of it."""

    content: bytes
    etag: str


def parse_address(address: str) -> tuple[str, str]:
    """The bucket of `s3://bucket/prefix`, and how the names below it begin: empty, or with a slash at its end."""
    bucket, _, prefix = address.removeprefix(SCHEME).partition("/")
    prefix = prefix.removesuffix("/")
    usable = address.startswith(SCHEME) and _BUCKET.fullmatch(bucket) is not None and len(address) <= 500
    if not usable or (prefix and not all(map(_FOLDER.fullmatch, prefix.split("/")))):
        raise bucket_refused(address)
    return bucket, f"{prefix}/" if prefix else ""


class ObjectStore:
    """The objects below one prefix of a bucket; names are relative to it."""

    def __init__(self, address: str) -> None:
        self.bucket, self.prefix = parse_address(address)
        self.address = f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")
        self._client = _client(self.address)

    def read(self, name: str) -> Stored | None:
        """The content of an object; None if it is not there.

        Raises:
            ObjectStoreFailed: among others if it is larger than `MOST_READ`, which may be anybody's object.
        """

        def get() -> Stored:
            response = self._client.get_object(Bucket=self.bucket, Key=self.prefix + name)
            with closing(response["Body"]) as body:
                return Stored(body.read(MOST_READ + 1), response["ETag"])

        stored = self._asked(get, "read", absent=True)
        if stored is not None and len(stored.content) > MOST_READ:
            problem = f"cannot be read: its {name} is larger than {MOST_READ >> 20} MB. Tell who publishes there."
            raise ObjectStoreFailed(self.address, problem)
        return stored

    def download(self, name: str, path: Path, size: int) -> bool:
        """Writes an object into a file; False if the object is not there, or is larger than it should be.

        Not more than that size is written, whatever the server sends.
        """

        def get() -> bool:
            response, rest = self._client.get_object(Bucket=self.bucket, Key=self.prefix + name), size
            with closing(response["Body"]) as body, path.open("wb") as file:
                for part in body.iter_chunks(1 << 20):
                    rest -= len(part)
                    if rest < 0:
                        return False
                    file.write(part)
            return True

        return bool(self._asked(get, "read", absent=True))

    def digest(self, name: str) -> str | None:
        """The SHA-256 that an object states; None if it is not there, empty if it states none."""

        def head() -> str:
            response = self._client.head_object(Bucket=self.bucket, Key=self.prefix + name)
            return str(response["Metadata"].get(DIGEST, ""))

        return self._asked(head, "read", absent=True)

    def content_digest(self, name: str, size: int) -> str | None:
        """The SHA-256 of what an object holds, whatever it states; None if it is not there or of another size.

        Not more than that size is read, whatever the server sends.
        """

        def get() -> str | None:
            response, rest = self._client.get_object(Bucket=self.bucket, Key=self.prefix + name), size
            digest = hashlib.sha256()
            with closing(response["Body"]) as body:
                for part in body.iter_chunks(1 << 20):
                    rest -= len(part)
                    if rest < 0:
                        return None
                    digest.update(part)
            return digest.hexdigest() if rest == 0 else None

        return self._asked(get, "read", absent=True)

    def upload(self, name: str, file: Path, digest: str) -> None:
        """Writes an object, whatever is there; the server checks its SHA-256, in hex."""
        if file.stat().st_size > MOST_IN_ONE_REQUEST:
            more = {**self._about(name, digest), "ChecksumAlgorithm": "SHA256"}
            self._asked(
                lambda: self._client.upload_file(str(file), self.bucket, self.prefix + name, ExtraArgs=more), "written"
            )
        else:
            self._put(name, file.read_bytes(), digest)

    def upload_new(self, name: str, file: Path, digest: str) -> bool:
        """As `upload`, but never over an object that is there; False if one with other content is."""
        if file.stat().st_size > MOST_IN_ONE_REQUEST:
            # Parts are put together without a condition on older servers.
            if self.digest(name) is None:
                self.upload(name, file, digest)
                return True
        elif self._put(name, file.read_bytes(), digest, IfNoneMatch="*") is not None:
            return True
        # A request that is sent again after its answer was lost finds its own object.
        return self.content_digest(name, file.stat().st_size) == digest

    def replace(self, name: str, content: bytes, digest: str, etag: str | None) -> str | None:
        """Writes an object if it is still the version of that tag, or (None) if there still is none.

        Gives the tag of the new version; None if somebody else was first.
        """
        condition = {"IfNoneMatch": "*"} if etag is None else {"IfMatch": etag}
        return self._put(name, content, digest, **condition)

    def copy(self, source: str, name: str, digest: str) -> None:
        """Copies an object inside the bucket."""
        # The digest goes with it: objects that came up in parts would lose what they state.
        more = {**self._about(name, digest), "MetadataDirective": "REPLACE"}
        origin = {"Bucket": self.bucket, "Key": self.prefix + source}
        self._asked(
            lambda: self._client.copy(origin, self.bucket, self.prefix + name, ExtraArgs=more), "written", absent=True
        )

    def delete(self, name: str) -> bool:
        """Deletes an object, if it is there; False if the keys may not."""

        def delete() -> None:
            self._client.delete_object(Bucket=self.bucket, Key=self.prefix + name)

        try:
            self._asked(delete, "written", absent=True)
        except ObjectStoreFailed:
            return False
        return True

    def _put(self, name: str, content: bytes, digest: str, **condition: str) -> str | None:
        """The tag of the object that was written; None if the condition does not hold."""
        checked = base64.b64encode(bytes.fromhex(digest)).decode()

        def put() -> str:
            more = {**self._about(name, digest), **condition}
            key = self.prefix + name
            return str(
                self._client.put_object(Bucket=self.bucket, Key=key, Body=content, ChecksumSHA256=checked, **more)[
                    "ETag"
                ]
            )

        return self._asked(put, "written", absent="IfMatch" in condition, changed=bool(condition))

    def _about(self, name: str, digest: str) -> dict[str, Any]:
        kind = TYPES.get(Path(name).suffix, "application/octet-stream")
        # What may change is asked for again by whoever keeps copies on the way to a reader.
        caching = {} if name.startswith("_") or name.endswith(".parquet") else {"CacheControl": "no-cache"}
        return {"ContentType": kind, "Metadata": {DIGEST: digest}, **caching}

    def _asked(
        self, ask: Callable[[], Answer], done: str, absent: bool = False, changed: bool = False
    ) -> Answer | None:
        """The answer of the server.

        Args:
            done: what cannot be done if it fails.
            absent: None where there is no such object.
            changed: None where a condition does not hold.

        Raises:
            ObjectStoreFailed: without texts of the server, of which some repeat keys.
        """
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return ask()
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
        except (BotoCoreError, Boto3Error, OSError) as error:
            code = type(error).__name__
        if (absent and code in _ABSENT) or (changed and code in _CHANGED):
            return None
        raise ObjectStoreFailed(self.address, f"cannot be {done}: {_why(code)}", _passes(code))


def _passes(code: str) -> bool:
    """Whether an error goes away by itself: the network, or a server that has too much to do."""
    return "Connect" in code or "Timeout" in code or code in _PASSING


def _why(code: str) -> str:
    if code == "NoSuchBucket":
        return "there is no such bucket. Make it first, or check its name and AWS_ENDPOINT_URL."
    if code in _DENIED:
        return f"access was denied ({code}). Check the keys in the environment and what they may do there."
    if code in ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"):
        return "there are no keys. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
    if "Connect" in code or "Timeout" in code or code == "SSLError":
        return f"the server cannot be reached ({code}). Check the network and AWS_ENDPOINT_URL."
    shown_code = code if re.fullmatch(r"[A-Za-z0-9]{1,60}", code, re.ASCII) else "an unknown error"
    return f"the server or its client says {shown_code}."


def _client(address: str) -> Any:
    try:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
        from botocore.session import Session
    except ImportError:
        raise ObjectStoreFailed(address, f"needs boto3. To install it: {how_to_install('s3')}") from None
    config = Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 4},
        # Servers other than Amazon's refuse the checksums that are sent unasked.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    try:
        core = Session()
        core.register_component("data_loader", _service_descriptions(core.get_config_variable("data_path")))
        session = boto3.session.Session(botocore_session=core)
        region = os.environ.get("AWS_REGION") or session.region_name or USUAL_REGION
        return session.client("s3", region_name=region, config=config)
    except (BotoCoreError, ValueError) as error:
        problem = type(error).__name__
    if problem == "ValueError":
        raise ObjectStoreFailed(address, "cannot be reached: AWS_ENDPOINT_URL is no address, as `https://host:port`")
    raise ObjectStoreFailed(address, f"cannot be reached: {_why(problem)}", _passes(problem))


@cache
def _service_descriptions(folders: str | None) -> Any:
    """Amazon's descriptions of its services, read once: each client would read them again, for 60 ms."""
    from botocore.loaders import create_loader

    return create_loader(folders)
