"""`dphist plot`, and publications whose files are fewer or other than today's."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from carded_reports import made
from office import Office

from dphist_pipeline.answering import plot
from dphist_pipeline.releasing.store import Store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.draws_alike,
]


@pytest.fixture
def released(office: Office) -> Office:
    return office.with_release(title="Admissions by ward")


def drawn(office: Office, *words: str) -> str:
    ran = office.run("plot", "wards", *words, "--store", office.store)
    assert ran.code == 0, ran.err
    return ran.out


def test_it_draws_svg_by_default_and_says_where(released: Office) -> None:
    said = drawn(released)
    assert "wards.svg (wards, revision 1)" in " ".join(said.split()) and "card.html" in said
    assert (released.folder / "wards.svg").read_text(encoding="utf-8") == plot.release_svg(released.published())
    title, told, *_ = ElementTree.parse(released.folder / "wards.svg").getroot()
    assert title.tag.endswith("title") and title.text
    assert told.tag.endswith("desc") and "The largest is" in str(told.text) and "95 %" in str(told.text)


def test_it_makes_a_page_with_the_numbers(released: Office) -> None:
    drawn(released, "--output", "out.html")
    page = (released.folder / "out.html").read_text(encoding="utf-8")
    assert "<svg" in page and "The numbers of this picture" in page


def test_a_condition_takes_cells_and_whole_axes_away(released: Office) -> None:
    drawn(released, "--where", "ward = 'surgery'")
    whole, svg = plot.release_svg(released.published()), (released.folder / "wards.svg").read_text(encoding="utf-8")
    assert svg != whole
    texts = [" ".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert any("where ward = 'surgery'" in text for text in texts)
    assert "age" in texts and "medicine" not in texts
    assert "medicine" in whole


def test_it_replaces_no_file_unasked(released: Office) -> None:
    (released.folder / "wards.svg").write_text("mine", encoding="utf-8")
    ran = released.run("plot", "wards", "--store", released.store)
    assert ran.code == 1 and "is there already; name another file, or say --overwrite" in ran.err.replace("\n", " ")
    assert (released.folder / "wards.svg").read_text(encoding="utf-8") == "mine"
    drawn(released, "--overwrite")
    assert (released.folder / "wards.svg").read_text(encoding="utf-8") == plot.release_svg(released.published())


@pytest.mark.parametrize(
    "words, says",
    [
        (["--output", "out.gif"], "must end in .svg or .html"),
        (["--output", "nowhere/out.svg"], "cannot be written"),
        (["--where", "age >= 3"], "3 cuts"),
        (["--period", "2020-01-01"], "is published in this store"),
    ],
    ids=["format", "folder", "box", "period"],
)
def test_what_cannot_be_drawn_is_refused_with_the_reason(released: Office, words: list[str], says: str) -> None:
    ran = released.run("plot", "wards", *words, "--store", released.store)
    assert ran.code == 1 and says in ran.err


def test_a_release_of_the_local_model_is_drawn_in_every_format(office: Office) -> None:
    here = made(office.store, title="Ages of readers")
    for name in ("ages_city.svg", "out.html"):
        ran = office.run("plot", "ages_city", "--output", name, "--store", office.store)
        assert ran.code == 0, ran.err
        assert "card.html" in ran.out.replace("\n", "")
    svg = (office.folder / "ages_city.svg").read_text(encoding="utf-8")
    assert svg == plot.release_svg(here.folder)
    texts = " ".join(
        " ".join(text.itertext()) for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    )
    assert "Ages of readers" in texts and "intervals of the true numbers of values" in texts
    page = (office.folder / "out.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "95 to 100" in page and "The numbers of this picture" in page


def test_a_part_of_a_release_of_the_local_model_is_drawn(office: Office) -> None:
    made(office.store)
    ran = office.run("plot", "ages_city", "--where", "age >= 85", "--output", "part.html", "--store", office.store)
    assert ran.code == 0, ran.err
    page = (office.folder / "part.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "85 to under 90" in page and "95 to 100" in page and "80 to under 85" not in page


def of_an_older_version(folder: Path) -> None:
    """Takes the pages out of a publication, as if a version that knew none had made it."""
    for name in ("card.html", "deployment.yaml"):
        (folder / name).unlink()


def test_a_publication_of_an_older_version_is_read_verified_answered_and_drawn(released: Office) -> None:
    folder = released.published()
    of_an_older_version(folder)
    assert Store.open(released.store).verify()[1:] == (1, [])
    assert released.release("--json").json["replayed"] is True
    assert released.run("answer", "wards", "--store", released.store).code == 0
    assert "card.html" not in drawn(released)
