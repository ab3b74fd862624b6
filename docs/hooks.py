"""Writes the generated parts of the reference: what stands in a page as `<!-- generated: NAME -->`.

Everything is read from the code and its files while the site is built, so that the pages cannot go out of date. A field
without a description, a description without a field and an unknown name stop the build.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from statistics import median
from typing import Any, get_type_hints

from card_prose import in_prose
from claims_page import classifier_accuracy, paper_claims, paper_contenders
from hook_tables import shown, table
from mkdocs.exceptions import PluginError
from peers_page import peers_memory, peers_promises, peers_ratios, peers_runs, peers_whole

import dphist_pipeline as dph
from dphist_pipeline.base.published_columns import VALUE_COLUMNS
from dphist_pipeline.publishing.audit import Audit
from dphist_pipeline.spec._query_reach import AGGREGATES, ALLOWED, TABLE_FUNCTIONS

PROJECT = Path(__file__).resolve().parent.parent
MEASURED = PROJECT / "docs/measured"
RATIOS_TO_BEFORE = ("median_by_before", "fewest_by_before")
HAVE_PAGES = SCALE, START_UP, RANGES, ACCURACY, *_ = tuple(
    MEASURED / f"{name}.json"
    for name in (
        "scale",
        "startup",
        "ranges",
        "accuracy",
        "mutations",
        "peers",
        "peers_whole",
        "papers",
        "box_levels",
        "office_methods",
        "amounts",
        "unit_rows",
    )
)
MARKER = re.compile(r"<!-- generated: (\S+) -->")
# Stands in every page with a marker, for those who read it without the site: where the same is written meanwhile.
UNFILLED = re.compile(
    r"\n\*Tables of this page are filled in when the site is built \(`make docs`\); until then .*\*\n"
)
LOADED = re.compile(r'<(?:script|img|iframe)[^>]*?\bsrc="?([^"\s>]+)|<link[^>]*?\bhref="?([^"\s>]+)')
OWN = ("geometric", "boost", "workload", "dawa", "multiscale", "adaptive_grid")
PROVED = ("Identity", "HB")  # of the published algorithms those whose ε is proved
COMMENT = re.compile(r"^ *(?:(?P<field>\w+):\s*(?P<example>.*?))?\s*# (?P<words>.*)$")

CALLED = {
    "HistogramRelease": ("get_asset_spec",),
    "LocalCollection": ("get_asset_spec",),
    "ReleaseSpec": ("domain", "sensitivity", "digest"),
    "Store": ("create", "open", "public"),
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """MkDocs calls this for every page: fills in what is generated."""
    if MARKER.search(markdown) and not UNFILLED.search(markdown):
        raise PluginError("a page with a generated part says nowhere where the same is written without the site")
    return MARKER.sub(lambda found: GENERATED[found[1]](), UNFILLED.sub("", markdown))


class PageFetches(PluginError):
    """A built page loads a file from elsewhere."""

    def __init__(self, page: str, address: str) -> None:
        super().__init__(f"{page} loads {address}. The site works offline: put the file beside the page.")


def on_post_build(config: Any, **_: Any) -> None:
    """MkDocs calls this when all is built: stops if a page would fetch anything from elsewhere."""
    for page in sorted(Path(config["site_dir"]).rglob("*.html")):
        for pair in LOADED.findall(page.read_text(encoding="utf-8")):
            for address in pair:
                if "//" in address:
                    raise PageFetches(str(page.relative_to(config["site_dir"])), address)


def spec_example() -> str:
    """The example of a spec, without the descriptions that the table of its fields has."""
    return _example("spec.yaml")


def short_spec() -> str:
    """A spec with the required fields and few others, from the file that a test checks."""
    return _code((PROJECT / "docs/reference/short_spec.yaml").read_text(encoding="utf-8").rstrip(), "yaml")


def spec_fields() -> str:
    """A table of all fields of a release spec, by its Pydantic model."""
    return _fields(dph.ReleaseSpec, "spec.yaml")


def query_functions() -> str:
    """The functions that a query over the records may call."""
    kinds = {"of rows": ALLOWED - AGGREGATES - TABLE_FUNCTIONS, "aggregates": AGGREGATES, "tables": TABLE_FUNCTIONS}
    lines = ((kind, ", ".join(f"`{name}`" for name in sorted(names))) for kind, names in kinds.items())
    return table(("kind", "functions and operators"), lines)


def collection_example() -> str:
    """The example of a collection, without the descriptions that the table of its fields has."""
    return _example("collection.yaml")


def collection_fields() -> str:
    """A table of all fields of a collection, by its Pydantic model."""
    return _fields(get_type_hints(dph.load_collection)["return"], "collection.yaml")


def value_columns() -> str:
    """The columns that every published histogram has beside those of its axes."""
    head = ("column", "type", "meaning", "null if", "since version")
    return table(head, ([f"`{one.name}`", one.kind, one.in_views, one.null or "–", one.since] for one in VALUE_COLUMNS))


def audit_facts() -> str:
    """The facts of `audit.json`, in the order of the file."""
    return table(("fact", "what"), ([f"`{name}`", fact.description or ""] for name, fact in Audit.model_fields.items()))


def sql_macros() -> str:
    """Every macro with its arguments and the comment that opens its file."""
    return "\n\n".join(_macro(path.read_text(encoding="utf-8")) for path in sorted(PROJECT.glob("sql/answering/*.sql")))


def command_line() -> str:
    """Every command with its options, as Typer documents them."""
    command = [sys.executable, "-m", "typer", "dphist_pipeline.cli.app", "utils", "docs", "--name", "dphist"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
    _, commands = html.unescape(done.stdout).split("\n## ", 1)
    told = _without_html("## " + commands)
    return f"{_commands(told)}\n\n{told}"


def _commands(told: str) -> str:
    """A table of the commands in a text, with the first sentence on each and a link to its section."""
    found = re.findall(r"^##+ `(dphist [^`]+)`\n+(.+(?:\n.+)*)", told, re.MULTILINE)
    rows = ((f"[`{name}`](#{name.replace(' ', '-')})", re.split(r"(?<=\.)\s", words)[0]) for name, words in found)
    return table(("command", "what it does"), rows)


def python_api() -> str:
    """mkdocstrings' directives for every public name; of some classes, only what users call."""
    return "\n\n".join(
        f"::: dphist_pipeline.{name}\n"
        + (f"    options: {{members: [{', '.join(CALLED[name])}]}}\n" if name in CALLED else "")
        for name in dph.__all__
        if name != "mechanisms"
    )


