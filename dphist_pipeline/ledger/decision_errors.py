"""Why a decision is refused, and why a release that needs one is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from shlex import quote

from dphist_pipeline.ledger.decisions import SourceReading
from dphist_pipeline.ledger.errors import LedgerError


class OperatorKeyUnusable(LedgerError):
    """The key that signs decisions is not there, or is none."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"The operator's key, {where}, {problem}. Decisions are signed with it, releases do not need it: "
            "`dphist init` makes one, and DPHIST_OPERATOR_KEY names another place. Nothing was decided."
        )


class NotSigned(LedgerError):
    """A decision that no operator known to the ledger signed."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        super().__init__(f"A decision ('{kind}') without the signature of an operator whose key the ledger holds.")


class KeyForeign(LedgerError):
    """A decision signed with a key that the ledger does not hold."""

    def __init__(self, operators: Iterable[str]) -> None:
        self.operators = tuple(operators)
        super().__init__(
            f"This operator's key is not one of this ledger's; it holds those of: {', '.join(self.operators)}. Use "
            "one of them (DPHIST_OPERATOR_KEY names its file), or have one of them add yours: "
            "dphist ledger add-key KEY --name NAME. Nothing was decided."
        )


class KeyKnown(LedgerError):
    """An operator's key that is added a second time."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"The ledger holds this key already, of {name}. Nothing was changed.")


class DecisionUnknown(LedgerError):
    """A decision that is not there, or not in force, or does not wait."""

    def __init__(self, number: int, known: Sequence[int]) -> None:
        self.number, self.known = number, tuple(known)
        listed = f"These are: {', '.join(map(str, self.known))}." if self.known else "There is none."
        super().__init__(f"Entry {number} is no decision that this is about. {listed} See `dphist ledger show`.")


class SignedAlready(LedgerError):
    """A second signature by the operator who gave the first."""

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        super().__init__(f"Entry {number} was signed by {name} already; the second signature is another operator's.")


class SourceOfAnother(LedgerError):
    """A source that belongs to another account."""

    def __init__(self, address: str, account: str, others: Sequence[str]) -> None:
        self.address, self.account, self.others = address, account, tuple(others)
        shared = " ".join(f"--also-of {other}" for other in self.others)
        super().__init__(
            f"Source {address} belongs to account {' and '.join(map(repr, self.others))}. What '{account}' spends on "
            f"the same people adds to that: to share the source, and see both totals summed, add {shared}."
        )


class NotAllowed(LedgerError):
    """A release that would read what no operator allowed."""

    def __init__(self, account: str, what: str, problem: str, command: str) -> None:
        self.account, self.what, self.command = account, what, command
        super().__init__(
            f"{what} {problem}. Nothing was read or spent. Whoever keeps the ledger can allow it: {command}"
        )

    @classmethod
    def source(
        cls, account: str, asked: SourceReading, differences: Sequence[tuple[str, str, str]], allowed: Sequence[str]
    ) -> NotAllowed:
        """A source, or the way it is read; `differences`: from the reading that was allowed for the same address."""
        command = f"dphist ledger allow {account} {asked.options()}"
        what = f"Source {asked.address}"
        if differences:
            if [field for field, *_ in differences] == ["folder"]:
                # The folder itself is not shown: the environment may have given it.
                problem = (
                    f"is allowed for account '{account}' in another folder: relative addresses start at the project of "
                    "the spec, those of a decision at the project in which it is made, and links are followed. The "
                    "command is to be run in the project of the spec"
                )
                return cls(account, what, problem, command)
            listed = "; ".join(f"{field} is {there} there, {here} here" for field, there, here in differences)
            return cls(
                account, what, f"is allowed for account '{account}' to be read in another way: {listed}", command
            )
        known = f"; allowed are {', '.join(sorted(set(allowed)))}" if allowed else "; nothing is allowed yet"
        return cls(account, what, f"is not allowed for account '{account}'{known}", command)

    @classmethod
    def query(cls, account: str, name: str, because: str) -> NotAllowed:
        """A query that is not known to work row by row."""
        command = f"dphist ledger allow {account} --query {quote(name)} --reason TEXT"
        problem = f"needs a decision for account '{account}', as it stands now: {because.rstrip('. ')}"
        return cls(account, f"Query {name}", problem, command)
