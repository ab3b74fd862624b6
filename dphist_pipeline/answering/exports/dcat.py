"""A release as portals of data harvest it: DCAT-AP 3 and HealthDCAT-AP 8, as JSON-LD that needs no other file.

HealthDCAT-AP has three levels, told apart by access rights alone. A published table is open to all, so the level is
PUBLIC, which asks for no sample and tells of no personal data. Some names changed between releases of the profile; the
record has both where catalogues may expect either.

What only the office knows comes from `about.json`. Nothing is told of records: the profile's numbers of records and of
people are left out, because both would be exact.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dphist_pipeline.answering.exports.rows import (
    Exported,
    charged_at,
    counted_of,
    current_files,
    days_of,
    is_local,
    title_of,
)
from dphist_pipeline.base.about_publisher import NAME, faults, link_of
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.published_files import PublishedFolder

# The codes of three letters that ISO 3166-1 gives to countries; the European list of countries has them, too.
_CODES = """
ABW AFG AGO AIA ALA ALB AND ARE ARG ARM ASM ATA ATF ATG AUS AUT AZE BDI BEL BEN BES BFA BGD BGR BHR BHS BIH BLM BLR
BLZ BMU BOL BRA BRB BRN BTN BVT BWA CAF CAN CCK CHE CHL CHN CIV CMR COD COG COK COL COM CPV CRI CUB CUW CXR CYM CYP
CZE DEU DJI DMA DNK DOM DZA ECU EGY ERI ESH ESP EST ETH FIN FJI FLK FRA FRO FSM GAB GBR GEO GGY GHA GIB GIN GLP GMB
GNB GNQ GRC GRD GRL GTM GUF GUM GUY HKG HMD HND HRV HTI HUN IDN IMN IND IOT IRL IRN IRQ ISL ISR ITA JAM JEY JOR JPN
KAZ KEN KGZ KHM KIR KNA KOR KWT LAO LBN LBR LBY LCA LIE LKA LSO LTU LUX LVA MAC MAF MAR MCO MDA MDG MDV MEX MHL MKD
MLI MLT MMR MNE MNG MNP MOZ MRT MSR MTQ MUS MWI MYS MYT NAM NCL NER NFK NGA NIC NIU NLD NOR NPL NRU NZL OMN PAK PAN
PCN PER PHL PLW PNG POL PRI PRK PRT PRY PSE PYF QAT REU ROU RUS RWA SAU SDN SEN SGP SGS SHN SJM SLB SLE SLV SMR SOM
SPM SRB SSD STP SUR SVK SVN SWE SWZ SXM SYC SYR TCA TCD TGO THA TJK TKL TKM TLS TON TTO TUN TUR TUV TWN TZA UGA UKR
UMI URY USA UZB VAT VCT VEN VGB VIR VNM VUT WLF WSM YEM ZAF ZMB ZWE
"""
COUNTRIES = frozenset(_CODES.split())


_EU = "http://publications.europa.eu/resource/authority"
_THEMES = ["AGRI", "ECON", "EDUC", "ENER", "ENVI", "GOVE", "HEAL", "INTR", "JUST", "REGI", "SOCI", "TECH", "TRAN"]
_FREQUENCIES = {7: "WEEKLY", 28: "MONTHLY", 29: "MONTHLY", 30: "MONTHLY", 31: "MONTHLY"}
_FREQUENCIES |= dict.fromkeys(range(89, 93), "QUARTERLY") | {365: "ANNUAL", 366: "ANNUAL"}
_CONTEXT = {
    "adms": "http://www.w3.org/ns/adms#",
    "csvw": "http://www.w3.org/ns/csvw#",
    "cv": "http://data.europa.eu/m8g/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dcatap": "http://data.europa.eu/r5r/",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "eli": "http://data.europa.eu/eli/ontology#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "spdx": "http://spdx.org/rdf/terms#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
_MEDIA = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
_FORMATS = {"csv": "CSV", "parquet": "PARQUET"}
_DATATYPES = {"string": "string", "double": "double", "bool": "boolean", "date32[day]": "date"}
_NEEDED = ("publisher", "address")
_NEEDED_FOR_HEALTH = (*_NEEDED, "contact", "legislation", "health_category", "access_body", "access_body_contact")
_LINKS = ("contact", "legislation", "health_category", "access_body_contact")
_WEB = ("legislation", "health_category")

Node = dict[str, Any]
_OPEN: Node = {"@id": f"{_EU}/access-right/PUBLIC", "@type": "dct:RightsStatement"}


def write(exported: Exported, file: Path) -> None:
    """Writes the record of a release, with all its periods, within a catalogue of its publisher.

    Raises:
        ValueError: `about.json` lacks what the profile asks for, or a part of the release was asked for.
    """
    record = _Record(exported, _NEEDED)
    about = exported.about
    _write(
        {
            "@id": f"{about.address_of(DerivedFiles.index)}#catalogue",
            "@type": "dcat:Catalog",
            "dct:title": f"Tables published by {about.publisher}",
            "dct:description": "Differentially private tables of counts, each with 95 % intervals.",
            "dct:publisher": record.publisher(),
            "foaf:homepage": {"@id": about.address_of(DerivedFiles.index), "@type": "foaf:Document"},
            "dcat:dataset": record.dataset(),
        },
        file,
    )


def write_for_health(exported: Exported, file: Path) -> None:
    """Writes the record of a release for catalogues of health data: the dataset, open to all, with its variables.

    Raises:
        ValueError: see `write`.
    """
    record, about = _Record(exported, _NEEDED_FOR_HEALTH), exported.about
    mail_or_page, page = about.access_body_contact, about.access_body_homepage
    body = {"foaf:name": about.access_body, "cv:contactPoint": _contact_point(mail_or_page)}
    _write(
        record.dataset(also="HEAL")
        | {
            "dct:publisher": record.health_publisher(),
            "dct:type": _concept(f"{_EU}/dataset-type/STATISTICAL", "Statistical data"),
            "healthdcatap:hdab": {"@type": "foaf:Agent", **body, **_agent_address(mail_or_page, page)},
            "healthdcatap:healthCategory": _concept(about.health_category, about.health_category),
            **_concepts({"healthdcatap:healthTheme": about.health_theme}),
            **({"dpv:hasPurpose": _purpose(about.purpose)} if about.purpose else {}),
            "healthdcatap:hasStructuredData": {"@value": True},
            "healthdcatap:hasVariables": record.variables(),
        },
        file,
    )


class _Record:
    """The parts of a record about one release."""

    def __init__(self, exported: Exported, needed: tuple[str, ...]) -> None:
        self._exported, self._about, self._audit = exported, exported.about, exported.audit
        folder = exported.publications[-1].folder
        self._release = PublishedFolder(folder).release
        _check(exported, self._release.parent, needed)
        self._current = current_files(exported)
        self._page = self._about.address_of(f"{self._release.name}/{DerivedFiles.index}")
        self._id = f"{self._page}#{self._audit['release']}"

    def publisher(self) -> Node:
        return {
            "@id": f"{self._about.address_of(DerivedFiles.index)}#publisher",
            "@type": "foaf:Agent",
            "foaf:name": self._about.publisher,
        }

    def health_publisher(self) -> Node:
        """The publisher with what catalogues of health data ask about it, as far as the office told."""
        about = self._about
        return {
            **self.publisher(),
            "cv:contactPoint": _contact_point(about.contact),
            **_agent_address(about.contact, about.homepage),
            **_concepts(dict.fromkeys(("healthdcatap:publisherType", "dct:type"), about.publisher_type)),
            **dict.fromkeys(
                ("healthdcatap:publisherNote", "dct:description") if about.publisher_note else (), about.publisher_note
            ),
            **(
                {"healthdcatap:trustedDataHolder": {"@value": about.trusted_data_holder == "yes"}}
                if about.trusted_data_holder
                else {}
            ),
        }

    def dataset(self, also: str = "") -> Node:
        """The data set; `also` is a theme that the profile demands beside the office's own."""
        about = self._about
        contact = _kind(about.publisher, about.contact, about.homepage)
        themes = {node["@id"]: node for text in (about.theme, also) if text for node in [_theme(text)]}
        words = about.words()
        return {
            "@id": self._id,
            "@type": "dcat:Dataset",
            "dct:title": title_of(self._exported),
            "dct:description": self._description(),
            "dct:identifier": {"@type": "xsd:anyURI", "@value": self._id},
            "dct:publisher": self.publisher(),
            **({"dcat:contactPoint": contact} if contact else {}),
            **({"dcat:theme": list(themes.values())} if themes else {}),
            **({"dcat:keyword": words} if words else {}),
            **({"dct:spatial": _location(about.spatial)} if about.spatial else {}),
            **self._times(),
            "dct:accessRights": _OPEN,
            "dct:provenance": {"@type": "dct:ProvenanceStatement", "rdfs:label": self._provenance()},
            "dcat:landingPage": {"@id": self._page, "@type": "foaf:Document"},
            **self._law(),
            "dcat:distribution": list(self._distributions()),
        }

    def variables(self) -> Node:
        """The columns of the published cells; their meanings lie in the file that is published."""
        schema = pq.read_schema([file for file in self._current if file.suffix == ".parquet"][-1])
        meanings = json.loads((schema.metadata or {}).get(b"columns", b"{}"))
        columns = [
            {
                "@type": "csvw:Column",
                **dict.fromkeys(("csvw:name", "csvw:titles", "csvw:title"), field.name),
                "dct:description": meanings.get(field.name) or field.name,
                "csvw:datatype": _DATATYPES.get(str(field.type), "integer"),
            }
            for field in schema
        ]
        title, (address, _) = title_of(self._exported), self._files()[0]
        table = {"@type": "csvw:Table", "dct:title": title, "csvw:url": {"@id": address}, "csvw:column": columns}
        return {"@type": "csvw:TableGroup", "dct:title": f"Columns of {title}", "csvw:table": table}

    def _description(self) -> str:
        axes = [axis.name for axis in self._exported.publications[-1].domain.axes]
        gone = f" Withdrawn: {', '.join(self._exported.withdrawn)}." if self._exported.withdrawn else ""
        return (
            f"{title_of(self._exported)}: {counted_of(self._exported)} by {', '.join(axes)}. Every declared cell "
            f"has an estimate and, where noisy cells were paid for, an unbiased estimate with its 95 % interval.{gone}"
        )

    def _provenance(self) -> str:
        audit, bound = self._audit, int(self._audit["max_rows_per_unit"])
        unit, several = audit.get("unit_label") or audit["privacy_unit"], "s" if bound != 1 else ""
        is_once = audit["period"] == "all"
        if is_local(self._exported):
            return (
                f"Each {unit} added noise before anything was sent: local differential privacy with epsilon "
                f"{audit['epsilon']} for the report{several} of at most {bound} value{several}"
                f"{'' if is_once else ' in each round'}. Nobody knows an exact count."
            )
        return (
            f"Noise was added before publication: differential privacy for every {unit} with epsilon "
            f"{audit['epsilon']} for {'all records together' if is_once else 'each period'}, "
            f"at most {bound} row{several} of each counted. No exact count is published."
        )

    def _times(self) -> Node:
        """Days of publication, the time that is covered, how often, and the version."""
        charged = charged_at(self._exported)[:10]
        periods = [days for one in self._exported.publications if (days := days_of(one.audit)) is not None]
        if periods:
            starts, ends = zip(*periods, strict=True)
            covered: tuple[date, date] | None = (min(starts), max(ends) - timedelta(days=1))
            often = _FREQUENCIES.get((ends[-1] - starts[-1]).days)
        else:
            covered, often = _two_days(self._about.temporal), None
        return {
            **({"dct:modified": _day(date.fromisoformat(charged))} if charged else {}),
            **({"dct:temporal": _period(*covered)} if covered else {}),
            **(
                {"dct:accrualPeriodicity": {"@id": f"{_EU}/frequency/{often}", "@type": "dct:Frequency"}}
                if often
                else {}
            ),
            "dcat:version": f"{self._audit['period']} revision {self._audit['revision']}",
        }

    def _law(self) -> Node:
        law = link_of(self._about.legislation)
        return (
            {"dcatap:applicableLegislation": {"@id": law, "@type": "eli:LegalResource"}}
            if law.startswith("http")
            else {}
        )

    def _distributions(self) -> Iterator[Node]:
        for address, file in self._files():
            ending = file.suffix[1:]
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
            media = f"https://www.iana.org/assignments/media-types/{_MEDIA[ending]}"
            yield {
                "@id": f"{address}#distribution",
                "@type": "dcat:Distribution",
                "dct:title": f"{title_of(self._exported)}, as {'CSV' if ending == 'csv' else 'Parquet'}",
                "dct:description": "One row for each cell of the latest revision of each period.",
                "dcat:accessURL": {"@id": self._page, "@type": "rdfs:Resource"},
                "dcat:downloadURL": {"@id": address, "@type": "rdfs:Resource"},
                "dct:format": {"@id": f"{_EU}/file-type/{_FORMATS[ending]}", "@type": "dct:MediaTypeOrExtent"},
                "dcat:mediaType": {"@id": media, "@type": "dct:MediaType"},
                "dcat:byteSize": {"@type": "xsd:nonNegativeInteger", "@value": str(file.stat().st_size)},
                "spdx:checksum": {
                    "@type": "spdx:Checksum",
                    "spdx:algorithm": {
                        "@id": "http://spdx.org/rdf/terms#checksumAlgorithm_sha256",
                        "@type": "spdx:ChecksumAlgorithm",
                    },
                    "spdx:checksumValue": {"@type": "xsd:hexBinary", "@value": digest},
                },
                "dct:rights": _OPEN,
                **({"dct:license": _licence(self._about.license)} if self._about.license else {}),
                **self._law(),
            }

    def _files(self) -> list[tuple[str, Path]]:
        """The address and the place of each file with all current cells; of a long history, a file for each period."""
        public = self._release.parent
        return [(self._about.address_of(file.relative_to(public).as_posix()), file) for file in self._current]


