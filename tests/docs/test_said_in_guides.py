"""What guides say of commands that there are, and of one that there is not."""

from __future__ import annotations

from pathlib import Path

from office import Office

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
