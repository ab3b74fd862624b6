"""The operator's key: decisions are signed with it, and a release runs without it.

The ledger holds the public half. The private half lies in the user's configuration, or where DPHIST_OPERATOR_KEY says:
whoever can run releases, and even write the ledger's file, cannot decide anything without it.
"""

from __future__ import annotations

import getpass
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.files import make_folder, write_durably
from dphist_pipeline.ledger.entries import Entry
from dphist_pipeline.ledger.errors import OperatorKeyOpen, OperatorKeyUnusable

KEY = "DPHIST_OPERATOR_KEY"


@dataclass(frozen=True)
class Operator:
    """An operator, who decides: a private key and a name that the ledger shows."""

    name: str
    private: Ed25519PrivateKey

    @property
    def public(self) -> str:
        """The public half, 64 hexadecimal digits."""
        return self.private.public_key().public_bytes_raw().hex()

    def facts(self) -> dict[str, str]:
        """An operator as entries hold one: the name and the public half of the key."""
        return {"name": self.name, "key": self.public}

    @classmethod
    def load(cls, path: Path | None = None) -> Operator:
        """The operator whose key lies at a path, by default at `key_path`.

        Raises:
            OperatorKeyUnusable: there is none, or it cannot be read.
            OperatorKeyOpen: others can read, change or replace it.
        """
        path = path or key_path()
        try:
            private = load_pem_private_key(_read_closed(path), password=None)
        except FileNotFoundError:
            problem = "is not there"
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
            problem = "cannot be read as a private key"
        else:
            if isinstance(private, Ed25519PrivateKey):
                return cls(login_name(), private)
            problem = "is a key of another kind; it must be Ed25519"
        raise OperatorKeyUnusable(where=str(path), problem=problem)

    @classmethod
    def load_or_make(cls, path: Path | None = None) -> Operator:
        """The operator's key, made where there is none yet; readable by its owner alone."""
        path = path or key_path()
        if not path.exists():
            content = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            problem = ""
            try:
                make_folder(path.absolute().parent)
                _refuse_open_folders(path)
                with suppress(FileExistsError):  # another process made it a moment ago
                    write_durably(path, content)
            except OSError as error:
                problem = f"cannot be made: {error.strerror}"
            if problem:
                raise OperatorKeyUnusable(where=str(path), problem=problem)
        return cls.load(path)

    def with_signature(self, entry: Entry) -> Entry:
        """The entry with this operator's signature in its body; its hash is still to be made."""
        signature = self.private.sign(_text(entry).encode("ascii")).hex()
        signed = {"key": self.public, "signature": signature}
        return replace(entry, body=canonical_json({**entry.facts, "signed": signed}))


def _read_closed(path: Path) -> bytes:
    """The content of a key file that nobody but its owner can read, change or replace."""
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
            raise OperatorKeyOpen(
                where=str(path), problem="others may read or change it", mend=f"chmod 600 {_shell_path(path)}"
            )
        _refuse_open_folders(path)
        return file.read()


def _refuse_open_folders(path: Path) -> None:
    """Refuses a key in a folder where others could put another file in its place, or another link to it."""
    for folder in (path.absolute().parent, path.resolve().parent):
        mode = folder.stat().st_mode
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and not mode & stat.S_ISVTX:
            problem, mend = f"others may replace files in {folder}", f"chmod go-w {_shell_path(folder)}"
            raise OperatorKeyOpen(where=str(path), problem=problem, mend=mend)


def _shell_path(path: Path) -> str:
    """A path as a shell takes it, in whatever folder it is typed."""
    return quote(str(path.absolute()))


def key_path() -> Path:
    """The path of the operator's private key: $DPHIST_OPERATOR_KEY, else in the user's configuration."""
    if os.environ.get(KEY):
        return Path(os.environ[KEY])
    configuration = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(configuration, "dphist", "operator.key")


def login_name() -> str:
    """The name of this process's user on this machine, for the ledger."""
    with suppress(OSError, KeyError, ImportError):
        name = getpass.getuser()
        if name.isprintable() and 0 < len(name) <= 60:
            return name
    return "operator"


def is_public_key(text: object) -> bool:
    """Whether anything is a public key as the ledger writes it: Ed25519, 64 hexadecimal digits, small letters."""
    if not isinstance(text, str) or len(text) != 64 or text != text.lower():
        return False
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(text))
    except ValueError:
        return False
    return True


def signer_of(entry: Entry) -> str | None:
    """The public key whose signature an entry rightly bears, known or not; None without one, or with a false one."""
    facts = entry.facts
    signed = facts.pop("signed", None)
    if not isinstance(signed, dict) or signed.keys() != {"key", "signature"} or not is_public_key(signed["key"]):
        return None
    bare = replace(entry, body=canonical_json(facts))
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed["key"]))
        key.verify(bytes.fromhex(signed["signature"]), _text(bare).encode("ascii"))
    except (InvalidSignature, ValueError, TypeError):
        return None
    return str(signed["key"])


def _text(entry: Entry) -> str:
    """The text that is signed: all of an entry, its place in the chain included, but not its hash."""
    return canonical_json({name: value for name, value in vars(entry).items() if name != "hash"})