def _check(exported: Exported, public: Path, needed: tuple[str, ...]) -> None:
    """Refuses to write a record without what its profile asks for."""
    if problems := faults(public):
        raise ValueError(f"{'; '.join(problems)}. Mend it first")
    missing = [name for name in needed if not _says(exported, name)]
    if missing:
        links = f" ({', '.join(('address', *_WEB))} as addresses of pages; contact, access_body_contact also of mail)"
        raise ValueError(f"{public.parent / NAME} needs {', '.join(missing)}{links}; write them there")


def _says(exported: Exported, name: str) -> bool:
    """Whether `about.json` has a field, as an address where one is needed."""
    text = str(getattr(exported.about, name))
    if name == "address":
        return bool(exported.about.address_of(DerivedFiles.index))
    if name in _WEB:
        return link_of(text).startswith("http")
    return bool(link_of(text) if name in _LINKS else text)


def _write(record: Node, file: Path) -> None:
    used = json.dumps(record)
    context = {name: place for name, place in _CONTEXT.items() if f'"{name}:' in used}
    file.write_text(json.dumps({"@context": context, **record}, indent=2) + "\n", encoding="utf-8")


def _theme(text: str) -> Node:
    """A theme by its code or address.

    Raises:
        ValueError: it is neither.
    """
    if text in _THEMES:
        return _concept(f"{_EU}/data-theme/{text}", text)
    if not link_of(text).startswith("http"):
        raise ValueError(f"{NAME} has the theme {text!r}; write its address, or one of {', '.join(_THEMES)}")
    return _concept(text, text)