def mechanism_cards() -> str:
    """The card of every mechanism in the registry."""
    return "\n\n".join(f"## `{name}`\n\n{in_prose(dph.mechanisms.reference(name))}" for name in dph.mechanisms())


def measured() -> str:
    """A table for every list of results in the JSON files that benchmarks wrote."""
    files = sorted(path for path in MEASURED.glob("*.json") if path not in HAVE_PAGES)
    return "\n\n".join(_results(path) for path in files) or "No results are kept in this checkout."


def accuracy_ratios() -> str:
    """Every mechanism's errors by those of the best published one, by kind of question; medians and worst cases."""
    rows = [row for row in _accuracy()["rows"] if not row["tuned"] and not row["invented"]]
    kinds = {"cells": ("cells",), "ranges or boxes": ("ranges", "boxes"), "prefixes": ("prefixes",)}
    lines = []
    for name in sorted({name for row in rows for name in row["ratios"]}):
        held = [[row["ratios"].get(name) for row in rows if row["workload"] in kind] for kind in kinds.values()]
        found = [[ratio for ratio in ratios if ratio is not None] for ratios in held]
        dpbench = [_ratio(case, name) for case in _ranges() if name in OWN and not case["used_for_defaults"]]
        found.append([ratio for ratio in dpbench if ratio is not None])
        lines.append((median(found[0]), [f"`{name}`", *map(_median_and_worst, found)]))
    head = ("mechanism", *kinds, "ranges, boxes, prefixes by the best proved of DPBench")
    return table(head, (line for _, line in sorted(lines)))


