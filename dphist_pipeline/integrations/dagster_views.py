"""What Dagster is shown: of a published release, and of a step that failed. All of it is public."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeVar

import dagster as dg

from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.publishing.plot import release_svg
from dphist_pipeline.publishing.tables import OUR_COLUMNS, axis_columns
from dphist_pipeline.releasing.releases import Release

T = TypeVar("T")

MEANINGS = {
    "estimate": "the released count: the one to use",
    "unbiased_estimate": "the exact count plus noise, or a linear estimate of it, where the mechanism paid for such",
    "ci_lower": "95 % interval of the true bounded count, lower end",
    "ci_upper": "95 % interval of the true bounded count, upper end",
    "group_id": "cells that were measured together, where the mechanism makes groups",
}
LOCAL_MEANINGS = {
    **MEANINGS,
    "unbiased_estimate": "from reports alone, right on average: neither rounded nor made consistent",
    "ci_lower": "95 % interval of how many of the reported values lie there, lower end",
    "ci_upper": "95 % interval of how many of the reported values lie there, upper end",
}


def rounded_epsilon(epsilon: Fraction) -> str:
    """Up to six decimals for a tag, never below the true one."""
    return f"{math.ceil(epsilon * 10**6) / 10**6:.6f}".rstrip("0").rstrip(".")


def withheld(step: str, work: Callable[[], T], held: str = "values from records") -> T:
    """Lets only our own messages through to Dagster, which keeps what it is told; a retry would not help.

    Not a context manager: what one of those raises carries the first exception along, and Dagster writes that down.

    Args:
        step: what is done, for the message.
        held: what an engine's message might hold.
    """
    try:
        return work()
    except DphistError as error:
        message = str(error)
    except Exception as error:
        message = f"{step} failed with {type(error).__name__} (message withheld: it may hold {held})"
    raise dg.Failure(message, allow_retries=False)


def columns_of(domain: Domain, meanings: Mapping[str, str] = MEANINGS) -> list[dg.TableColumn]:
    """The published histogram's columns: name, type, meaning.

    Args:
        meanings: of the columns that every release has, and of others that mean something else than usual.
    """
    columns = [
        dg.TableColumn(name, str(kind), meanings.get(name) or _meaning(axis, name))
        for axis in domain.axes
        for name, kind in axis_columns(axis).items()
    ]
    kinds = {name: "int64" if name == "group_id" else "double" for name in OUR_COLUMNS}
    return columns + [dg.TableColumn(name, kind, meanings[name]) for name, kind in kinds.items()]


def _meaning(axis: Axis, column: str) -> str:
    if isinstance(axis, BinnedAxis):
        end = "lower" if column == f"{axis.name}_lower" else "upper"
        included = (axis.closed == "left") == (end == "lower")
        return f"{end} end of the bin, {'included' if included else 'not included'}; null where there is none"
    meanings = {axis.name: "category", f"{axis.name}_label": "what the category is called"}
    what = meanings.get(column, "what the category lies in")
    return f"{what}; null for all others" if axis.other else what


def published_metadata(made: Release) -> dict[str, Any]:
    """Epsilon, the audit as a table, where the files and their card are, and the picture that the card shows, too."""
    audit = made.audit
    charges = [
        dg.TableRecord({"step": row["step"], "epsilon": row["epsilon"], "noise_scale": row["noise_scale"]})
        for row in audit["charges"]
    ]
    card = made.path / "card.html"
    picture = base64.b64encode(release_svg(made.path).encode()).decode()
    return {
        "epsilon": dg.MetadataValue.text(audit["epsilon"]),
        "replayed": dg.MetadataValue.bool(made.replayed),
        "protects": dg.MetadataValue.text(_protected(audit)),
        **({"reports": dg.MetadataValue.int(audit["reports"]["accepted"])} if "reports" in audit else {}),
        "audit": dg.MetadataValue.table(records=charges),
        "files": dg.MetadataValue.path(str(made.path)),
        **({"card": dg.MetadataValue.path(str(card))} if card.exists() else {}),
        "picture": dg.MetadataValue.md(f"![{audit['release']}](data:image/svg+xml;base64,{picture})"),
    }


def _protected(audit: Mapping[str, Any]) -> str:
    """In few words, since Dagster cuts off what is longer than its column."""
    unit, most, neighbours = audit["privacy_unit"], audit["max_rows_per_unit"], audit["neighbours"]
    if unit == "row":
        return f"each row ({neighbours})"
    what = "value" if audit.get("model") == "local" else "row"
    return f"each {unit} with up to {most} {what}{'' if most == 1 else 's'} ({neighbours})"
