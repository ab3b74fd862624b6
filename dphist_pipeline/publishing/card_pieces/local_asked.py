"""What contributors were asked, and what came of it, as the audit of a release of the local model says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dphist_pipeline.local.law import Odds, odds
from dphist_pipeline.local.question import Encoding, Part


@dataclass(frozen=True)
class Asked:
    """A question and its reports.

    Attributes:
        protocol: how consumers share a report.
        values: of each contributor.
        summed: whether they are added up in one report.
        epsilon: what one contributor spends by answering.
        report_epsilon: of one value, for all consumers.
        part_epsilon: of what one release is made from.
        encoding: of a part.
        intervals: that a report tells apart: those of the release are made of them.
        participation: how likely a report is sent.
        nonnegative: whether estimates were moved so that none is below 0.
        accepted: reports that were counted.
        reported: values that they hold, as an interval or as none.
        refused: how many reports were not counted, by reason.
    """

    protocol: str
    values: int
    summed: bool
    epsilon: Fraction
    report_epsilon: Fraction
    part_epsilon: Fraction
    encoding: Encoding
    intervals: int
    participation: Fraction
    nonnegative: bool
    accepted: int
    reported: int
    refused: Mapping[str, int]

    @classmethod
    def of(cls, audit: Mapping[str, Any]) -> Asked:
        """Reads an audit; see `local.publication`."""
        settings, reports = audit["settings"], audit["reports"]
        return cls(
            protocol=str(audit["mechanism"]),
            values=int(audit["max_rows_per_unit"]),
            summed=settings["values"] == "summed",
            epsilon=Fraction(audit["epsilon"]),
            report_epsilon=Fraction(settings["report_epsilon"]),
            part_epsilon=Fraction(settings["part_epsilon"]),
            encoding=settings["encoding"],
            intervals=int(settings["intervals"]),
            participation=Fraction(settings.get("participation", 1)),
            nonnegative=bool(settings["nonnegative"]),
            accepted=int(reports["accepted"]),
            reported=int(reports["values"]),
            refused=dict(reports["refused"]),
        )

    @property
    def odds(self) -> Odds:
        """The chances of a bit or number of a report: the same wherever its intervals end."""
        return odds(Part(tuple(map(Fraction, range(self.intervals + 1))), self.part_epsilon, self.encoding))

    @property
    def shared(self) -> bool:
        """Whether the histograms of several consumers are made of the same bits."""
        return self.protocol in ("chp", "sampled")

    @property
    def parted(self) -> bool:
        """Whether each consumer has a part of a report."""
        return self.part_epsilon != self.report_epsilon

    @property
    def reports_each(self) -> int:
        """How many reports a contributor has."""
        return 1 if self.summed else self.values

    @property
    def sampled(self) -> bool:
        """Whether some reports were not sent."""
        return self.participation < 1

    @property
    def contributors(self) -> int | None:
        """How many contributed, if each answered once; None where reports that were not sent hide it."""
        return None if self.sampled else self.accepted // self.reports_each


def about(amount: float) -> str:
    """An amount that is not known to all its digits: three of them."""
    return f"{float(f'{amount:.3g}'):,.0f}"


def percent(chance: float) -> str:
    """A chance in percent, with two digits that tell it from 0 and from 1."""
    shown = 100 * chance
    digits = 2 if min(shown, 100 - shown) < 10 else 1
    return f"{shown:.{digits}f} %" if 0.01 <= shown <= 99.99 else f"{shown:.2g} %" if shown < 1 else "above 99.99 %"
