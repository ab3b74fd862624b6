"""What guides say of commands that there are, and of one that there is not."""

from __future__ import annotations

import re
from pathlib import Path

from office import Office

import dphist_pipeline as dph

GUIDES = Path(__file__).resolve().parents[2] / "docs/how-to"


def test_the_guide_says_why_there_is_no_command_for_classifiers(office: Office) -> None:
    said = " ".join((GUIDES / "use-a-release.md").read_text(encoding="utf-8").split())
    assert "There is no command for it" in said and "whoever opens a pickle runs the code in it" in said
    assert office.run("classify").code == 2


def test_the_guide_tells_how_a_late_consumer_is_served() -> None:
    said = " ".join((GUIDES / "local-model.md").read_text(encoding="utf-8").split())
    assert "## A consumer who comes later" in said and "dphist local publish pay.yaml --revise" in said
    assert "the last interval is shorter" in said


def test_a_language_is_added_to_what_an_office_says_of_itself() -> None:
    """A command that writes the whole file would take licence and contact off every later page."""
    said = " ".join((GUIDES / "statistician.md").read_text(encoding="utf-8").split())
    assert 'add `"language": "de"` to `<store>/about.json`' in said and "> store/about.json" not in said


def test_a_page_whose_tables_the_site_fills_in_says_so() -> None:
    hooks = (GUIDES.parent / "hooks.py").read_text(encoding="utf-8")
    (said,) = re.findall(r'UNFILLED = "\\n(.*)\\n"', hooks)
    pages = {page.name: page.read_text(encoding="utf-8") for page in GUIDES.parent.rglob("*.md")}
    assert {name for name, text in pages.items() if f"\n\n{said}\n\n" in text} == {
        name for name, text in pages.items() if "<!-- generated: " in text
    }


def test_the_readme_counts_the_mechanisms() -> None:
    words = {20: "Twenty", 21: "Twenty-one", 22: "Twenty-two", 23: "Twenty-three", 24: "Twenty-four"}
    readme = (GUIDES.parents[1] / "README.md").read_text(encoding="utf-8")
    assert f"- **{words[len(dph.mechanisms())]} mechanisms**" in readme