def accuracy_goals() -> str:
    """Whether `adaptive` meets its goals, by group of sets."""
    held = _accuracy()["goals"]
    return table(held[0], ([shown(row[key]) for key in held[0]] for row in held))


def accuracy_cases() -> str:
    """Errors of a cell beside the best published mechanism's, for every public set, order and epsilon."""
    lines = []
    for row in _accuracy()["rows"]:
        if row["workload"] == "cells" and not row["invented"]:
            sure = f"{row['ratios']['adaptive']:.3g} ± {row['standard error']:.2g}"
            named = [row["set"] + (" *" if row["tuned"] else ""), row["order"], row["epsilon"]]
            sizes = [f"{row['N·epsilon']:,.0f}", shown(row["cells"]), shown(row["runs"])]
            lines.append([*named, *sizes, f"`{row['best published']}`", sure])
    return table(("set", "order", "ε", "N·ε", "cells", "runs", "best published", "`adaptive`"), lines)


def accuracy_invented() -> str:
    """The same for invented sets of few records: a line for each shape and number of cells."""
    cells: dict[str, dict[float, str]] = {}
    for row in _accuracy()["rows"]:
        if row["workload"] == "cells" and row["invented"]:
            name = row["set"].rpartition(",")[0] + (" *" if row["tuned"] else "")
            cells.setdefault(name, {})[row["N·epsilon"]] = f"{row['ratios']['adaptive']:.2f}"
    sizes = sorted({size for found in cells.values() for size in found})
    lines = ([name, *(found.get(size, "") for size in sizes)] for name, found in cells.items())
    return table(("set", *(f"N·ε = {size:g}" for size in sizes)), lines)


def _accuracy() -> dict[str, Any]:
    held: dict[str, Any] = json.loads(ACCURACY.read_text(encoding="utf-8"))
    return held


def _median_and_worst(ratios: list[float]) -> str:
    return f"{median(ratios):.3g} ({max(ratios):.3g})" if ratios else ""


def ranges_ratios() -> str:
    """By axes and mechanism: its errors by those of the best published algorithm of a proved ε, and by DAWA's."""
    cases, lines = _ranges(), []
    for axes, what in ((1, "one axis"), (2, "two axes")):
        for name in (*OWN, "best of these"):
            held = [(case["used_for_defaults"], _ratio(case, name)) for case in cases if case["axes"] == axes]
            ratios = sorted(ratio for _, ratio in held if ratio is not None)
            fresh = sorted(ratio for used, ratio in held if ratio is not None and not used)
            if ratios:
                near = f"{sum(ratio <= 1.1 for ratio in ratios)} of {len(ratios)}"
                shown = f"`{name}`" if name in OWN else name
                reference = sorted(
                    found for case in cases if case["axes"] == axes if (found := _ratio(case, name, ("DAWA",)))
                )
                numbers = (median(ratios), ratios[-1], median(fresh), fresh[-1], median(reference), reference[-1])
                lines.append([what, shown, near, *(f"{number:.2f}" for number in numbers)])
    head = ("", "mechanism", "at most 1.1 times", "median", "worst", "median, other sets", "worst, other sets")
    return table((*head, "median by DAWA", "worst by DAWA"), lines)


def ranges_cases() -> str:
    """Every case: the best published algorithm of a proved ε, and the errors of ours, and DAWA's, by its error."""
    lines = []
    for case in _ranges():
        best = min(PROVED, key=case["mse"].get)
        ratios = [*(_ratio(case, name) for name in OWN), case["mse"]["DAWA"] / case["mse"][best]]
        named = [case["set"] + (" *" if case["used_for_defaults"] else ""), f"{case['epsilon']:g}", case["workload"]]
        lines.append([*named, best, *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)])
    return table(("set", "ε", "questions", "best proved", *(f"`{name}`" for name in OWN), "DAWA (above its ε)"), lines)


