"""Sends the public folder to a bucket, which is written and never read.

Which files are sent follows from our own names below the public folder and from `sent.json`, where this host keeps what
the file system said of each file that it sent. Without it, or with an older one, more is sent, never less.

`gone.json` beside it has the names that stores of form 1 had and this version does not write: what was withdrawn must
not stay readable under them, so every address gets them once with no bytes.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from dphist_pipeline.base.files import make_folder, open_below, replace_durably
from dphist_pipeline.errors import Halted, how_to_install
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.public_names import CATALOGUE, INDEX, is_gone
from dphist_pipeline.publishing.published_files import PublishedFilesDamaged, PublishedFolder

_PART = r"[A-Za-z0-9_=-][A-Za-z0-9_.=-]*"
_ADDRESS = re.compile(rf"(?:s3|gs|az)://[a-z0-9][a-z0-9.-]{{1,61}}[a-z0-9](?:/{_PART})*/?", re.ASCII)


GONE, EMPTIED = "gone.json", list[int]()


class NotSent(Halted):
    """Files could not be sent to a bucket; `try_again` where nothing need be mended."""

    def __init__(self, address: str, problem: str, try_again: bool = False) -> None:
        self.address, self.try_again = address, try_again
        super().__init__(f"{address} {problem}")


@dataclass(frozen=True)
class Sent:
    """The paths that a call sent, and the places of publications, or paths, that it left out as damaged."""

    address: str
    sent: tuple[str, ...]
    left_out: tuple[str, ...]


def check_address(address: str) -> str:
    """Checks the address of a bucket and a prefix in it, before anything is asked; gives it as it is kept."""
    if len(address) > 500 or not _ADDRESS.fullmatch(address):
        raise Halted(
            f"{address[:80]!r} is not the address of a bucket: write `s3://bucket/prefix`, `gs://bucket/prefix` or "
            "`az://container/prefix`, with letters, digits and _ . = -. Keys and server stand in the environment.",
            code="bucket_refused",
        )
    return address.rstrip("/")


@dataclass(frozen=True)
class BucketSync:
    """A public folder, the address of a bucket, and a private folder for `sent.json`, one for each address."""

    public: Path
    address: str
    folder: Path

    def send(self, vouch: Callable[[Path], object], progress: Callable[[str], None], everything: bool = False) -> Sent:
        """Sends every file that is not as it was when it was sent; one call of a host at a time.

        Args:
            vouch: checks a publication of which a file is to be sent, by its folder; raises PublishedFilesDamaged.
            everything: send all files, whatever was sent before.

        Raises:
            NotSent: what was sent until then is remembered.
        """
        before = {} if everything else self._files_in_bucket()
        late, left_out, sent = list[str](), list[str](), dict[str, list[int]]()
        for folder, paths in self._late(before):
            try:
                if folder is not None:
                    folder.refuse_links(self.public)
                    vouch(folder.path)
                late += paths
            except PublishedFilesDamaged:
                left_out.append(paths[0].rpartition("/")[0])
        gone = [path for path in self._files_no_longer_here() if before.get(path) != EMPTIED]
        if not late and not gone:
            return Sent(self.address, (), tuple(left_out))
        progress(f"copying to {self.address}")
        put = _connect(self.address)

        def send_one(path: str) -> None:
            if path in gone:
                put(path, BytesIO())
                sent[path] = EMPTIED
                return
            try:
                file = open_below(self.public, path)
            except OSError:  # a link, a pipe, or taken away meanwhile
                left_out.append(path)
                return
            with file:
                identity = _identity(file)
                put(path, file)
            sent[path] = identity

        # The catalogue and the pages come after the files that they name.
        pages = [path for path in late if path.rpartition("/")[2] == INDEX]
        catalogue = [path for path in late if path == CATALOGUE]
        try:
            for wave in (gone, [path for path in late if path not in (*pages, *catalogue)], catalogue, pages):
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(send_one, wave))
        finally:
            make_folder(self.folder)
            replace_durably(self._memory, self.folder / ".new", json.dumps(before | sent, sort_keys=True).encode())
        return Sent(self.address, tuple(sorted(sent)), tuple(left_out))

    def behind(self) -> list[str]:
        """The paths of the files that were not sent as they are now; the bucket is not asked."""
        sent = self._files_in_bucket()
        gone = [path for path in self._files_no_longer_here() if sent.get(path) != EMPTIED]
        return gone + [path for _, paths in self._late(sent) for path in paths]

    def _files_no_longer_here(self) -> list[str]:
        with suppress(OSError, ValueError, TypeError):
            return [path for path in json.loads((self.folder / GONE).read_bytes()) if is_gone(path)]
        return []

    def _late(self, sent: Mapping[str, list[int]]) -> Iterator[tuple[PublishedFolder | None, list[str]]]:
        """The files that were not sent as they are now, of each publication; then those made from all, by None."""
        publications = (PublishedFolder(folder) for _, folder in PublishedFolder.all_in(self.public))
        files = [(folder, folder.paths(self.public)) for folder in publications]
        for folder, paths in [*files, (None, [path for path, _ in DerivedFiles(self.public).there()])]:
            if late := [path for path in paths if self._identity(path) != sent.get(path)]:
                yield folder, late

    @property
    def _memory(self) -> Path:
        return self.folder / f"{hashlib.sha256(self.address.encode()).hexdigest()[:16]}.json"

    def _files_in_bucket(self) -> dict[str, list[int]]:
        with suppress(OSError, ValueError, TypeError):
            return dict(json.loads(self._memory.read_bytes()))
        return {}

    def _identity(self, path: str) -> list[int]:
        with suppress(OSError), open_below(self.public, path) as file:
            return _identity(file)
        return []  # a link or a pipe, which was never sent


def keep_gone(public: Path, folder: Path) -> list[str]:
    """Keeps the paths that stores of form 1 had and this version does not write, of what is there or was ever sent."""
    paths = {path.relative_to(public).as_posix() for path in public.rglob("*") if not path.is_dir()}
    for memory in folder.glob("*.json"):  # gone.json of a call that was cut short among them
        with suppress(OSError, ValueError, TypeError):
            paths |= set(json.loads(memory.read_bytes()))
    gone = sorted(filter(is_gone, paths))
    make_folder(folder)
    replace_durably(folder / GONE, folder / ".new", json.dumps(gone).encode())
    return gone


def _identity(file: BinaryIO) -> list[int]:
    """What the file system says of an open file; a file that is replaced, altered or put back has another."""
    status = os.fstat(file.fileno())
    return [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _connect(address: str) -> Callable[[str, BinaryIO], None]:
    """What writes an object by its name below the prefix; raises NotSent. Keys come from environment or machine."""
    try:
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise NotSent(address, f"needs obstore, once the extra `s3`: {how_to_install('bucket')}") from None
    server = os.environ.get("AWS_ENDPOINT_URL", "https://")
    if not server.startswith(("https://", "http://")):  # obstore would panic
        raise NotSent(address, "cannot be written: AWS_ENDPOINT_URL is no address, as `https://host:port`")
    options: Any = {"connect_timeout": "10s", "timeout": "5m", "allow_http": server.startswith("http://")}
    retries: Any = {"max_retries": 4, "retry_timeout": timedelta(minutes=1)}

    def guard(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except (BaseError, OSError, ValueError) as error:  # their texts may name keys
            kind = type(error).__name__
        mend = "Check the bucket's name, the server, and the keys in the environment and what they may do."
        raise NotSent(address, f"cannot be written: {kind}. {mend}", try_again=kind == "GenericError")

    store = guard(lambda: from_url(address, client_options=options, retry_config=retries))

    def put(path: str, file: BinaryIO) -> None:
        kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
        attributes = {"Content-Type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind}
        # What may change is asked for again by whoever keeps copies on the way to a reader.
        attributes |= {} if path.endswith("histogram.parquet") else {"Cache-Control": "no-cache"}
        guard(lambda: obstore.put(store, path, file, attributes=attributes))

    return put
