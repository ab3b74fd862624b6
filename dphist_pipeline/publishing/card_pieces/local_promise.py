"""Who is protected by reports that are random before they are sent, from whom, and what answering cost."""

from __future__ import annotations

from dphist_pipeline.publishing.card_pieces.facts import Facts, entries, factor, number, swayed
from dphist_pipeline.publishing.card_pieces.local_asked import Asked, percent
from dphist_pipeline.publishing.card_pieces.promise import groups
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import table


def promise(facts: Facts) -> str:
    """The section on what is promised to whom."""
    asked = Asked.of(facts.audit)
    low, high = (odds.replace(" ", "\u00a0") for odds in swayed(asked.epsilon))
    one, other = _answers(asked)
    many = "; so is how many of them a contributor has" if asked.values > 1 else ""
    shown = {
        "Who saw a value": "nobody but the contributor. Each contributor’s own program made a random report of a value "
        "before anything was sent; the curator got these reports, and nothing else",
        "How": how(asked),
        "Privacy unit": f"one contributor, with {one}",
        "Neighbours": f"<code>local</code>: which of any two {_candidates(asked)} a contributor reported is hidden, in "
        f"whatever intervals they lie, or in none{many}",
        "Not hidden": "whether somebody contributed, and when: the curator may see who sends a report",
        "Promise": f"pure ε-local differential privacy with ε\u00a0=\u00a0{number(asked.epsilon)}, δ\u00a0=\u00a00",
    }
    if asked.sampled:
        shown["Sampling"] = (
            f"each report was sent with a probability of {number(asked.participation)}, whatever it says. That lowers "
            "no ε: a report that is sent shows as much as it would without sampling"
        )
    return (
        f"{entries(shown)}<h3>What ε means</h3>"
        f"<p>Whatever a contributor’s reports say: had it been {other}, the chance of just these reports is at "
        f"most {factor(asked.epsilon)} times as large (e<sup>ε</sup>), and at least one part in as many. This holds "
        "for the reports themselves, so for these files too, which are made of them; whatever a reader knows of all "
        "others, and whatever is done with reports or files later.</p>"
        f"<p>As a wager: somebody who wonders which of two {_candidates(asked)} a certain contributor reported gives "
        "them even odds. After reading that contributor’s reports and everything here, that can have moved to no less "
        f"than {low} and no more than {high}.</p>"
        "<p>What is true of several contributors together is protected less: of g of them with g·ε.</p>"
        + table(
            "Groups of people",
            ["people together", "g·ε", "e<sup>g·ε</sup>", "from even odds to"],
            [[cell.replace(" %", "\u00a0%") for cell in row] for row in groups(asked.epsilon)],
            3,
        )
        + "<p class='note'>This question alone. What a contributor answers to other questions, and in other rounds, "
        "adds up. No ledger has an account of it: each contributor’s own record adds up what its owner has spent, "
        "answers nothing beyond its owner’s limit, and sends the same reports again to whoever asks the same question "
        "again.</p>"
    )


def cost(facts: Facts) -> str:
    """What answering cost a contributor, as a table."""
    asked = Asked.of(facts.audit)
    rows = []
    if asked.parted:
        rows.append(["this consumer’s part of the report of one value", number(asked.part_epsilon)])
    rows.append(["one value, for all consumers", number(asked.report_epsilon)])
    if asked.values > 1:
        rows.append([f"all {asked.values} values: {asked.values} times as much", number(asked.epsilon)])
    together = " in this round" if facts.period else ""
    unsent = ", also if their report was not sent" if asked.sampled else ""
    return (
        table("What one contributor spent by answering", ["what", "ε"], rows, 1)
        + f"<p>Everybody who answered spent ε = {number(asked.epsilon)} once{unsent}: for all releases of the "
        f"collection <code>{xml(str(facts.audit['collection']))}</code>{together} together, because they are made "
        "of the same reports. A revision, such as one with reports that came late, costs them nothing more. Who did "
        "not answer spent nothing.</p>"
    )


def how(asked: Asked) -> str:
    """What a contributor's program does with values before it sends anything, as text."""
    first = "for each consumer anew: " if asked.parted else ""
    last = (
        f". The bits of a contributor’s {asked.values} values are added up, and only the sums are sent"
        if asked.summed
        else ""
    )
    ""
    return f"{first}{_encoding(asked)}{last}"


def _encoding(asked: Asked) -> str:
    chances, many = asked.odds, f"{asked.intervals:,}"
    if asked.encoding == "grr":
        return (
            f"a value becomes the number of its interval, of {many}, or the sign for none. That is sent as it is with "
            f"a probability of {percent(chances.there)}; else one of the {many} others is sent, each as likely"
        )
    bits = f"a value becomes {many} bits, one for each interval: 1 where it lies, else 0"
    if asked.intervals == 1:
        bits = "a value becomes one bit: 1 where it lies in the interval, else 0"
    if asked.encoding == "symmetric":
        flipped = percent(chances.elsewhere)
        return f"{bits}. Then each bit is turned round with a probability of {flipped}, independently of the others"
    return (
        f"{bits}. Then the 1 is kept with a probability of 50 %, and each 0 is turned into a 1 with a probability of "
        f"{percent(chances.elsewhere)}, independently of the others"
    )


def _answers(asked: Asked) -> tuple[str, str]:
    """What a contributor answered, and what it could have been."""
    if asked.values == 1:
        return "the one value that they reported", "any other value, or none"
    return f"all {asked.values} values that they reported", f"any other {asked.values} values"


def _candidates(asked: Asked) -> str:
    return "values" if asked.values == 1 else f"lists of {asked.values} values"
