"""Keeps compiled templates beside their sources, as Python keeps compiled modules: compiling takes longer than a page.

They lie in the same `__pycache__` as Python's own files would, so whoever may write there could change the program
itself. Where that folder cannot be written, templates are compiled each time.
"""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket, BytecodeCache


class KeptBytecode(BytecodeCache):
    """The compiled templates of a folder.

    Jinja compares a digest of the template's text. Names also tell everything else that a compiled template depends on.

    Args:
        folder: of the templates.
        settings: the file that says how they are compiled.
    """

    def __init__(self, folder: Path, settings: Path) -> None:
        digest = hashlib.sha256(settings.read_bytes()).hexdigest()[:16]
        name = Path(cache_from_source(str(folder / "templates.py")))
        self._folder = name.parent
        self._ending = f"{name.suffixes[0]}-jinja2-{jinja2.__version__}-{digest}.bin"

    def load_bytecode(self, bucket: Bucket) -> None:
        """Reads a compiled template, if it was kept."""
        try:
            bucket.bytecode_from_string(self._file(bucket).read_bytes())
        except Exception:  # a file that is missing or damaged: the template is compiled
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keeps a compiled template, if that is allowed."""
        if sys.dont_write_bytecode:
            return
        file = self._file(bucket)
        draft = file.with_name(f"{file.name}.{os.getpid()}")
        with suppress(OSError):
            file.parent.mkdir(exist_ok=True)
            try:
                draft.write_bytes(bucket.bytecode_to_string())
                draft.replace(file)  # so that nobody reads a part of it
            finally:
                draft.unlink(missing_ok=True)

    def _file(self, bucket: Bucket) -> Path:
        return self._folder / f"{bucket.key}{self._ending}"
