"""Small files of text that people write: specs and queries.

Messages tell what is wrong with the file and on which line, and quote nothing of it: it may be any file.
"""

from __future__ import annotations

from pathlib import Path


def content_of(file: Path, largest: int, subject: str, shorter: str = "") -> bytes:
    """The bytes of a regular file; `shorter` says how to mend a larger one."""
    try:
        if file.is_dir():
            problem = f"is a folder; name the file of {subject}"
        elif not file.exists():
            problem = "there is no such file; check the path"
        elif not file.is_file():
            problem = f"is not a regular file; name the file of {subject}"
        else:
            with file.open("rb") as stream:
                content = stream.read(largest + 1)
            if len(content) <= largest:
                return content
            size = f"{largest // 1_000_000} MB" if largest >= 1_000_000 else f"{largest >> 10} kB"
            problem = f"is larger than {size}, too large for {subject}{shorter}"
    except (OSError, ValueError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "its path is not valid"
        problem = f"cannot be read: {reason}"
    raise ValueError(problem)


def decode(content: bytes) -> str:
    """Decodes bytes in UTF-8.

    Raises:
        ValueError: naming the line of a byte that no text holds.
    """
    bad, problem = content.find(b"\0"), "holds a NUL byte"
    if bad < 0:
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            bad, problem = error.start, "is not valid UTF-8"
    line = content.count(b"\n", 0, bad) + 1
    raise ValueError(f"line {line}: {problem}; save the file as UTF-8 text")
