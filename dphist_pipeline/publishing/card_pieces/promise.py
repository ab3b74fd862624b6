"""Who is protected and how: the unit, the bound, epsilon in words, groups of people, what each step cost."""

from __future__ import annotations

from fractions import Fraction

from dphist_pipeline.publishing.card_pieces.facts import Facts, counted, factor, number, swayed
from dphist_pipeline.publishing.plots_drawing import xml
from dphist_pipeline.publishing.plots_page import named, table

GROUPS = (1, 2, 5, 10)


def promise(facts: Facts) -> str:
    """The section on what is promised to whom."""
    audit, unit = facts.audit, facts.unit
    low, high = swayed(facts.epsilon)
    bound = (
        "every row is taken for another person"
        if facts.by_row
        else f"of one {unit}, at most {counted(audit['max_rows_per_unit'], 'row', 'rows')}"
        f"{' of this period' if facts.period else ''} are counted; which ones are kept depends on nobody else’s rows"
    )
    return (
        "<dl class='facts'>"
        f"<dt>Privacy unit</dt><dd>one {unit}</dd>"
        f"<dt>Bound</dt><dd>{bound}</dd>"
        f"<dt>Neighbours</dt><dd>{_neighbours(facts)}</dd>"
        f"<dt>Sensitivity Δ</dt><dd>{audit['sensitivity']}: the most that one {unit} moves all counts together</dd>"
        f"<dt>Promise</dt><dd>pure ε-differential privacy with ε = {number(facts.epsilon)}, δ = 0</dd></dl>"
        "<h3>What ε means</h3>"
        f"<p>Whatever these files show, {_had_it_been(facts)}, the chance of it is at most {factor(facts.epsilon)} "
        "times as large (e<sup>ε</sup>), and at least one part in as many. This holds whatever a reader knows of all "
        "others, and whatever is done with the files later.</p>"
        f"<p>As a wager: somebody who {_even_chance(facts)} gives it even odds. After reading everything here, that "
        f"can have moved to no less than {low} and no more than {high}.</p>"
        "<p>Several people together are protected less: g of them have g·ε.</p>"
        + table(
            "Groups of people",
            ["people together", "g·ε", "e<sup>g·ε</sup>", "from even odds to"],
            groups(facts.epsilon),
            3,
        )
        + _decided(facts)
        + f"<p class='note'>This publication alone. What other periods, revisions and releases spend on the same "
        f"{unit} adds up; the account <q>{named(str(audit['account']))}</q> of the ledger bounds it.</p>"
    )


def _decided(facts: Facts) -> str:
    """Who decided what was read; and what the promise rests on where a query makes the rows."""
    decisions = facts.audit.get("allowed") or []
    if not decisions:
        return ""
    listed = ", ".join(
        f"entry {made['entry']} ({xml(str(made['kind']))}, by {named(', '.join(made['by']) or 'nobody known')})"
        for made in decisions
    )
    said = f"<p>What was read, and how, was decided by an operator: {listed} of the ledger.</p>"
    query = facts.audit.get("query") or {}
    if query.get("by_row", True):
        return said
    return said + (
        "<p><strong>The promise rests on a query that an operator allowed</strong>, whose text has the digest "
        f"<code>{xml(str(query['sha256']))}</code>. It may join tables or make units: that one "
        f"{facts.unit} of its result is one of the people to be protected, and moves nobody else’s rows, is what the "
        "operator vouches for. No program has checked it.</p>"
    )


def groups(epsilon: Fraction) -> list[list[str]]:
    """The rows of a table: what is promised to people together, each of whom is promised epsilon."""
    rows = []
    for people in GROUPS:
        together = epsilon * people
        rows.append([str(people), number(together), factor(together), " to ".join(swayed(together))])
    return rows


def _neighbours(facts: Facts) -> str:
    if facts.substitute:
        return (
            f"<code>substitute</code>: what rows one {facts.unit} holds is hidden; how many there are in all is taken "
            "for known"
        )
    return f"<code>add_remove</code>: whether one {facts.unit} is in the records at all is hidden"


def _had_it_been(facts: Facts) -> str:
    if facts.substitute:
        return f"had any one {facts.unit} held other rows instead"
    return f"had any one {facts.unit} not been in the records"


def _even_chance(facts: Facts) -> str:
    if facts.substitute:
        return f"wonders which of two sets of rows a certain {facts.unit} holds"
    return f"wonders whether a certain {facts.unit} is in the records"


def charges(facts: Facts) -> str:
    """What each step of the mechanism cost, as a table."""
    rows = []
    for charge in facts.audit["charges"]:
        scale = charge["noise_scale"]
        noise = number(Fraction(scale)) if scale else "none: nothing was left to buy"
        rows.append([named(str(charge["step"])), number(Fraction(charge["epsilon"])), noise])
    rows.append(["all steps", number(facts.epsilon), ""])
    return table("Charges, step by step", ["step", "ε", "scale of the noise"], rows, 2)
