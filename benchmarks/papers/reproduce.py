"""Which published figures hold once the algorithm is private?

Measures five papers: each as printed, where that is not private, beside the private form of the package. Writes
benchmarks/results/papers.md, a report, and papers.json, every number.

    python benchmarks/papers/reproduce.py [--quick] [STUDY …]     all studies without a name; --help names them
    python benchmarks/papers/reproduce.py --keep [STUDY …]        the same, and docs/measured/papers.json and the list
    python benchmarks/papers/reproduce.py --time [--quick] [STUDY …]    notes there how long a study takes, no more
    python benchmarks/papers/reproduce.py --list                  every table, figure and theorem, and what became of it
    python benchmarks/papers/reproduce.py --read 'Figure 18 of DPCube (Xiao et al. 2012)' …
                      notes that the reasons of these, written by hand in listed.json, fit what studies found last

Data: stand-ins with the printed statistics, and $DPHIST_DATA, else ../shared/data beside the checkout; what needs data
that are not there is left out, and told; `--keep` then refuses. All data are public or synthetic. `--quick` makes few
releases: a look, whose verdicts are never kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime

import classification
import cnfg
import dpcube
import dpcube_theory
import dphr
import dphr_cost
import kept
import linkage
import listed
import local
import local_costs
import local_shapes
import relative
import sreb_gca
from public_data import DATA, PROJECT, absent
from report import Section

STUDIES = {
    "sreb_gca": sreb_gca.study,
    "relative": relative.study,
    "cnfg": cnfg.study,
    "dphr": dphr.study,
    "dphr_cost": dphr_cost.study,
    "dpcube": dpcube.study,
    "dpcube_theory": dpcube_theory.study,
    "classification": classification.study,
    "linkage": linkage.study,
    "local": local.study,
    "local_shapes": local_shapes.study,
    "local_costs": local_costs.study,
}
HEAD = """# Which published figures hold once the algorithm is private

Made by `benchmarks/papers/reproduce.py{options}`. A claim is checked in several settings (data set, ε, length or size);
a setting is open where two means lie within two standard errors of each other. **The printed forms are not private**;
they are here to show what a figure owes to that.
"""
QUICK = "**Few releases**: a look. Its verdicts are not those of the documentation.\n"


def main() -> None:
    """Measures, and writes report and numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_times(), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", nargs="*", metavar="STUDY", help=f"of {', '.join(STUDIES)}; all when left out")
    parser.add_argument("--quick", action="store_true", help="few releases; not together with --keep")
    parser.add_argument("--keep", action="store_true", help="for the documentation, and judge the list by it")
    parser.add_argument("--time", action="store_true", help="for the documentation, how long a study takes, no more")
    parser.add_argument("--list", action="store_true", help="tell what became of every table, figure and theorem")
    parser.add_argument("--read", nargs="+", metavar="ITEM", help="reasons in listed.json that were read again")
    asked = parser.parse_args()
    if asked.keep and asked.quick:
        parser.error("--keep keeps whole studies, and --quick makes few releases: leave one of them out")
    if asked.read:
        listed.write(listed.reread(listed.judged(listed.items(), kept.studies()), asked.read))
        return
    if asked.list:
        print("\n".join(listed.lines()))
        return
    if unknown := [name for name in asked.papers if name not in STUDIES]:
        parser.error(f"no study of {unknown[0]}; there are {', '.join(STUDIES)}")
    names = asked.papers or list(STUDIES)
    if asked.keep:
        _refuse([name for name in names if absent(name)], "nothing was measured or kept")
    start = time.perf_counter()
    measured = {name: section for name in names if (section := _measured(name, asked)).claims}
    sections = [*measured.values()]
    if sections:
        _write(sections, asked.papers, asked.quick, time.perf_counter() - start)
    _refuse([name for name in names if name not in measured], "no data")


def _times() -> str:
    """How long each study took when it was kept."""
    taken = {name: facts["takes"] for name, facts in kept.studies().items()}
    seconds = {name: (one["whole"], one.get("quick", 0)) for name, one in taken.items()}  # a new study has no quick one
    lines = [f"  {name:<16}{whole:>5} s, with --quick {quick} s" for name, (whole, quick) in seconds.items()]
    total, quick = (sum(one[kind] for one in seconds.values()) for kind in (0, 1))
    return "\n".join(["seconds of a processor when they were kept:", *lines, f"  all{total:>18} s, {quick} s"])


def _measured(name: str, asked: argparse.Namespace) -> Section:
    """Runs a study, prints what it found, and keeps it or the time that it took, as was asked."""
    if lacking := absent(name):
        print(f"{name}: not in {DATA}: {', '.join(lacking)}. What needs them is left out", file=sys.stderr)
    start = time.process_time()  # other work on the machine plays no part
    section = STUDIES[name](asked.quick)
    seconds = time.process_time() - start
    if not section.claims:
        return section
    print(section.markdown())
    if asked.quick:
        print(f"These verdicts are of a look, with {section.few}; those of the documentation are of the whole.")
    if asked.keep:
        kept.keep(name, section, datetime.now(UTC).date().isoformat(), asked.quick, seconds)
        listed.write(found := listed.judged(listed.items(), kept.studies()))
        for item in listed.unread([item for item in found if item.study == name]):
            print(f"other claims hold than when the reason of {item} was written: read it, then --read '{item}'")
    elif asked.time:
        kept.time(name, section, asked.quick, seconds)
    return section


def _refuse(names: list[str], told: str) -> None:
    """Ends with one message if studies lack files."""
    if names:
        lacking = "; ".join(f"{name} lacks {', '.join(absent(name))}" for name in names)
        sys.exit(f"{told}: {lacking}. Set DPHIST_DATA to the folder that holds them")


def _write(sections: list[Section], papers: list[str], quick: bool, seconds: float) -> None:
    folder = PROJECT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    stem = "_".join(["papers", *papers])
    options = " --quick" if quick else ""
    report = [HEAD.format(options=options), *([QUICK] if quick else []), *(section.markdown() for section in sections)]
    (folder / f"{stem}.md").write_text("\n".join(report), encoding="utf-8")
    facts = {"quick": quick, "papers": [section.facts() for section in sections]}
    (folder / f"{stem}.json").write_text(json.dumps(facts, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    print(f"{seconds:.0f} s; report: benchmarks/results/{stem}.md, numbers: {stem}.json")


if __name__ == "__main__":
    main()