def _concept(address: str, label: str) -> Node:
    return {"@id": address, "@type": "skos:Concept", "skos:prefLabel": label}


def _concepts(addresses: Mapping[str, str]) -> Node:
    """The properties that have an address, each a concept."""
    return {name: _concept(address, address) for name, address in addresses.items() if address}


def _purpose(address: str) -> Node:
    concept = _concept(address, address)
    return {**concept, "@type": [concept["@type"], "dpv:Purpose"]}


def _location(text: str) -> Node:
    """An area: a code of a country, an address, or words."""
    if text in COUNTRIES:
        return {"@id": f"{_EU}/country/{text}", "@type": "dct:Location"}
    if link_of(text).startswith("http"):
        return {"@id": text, "@type": "dct:Location"}
    return {"@type": "dct:Location", "rdfs:label": text}


def _licence(text: str) -> Node:
    if link_of(text).startswith("http"):
        return {"@id": text, "@type": "dct:LicenseDocument"}
    return {"@type": "dct:LicenseDocument", "rdfs:label": text}


def _kind(name: str, contact: str, homepage: str) -> Node | None:
    """A contact in the words of vcard; None without any address."""
    mail, page = _mail_and_page(contact, homepage)
    address = {"vcard:hasEmail": mail, "vcard:hasURL": page}
    links = {name: {"@id": link} for name, link in address.items() if link}
    return {"@type": "vcard:Kind", "vcard:fn": name, **links} if links else None


