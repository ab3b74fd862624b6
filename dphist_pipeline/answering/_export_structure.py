"""What the codes and columns of an SDMX-CSV file mean, as SDMX-ML 2.1: code lists, concepts, structure and dataflow."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dphist_pipeline.answering._axis_codes import Code, code_list, common_axes
from dphist_pipeline.answering._export_sdmx import (
    ATTRIBUTES,
    HIDDEN,
    NORMAL,
    STATUS,
    TIME,
    UNRELIABLE,
    VALUE,
    VERSION,
    agency,
    dimensions,
    has_periods,
)
from dphist_pipeline.answering.exported_rows import COLUMNS, Exported, charged_at, title_of
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.languages.texts import gettext, language, marked, translated
from dphist_pipeline.publishing.formatting import visible

_PLACE = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
_NAMES = {"mes": f"{_PLACE}/message", "str": f"{_PLACE}/structure", "com": f"{_PLACE}/common"}
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_STATUS = {
    NORMAL: marked("Normal value"),
    UNRELIABLE: marked("Low reliability: the error is large beside the count"),
    HIDDEN: marked("Suppressed: below the least figure that the publisher shows"),
}
_KINDS = {"REVISION": "Integer", "NOTE": "String", "RELIABILITY": "String"}  # every other one is a Double


def sdmx_structure(exported: Exported, name: str, data: Path) -> str:
    """The structure of the file that `sdmx_lines` writes, as XML; its draft is not read.

    Raises:
        ValueError: the periods have other axes, or a code means another bin in another period.
    """
    return _Structure(exported).text()


class _Structure:
    """The message, built part by part."""

    def __init__(self, exported: Exported) -> None:
        self._exported = exported
        self._release, self._agency = str(exported.audit["release"]), agency(exported.about)
        self._axes = {one: axis for axis, one in dimensions(common_axes(exported.publications)).items()}
        self._title = visible(title_of(exported))

    def text(self) -> str:
        for prefix, name in _NAMES.items():
            ET.register_namespace(prefix, name)
        root = ET.Element(_tag("mes:Structure"))
        self._header(root)
        structures = _below(root, "mes:Structures")
        flow = self._maintained(_below(structures, "str:Dataflows"), "str:Dataflow", self._release, self._title)
        self._reference(_below(flow, "str:Structure"), "datastructure", "DataStructure", self._structure)
        lists = _below(structures, "str:Codelists")
        for identifier, axis in self._axes.items():
            codes = code_list(self._exported.publications, axis).values()
            self._code_list(lists, f"CL_{identifier}", gettext("Values of %(axis)s", axis=axis), codes)
        statuses = [Code(code, translated(text), code) for code, text in _STATUS.items()]
        self._code_list(lists, "CL_OBS_STATUS", gettext("Status of a value"), statuses)
        self._concepts(_below(structures, "str:Concepts"))
        self._data_structure(_below(structures, "str:DataStructures"))
        ET.indent(root)
        return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"

    @property
    def _structure(self) -> str:
        return f"DSD_{self._release.upper()}"

    @property
    def _scheme(self) -> str:
        return f"CS_{self._release.upper()}"

    def _header(self, root: ET.Element) -> None:
        header = _below(root, "mes:Header")
        _below(header, "mes:ID").text = f"STRUCTURE_{self._release.upper()}"
        _below(header, "mes:Test").text = "false"
        # The day of the charge, so that the same release gives the same file.
        charged = (charged_at(self._exported) or "2000-01-01")[:10]
        _below(header, "mes:Prepared").text = f"{charged}T00:00:00"
        _below(header, "mes:Sender", id=self._agency.replace(".", "_"))

    def _code_list(self, lists: ET.Element, identifier: str, title: str, codes: Iterable[Code]) -> None:
        codelist = self._maintained(lists, "str:Codelist", identifier, title)
        for code in codes:
            _named(_below(codelist, "str:Code", id=code.code), code.label)

    def _concepts(self, concepts: ET.Element) -> None:
        title = gettext("Concepts of %(title)s", title=self._title)
        scheme = self._maintained(concepts, "str:ConceptScheme", self._scheme, title)
        about = {
            identifier: (axis, gettext("axis %(axis)s: its bins or categories", axis=axis))
            for identifier, axis in self._axes.items()
        }
        if has_periods(self._exported):
            about[TIME] = ("period", gettext("first day of the period, and its length in days"))
        about |= {
            VALUE: ("estimate", translated(COLUMNS["estimate"])),
            STATUS: ("status", gettext("whether the value is reliable and shown")),
        }
        about |= {"REVISION": ("revision", translated(COLUMNS["revision"]))}
        about |= {identifier: (column, self._meaning(column)) for identifier, column in ATTRIBUTES.items()}
        for identifier, (name, meaning) in about.items():
            _named(_below(scheme, "str:Concept", id=identifier), name, meaning)

    def _meaning(self, column: str) -> str:
        meaning = translated(COLUMNS[column])
        words = "; ".join(f"{word or '(empty)'}: {translated(text)}" for word, text in RELIABILITY.legend.items())
        return f"{meaning} {words}" if column == "reliability" else meaning

    def _data_structure(self, structures: ET.Element) -> None:
        title = gettext("Structure of %(title)s", title=self._title)
        structure = self._maintained(structures, "str:DataStructure", self._structure, title)
        components = _below(structure, "str:DataStructureComponents")
        dimensions = _below(components, "str:DimensionList", id="DimensionDescriptor")
        for place, identifier in enumerate(self._axes, 1):
            one = _below(dimensions, "str:Dimension", id=identifier, position=str(place))
            self._concept_of(one, identifier)
            self._listed(one, f"CL_{identifier}")
        if has_periods(self._exported):
            one = _below(dimensions, "str:TimeDimension", id=TIME, position=str(len(self._axes) + 1))
            self._concept_of(one, TIME)
            _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType="ObservationalTimePeriod")
        attributes = _below(components, "str:AttributeList", id="AttributeDescriptor")
        for identifier in (STATUS, "REVISION", *ATTRIBUTES):
            status = "Mandatory" if identifier in (STATUS, "REVISION") else "Conditional"
            one = _below(attributes, "str:Attribute", id=identifier, assignmentStatus=status)
            self._concept_of(one, identifier)
            if identifier == STATUS:
                self._listed(one, "CL_OBS_STATUS")
            else:
                kind = _KINDS.get(identifier, "Double")
                _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType=kind)
            _below(_below(one, "str:AttributeRelationship"), "str:PrimaryMeasure").append(_reference(id=VALUE))
        measures = _below(components, "str:MeasureList", id="MeasureDescriptor")
        one = _below(measures, "str:PrimaryMeasure", id=VALUE)
        self._concept_of(one, VALUE)
        _below(_below(one, "str:LocalRepresentation"), "str:TextFormat", textType="Double")

    def _listed(self, component: ET.Element, codes: str) -> None:
        enumeration = _below(_below(component, "str:LocalRepresentation"), "str:Enumeration")
        self._reference(enumeration, "codelist", "Codelist", codes)

    def _concept_of(self, component: ET.Element, identifier: str) -> None:
        parent = {"maintainableParentID": self._scheme, "maintainableParentVersion": VERSION}
        where = {"agencyID": self._agency, "package": "conceptscheme", "class": "Concept"}
        _below(component, "str:ConceptIdentity").append(_reference(id=identifier, **parent, **where))

    def _reference(self, element: ET.Element, package: str, kind: str, identifier: str) -> None:
        where = {"agencyID": self._agency, "package": package, "class": kind}
        element.append(_reference(id=identifier, version=VERSION, **where))

    def _maintained(self, parent: ET.Element, tag: str, identifier: str, title: str) -> ET.Element:
        who = {"agencyID": self._agency, "version": VERSION, "isFinal": "false"}
        return _named(_below(parent, tag, id=identifier, **who), title)


def _named(element: ET.Element, name: str, about: str = "") -> ET.Element:
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
