"""What an operator writes about the publisher into `about.json`, beside the public folder; every field is optional.

It stands once for all releases of a store: cards, pages, Croissant files and records for portals read it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dphist_pipeline.base.languages.texts import LANGUAGES

NAME = "about.json"
MOST_LETTERS = 1000
_PAGES = ("access_body_homepage", "homepage", "publisher_type", "health_theme", "purpose")
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
        agency: the office's id in SDMX, such as `DE1`.
        theme: a code of the European list of data themes, such as HEAL, or the address of a theme.
        keywords: separated by commas.
        spatial: the area that is covered: a country by its code in ISO 3166 such as DEU, an address, or words.
        temporal: first and last day, `2026-01-01/2026-12-31`, of releases without periods.
        legislation: the address of the law that asks for the tables.
        health_category: a category of health data as the European Health Data Space lists them, as an address.
        access_body: the health data access body, by name.
        access_body_contact: its address of mail or of a page.
        access_body_homepage: its page; `access_body_contact` if that is a page and this is empty.
        homepage: the office's own page.
        publisher_type: what kind of office it is, as the address of a concept of a portal's list.
        publisher_note: what the office does, in a sentence.
        trusted_data_holder: whether the office is a trusted holder of health data by law: `yes` or `no`.
        health_theme: the subject within health, as the address of a concept of a portal's list.
        purpose: what the tables are published for, as the address of a concept.
        language: of pages whose spec says none; English if it is empty or no language that is known.
    """

    license: str = ""
    publisher: str = ""
    citation: str = ""
    contact: str = ""
    address: str = ""
    notice: str = ""
    agency: str = ""
    theme: str = ""
    keywords: str = ""
    spatial: str = ""
    temporal: str = ""
    legislation: str = ""
    health_category: str = ""
    access_body: str = ""
    access_body_contact: str = ""
    access_body_homepage: str = ""
    homepage: str = ""
    publisher_type: str = ""
    publisher_note: str = ""
    trusted_data_holder: str = ""
    health_theme: str = ""
    purpose: str = ""
    language: str = ""

    @classmethod
    def of(cls, public: Path) -> About:
        """Reads the file beside a public folder; one that cannot be read says nothing, since nothing may fail here."""
        with suppress(OSError, ValueError, AttributeError, RecursionError):
            items = json.loads((public.parent / NAME).read_bytes()).items()
            return cls(**{name: text[:MOST_LETTERS] for name, text in items if not _fault(name, text)})
        return cls()

    def language_of(self, audit: Mapping[str, Any]) -> str:
        """The language of the pages of a publication: its spec's, else the office's; empty if neither says one."""
        return str(audit.get("language") or self.language)

    def address_of(self, path: str) -> str:
        """The address on the web of a path below the public folder; empty if nobody said where that folder is."""
        base = link_of(self.address)
        return f"{base.rstrip('/')}/{path}" if base.startswith("http") else ""

    def words(self) -> list[str]:
        """The keywords, in the order in which they were written."""
        return list(dict.fromkeys(word for part in self.keywords.split(",") if (word := part.strip())))


def faults(public: Path) -> list[str]:
    """What is wrong with the file, in words: its fields that say nothing to `About.of`; none if there is no file."""
    file = public.parent / NAME
    try:
        content = json.loads(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError):
        return [f"{file} is no JSON that can be read"]
    if not isinstance(content, dict):
        return [f"{file} is no JSON object"]
    return [f"{NAME}: {fault}" for name, text in content.items() if (fault := _fault(name, text))]


def _fault(name: str, text: Any) -> str:
    """Why a field says nothing; empty if it does."""
    names = {field.name for field in fields(About)}
    if name not in names:
        return f"there is no field {name!r}; the fields are {', '.join(sorted(names))}"
    if not isinstance(text, str):
        return f"{name!r} is no text"
    if name == "language" and text and text not in LANGUAGES:
        return f"there is no language {text!r}; the languages are {', '.join(sorted(LANGUAGES))}"
    if name in _PAGES and text and not link_of(text).startswith("http"):
        return f"{name!r} is no address that begins with http:// or https://"
    if name == "trusted_data_holder" and text not in ("", "yes", "no"):
        return f"{name!r} is neither 'yes' nor 'no'"
    return ""


def link_of(text: str) -> str:
    """Where a link on a text leads: the text if it is an address, `mailto:` before one of mail; else empty."""
    if _ADDRESS.fullmatch(text):
        return text
    return f"mailto:{text}" if _MAIL.fullmatch(text) else ""
