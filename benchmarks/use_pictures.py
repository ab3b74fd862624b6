"""Draws the pictures of the page *What you can do with a release*, from invented records and from measured numbers.

python benchmarks/papers/reproduce.py --keep classification
python benchmarks/use_pictures.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert
from chart_style import CONFIG

from dphist_pipeline import sanitize
from dphist_pipeline.applications.blocking import blocks
from dphist_pipeline.applications.synthetic_records import SyntheticRecords
from dphist_pipeline.applications.whole_release import WholeRelease
from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.whole_tables import WholeTable
from dphist_pipeline.publishing.drawing import BAR, FAINT

PROJECT = Path(__file__).resolve().parents[1]
PICTURES = PROJECT / "docs" / "pictures"
WARDS = ("maternity", "medicine", "paediatrics", "surgery")
AGES = BinnedAxis("age", "age", tuple(map(float, range(0, 101, 5))))
FINE = BinnedAxis("age", "age", tuple(map(float, range(0, 101, 2))))
HEIGHTS = BinnedAxis("height", "height", tuple(map(float, range(100, 201, 4))))


def main() -> None:
    """Writes one SVG for each use."""
    random = np.random.default_rng(7)
    draw("use_pivot", pivot(released(Domain((AGES, CategoricalAxis("ward", "ward", WARDS))), admissions(random), 0.5)))
    draw("use_synthetic", synthetic(released(Domain((AGES,)), admissions(random).sum(axis=1), 0.05)))
    studies = json.loads((PROJECT / "docs" / "measured" / "papers.json").read_text(encoding="utf-8"))
    draw("use_classifier", classifier(studies["classification"]["drawn"]["figure 17"]))
    draw("use_blocks", boxes([released(Domain((FINE, HEIGHTS)), people(random), 0.5) for _ in range(2)]))


def admissions(random: np.random.Generator) -> np.ndarray:
    """Invented counts of visits by age and ward."""
    age = np.arange(20) * 5 + 2.5
    shapes = [np.exp(-(((age - 30) / 7) ** 2)), age / 90, np.exp(-age / 8), 0.3 + np.exp(-(((age - 65) / 18) ** 2))]
    return random.poisson(np.stack(shapes, axis=1) * 400)


def people(random: np.random.Generator) -> np.ndarray:
    """Invented counts of people by age and height, for one register."""
    age = random.gamma(5, 9, 20_000).clip(0, 99.9)
    height = np.where(age < 18, 100 + 4 * age, 172) + random.normal(0, 8, age.size)
    return np.histogram2d(age, height.clip(100, 199.9), [np.array(FINE.edges), np.array(HEIGHTS.edges)])[0].astype(int)


def released(domain: Domain, exact: np.ndarray, epsilon: float) -> WholeRelease:
    """A release of invented counts, as its whole counts; `targets` are its estimates."""
    made = sanitize(exact, mechanism="geometric", epsilon=str(epsilon), sensitivity=1)
    audit = {"release": "invented", "period": "all", "epsilon": str(epsilon)}
    whole = WholeTable.fit(domain, made.values, made.unbiased)
    return WholeRelease(audit, domain, whole.counts, made.values, whole.distances)


def pivot(whole: WholeRelease) -> alt.Chart:
    """A heat map of ages and wards."""
    rows = [
        {"age": int(AGES.edges[i]), "ward": ward, "estimate": float(whole.targets[i, j])}
        for i in range(AGES.size)
        for j, ward in enumerate(WARDS)
    ]
    return (
        chart(rows, "Visits by age and ward: a pivot")
        .mark_rect()
        .encode(
            x=alt.X("age:O", title="age from", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("ward:N", title=None),
            color=alt.Color("estimate:Q", title="estimate", scale=alt.Scale(scheme="blues")),
        )
    )


def synthetic(whole: WholeRelease) -> alt.LayerChart:
    """Bars of the release, and the synthetic values by single years, brought to the same width."""
    rows = [
        {"low": AGES.edges[i], "high": AGES.edges[i + 1], "count": max(0.0, float(whole.targets[i]))}
        for i in range(AGES.size)
    ]
    ages = pl.DataFrame(SyntheticRecords.of(whole, whole.total, 1))["age"].to_numpy()
    drawn = [{"age": year + 0.5, "count": float(n) * 5} for year, n in enumerate(np.histogram(ages, np.arange(101))[0])]
    bars = chart(rows, "Synthetic ages (points, by year) follow the release (bars)").mark_rect(color=BAR, opacity=0.5)
    points = alt.Chart(alt.Data(values=drawn)).mark_circle(color=FAINT, size=18)
    return bars.encode(
        x=alt.X("low:Q", title="age", scale=alt.Scale(domain=[0, 100])),
        x2="high:Q",
        y=alt.Y("count:Q", title="records in five years of age"),
        y2=alt.datum(0),
    ) + points.encode(x="age:Q", y="count:Q")


def classifier(measured: list[dict[str, Any]]) -> alt.LayerChart:
    """Accuracy against epsilon, from the measured study."""
    names = {
        "records": "tree from the records",
        "most frequent class": "most frequent class",
        "tree, dpcube by `auto`": "tree from a dpcube release",
        "tree, geometric": "tree from a geometric release",
        "interactive ID3, noisy counts": "interactive ID3",
    }
    rows = [
        {"alpha": one["α"], "accuracy": one["accuracy"], "who": names[one["who"]]}
        for one in measured
        if one["who"] in names
    ]
    base = chart(rows, "Adult: share of test records whose income class is predicted").encode(
        x=alt.X(
            "alpha:Q",
            title="ε",
            scale=alt.Scale(type="log", nice=False),
            axis=alt.Axis(values=[0.05, 0.1, 0.2, 0.5, 1]),
        ),
        y=alt.Y("accuracy:Q", title=None, scale=alt.Scale(zero=False), axis=alt.Axis(format=".1%")),
        color=alt.Color("who:N", title=None, sort=list(names.values()), legend=alt.Legend(columns=2)),
    )
    return base.mark_line() + base.mark_circle(size=40)


def boxes(owners: list[WholeRelease]) -> alt.LayerChart:
    """The boxes of two owners' blocks over the expected records of one."""
    made = blocks(owners[0], owners[1], ["age", "height"], pairs=6_000_000)
    cells = [
        {
            "x": FINE.edges[i],
            "x2": FINE.edges[i + 1],
            "y": HEIGHTS.edges[j],
            "y2": HEIGHTS.edges[j + 1],
            "count": int(n),
        }
        for (i, j), n in np.ndenumerate(owners[0].counts)
    ]
    found = []
    for number in range(made.number):
        ages, heights = np.nonzero(made.of_cells == number)
        found.append(
            {"x": FINE.edges[ages.min()], "x2": FINE.edges[ages.max() + 1]}
            | {"y": HEIGHTS.edges[heights.min()], "y2": HEIGHTS.edges[heights.max() + 1]}
        )
    title = f"{made.number} blocks save {made.expected_reduction:.1%} of the pairs"
    places = {"x": alt.X("x:Q", title="age", scale=alt.Scale(domain=[0, 100])), "x2": "x2:Q", "y2": "y2:Q"}
    places |= {"y": alt.Y("y:Q", title="height in cm", scale=alt.Scale(domain=[100, 200]))}
    filled = chart([cell for cell in cells if cell["count"]], title).mark_rect()
    outlines = alt.Chart(alt.Data(values=found)).mark_rect(filled=False, stroke=FAINT, strokeWidth=0.8)
    colour = alt.Color("count:Q", title="expected records of one owner", scale=alt.Scale(scheme="blues"))
    return filled.encode(color=colour, **places) + outlines.encode(**places)


def chart(rows: list[dict[str, Any]], title: str) -> alt.Chart:
    """An empty chart of rows."""
    return alt.Chart(alt.Data(values=rows), title=title, width=420, height=200)


def svg_of(made: alt.Chart | alt.LayerChart) -> str:
    """A chart as SVG."""
    return vl_convert.vegalite_to_svg(json.loads(made.configure(**CONFIG).to_json()), allowed_base_urls=[]) + "\n"


def draw(name: str, made: alt.Chart | alt.LayerChart) -> None:
    """Writes a chart as SVG."""
    svg = svg_of(made)
    (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
    print(f"{name}.svg, {len(svg):,} characters")


if __name__ == "__main__":
    main()
