"""What the tutorial and the how-to guides tell a reader to type is typed here, from the top of a page to its end."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import one_page
from docs.pages import FENCE, PROJECT, PageIsWrong, Reader, blocks_of
from office import Office

PAGES = PROJECT / "docs"
GUIDES = sorted(path.name for path in (PAGES / "how-to").glob("*.md"))


ALONE = {"privacy-officer.md"}  # its account for two signatures has the decisions of all other guides wait


@contextmanager
def after_the_tutorial(home: Path) -> Iterator[Reader]:
    """Somebody who has done the tutorial."""
    reader = Reader(home)
    with pytest.MonkeyPatch.context() as changed, reader.warm():
        for name in [name for name in os.environ if name.startswith("DPHIST_")]:
            changed.delenv(name)
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            changed.setenv(name, reader.environment[name])
        reader.follow((PAGES / "tutorial.md").read_text(encoding="utf-8"), "tutorial.md")
        yield reader


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Who reads the guides one after the other."""
    with after_the_tutorial(tmp_path_factory.mktemp("home")) as reader:
        yield reader


@pytest.mark.slow
@pytest.mark.parametrize("guide", [guide for guide in GUIDES if guide not in ALONE])
def test_every_block_of_a_guide_works_after_the_tutorial(reader: Reader, guide: str) -> None:
    folder = reader.folder
    try:
        reader.follow((PAGES / "how-to" / guide).read_text(encoding="utf-8"), guide)
    finally:
        reader.folder = folder


@pytest.mark.slow
@pytest.mark.parametrize("guide", sorted(ALONE))
def test_every_block_of_a_guide_works_in_a_store_of_its_own(tmp_path: Path, guide: str) -> None:
    with after_the_tutorial(tmp_path) as reader:
        reader.follow((PAGES / "how-to" / guide).read_text(encoding="utf-8"), guide)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        "```bash\ndphist chek admissions.yaml\n```",
        "```bash\ndphist mechanisms no_such_one | cat\n```",
        "```python\nimport dphist_pipeline as dph\ndph.no_such_name\n```",
        "```sql\nFROM no_such_table;\n```",
        "```yaml\na: 1\n```",
        "<!-- refused: it is not -->\n```bash\ntrue\n```",
        "<!-- refused: it is not -->\n```sql\nSELECT 1;\n```",
    ],
)
def test_a_page_with_a_wrong_block_fails(tmp_path: Path, block: str) -> None:
    with pytest.raises(PageIsWrong, match=r"page\.md, line \d"):
        Reader(tmp_path).follow(f"Some words.\n\n{block}\n\nMore words.\n", "page.md")


def test_no_block_escapes_the_reader() -> None:
    pages = [PAGES / "tutorial.md", *(PAGES / "how-to" / guide for guide in GUIDES)]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fences = re.findall(r"^ *```(\w+)", text, re.MULTILINE)
        assert len(fences) == len(FENCE.findall(text)), page.name
        assert set(fences) <= {"bash", "csv", "python", "sql", "yaml", "text"}, page.name
        assert len(re.findall(r"<!-- (?:not run|refused)\b", text)) == sum(
            block.mark is not None for block in blocks_of(text, page.name)
        ), f"{page.name}: a mark that stands before no block"
    assert len(GUIDES) >= 6


def test_a_page_that_fetches_anything_stops_the_build_of_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
    monkeypatch.syspath_prepend(str(PAGES))
    hooks = importlib.import_module("hooks")
    page, site = tmp_path / "page.html", {"site_dir": str(tmp_path)}
    for loaded in ('<script src="../app.js">', '<a href="https://example.org">', "<link rel=x href=style.css>"):
        page.write_text(loaded)
        hooks.on_post_build(config=site)
    for loaded in ("<script async src=https://example.org/app.js>", '<link rel="x" href="//example.org/style.css">'):
        page.write_text(loaded)
        with pytest.raises(hooks.PageFetches, match=r"page\.html loads \S*example\.org"):
            hooks.on_post_build(config=site)


@pytest.mark.soak
def test_the_site_of_the_archive_is_searched_from_a_disk_and_fetches_nothing(tmp_path: Path) -> None:
    for name in ("mkdocs", "material", "mkdocstrings"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install -e '.[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(PROJECT), "NO_MKDOCS_2_WARNING": "1", "OFFLINE": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    with one_page() as page:
        page.opened((tmp_path / "site" / "how-to" / "deploy.html").as_uri())
        page.click("input[name=query]")
        page.keyboard.type("witness")
        page.wait_for_selector(".md-search-result__item a")
        assert "witness" in page.get_attribute(".md-search-result__item a", "href")
        assert not page.complaints and all(address.startswith(("file:", "data:")) for address in page.loaded)


def test_every_page_names_the_version_that_is_built() -> None:
    build = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    version = build["project"]["version"]
    changelog = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, day = re.findall(r"^## \[(\d[^\]]*)\] - (\S+)", changelog, re.MULTILINE)[0]
    citation = (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert newest == version and f"\nversion: {version}\ndate-released: {day}\n" in citation
    for page in ("deploy.md", "without-network.md"):
        named = re.findall(r"dphist-(\d+\.\d+\.\d+)", (PAGES / "how-to" / page).read_text(encoding="utf-8"))
        assert set(named) == {version}, page


@pytest.mark.slow
def test_the_examples_that_name_every_field_are_accepted(office: Office) -> None:
    reference = PAGES / "reference"
    lines = (reference / "spec.yaml").read_text(encoding="utf-8").splitlines()
    # A table belongs to databases, `tables` to a mechanism of its own, and files around a period's to placeholders. An
    # amount does not go with what follows from a unit's rows.
    left_out = ("  source_table:", "  tables:", "  files_before:", "  files_after:", "    - {column: cost, amount:")
    (office.folder / "spec.yaml").write_text("\n".join(line for line in lines if not line.startswith(left_out)))
    for folder in ("codes", "sql"):
        (office.folder / folder).mkdir()
    (office.folder / "codes" / "counties.csv").write_text("code,state,region\nA,east,all\nB,west,all\n")
    (office.folder / "codes" / "people.csv").write_text("county,population\nA,1000\nB,2000\n")
    (office.folder / "sql" / "admissions.sql").write_text("SELECT * FROM source")
    office.run("init", "--code-lists", "codes")
    checked = office.run("check", "spec.yaml")
    assert checked.code == 0, checked.err
    checked = office.run("check", reference / "short_spec.yaml")
    assert checked.code == 0, checked.err
    checked = office.run("local", "check", reference / "collection.yaml")
    assert checked.code == 0, checked.err
