"""What not to conclude from counts that were estimated from random reports."""

from __future__ import annotations

from collections.abc import Iterator

from dphist_pipeline.publishing.card_pieces.facts import Facts, rounded
from dphist_pipeline.publishing.card_pieces.local_asked import Asked


def warnings(facts: Facts) -> str:
    """What not to conclude, as a list."""
    asked = Asked.of(facts.audit)
    said = [*_of_chance(facts), *_of_negatives(asked), *_of_contributors(asked)]
    return f"<ul>{''.join(f'<li>{text}</li>' for text in said)}</ul>"


def _of_chance(facts: Facts) -> Iterator[str]:
    cells = facts.grid.domain.cells
    yield (
        "<b>Not what was found by looking.</b> A 95 % interval holds the true number with that probability for an "
        "interval or range that was chosen before seeing the release. The largest, the steepest rise, the odd one out "
        "stand out partly because of chance."
    )
    yield (
        "<b>Not all intervals at once.</b> Each errs 1 time in 20"
        f"{f'; of {cells:,}, expect about {rounded(round(cells / 20))} outside' if cells > 20 else ''}."
    )


def _of_negatives(asked: Asked) -> Iterator[str]:
    if asked.nonnegative:
        yield (
            "<b>Not that an estimate of 0 is an empty interval.</b> <code>estimate</code> is the nearest to "
            "<code>unbiased_estimate</code> that has nothing below 0 and the same sum. That makes small numbers too "
            "large and large ones a little too small, and can put an estimate outside its 95 % interval. Add up "
            "<code>unbiased_estimate</code> for a sum without bias."
        )
        return
    yield (
        "<b>Not that a negative estimate is a mistake.</b> Chance goes both ways. Setting negatives to 0 before adding "
        "up makes sums too large: add first, then cut off."
    )


def _of_contributors(asked: Asked) -> Iterator[str]:
    yield (
        "<b>Not that reports are true.</b> People can report what they like, and can send many reports under new "
        "numbers. Nothing here detects that, and no interval covers it. The smaller ε is, the farther a single report "
        "moves an estimate."
    )
    yield (
        "<b>Not what those hold who did not answer.</b> Estimates are of values of contributors whose reports were "
        "accepted"
        + (", and of those whose reports the coin held back" if asked.sampled else "")
        + ". Who was asked and stayed away may be different, and how many there are stands nowhere."
    )
    yield (
        "<b>Not that all intervals add up to the number of contributors.</b> Values outside every interval, and "
        "missing ones, are reported and counted nowhere; and the sum is an estimate as well."
    )
    if asked.values > 1:
        yield (
            f"<b>Not people.</b> Counts are of values, {asked.values} for each contributor; one person can be in "
            "several."
        )
    if asked.shared:
        yield (
            "<b>Not that another consumer’s histogram confirms this one.</b> They are made of the same reports, and "
            "share their errors."
        )
    yield (
        "<b>Not that nothing can be learned of people.</b> What is true of many can be learned from these counts, and "
        "said of each of them, whether or not they took part."
    )