def same_draws() -> str:
    """Errors of estimates of `multiscale` by those of least squares on the same draws."""
    rows = json.loads((MEASURED / "same_draws.json").read_text(encoding="utf-8"))
    found = {(row["set"], row["workload"], row["epsilon"]): row for row in rows}
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        mark = " *" if any(row["used_for_a_constant"] for row in rows if row["set"] == name) else ""
        cases = (found.get((name, asked, epsilon)) for asked in ("ranges", "prefixes") for epsilon in (1.0, 0.1))
        shown = (f"{row['ratio']:.2f} ± {row['standard_error']:.2f}" if row else "" for row in cases)
        lines.append([name + mark, *shown])
    return table(("set", *(f"{asked}, ε = {one}" for asked in ("ranges", "prefixes") for one in ("1", "0.1"))), lines)


def box_levels() -> str:
    """Errors of boxes by `adaptive_boxes` and each `levels` of `multiscale`, by the best other of a proved epsilon."""
    lines = []
    for row in sorted(json.loads((MEASURED / "box_levels.json").read_text(encoding="utf-8")), key=_by_epsilon):
        ratios, spreads = row["ratios"], row["standard_errors_of_ratios"]
        shown = [f"{ratios[who]:.2f} ± {spreads[who]:.2f}" for who in reversed(ratios)]
        name = row["set"] + (" *" if row["chosen_on"] else "")
        known = f"{row['records'] * row['epsilon'] / row['cells']:.2g}"
        lines.append([name, f"{row['epsilon']:g}", known, row["workload"], f"`{row['best']}`", *shown])
    judged = (f"`{name}` by it" for name in ("adaptive_boxes", "overlapping", "weighed", "equal"))
    return table(("set", "ε", "N·ε/cells", "questions", "best other", *judged), lines)


def _by_epsilon(row: dict[str, Any]) -> tuple[str, float, bool]:
    return row["workload"], row["epsilon"], row["chosen_on"]


def _ranges() -> list[dict[str, Any]]:
    return list(json.loads(RANGES.read_text(encoding="utf-8")))


def _ratio(case: dict[str, Any], name: str, rivals: tuple[str, ...] = PROVED) -> float | None:
    """The error of one of our mechanisms, or of the best of them, by that of the best rival."""
    errors: dict[str, float] = case["mse"]
    ours = [errors[own] for own in OWN if own in errors and name in (own, "best of these")]
    return min(ours) / min(errors[rival] for rival in rivals) if ours else None


def scale_rows() -> str:
    """A release of very many rows beside a bare GROUP BY, by rows, bound and memory."""
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in MEASURED.glob("rows_*.json")]
    exceeding = {"few": "2 % of persons", "all": "everybody"}
    lines = [
        [
            *(shown(run["rows"]), shown(run["bound"] or "none"), exceeding[run["over"]] if run["bound"] else "–"),
            run["memory"],
            *(f"{run[name]['seconds']:.1f}" for name in ("floor", "start_up", "release")),
            *(f"{run[f'ratio_of_{what}']:.1f}" for what in ("seconds", "processors")),
            f"{run['gigabytes']:.1f}",
        ]
        for run in sorted(runs, key=lambda run: (run["bound"], run["over"] == "all", run["memory"], run["rows"]))
    ]
    ratios = ["ratio, clock", "ratio, processors"]
    return table(["rows", "bound", "exceeded by", "limit", "floor", "start-up", "release", *ratios, "GB"], lines)


def counting_before_and_now() -> str:
    """Reading and counting by Polars, beside the version before it."""
    runs = json.loads((MEASURED / "counting.json").read_text(encoding="utf-8"))
    versions = ("before", "now")
    lines = [
        [
            *(shown(run["rows"]) + (", staged" if run["staged"] else ""), "2 %" if run["over"] == "few" else "all"),
            run["memory"],
            *("–" if run["staged"] else f"{run[version]['reading']:.2f}" for version in versions),
            *(f"{run[version]['counting']:.2f}" for version in versions),
            *(f"{run[version]['gigabytes']:.2f}" for version in versions),
            f"{run['ratio']:.2f}",
        ]
        for run in sorted(runs, key=lambda run: (run["staged"], run["rows"], run["over"] == "all"))
    ]
    columns = [f"{what}, {version}" for what in ("reading", "counting", "GB") for version in versions]
    return table(["rows", "persons above", "limit", *columns, "ratio"], lines)


