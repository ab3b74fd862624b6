"""The journal: a measurement's answer is durable, and the only one under its name, before anybody sees it.

A draw is written to a scratch file, made durable, and linked to its name, which fails when the name is taken.
A run that loses the race reads the winner's answer. So runs that crash and resume, or that race, all go on from the
same answer, and a number that nobody can read again was never shown to a mechanism.

A copy of the store has a journal of its own. So a digest of every answer is vouched for by a witness outside the
store before the answer is used, whenever it is read; a copy's answer to the same step has another digest. A step
whose answer the witness knows, and this journal does not hold, is not drawn.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.files import make_folder, sync_folder, write_durably
from dphist_pipeline.errors import AfterCharge, DphistError

Draw = Callable[[], NDArray[np.int64]]
Vouch = Callable[[str, str], None]
Elsewhere = Callable[[str], DphistError | None]


class JournalMismatch(AfterCharge):
    """An answer in the journal was made for another query, or is damaged."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(
            f"the journal's answer at {path} {problem}. Put back the confidential store that belongs to this "
            "ledger; to release anew, at its price, use `--revise --reason …`."
        )


class AnswerStore(Protocol):
    """A store of answers that were drawn. Studies have none, being in no ledger: every query is drawn anew."""

    def answer(self, step: str, query: Mapping[str, str], draw: Draw) -> NDArray[np.int64]:
        """The only answer to `query` under the name `step`; drawn where there is none yet.

        Args:
            step: name of the budget, or one made of it; a journal calls the answer's file so.
            query: the measurement, exact epsilon and scale, and a digest, as text; an answer to another one is refused.
            draw: gives the answer, one dimension; called at most once.
        """
        ...


class Journal:
    """The answers of one charge, each one file: a line of JSON, then little-endian int64.

    Args:
        folder: where the answers stay, as long as the release.
        scratch: a folder on the same file system for files that are not yet linked.
        charge: hash of the ledger's entry that pays for the answers.
        vouch: called with the step and the digest of its answer before the answer is given; raises where another
            answer to the step is known. The digest is salted, so that nobody finds the answer by trying.
        elsewhere: called with the step before anything is drawn for it; gives the error if the witness knows an answer.
    """

    def __init__(
        self,
        folder: Path,
        scratch: Path,
        charge: str,
        vouch: Vouch = lambda step, digest: None,
        elsewhere: Elsewhere = lambda step: None,
    ) -> None:
        self._folder, self._scratch, self._charge = folder, scratch, charge
        self._vouch, self._elsewhere = vouch, elsewhere

    def answer(self, step: str, query: Mapping[str, str], draw: Draw) -> NDArray[np.int64]:
        """The only answer to `query` under the name `step`; drawn where there is none yet."""
        final = self._folder / f"{step}.answer"
        facts = {**query, "step": step, "charge": self._charge}
        if not final.exists():
            refusal = self._elsewhere(step)
            if refusal is None:
                self._link(final, facts, draw())
            elif not final.exists():  # else another run of this store drew it and told the witness a moment ago
                raise refusal
        # A winner may have died between its link and this: its answer must not be lost once used.
        sync_folder(self._folder)
        values, digest = self._read(final, facts)
        # Now, not only after a draw: who drew it may have died before. A refused answer is refused at every reading.
        self._vouch(step, digest)
        return values

    def _link(self, final: Path, asked: Mapping[str, str], values: NDArray[np.int64]) -> None:
        payload = np.ascontiguousarray(values, dtype="<i8").ravel().data
        nonce = os.urandom(32).hex()
        digest = hashlib.sha256(nonce.encode() + payload).hexdigest()
        header = {**asked, "nonce": nonce, "size": str(values.size), "sha256": digest}
        make_folder(self._folder)
        scratch = self._scratch / uuid.uuid4().hex
        try:
            write_durably(scratch, json.dumps(header, sort_keys=True).encode() + b"\n", payload)
            os.link(scratch, final)
        except FileExistsError:
            pass  # another run was first: its answer stands, ours is forgotten
        finally:
            scratch.unlink(missing_ok=True)

    @staticmethod
    def _read(final: Path, asked: Mapping[str, str]) -> tuple[NDArray[np.int64], str]:
        """The values of an answer, and the digest that a witness may know."""
        content = final.read_bytes()
        line, payload = content[: (end := content.find(b"\n") + 1)], memoryview(content)[end:]
        try:
            header = json.loads(line)
        except ValueError:
            header = None
        if not isinstance(header, dict):
            raise JournalMismatch(final, "is damaged")
        nonce = header.get("nonce", "")  # answers of earlier versions have none
        digest = hashlib.sha256(str(nonce).encode() + payload).hexdigest()
        if header.get("sha256") != digest or header.get("size") != str(len(payload) // 8):
            raise JournalMismatch(final, "is damaged")
        differing = sorted(key for key in asked if header.get(key) != asked[key])
        if differing:
            raise JournalMismatch(final, f"was made for another {' and '.join(differing)}")
        values = np.frombuffer(payload, dtype="<i8").astype(np.int64)
        return values, digest if nonce else hashlib.sha256(content).hexdigest()
