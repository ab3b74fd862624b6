"""What a program wrote on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os


def shown_on(ours: int) -> str:
    """All that the other side showed, which is closed by now; closes this side.

    Args:
        ours: descriptor of the side that `pty.openpty` gives first.
    """
    shown = b""
    with contextlib.suppress(OSError):  # Linux says the end so
        while part := os.read(ours, 65536):
            shown += part
    os.close(ours)
    return shown.decode()