def scale_engines() -> str:
    """Counting by engine: DuckDB, Sail, and Spark with workers."""
    lines = [
        [
            *(shown(held["rows"]), row["engine"], shown(row["workers"]), shown(row["bound"] or "none")),
            *(f"{row[what]:.1f}" for what in ("seconds", "processors")),
            *(shown(len(row["turns"])), f"{row['of_1000_rows']['seconds']:.1f}"),
        ]
        for path in sorted(MEASURED.glob("engines_*.json"))
        for held in [json.loads(path.read_text(encoding="utf-8"))]
        for row in held["engines"]
    ]
    return table(["rows", "engine", "workers", "bound", "clock", "processors", "turns", "clock, 1,000 rows"], lines)


def scale_steps() -> str:
    """Processor seconds of every step of a release, by rows and cells."""
    runs = sorted(json.loads(SCALE.read_text(encoding="utf-8"))["runs"], key=lambda run: (run["bound"], run["rows"]))
    steps = {
        "imports and checks": ["imports and checks"],
        "reading and counting": ["reading records", "bounding and counting"],
        "charge and noise": ["charging the account", "releasing by geometric"],
        "files": ["publishing", "updating the catalogue"],
        "pictures and catalogue": ["pictures and catalogue"],
    }
    lines = [
        [
            *(shown(run["rows"]), shown(run["bound"] or "none"), shown(run["cells"])),
            *(f"{sum(run['steps'][name] for name in names):.1f}" for names in steps.values()),
            *(f"{run['processors']:.1f}", f"{run['gigabytes']:.1f}"),
        ]
        for run in runs
    ]
    return table(["rows", "bound", "cells", *steps, "all", "GB"], lines)


def scale_publishing() -> str:
    """A release of few rows beside DuckDB's COPY of what it published."""
    runs = json.loads(SCALE.read_text(encoding="utf-8"))["runs"]
    few = sorted((run for run in runs if run["rows"] == 10**6 and not run["bound"]), key=lambda run: run["cells"])
    least = few[0]
    lines = [
        [
            *(shown(run["cells"]), f"{run['copy']:.1f}", f"{run['processors']:.1f}"),
            f"{(run['processors'] - least['processors']) / (run['copy'] - least['copy']):.1f}",
        ]
        for run in few
        if run["cells"] > 5 * 10**5
    ]
    return table(["cells", "COPY", "release", "ratio above start-up"], lines)


def start_up() -> str:
    """Seconds of small commands, by the clock and of the processors."""
    held = json.loads(START_UP.read_text(encoding="utf-8"))
    commands = {
        **{"floor": "`python -c pass`", "help": "`dphist --help`", "check": "`dphist check`", "init": "`dphist init`"},
        "first_release": "`dphist release`, 200 cells from 10⁴ rows, the first of a store",
        "revision": "`dphist release`, a revision of it",
    }
    figures = [(of, what) for what in ("seconds", "processors") for of in ("median", "fewest")]
    lines = ([told, *(f"{held[of][name][what]:.2f}" for of, what in figures)] for name, told in commands.items())
    return table(["command", "clock, median", "clock, fewest", "processors, median", "processors, fewest"], lines)


def command_ratios() -> str:
    """Processor seconds of each command as multiples of imports, and of those of the version before."""
    held = json.loads((MEASURED / "processor_time_by_command.json").read_text(encoding="utf-8"))
    lines = (
        [row["command"], f"{row['median_by_imports']:.1f}", *(f"{row[of]:.2f}" for of in RATIOS_TO_BEFORE)]
        for row in held["commands"]
        if "median_before" in row
    )
    return table(["command", "× imports", "× before, median", "× before, fewest"], lines)


