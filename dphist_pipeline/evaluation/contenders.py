"""Who is compared: mechanisms with their settings, as a person writes them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline import mechanisms
from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.budget import Budget


@dataclass(frozen=True)
class Contender:
    """One mechanism with settings.

    Attributes:
        written: as it was asked for, such as `noise_first:penalty=bic`; its name in every table and plot.
        mechanism: its name in the registry.
        settings: as (setting, value), values as text.
    """

    written: str
    mechanism: str
    settings: tuple[tuple[str, str], ...] = ()

    def check(self, domain: Domain, sensitivity: int, epsilons: Iterable[Fraction]) -> None:
        """Refuses a mechanism or a setting that does not exist, and a domain or an epsilon that it cannot serve."""
        built = mechanisms.build(self.mechanism, dict(self.settings))
        for epsilon in epsilons:
            Budget(epsilon).scale(sensitivity)
            built.check(domain, sensitivity, epsilon)


class BadContender(DphistError):
    """Text that does not name a mechanism with settings."""

    def __init__(self, written: str, problem: str) -> None:
        self.written = written
        super().__init__(f"{written[:60]!r}: {problem}; write a mechanism as NAME or NAME:SETTING=VALUE,…")


def parse_contender(written: str) -> Contender:
    """A contender from `NAME` or `NAME:SETTING=VALUE,SETTING=VALUE`; its mechanism is not looked up yet."""
    name, colon, rest = written.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",")] if colon else []
    settings = tuple((setting.strip(), value.strip()) for setting, _, value in pairs)
    if not all(setting and value for setting, value in settings):
        raise BadContender(written, "a setting without a value")
    if len(dict(settings)) != len(settings):
        raise BadContender(written, "a setting is given twice")
    return Contender(written, name.strip(), settings)


def all_contenders(
    domain: Domain, sensitivity: int, epsilons: Iterable[Fraction]
) -> tuple[list[Contender], dict[str, str]]:
    """Every mechanism of the registry that serves a domain as it comes, and why the others do not."""
    asked, serving, refused = list(epsilons), [], {}
    for name in mechanisms.names():
        contender = Contender(name, name)
        try:
            contender.check(domain, sensitivity, asked)
        except DphistError as error:
            refused[name] = str(error)
        else:
            serving.append(contender)
    return serving, refused
