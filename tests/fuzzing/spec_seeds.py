"""Specs, code lists and row queries to begin with, and the words that they are made of."""

from __future__ import annotations

import re
from pathlib import Path

from dphist_pipeline import mechanisms
from dphist_pipeline.releasing.release_spec import ReleaseSpec

PROJECT = Path(__file__).resolve().parents[2]

# What the environment holds; none of it may ever be said.
ENVIRONMENT = {
    "FUZZ_TEXT": "S3CR3T <b> ../text",
    "FUZZ_NAME": "s3cr3t_name",
    "FUZZ_NUMBER": "73.8203125",
    "FUZZ_RATIO": "738203125/9765625",
    "FUZZ_DAY": "2011-09-13",
    "FUZZ_PATH": "s3cr3t/place.csv",
    "FUZZ_SERVER": "host=s3cr3t password=s3cr3t",
}
SAID_OF_IT = ("s3cr3t", "S3CR3T", "73.8203125", "738203125", "9765625", "2011-09-13")

HEAD = "type: dphist_pipeline.HistogramRelease\nattributes:\n"
COMMON = """\
  release: admissions
  source: data/*.csv
  privacy_unit: patient
  max_rows_per_unit: 3
  neighbours: add_remove
  epsilon: 0.5
  account: health
  mechanism: geometric
"""
BODIES = [
    "  axes:\n    - {column: age, start: 0, stop: 100, width: 5, above: true}\n",
    """\
  axes:
    - {column: dose, edges: [0, 0.1, "1/2", 1], closed: right, below: true}
    - {column: Ward Name, name: ward, values: [surgery, medicine, "O'Brien"], other: true}
  period: week
  period_column: day
  period_format: "%d/%m/%Y"
  week_starts: sunday
  time_zone: Europe/Brussels
  release_delay_days: 7
  first_period: "2026-01-04"
  schedule: "0 6 * * MON"
  publish: manual
  owners: ["team:statistics", a.b@c.example]
""",
    """\
  axes:
    - {column: day, calendar: week, start: "2026-01-05", stop: "2026-03-02", format: "%Y%m%d", other: true}
    - {column: month, calendar: quarter, start: "2026-01-01", stop: "2027-01-01"}
  period: quarter
  period_column: day
  quarter_starts: april
  title: Überstunden, été
  csv_delimiter: ";"
  csv_quote: '"'
  decimal_comma: true
  hive: true
  unit_normalise: [trim, lower, nfc]
  max_cells: 5000
  quality: {share: 1/20, rows: 10, by: []}
  derive:
    - {column: noted, first_of: [{column: day}, {column: day, format: "%d.%m.%Y"}]}
    - {column: years, years_between: [born, noted]}
    - {column: code, first_letters: 3, of: icd}
  keep: [{column: kind, is: [inpatient]}, {column: years, from: 0, to: "120.5"}, {column: noted, to: "2030-01-01"}]
""",
    """\
  axes:
    - {column: county, values_from: codes.csv, values_column: code, label_column: title, levels: [state, region]}
    - {column: region_id, name: region_id, values_from: tree.csv, parent_column: above, levels: [mid, top]}
    - {column: ward, values: [a, b], levels: {house: [x, x]}, labels: [Ay, ""]}
    - {column: kind, values: {a: Ay, b: }}
""",
    "  source_sql: query.sql\n  axes: &axes\n    - &a {column: age, start: 0, stop: 9, width: 3}\n"
    "    - {<<: *a, name: other_age, other: yes}\n",
]
ENVIRONMENTAL = """\
  release: everywhere
  title: "{{ env.FUZZ_TEXT }}"
  source: "{{ env.FUZZ_PATH }}"
  privacy_unit: row
  neighbours: substitute
  epsilon: 1/3
  account: health
  mechanism: geometric
  axes:
    - {column: age, start: 0, stop: 80, width: "0.1796875"}
"""
MECHANISMS = [
    ("dpcube", "{estimation: least_squares, threshold: 0.5}"),
    ("noise_first", "{penalty: bic}"),
    ("boost", "{branching: 2}"),
    ("kd_hierarchy", "{depth: 3}"),
    ("structure_first", "{score: squared}"),
    ("grouping_smoothing", "{group_size: 2}"),
]
SPECS = [
    *(HEAD + COMMON + body for body in BODIES),
    HEAD + ENVIRONMENTAL,
    *(
        HEAD + COMMON.replace("geometric", f"{name}\n  settings: {settings}") + BODIES[0]
        for name, settings in MECHANISMS
    ),
    HEAD + COMMON.replace("data/*.csv", "data/office.duckdb\n  source_table: clinic.admissions") + BODIES[0],
    HEAD + COMMON.replace("data/*.csv", "s3://bucket/path/*.parquet") + BODIES[0],
    HEAD + COMMON.replace("data/*.csv", "postgres:{{ env.FUZZ_SERVER }}\n  source_table: people") + BODIES[0],
    HEAD + COMMON.replace("patient", "row").replace("unit: 3", "unit: 1") + BODIES[0],
    'a: "\\UFFFFFFFF"\n',
    "a: [!!int '1', !!float 2, 0x1F, 1_000, 12:30, ~, !x y]\nb: {<<: [{c: d}, {e: f}]}\n",
]

