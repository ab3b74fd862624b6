"""Lists that are public knowledge, for columns that many files have: countries, chapters of diseases, ages."""

from __future__ import annotations

import re
from collections.abc import Mapping

# ISO 3166-1, two letters, with short English names.
_COUNTRIES = """
AD Andorra|AE United Arab Emirates|AF Afghanistan|AG Antigua and Barbuda|AI Anguilla|AL Albania|AM Armenia|AO Angola
AQ Antarctica|AR Argentina|AS American Samoa|AT Austria|AU Australia|AW Aruba|AX Åland Islands|AZ Azerbaijan
BA Bosnia and Herzegovina|BB Barbados|BD Bangladesh|BE Belgium|BF Burkina Faso|BG Bulgaria|BH Bahrain|BI Burundi
BJ Benin|BL Saint Barthélemy|BM Bermuda|BN Brunei|BO Bolivia|BQ Bonaire, Sint Eustatius and Saba|BR Brazil|BS Bahamas
BT Bhutan|BV Bouvet Island|BW Botswana|BY Belarus|BZ Belize|CA Canada|CC Cocos (Keeling) Islands
CD Congo (Democratic Republic)|CF Central African Republic|CG Congo|CH Switzerland|CI Côte d'Ivoire|CK Cook Islands
CL Chile|CM Cameroon|CN China|CO Colombia|CR Costa Rica|CU Cuba|CV Cabo Verde|CW Curaçao|CX Christmas Island|CY Cyprus
CZ Czechia|DE Germany|DJ Djibouti|DK Denmark|DM Dominica|DO Dominican Republic|DZ Algeria|EC Ecuador|EE Estonia|EG Egypt
EH Western Sahara|ER Eritrea|ES Spain|ET Ethiopia|FI Finland|FJ Fiji|FK Falkland Islands|FM Micronesia|FO Faroe Islands
FR France|GA Gabon|GB United Kingdom|GD Grenada|GE Georgia|GF French Guiana|GG Guernsey|GH Ghana|GI Gibraltar
GL Greenland|GM Gambia|GN Guinea|GP Guadeloupe|GQ Equatorial Guinea|GR Greece
GS South Georgia and the South Sandwich Islands|GT Guatemala|GU Guam|GW Guinea-Bissau|GY Guyana|HK Hong Kong
HM Heard Island and McDonald Islands|HN Honduras|HR Croatia|HT Haiti|HU Hungary|ID Indonesia|IE Ireland|IL Israel
IM Isle of Man|IN India|IO British Indian Ocean Territory|IQ Iraq|IR Iran|IS Iceland|IT Italy|JE Jersey|JM Jamaica
JO Jordan|JP Japan|KE Kenya|KG Kyrgyzstan|KH Cambodia|KI Kiribati|KM Comoros|KN Saint Kitts and Nevis|KP North Korea
KR South Korea|KW Kuwait|KY Cayman Islands|KZ Kazakhstan|LA Laos|LB Lebanon|LC Saint Lucia|LI Liechtenstein|LK Sri Lanka
LR Liberia|LS Lesotho|LT Lithuania|LU Luxembourg|LV Latvia|LY Libya|MA Morocco|MC Monaco|MD Moldova|ME Montenegro
MF Saint Martin (French part)|MG Madagascar|MH Marshall Islands|MK North Macedonia|ML Mali|MM Myanmar|MN Mongolia
MO Macao|MP Northern Mariana Islands|MQ Martinique|MR Mauritania|MS Montserrat|MT Malta|MU Mauritius|MV Maldives
MW Malawi|MX Mexico|MY Malaysia|MZ Mozambique|NA Namibia|NC New Caledonia|NE Niger|NF Norfolk Island|NG Nigeria
NI Nicaragua|NL Netherlands|NO Norway|NP Nepal|NR Nauru|NU Niue|NZ New Zealand|OM Oman|PA Panama|PE Peru
PF French Polynesia|PG Papua New Guinea|PH Philippines|PK Pakistan|PL Poland|PM Saint Pierre and Miquelon|PN Pitcairn
PR Puerto Rico|PS Palestine|PT Portugal|PW Palau|PY Paraguay|QA Qatar|RE Réunion|RO Romania|RS Serbia|RU Russia
RW Rwanda|SA Saudi Arabia|SB Solomon Islands|SC Seychelles|SD Sudan|SE Sweden|SG Singapore
SH Saint Helena, Ascension and Tristan da Cunha|SI Slovenia|SJ Svalbard and Jan Mayen|SK Slovakia|SL Sierra Leone
SM San Marino|SN Senegal|SO Somalia|SR Suriname|SS South Sudan|ST Sao Tome and Principe|SV El Salvador
SX Sint Maarten (Dutch part)|SY Syria|SZ Eswatini|TC Turks and Caicos Islands|TD Chad|TF French Southern Territories
TG Togo|TH Thailand|TJ Tajikistan|TK Tokelau|TL Timor-Leste|TM Turkmenistan|TN Tunisia|TO Tonga|TR Türkiye
TT Trinidad and Tobago|TV Tuvalu|TW Taiwan|TZ Tanzania|UA Ukraine|UG Uganda|UM United States Minor Outlying Islands
US United States|UY Uruguay|UZ Uzbekistan|VA Holy See|VC Saint Vincent and the Grenadines|VE Venezuela
VG British Virgin Islands|VI United States Virgin Islands|VN Viet Nam|VU Vanuatu|WF Wallis and Futuna|WS Samoa|YE Yemen
YT Mayotte|ZA South Africa|ZM Zambia|ZW Zimbabwe
"""
# ICD-10, the chapters by their Roman numbers.
_CHAPTERS = """
I Infectious and parasitic diseases|II Neoplasms|III Blood and immune mechanism
IV Endocrine, nutritional and metabolic diseases|V Mental and behavioural disorders|VI Nervous system|VII Eye|VIII Ear
IX Circulatory system|X Respiratory system|XI Digestive system|XII Skin|XIII Musculoskeletal system
XIV Genitourinary system|XV Pregnancy, childbirth and the puerperium|XVI Perinatal period
XVII Congenital malformations|XVIII Symptoms not elsewhere classified|XIX Injury and poisoning|XX External causes
XXI Factors influencing health status|XXII Codes for special purposes
"""