def fast_goals() -> str:
    """Each goal of a fast release beside what was measured, all in one run."""
    held = json.loads((MEASURED / "fast_goals.json").read_text(encoding="utf-8"))
    lines = (
        [
            *(row["what"], row["beside"], f"{row['seconds']:.2f}", f"{row['seconds_beside']:.2f}"),
            *(f"{row['ratio']:.2f}", f"{row['goal']:g}", "yes" if row["ratio"] <= row["goal"] else "no"),
        ]
        for row in held["goals"]
    )
    return table(["what", "beside", "processors", "processors beside", "ratio", "goal, at most", "reached"], lines)


def many_periods() -> str:
    """Processor seconds of a release beside many published periods, and the bytes that it writes."""
    held = json.loads((MEASURED / "many_periods.json").read_text(encoding="utf-8"))
    lines = (
        [f"{row['weeks']:,}", f"{row['processors']:.2f}", f"{row['by_first']:.2f}", f"{row['written'] / 1000:,.0f}"]
        for row in held["releases"]
    )
    return table(["published periods", "processors", "× at none", "kB written beside the catalogue"], lines)


def row_path() -> str:
    """Processor seconds of each step from rows to counts, beside floors."""
    held = json.loads((MEASURED / "row_path.json").read_text(encoding="utf-8"))
    scan = held["steps"]["floor: scan three columns"]
    lines = ([step, f"{seconds:.2f}", f"{seconds / scan:.1f}"] for step, seconds in held["steps"].items())
    return table(["step", "processors", "× the scan"], lines)


def amount_errors() -> str:
    """Standard deviations of rows, sum and mean of one amount, by three ways at one epsilon."""
    rows = _amounts()["errors"]
    whats = ("rows", "sum", "mean")
    lines = (
        [row["way"], *(f"{row[one]:,.0f}" for one in whats), *(f"{row[f'two_ends_by_it_{one}']:.2f}" for one in whats)]
        for row in rows
    )
    return table(["way", *whats, *(f"two ends by it, {one}" for one in whats)], lines)


def amount_coverage() -> str:
    """How often 95 % intervals of rows, sum and mean hold, and how many standard errors that is off."""
    whats = ("rows", "sum", "mean")
    lines = (
        [
            *(
                f"{row['low']:,.0f} to {row['high']:,.0f}",
                shown(row["rows"]),
                f"{row['mean']:,.0f}",
                shown(row["cells"]),
            ),
            *(f"{100 * row[f'{one}_held']:.2f} % ({row[f'{one}_standard_errors']:+.1f})" for one in whats),
        ]
        for row in _amounts()["coverage"]
    )
    return table(["ends", "number of rows", "mean amount", "cells summed", *whats], lines)


def unit_rows() -> str:
    """Processor seconds of counting with an amount, or with axes of a unit's own rows, by those of rows alone."""
    held = json.loads((MEASURED / "unit_rows.json").read_text(encoding="utf-8"))
    lines = [
        [f"31 cells: {row['way']}", f"{row['seconds']:.1f}", f"{row['times_rows_alone']:.2f}", "–"]
        for row in _amounts()["seconds"]
    ] + [
        [
            row["way"],
            f"{row['processor_seconds']:.1f}",
            f"{row['times_rows_alone']:.2f}",
            f"{row['megabytes'] / 1000:.1f}",
        ]
        for row in held["ways"]
    ]
    return table(["what is counted", "processors", "× rows alone", "GB"], lines)


def _amounts() -> dict[str, Any]:
    return dict(json.loads((MEASURED / "amounts.json").read_text(encoding="utf-8")))


