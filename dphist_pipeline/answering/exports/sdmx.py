"""A release as SDMX-CSV 2.0, one line for each cell, with codes alone; and what codes and columns mean.

That is told in SDMX-ML 2.1: code lists, concepts, structure and dataflow.
"""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dphist_pipeline.answering.exports import columns
from dphist_pipeline.answering.exports.codes import Code, code_list, codes_of, common_axes, free_name
from dphist_pipeline.answering.exports.columns import ExportColumn
from dphist_pipeline.answering.exports.rows import (
    Exported,
    charged_at,
    days_of,
    in_places,
    masks_of,
    places_of,
    title_of,
)
from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.languages.texts import gettext, language, mark_text, translate
from dphist_pipeline.estimates.known_figures import totals_are_known
from dphist_pipeline.estimates.notes import KNOWN
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.formatting import visible

AGENCY, VERSION = "DPHIST", "1.0"
TIME, VALUE, STATUS = "TIME_PERIOD", "OBS_VALUE", "OBS_STATUS"
TAKEN = {*("STRUCTURE", "STRUCTURE_ID", "ACTION", "SERIES_KEY", "OBS_KEY"), TIME, VALUE, STATUS, "REVISION"}
NORMAL, UNRELIABLE, HIDDEN, MISSING = "A", "U", "Q", "M"  # of SDMX's list CL_OBS_STATUS
_AGENCY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*", re.ASCII)
_PLACE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_NAMES = {"mes": f"{_PLACE}/message", "str": f"{_PLACE}/structure", "com": f"{_PLACE}/common"}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_STATUS = {
    NORMAL: mark_text("Normal value"),
    UNRELIABLE: mark_text("Low reliability: the error is large beside the count"),
    HIDDEN: mark_text("Suppressed: below the least figure that the publisher shows"),
    MISSING: mark_text("Missing value: it cannot be told, and the comment says why"),
}
_MEANINGS = {column.name: column.meaning for column in columns.COLUMNS}
_KINDS = {"double": "Double", "int64": "Integer"}  # every other one is a String


