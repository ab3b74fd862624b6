"""What the name of a column says of a unit: a person, an event, or what other people's rows made. Names are public."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dphist_pipeline.releasing.release_spec import ReleaseSpec

# Names are compared in words with `_` between them: `patientId` as `patient_id`.
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
PEOPLE = (
    "person|patient|household|resident|client|customer|member|subject|user|citizen|student|pupil|employee|beneficiary|"
    "insured|individual"
)
_MORE_PEOPLE = (
    f"{PEOPLE}|people|borrower|reader|card|participant|respondent|inhabitant|tenant|worker|staff|family|taxpayer|"
    "policyholder|"
    "personen?|patienten?|kunden?|leser|mitglieds?|haushalts?|versicherten?|einwohner|schueler|menage|personne|usager"
)
_EVENTS = (
    "call|case|visit|row|record|line|event|admission|encounter|stay|episode|appointment|referral|order|item|"
    "transaction|payment|purchase|invoice|receipt|booking|reservation|loan|trip|ride|ticket|claim|session|request|"
    "response|incident|accident|offence|entry|message|fall|vorgangs?|besuchs?|ausleihe?|rechnungs?|aufnahme|"
    "auftrags?|buchungs?|einsatz|fahrt|zeilen?|appel|visite|commande|sejour|ligne"
)
_KEYS = "id|ids|nr|nbr|no|num|number|nummer|key|code|uid|uuid"
_PERSON = re.compile(
    rf"({_MORE_PEOPLE})(_?({_KEYS}))?|({_KEYS}|numero)_({_MORE_PEOPLE})|(pid|ssn|nhs|mrn)(_({_KEYS}))?"
)
_EVENT = re.compile(rf"({_EVENTS})_?({_KEYS})|({_KEYS}|numero)_({_EVENTS})")
_HOUSEHOLDS = "household|haushalt|hh|family|famil|famille|familie|menage|foyer|hogar"
# What is computed from the rows of several people: `household_size`, `income_rank`, `calibrated_weight`.
_OF_HOUSEHOLDS = re.compile(rf"(^|_)(({_HOUSEHOLDS})[a-z]*|{PEOPLE.replace('|', 's|')}s_in|n_?persons|siblings?)(_|$)")
_OF_ALL_ROWS = re.compile(
    r"(^|_)(rank|ranks|ranking|rang|percentile|quantile|decile|quintile|quartile|pctl|zscore|weight|weights|wgt|wt|"
    r"weighting|gewicht|hochrechnung|poids|p?wgtp|calib[a-z]*|propensity)(_|$)"
)
_OF_A_BODY = re.compile(r"(^|_)(birth|body|kg|kilo|g|gram|grams|lb|lbs|loss|gain|geburts?|koerper)(_|$)")
_OF_ANY_ROW = re.compile(r"id|uid|uuid|guid|index|key|seq|sequence|nr|no|number|nummer|lfd_?(nr|no)?")


def as_words(name: str) -> str:
    """The name of a column in lower case, with `_` between its words."""
    return _WORDS.sub("_", name).lower()


def names_person(name: str) -> bool:
    """Whether a whole name says that its column tells persons or households apart, as `patient_no`."""
    return _PERSON.fullmatch(as_words(name)) is not None


def names_event(name: str) -> bool:
    """Whether a whole name says that its column tells events or rows apart, as `call_id`."""
    return _EVENT.fullmatch(as_words(name)) is not None


def unit_doubt(units: Sequence[str], columns: Sequence[str]) -> str:
    """A warning where a privacy unit has the name of an event, and so hides one event of a person alone; else empty.

    Args:
        units: columns of the privacy unit. One that names a person is enough.
        columns: all that are known. Of a plain `id` it is only said where one of them names a person.
    """
    people = [name for name in columns if names_person(name) and name not in units]
    events = [name for name in units if names_event(name) or (people and _OF_ANY_ROW.fullmatch(as_words(name)))]
    if not events or any(map(names_person, units)):
        return ""
    other = f", and {people[0]} like that of a person" if people else ""
    mend = f"take {people[0]}" if people else "take the column that names the person"
    return (
        f"{events[0]} looks like the id of an event or a row{other}: with it as `privacy_unit`, a person with several "
        f"is hidden in one of them at a time, and not as a whole. To protect people, {mend}."
    )


def doubt_of_axes(spec: ReleaseSpec) -> str:
    """The warning of `doubt_of_other_rows` for a spec; else empty."""
    return doubt_of_other_rows(spec.privacy_unit.columns, [column for axis in spec.axes for column in axis.columns])


def doubt_of_other_rows(units: Sequence[str], columns: Sequence[str]) -> str:
    """A warning where an axis has the name of what other people's rows make, as a household's size; else empty."""
    doubtful = of_other_rows(units, columns)
    if not doubtful or set(doubtful) <= set(units):
        return ""
    unit = " with ".join(units)
    return (
        f"{', '.join(doubtful)}: the name speaks of what is computed from the rows of several people (a household's "
        f"size, a rank, a weight). If one {unit} more or less changes it in the rows of others, epsilon does not cover "
        f"that, and no file shows it. Leave it out, or protect all whom it is made of, as in `privacy_unit: "
        "household_id`: docs, *Persons by household size*."
    )


def of_other_rows(units: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The columns whose names speak of what other people's rows make.

    Args:
        units: columns of the privacy unit, or `row`. Where one names a household, its size is its own.
        columns: those of the axes.
    """
    of_household = any(re.search(rf"(^|_)({_HOUSEHOLDS})", as_words(unit)) for unit in units)
    doubtful = []
    for name in dict.fromkeys(columns):
        words = as_words(name)
        of_all = _OF_ALL_ROWS.search(words) and not _OF_A_BODY.search(words)
        if of_all or (not of_household and _OF_HOUSEHOLDS.search(words)):
            doubtful.append(name)
    return doubtful