def _coded(lines: str) -> dict[str, str]:
    entries = [entry.partition(" ") for line in lines.split("\n") for entry in line.split("|") if entry]
    return {code: word for code, _, word in entries}


# What an answer may name, and the fields of an axis that it stands for.
LISTS: Mapping[str, Mapping[str, object]] = {
    "ages": {"start": 0, "stop": 100, "width": 5, "above": True, "whole": True},
    "countries": {"values": _coded(_COUNTRIES)},
    "icd10": {"values": _coded(_CHAPTERS)},
    "yes-no": {"values": ["false", "true"]},
}
IN_WORDS = {
    "ages": "five-year ages from 0 to 99, and 100 or more",
    "countries": "the 249 countries of ISO 3166, by two letters such as BE",
    "icd10": "the 22 chapters of ICD-10, by numbers I to XXII",
    "yes-no": "false and true",
}
# What an axis is called where the column's own name cannot be published.
USUAL_NAMES = {"ages": "age", "countries": "country", "icd10": "icd_chapter"}
_NAMES = {
    "ages": re.compile(r"(^|_)(age|ages|alter|edad|leeftijd|eta)(_|$)"),
    "countries": re.compile(r"(^|_)(country|countries|nation|nationality|citizenship|land|pays|pais)(_code)?(_|$)"),
    "icd10": re.compile(r"(^|_)(icd|icd10|icd_10|chapter)(_|$)"),
}


# Names that say how the values are written, too: `country` may hold names, and `age_group` text.
_WHOLE_NAMES = {
    "ages": re.compile(r"age|ages|alter|edad|leeftijd|eta"),
    "countries": re.compile(r"(country|nationality|citizenship|land|pays|pais)_code"),
    "icd10": re.compile(r"(icd|icd10|icd_10)_chapter"),
}
_KINDS = {"ages": "number", "countries": "text", "icd10": "text"}


def list_for(column: str, kind: str, typed: bool) -> str:
    """The list that is a column's default: its whole name and its type fit; empty for none.

    Args:
        column: its words in lower case, with `_` between them.
        typed: whether the file says a type; CSV does not.
    """
    if kind == "boolean":
        return "yes-no"
    near = list_near(column)
    fits = near and _WHOLE_NAMES[near].fullmatch(column) and (not typed or kind == _KINDS[near])
    return near if fits else ""


def list_near(column: str) -> str:
    """The list that a word of a column's name speaks of, however its values are written; empty for none."""
    return next((name for name, words in _NAMES.items() if words.search(column)), "")
