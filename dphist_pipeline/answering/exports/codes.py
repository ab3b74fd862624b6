"""The code and the label of every position along an axis, as files for statistical systems write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Sequence
from typing import NamedTuple

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.base.domain import Axis, CategoricalAxis
from dphist_pipeline.base.languages.texts import in_language, pgettext
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.formatting import visible

OTHER, NOT_APPLICABLE = "_O", "_Z"  # SDMX's codes
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_@$-]*", re.ASCII)


class Code(NamedTuple):
    """A position along an axis.

    The code has Latin letters, digits and `_@$-`; no two positions have the same, in capitals or not. The label is for
    people, on one line. `meant`: the category or bin: the same in every period that has it.
    """

    code: str
    label: str
    meant: str


def codes_of(axis: Axis, closed: bool = False) -> list[Code]:
    """The codes of an axis in declared order; a category that is a code by itself keeps it.

    `closed`: both ends of the last bin belong to it, as in local collections.
    """
    if not isinstance(axis, CategoricalAxis):
        with in_language(""):  # a code is the same in every language
            english = ReaderAxis(axis, closed).labels[: axis.size - axis.other]
        spoken = ReaderAxis(axis, closed).labels
        triples = [(_code(label), axis_codes, label) for label, axis_codes in zip(english, spoken, strict=False)]
    else:
        labelled_values = zip(axis.values, axis.labels or axis.values, strict=True)
        triples = [
            (value if _CODE.fullmatch(value) else _code(label or value), label or value, value)
            for value, label in labelled_values
        ]
    codes = [code for code, _, _ in triples]
    if not all(codes) or len({code.upper() for code in codes} | {OTHER}) <= len(codes):
        codes = [f"{'B' if axis.is_ordered else 'C'}{place}" for place in range(len(codes))]
    # On one line, and with a sign in place of what cannot be seen.
    labels = [visible(" ".join(label.split())) or "�" for _, label, _ in triples]
    axis_codes = [Code(code, label, told[2]) for code, label, told in zip(codes, labels, triples, strict=True)]
    return axis_codes + [Code(OTHER, pgettext("category", "other"), "")] * axis.other


def codes_for(values: Sequence[str], mark: str = "C") -> dict[str, str]:
    """A code for each of some values, as `codes_of`: a value that is a code by itself keeps it."""
    codes = [value if _CODE.fullmatch(value) or value in (OTHER, NOT_APPLICABLE) else _code(value) for value in values]
    if not all(codes) or len({code.upper() for code in codes}) < len(codes):
        codes = [f"{mark}{place}" for place in range(len(codes))]
    return dict(zip(values, codes, strict=True))


def code_list(publications: Sequence[Publication], axis: str) -> dict[str, Code]:
    """Every code of an axis that all of some publications have, in order; the last one's labels.

    Raises:
        ValueError: a code means another bin or category in another period.
    """
    by_label = dict[str, Code]()
    for one in publications:
        for axis_there in (axis_there for axis_there in one.domain.axes if axis_there.name == axis):
            for code in codes_of(axis_there, one.audit.get("model") == "local"):
                if by_label.setdefault(code.code, code).meant != code.meant:
                    problem = (
                        f"its periods have other bins or categories of {axis}, which one list of codes cannot hold"
                    )
                    raise ValueError(f"{problem}; choose one with --period")
                by_label[code.code] = code
    return by_label


def common_axes(publications: Sequence[Publication]) -> list[str]:
    """The names of the axes that all publications have.

    Raises:
        ValueError: the periods have other axes, or an amount.
    """
    if any(one.domain.amount is not None for one in publications):
        raise ValueError(
            "its amount has sums and means, which this format does not hold; use csv, xlsx or parquet, or --figures"
        )
    axes = [[axis.name for axis in one.domain.axes] for one in publications]
    if any(names != axes[0] for names in axes):
        raise ValueError(
            "its periods have different axes, and one structure holds one set of axes; choose a period with --period"
        )
    return axes[0]


def free_name(name: str, taken: Container[str]) -> str:
    """A name with as many underscores as it takes to be none of those that are taken."""
    while name in taken:
        name += "_"
    return name


def _code(label: str) -> str:
    """A code that reads as its label: INTENSIVE_CARE, 0_TO_19; empty for a label without Latin letters and digits."""
    signs = re.sub(r"(?<![0-9A-Za-z])[-−](?=[0-9])", "MINUS ", label)
    signs = re.sub(r"(?<=[0-9])[.](?=[0-9])", " POINT ", signs)
    plain = unicodedata.normalize("NFKD", signs).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_").upper()