CODES = "code,title,state,region\nA,Alpha,east,all\nB,Bravo,east,all\nC,Charlie,west,all\n"
TREE = "region_id,above\n1,11\n2,11\n3,12\n11,20\n12,20\n20,\n"
QUERIES = [
    "SELECT * FROM source",
    "SELECT * EXCLUDE (ward), TRY_CAST(age AS DOUBLE) + 1.5 AS age, patient FROM source\n"
    "WHERE TRY_CAST(day AS DATE) >= TRY_CAST('2026-01-01' AS DATE) -- from then on\n",
    "SELECT CASE WHEN upper(TRY_CAST(ward AS VARCHAR)) = 'X' THEN 1 ELSE length(TRY_CAST(ward AS VARCHAR)) END AS n,\n"
    "  try_strptime(TRY_CAST(day AS VARCHAR), '%d/%m/%Y') AS day, patient, age FROM source\n",
    "SELECT concat(TRY_CAST(a AS VARCHAR), '|', TRY_CAST(b AS VARCHAR)) AS patient, TRY_CAST(age AS DOUBLE)"
    " BETWEEN 1 AND 2 AS x, date_trunc('month', TRY_CAST(day AS TIMESTAMP)) AS m FROM source WHERE NOT (a = b)",
]


def written(folder: Path) -> Path:
    """The files beside a spec: two code lists, a query and a folder of records."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "codes.csv").write_text(CODES)
    (folder / "tree.csv").write_text(TREE)
    (folder / "query.sql").write_text(QUERIES[0])
    (folder / "data" / "people.csv").write_text("patient,age\na,1\n")
    return folder


def annotated_spec() -> str:
    """The example in the reference that names every field, with the files that are here."""
    lines = (PROJECT / "docs" / "reference" / "spec.yaml").read_text("utf-8").splitlines()
    kept = [line for line in lines if not re.match(r"\s+(source_table|source_sql):", line)]
    return "\n".join(kept).replace("codes/counties.csv", "codes.csv") + "\n"


HOSTILE = [
    *("~", "true", "NO", "-1", "0", "1e-999", "1e999", ".inf", ".nan", "1/3", "1/0", "0x_", "0b", "1:1:1", "9" * 60),
    *("'1e-999'", '"1e9999999"', '"1/7"', "1.0000000000000000001", "9" * 99, "-" + "9" * 16, "''", '"\\UFFFFFFFF"'),
    *('"\\uD800"', '"\\x07"', '"\\e"', "!!binary", "!!set", "!<x>", "!%FF", "&a", "*a", "<<", "?", "|", ">-", "---"),
    *("...", "%YAML 1.1", f"%YAML 1.{'9' * 5000}", "%TAG ! tag:x,2000:", "%", "@", "`", "\t", "\n", "\n  ", "\n    "),
    *("[", "]", "{", "}", ",", ":", ": ", "- ", "#", '"', "'", "é" * 199, "x" * 201, "../x", "a/" * 99, "x.csv"),
    *("codes.csv", "tree.csv", "query.sql", "data", "data/*.csv", ".", "..", "~/x.csv", "/", "loop.csv", "**/*.csv"),
    *("**/", "s3://b", "https://x", "postgres:", "x.duckdb", "%Y", "%", "%d/%m/%Y", "Foo./Bar", ".../x", "Europe"),
    *("{{ env.HOME }}", "{{ env.NOT_SET }}", "{{ x }}", "{%", "2026-01-05", "2026-02-30", "9999-12-31", "0001-01-01"),
    *(f'"{{{{ env.{name} }}}}"' for name in ENVIRONMENT),
    *("row", "week", "month", "none", "monday", "add_remove", "substitute", "replace_one", "start", "stop", "width"),
    *("edges", "closed", "below", "above", "other", "column", "name", "values", "values_from", "values_column"),
    *("levels", "labels", "label_column", "parent_column", "calendar", "format", "day", "quarter", "year", "weight"),
    *("repeats values[", "repeats values[9]", "count", "null", "NULL", "select", "estimate", "age_lower", "catalog"),
]
TOKENS = [
    token.encode()
    for token in (*HOSTILE, *ReleaseSpec.model_fields, "neighbors", "renews", "type", "attributes", *mechanisms.names())
]
SQL_TOKENS = [
    word.encode()
    for word in [
        *("SELECT", "FROM", "WHERE", "source", "*", "AS", "EXCLUDE", "(", ")", ",", ";", "'", '"', "--", "/*", "\n"),
        *("TRY_CAST", "CAST", "DOUBLE", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "NULL"),
        *("CASE", "WHEN", "THEN", "ELSE", "END", "IN", "BETWEEN", "AND", "OR", "NOT", "IS", "LIKE", "GROUP BY ALL"),
        *("concat", "||", "left", "substring", "replace", "length", "round", "date_trunc", "date_part", "week"),
        *("try_strptime", "'%d/%m/%Y'", "'%'", "regexp_matches", "'('", "trim", "greatest", "nullif", "coalesce"),
        *("+", "-", "/", "//", "%", "=", "<", "::", "1e400", "9" * 400, "0x1F", "'it''s'", "$1", "?", "x.y.z", "[1]"),
        *("UNION", "JOIN", "LIMIT 1", "OVER ()", "sum", "random()", "WITH", "VALUES (1)", "PIVOT", "DESCRIBE", "é"),
        *("(" * 300, ")" * 300, "NOT " * 900, "- " * 500, "1 + " * 900, "TRY_CAST(" * 150, " AS DOUBLE)" * 150),
    ]
]