GENERATED: dict[str, Callable[[], str]] = {
    made.__name__: made
    for made in (
        *(
            short_spec,
            spec_example,
            spec_fields,
            query_functions,
            collection_example,
            collection_fields,
            value_columns,
            audit_facts,
            sql_macros,
        ),
        *(
            command_line,
            python_api,
            mechanism_cards,
            measured,
            accuracy_ratios,
            accuracy_goals,
            accuracy_cases,
            accuracy_invented,
        ),
        *(
            peers_runs,
            peers_ratios,
            peers_promises,
            peers_whole,
            peers_memory,
            ranges_ratios,
            ranges_cases,
            same_draws,
            box_levels,
            scale_rows,
            counting_before_and_now,
            scale_engines,
            scale_steps,
        ),
        *(
            scale_publishing,
            start_up,
            command_ratios,
            fast_goals,
            many_periods,
            row_path,
            amount_errors,
            amount_coverage,
            unit_rows,
            paper_claims,
            paper_contenders,
            classifier_accuracy,
        ),
    )
}


def _example(name: str) -> str:
    lines = (PROJECT / "docs/reference" / name).read_text(encoding="utf-8").splitlines()
    kept = (line if line.lstrip().startswith("-") else line.partition(" # ")[0].rstrip() for line in lines)
    return _code("\n".join(line for line in kept if line), "yaml")


def _fields(model: Any, name: str) -> str:
    """A table of a Pydantic model's fields, each with the comment on it in an annotated example."""
    described = _described((PROJECT / "docs/reference" / name).read_text(encoding="utf-8"))
    fields = model.model_fields
    if wrong := set(described) ^ set(fields):
        raise ValueError(f"docs/reference/{name} and the fields of {model.__name__} differ: {', '.join(sorted(wrong))}")
    rows = ((f"`{field}`", _default(info), _charged(info), described[field]) for field, info in fields.items())
    return table(("field", "default", "a change needs a revision", "meaning"), rows)


def _described(example: str) -> dict[str, str]:
    """{field: its comment}, with the comment lines that follow it."""
    found: dict[str, str] = {}
    for line in example.partition("attributes:\n")[2].splitlines():
        match = COMMENT.match(line)
        if match and match["field"] and line.startswith("  ") and line[2] not in " -":
            found[match["field"]] = match["words"]
        elif match and found and not match["field"] and not line.lstrip().startswith("-"):
            found[list(found)[-1]] += f" {match['words']}"
    return found


def _default(info: Any) -> str:
    if info.is_required():
        return "required"
    default = info.get_default(call_default_factory=True)
    return "–" if default is None else f"`{json.dumps(default, ensure_ascii=False, default=str)}`"


def _charged(info: Any) -> str:
    return "yes" if (info.json_schema_extra or {}).get("digest") else "no"


def _macro(text: str) -> str:
    """A macro's heading, call and opening comment."""
    opening = takewhile(lambda line: line.startswith("--"), text.splitlines())
    about = " ".join(line.removeprefix("--").strip() for line in opening).replace(" In: ", "\n\nIn: ")
    name, arguments = re.findall(r"MACRO \{\{ schema \}\}(\w+)\(([^)]*)\)", text)[0]
    return f"## `{name}`\n\n{_without_html(about)}\n\n{_code(f'FROM {name}({arguments});', 'sql')}"


def _results(path: Path) -> str:
    """The tables of one JSON file: it holds a list of results, or lists of them under names."""
    held = json.loads(path.read_text(encoding="utf-8"))
    lists = held if isinstance(held, dict) else {"": held}
    facts = [f"{name}: {shown(value)}" for name, value in lists.items() if not _is_table(value)]
    tables = [
        (f"**{name}**\n\n" if name else "") + _table_of(value) for name, value in lists.items() if _is_table(value)
    ]
    return "\n\n".join([f"### {path.stem.replace('_', ' ').capitalize()}", "; ".join(facts), *tables])


def _table_of(rows: list[dict[str, Any]]) -> str:
    """A table of results; a row may lack some columns."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    return table(heads, ([shown(row.get(head, "")) for head in heads] for row in rows))


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _code(text: str, language: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def _without_html(text: str) -> str:
    """Text in which nothing outside of code is taken for a tag."""
    return re.sub(r"<(?=[\w/])(?![^`\n]*`)", "&lt;", text)