def write(exported: Exported, file: Path) -> None:
    """Writes the file with the data."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, lineterminator="\n").writerows(sdmx_lines(exported))


def attributes_of(exported: Exported) -> dict[str, ExportColumn]:
    """The columns that stand beside the value, by their id."""
    names = {*exported.columns} - {"estimate"}
    return {column.name.upper(): column for column in columns.COLUMNS if not column.is_fact and column.name in names}


def sdmx_lines(exported: Exported) -> Iterator[list[Any]]:
    """The header and the lines of the file.

    Dimensions are the axes and, for releases with periods, `TIME_PERIOD` as a range such as 2026-01-05/P7D.

    Raises:
        ValueError: the periods have other axes.
    """
    attributes = attributes_of(exported)
    identifiers = dimensions(common_axes(exported.publications), attributes).values()
    time = [TIME] if has_periods(exported) else []
    yield ["STRUCTURE", "STRUCTURE_ID", "ACTION", *identifiers, *time, VALUE, STATUS, "REVISION", *attributes]
    structure = ["dataflow", f"{agency(exported.about)}:{exported.audit['release']}({VERSION})", "I"]
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        codes = _codes(one.domain, one.audit.get("model") == "local")
        when = [_time_range(one.audit)] if time else []
        places, hidden = places_of(exported, table), masks_of(one, table)
        status = [UNRELIABLE if word == "poor" else NORMAL for word in table["reliability"].to_pylist()]
        numbers = {name: table[name].to_pylist() for name in ("estimate", *(one.name for one in attributes.values()))}
        if hidden:
            status = [HIDDEN if low else word for word, low in zip(status, hidden["estimate"][0].tolist(), strict=True)]
            for name, (low, out) in hidden.items():
                visible = ~(low | out)
                numbers[name] = [value if keep else None for value, keep in zip(numbers[name], visible, strict=True)]
        written = [[in_places(value, places.get(name)) for value in values] for name, values in numbers.items()]
        for cell, of, (estimate, *beside) in zip(
            zip(*codes, strict=True), status, zip(*written, strict=True), strict=True
        ):
            yield [*structure, *cell, *when, estimate, of, one.audit["revision"], *beside]


def has_periods(exported: Exported) -> bool:
    """Whether the release is cut in periods."""
    return bool(exported.audit["period"] != "all")


def dimensions(axes: Iterable[str], attributes: Iterable[str]) -> dict[str, str]:
    """The id of each axis; one with the id of another, or the name of a column of every file, gets underscores."""
    identifiers, reserved = dict[str, str](), {*TAKEN, *attributes}
    for name in axes:
        identifiers[name] = free_name(name.upper(), reserved)
        reserved.add(identifiers[name])
    return identifiers


def agency(about: About) -> str:
    """The id of the agency that maintains the structure.

    Raises:
        ValueError: `about.json` names one that SDMX does not take.
    """
    if about.agency and not _AGENCY.fullmatch(about.agency):
        raise ValueError(f"about.json has the agency {about.agency!r}; SDMX takes letters, digits, _, - and points")
    return about.agency or AGENCY


def _codes(domain: Domain, closed: bool) -> list[Iterator[str]]:
    """For each axis, the code of every cell in declared order."""
    places = np.unravel_index(np.arange(domain.cells), domain.shape)
    return [
        iter(np.array([code.code for code in codes_of(axis, closed)], dtype=object)[place].tolist())
        for axis, place in zip(domain.axes, places, strict=True)
    ]


def _time_range(audit: Any) -> str:
    """The period as SDMX writes it: its first day and its length in days."""
    days = days_of(audit)
    return str(audit["period"]) if days is None else f"{days[0].isoformat()}/P{(days[1] - days[0]).days}D"


def sdmx_structure(exported: Exported, name: str, data: Path) -> str:
    """The structure of the file that `sdmx_lines` writes, as XML; its draft is not read.

    Raises:
        ValueError: the periods have other axes, or a code means another bin in another period.
    """
    publications, attributes = exported.publications, attributes_of(exported)
    axes = {one: axis for axis, one in dimensions(common_axes(publications), attributes).items()}
    return StructureMessage(
        release=str(exported.audit["release"]),
        agency=agency(exported.about),
        title=visible(title_of(exported)),
        # The day of the charge, so that the same release gives the same file.
        day=(charged_at(exported) or "2000-01-01")[:10],
        dimensions={one: (axis, [*code_list(publications, axis).values()]) for one, axis in axes.items()},
        has_time=has_periods(exported),
        value=("estimate", translate(_MEANINGS["estimate"])),
        statuses=(NORMAL, UNRELIABLE, HIDDEN),
        attributes={one: (column.name, _meaning(column, exported), column.kind) for one, column in attributes.items()},
    ).text()


def _meaning(column: ExportColumn, exported: Exported) -> str:
    meaning = translate(column.meaning)
    words = "; ".join(f"{word or '(empty)'}: {translate(text)}" for word, text in RELIABILITY.legend.items())
    if any(totals_are_known(one.audit) for one in exported.publications):
        words += f"; known: {translate(KNOWN)}"
    return f"{meaning}: {words}" if column.name == "reliability" else meaning


@dataclass(frozen=True)
class StructureMessage:
    """What the codes and columns of a file mean: code lists, concepts, structure and dataflow.

    Attributes:
        release: the name of the dataflow.
        day: of the message, as ISO text.
        dimensions: beside time, by their ids: the name of the axis, and its codes.
        value: name and meaning of `OBS_VALUE`.
        statuses: the codes of `OBS_STATUS`.
        attributes: beside status and revision, by their ids: name, meaning and kind in Arrow's words.
    """

    release: str
    agency: str
    title: str
    day: str
    dimensions: Mapping[str, tuple[str, Sequence[Code]]]
    has_time: bool
    value: tuple[str, str]
    statuses: Sequence[str]
    attributes: Mapping[str, tuple[str, str, str]]

    def text(self) -> str:
        """The message as XML."""
        for prefix, name in _NAMES.items():
            ET.register_namespace(prefix, name)
        root = ET.Element(_tag("mes:Structure"))
        self._header(root)
        structures = _below(root, "mes:Structures")
        flow = self._maintainable(_below(structures, "str:Dataflows"), "str:Dataflow", self.release, self.title)
        self._reference(_below(flow, "str:Structure"), "datastructure", "DataStructure", self._structure)
        lists = _below(structures, "str:Codelists")
        for identifier, (axis, codes) in self.dimensions.items():
            self._code_list(lists, f"CL_{identifier}", gettext("Values of %(axis)s", axis=axis), codes)
        statuses = [Code(code, translate(_STATUS[code]), code) for code in self.statuses]
        self._code_list(lists, "CL_OBS_STATUS", gettext("Status of a value"), statuses)
        self._concepts(_below(structures, "str:Concepts"))
        self._data_structure(_below(structures, "str:DataStructures"))
        ET.indent(root)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"

    @property
    def _structure(self) -> str:
        return f"DSD_{self.release.upper()}"

    @property
    def _scheme(self) -> str:
        return f"CS_{self.release.upper()}"

    def _header(self, root: ET.Element) -> None:
        header = _below(root, "mes:Header")
        _below(header, "mes:ID").text = f"STRUCTURE_{self.release.upper()}"
        _below(header, "mes:Test").text = "false"
        _below(header, "mes:Prepared").text = f"{self.day}T00:00:00"
        _below(header, "mes:Sender", id=self.agency.replace(".", "_"))

    def _code_list(self, lists: ET.Element, identifier: str, title: str, codes: Iterable[Code]) -> None:
        codelist = self._maintainable(lists, "str:Codelist", identifier, title)
        for code in codes:
            _with_name(_below(codelist, "str:Code", id=code.code), code.label)

    def _concepts(self, concepts: ET.Element) -> None:
        title = gettext("Concepts of %(title)s", title=self.title)
        scheme = self._maintainable(concepts, "str:ConceptScheme", self._scheme, title)
        about = {
            identifier: (axis, gettext("axis %(axis)s: its bins or categories", axis=axis))
            for identifier, (axis, _) in self.dimensions.items()
        }
        if self.has_time:
            about[TIME] = ("period", gettext("first day of the period, and its length in days"))
        about |= {
            VALUE: self.value,
            STATUS: ("status", gettext("whether the value is reliable and shown")),
        }
        about |= {"REVISION": ("revision", translate(_MEANINGS["revision"]))}
        about |= {identifier: (name, meaning) for identifier, (name, meaning, _) in self.attributes.items()}
        for identifier, (name, meaning) in about.items():
            _with_name(_below(scheme, "str:Concept", id=identifier), name, meaning)

    def _data_structure(self, structures: ET.Element) -> None:
        title = gettext("Structure of %(title)s", title=self.title)
        structure = self._maintainable(structures, "str:DataStructure", self._structure, title)
        components = _below(structure, "str:DataStructureComponents")
        dimensions = _below(components, "str:DimensionList", id="DimensionDescriptor")
        for place, identifier in enumerate(self.dimensions, 1):
            one = _below(dimensions, "str:Dimension", id=identifier, position=str(place))
            self._concept_of(one, identifier)
            self._add_code_list(one, f"CL_{identifier}")
        if self.has_time:
            one = _below(dimensions, "str:TimeDimension", id=TIME, position=str(len(self.dimensions) + 1))
            self._concept_of(one, TIME)
            _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType="ObservationalTimePeriod")
        attributes = _below(components, "str:AttributeList", id="AttributeDescriptor")
        kinds = {"REVISION": "int64"} | {identifier: kind for identifier, (_, _, kind) in self.attributes.items()}
        for identifier in (STATUS, *kinds):
            status = "Mandatory" if identifier in (STATUS, "REVISION") else "Conditional"
            one = _below(attributes, "str:Attribute", id=identifier, assignmentStatus=status)
            self._concept_of(one, identifier)
            if identifier == STATUS:
                self._add_code_list(one, "CL_OBS_STATUS")
            else:
                kind = _KINDS.get(kinds[identifier], "String")
                _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType=kind)
            _below(_below(one, "str:AttributeRelationship"), "str:PrimaryMeasure").append(_reference(id=VALUE))
        measures = _below(components, "str:MeasureList", id="MeasureDescriptor")
        one = _below(measures, "str:PrimaryMeasure", id=VALUE)
        self._concept_of(one, VALUE)
        _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType="Double")

    def _add_code_list(self, component: ET.Element, codes: str) -> None:
        enumeration = _below(_below(component, "str:LocalRepresentation"), "str:Enumeration")
        self._reference(enumeration, "codelist", "Codelist", codes)

    def _concept_of(self, component: ET.Element, identifier: str) -> None:
        parent = {"maintainableParentID": self._scheme, "maintainableParentVersion": VERSION}
        where = {"agencyID": self.agency, "package": "conceptscheme", "class": "Concept"}
        _below(component, "str:ConceptIdentity").append(_reference(id=identifier, **parent, **where))

    def _reference(self, element: ET.Element, package: str, kind: str, identifier: str) -> None:
        where = {"agencyID": self.agency, "package": package, "class": kind}
        element.append(_reference(id=identifier, version=VERSION, **where))

    def _maintainable(self, parent: ET.Element, tag: str, identifier: str, title: str) -> ET.Element:
        who = {"agencyID": self.agency, "version": VERSION, "isFinal": "false"}
        return _with_name(_below(parent, tag, id=identifier, **who), title)


def _with_name(element: ET.Element, name: str, about: str = "") -> ET.Element:
    """The element with a name and, if there is one, a description."""
    for tag, text in (("com:Name", name), ("com:Description", about)):
        if text:
            child = _below(element, tag)
            child.set(_LANGUAGE, language().code)
            child.text = text
    return element


def _reference(**parts: str) -> ET.Element:
    return ET.Element("Ref", parts)


def _below(parent: ET.Element, tag: str, **parts: Any) -> ET.Element:
    return ET.SubElement(parent, _tag(tag), parts)


def _tag(tag: str) -> str:
    prefix, _, name = tag.partition(":")
    return f"{{{_NAMES[prefix]}}}{name}"
