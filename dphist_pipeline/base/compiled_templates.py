"""Where Jinja2 keeps compiled templates, as Python does modules."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import jinja2

from dphist_pipeline.base.files import keeps_compiled


def compiled_templates(folder: Path) -> jinja2.FileSystemBytecodeCache | None:
    """The cache of compiled templates of a folder, among Python's compiled files; none where it may not write there."""
    modules = Path(cache_from_source(str(folder / "templates.py")))
    with suppress(OSError):
        modules.parent.mkdir(exist_ok=True)
    if not keeps_compiled(modules.parent):
        return None
    return jinja2.FileSystemBytecodeCache(
        str(modules.parent), f"{modules.suffixes[0]}-jinja2-{jinja2.__version__}-%s.bin"
    )
