"""Mechanisms with settings, as the user writes them on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import DphistError, Refused
from dphist_pipeline.estimates.budget import Budget


@dataclass(frozen=True)
class Contender:
    """A mechanism with settings.

    Attributes:
        written: as the user wrote it, such as `noise_first:penalty=bic`; its name in tables and plots.
        settings: (setting, value), both as text; a value of a spec may be a tuple.
    """

    written: str
    mechanism: str
    settings: tuple[tuple[str, str | tuple[object, ...]], ...] = ()

    def check(self, domain: Domain, sensitivity: int, epsilons: Iterable[Fraction]) -> None:
        """Refuses unknown mechanisms and settings, and domains and epsilons that the mechanism does not serve."""
        built = mechanisms.build(self.mechanism, dict(self.settings))
        for epsilon in epsilons:
            Budget(epsilon).scale(sensitivity)
            built.check(domain, sensitivity, epsilon)


def bad_contender(text: str, problem: str) -> Refused:
    """The text does not name a mechanism with settings."""
    return Refused(f"{text[:60]!r}: {problem}; write a mechanism as NAME or NAME:SETTING=VALUE,…", code="bad_contender")


def parse_contender(text: str) -> Contender:
    """A mechanism with settings from `NAME` or `NAME:SETTING=VALUE,…`. Does not check that the mechanism exists.

    Raises:
        Refused: the text has another form.
    """
    name, colon, rest = text.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",")] if colon else []
    settings = tuple((setting.strip(), value.strip()) for setting, _, value in pairs)
    if not all(setting and value for setting, value in settings):
        raise bad_contender(text, "a setting without a value")
    if len(dict(settings)) != len(settings):
        raise bad_contender(text, "a setting is given twice")
    return Contender(text, name.strip(), settings)


def choose_contenders(
    texts: Sequence[str],
    domain: Domain,
    sensitivity: int,
    epsilons: Sequence[Fraction],
    first: Contender | None = None,
) -> tuple[tuple[Contender, ...], dict[str, str]]:
    """The mechanisms that the user named; without names, all mechanisms that serve the domain with default settings.

    Args:
        texts: see `parse_contender`; each is taken once.
        first: a mechanism to put first if none are named; it must serve the domain.

    Returns:
        The mechanisms, and for each mechanism that does not serve the domain the reason.

    Raises:
        DphistError: a named mechanism, or `first`, does not serve the domain.
    """
    contenders = [parse_contender(text) for text in dict.fromkeys(texts)]
    if first is not None and not texts:
        contenders.append(first)
    for contender in contenders:
        contender.check(domain, sensitivity, epsilons)
    refused: dict[str, str] = {}
    for name in () if texts else mechanisms.names():
        contender = Contender(name, name)
        try:
            contender.check(domain, sensitivity, epsilons)
        except DphistError as error:
            refused[name] = str(error)
        else:
            contenders.append(contender)
    return tuple(dict.fromkeys(contenders)), refused