def _agent_address(contact: str, homepage: str) -> Node:
    """Where an agent is reached, in the words of foaf."""
    mail, page = _mail_and_page(contact, homepage)
    return {
        **({"foaf:mbox": {"@id": mail}} if mail else {}),
        **({"foaf:homepage": {"@id": page, "@type": "foaf:Document"}} if page else {}),
    }


def _mail_and_page(contact: str, homepage: str) -> tuple[str, str]:
    """An address of mail and one of a page; empty where neither text is one. A contact's own page goes before."""
    link = link_of(contact)
    return (link, link_of(homepage)) if link.startswith("mailto:") else ("", link or link_of(homepage))


def _contact_point(contact: str) -> Node:
    """A contact in the words of the European core vocabularies."""
    link = link_of(contact)
    told: Node = {"cv:email": contact} if link.startswith("mailto:") else {"cv:contactPage": {"@id": link}}
    return {"@type": "cv:ContactPoint", **told}


def _two_days(text: str) -> tuple[date, date] | None:
    """The days of `2026-01-01/2026-12-31`.

    Raises:
        ValueError: it is something else.
    """
    if not text:
        return None
    try:
        first, last = (date.fromisoformat(day) for day in text.split("/"))
    except ValueError:
        raise ValueError(f"{NAME} has temporal {text!r}; write two days such as 2026-01-01/2026-12-31") from None
    return first, last


def _period(first: date, last: date) -> Node:
    return {"@type": "dct:PeriodOfTime", "dcat:startDate": _day(first), "dcat:endDate": _day(last)}


def _day(day: date) -> Mapping[str, str]:
    return {"@type": "xsd:date", "@value": day.isoformat()}
