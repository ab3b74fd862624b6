"""What an operator writes about the publisher into `about.json`, beside the public folder; every field is optional."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

NAME = "about.json"
MOST_LETTERS = 1000
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[\]._~:/?#@!$&()*+,;=%-]{1,999}", re.ASCII)
_MAIL = re.compile(r"[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,200}", re.ASCII)


@dataclass(frozen=True)
class About:
    """Who publishes, and on which terms; empty texts where nobody said.

    Attributes:
        license: an address, or the licence in words.
        publisher: the office.
        citation: what to cite; made from the other facts if it is empty.
        contact: an address of mail or of a page, or words.
        notice: a sentence on every card, such as that the people are invented.
        address: where the public folder is on the web, `https://`.
        language: of pages whose spec says none; English if it is empty or no language that is known.
    """

    license: str = ""
    publisher: str = ""
    citation: str = ""
    contact: str = ""
    address: str = ""
    notice: str = ""
    language: str = ""

    @classmethod
    def of(cls, public: Path) -> About:
        """Reads the file beside a public folder; one that cannot be read says nothing, since nothing may fail here.

        Args:
            public: the store's public folder.
        """
        with suppress(OSError, ValueError, AttributeError, RecursionError):
            told = json.loads((public.parent / NAME).read_bytes()).items()
            known = {field.name for field in fields(cls)}
            return cls(**{name: text[:MOST_LETTERS] for name, text in told if name in known and isinstance(text, str)})
        return cls()

    def address_of(self, path: str) -> str:
        """The address of a public file on the web; empty if nobody said where the public folder is.

        Args:
            path: below the public folder, of our own names.
        """
        base = link_of(self.address)
        return f"{base.rstrip('/')}/{path}" if base.startswith("http") else ""


def link_of(text: str) -> str:
    """Where a link on a text leads: the text if it is an address, `mailto:` before one of mail; else empty.

    Args:
        text: from outside; nothing but addresses of these two kinds is linked.
    """
    if _ADDRESS.fullmatch(text):
        return text
    return f"mailto:{text}" if _MAIL.fullmatch(text) else ""
