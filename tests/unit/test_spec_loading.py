"""Reading a spec's file: Dagster's YAML rules, stricter where a mistake or an attack could hide."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spec_scenario import BASE, VALID

from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec import _yaml_rules
from dphist_pipeline.spec._yaml_rules import MOST_NODES, read_yaml
from dphist_pipeline.spec.loading import LARGEST_FILE
from dphist_pipeline.spec.mistakes import SpecError

VALID_TEXT = """\
type: dphist_pipeline.HistogramRelease
attributes:
  release: weekly_admissions
  source: data/admissions/*.parquet
  privacy_unit: patient_id
  max_rows_per_unit: 3
  neighbors: add_or_remove_one
  epsilon: 0.5
  account: health
  mechanism: geometric
  axes:
    - {column: age, start: 0, stop: 100, width: 5, above: true}
    - {column: ward, values: [surgery, medicine, maternity], other: true}
  period: week
  period_column: admitted_on
"""
OURS = VALID_TEXT.splitlines()[0]
SCALARS = ["NO", "on", "12:30", "010", "08", "~", "2026-03-02", "1e-3", "1.5", "0x1F", ".inf", "'NO'", '"12"', "1_000"]

Load = Callable[[str | bytes], ReleaseSpec]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a spec from text or bytes."""

    def from_content(content: str | bytes) -> ReleaseSpec:
        file = tmp_path / "defs.yaml"
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return ReleaseSpec.load(file)

    return from_content


def refused(load: Load, content: str | bytes) -> str:
    """The message that refuses the content."""
    with pytest.raises(SpecError) as caught:
        load(content)
    message = str(caught.value)
    assert "defs.yaml" in message and len(message) < 3000
    return message


def test_a_file_gives_the_same_spec_as_its_attributes(load: Load, tmp_path: Path) -> None:
    loaded = load(VALID_TEXT)
    assert loaded.digest == ReleaseSpec.from_attributes(VALID, BASE).digest
    assert loaded.base == tmp_path and loaded.source_pattern == f"{tmp_path}/data/admissions/*.parquet"


def test_relative_paths_start_at_the_nearest_folder_with_a_pyproject(tmp_path: Path) -> None:
    folder = tmp_path / "office" / "defs" / "weekly"
    folder.mkdir(parents=True)
    (folder / "defs.yaml").write_text(VALID_TEXT)
    assert ReleaseSpec.load(str(folder / "defs.yaml")).base == folder
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "office" / "pyproject.toml").touch()
    assert ReleaseSpec.load(folder / "defs.yaml").base == tmp_path / "office"


def test_fields_that_only_dagster_reads_are_tolerated_and_others_are_not(load: Load) -> None:
    load(VALID_TEXT + "requirements: {env: [A]}\npost_processing: {assets: []}\n")
    assert "Did you mean 'requirements'" in refused(load, VALID_TEXT + "requirement: 1\n")
    assert "type: must be" in refused(load, VALID_TEXT.replace("HistogramRelease", "Histogram"))
    assert "attributes: must be a mapping" in refused(load, "type: dphist_pipeline.HistogramRelease\n")


def test_mistakes_of_the_file_and_of_its_attributes_come_together(load: Load) -> None:
    message = refused(load, VALID_TEXT.replace("0.5", "0").replace("[surgery", "[NO") + "typ: x\n")
    assert "3 mistakes" in message
    assert "attributes.epsilon" in message and "attributes.axes[1].values[0]" in message and "typ:" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: 1\na: 2\n", "line 2, column 1: the key 'a' was already given in line 1"),
        ("x:\n  b: 1\n  b: 2\n", "line 3, column 3"),
        ("a: 1\n---\nb: 2\n", "second document"),
        ("a: {b: [1, 2\n", "not valid YAML"),
        ("a:\n\tb: 1\n", "line 2, column 1: is not valid YAML"),
        ("a: b: c\n", "line 1, column 5"),
        ("a: *nothing\n", "undefined alias"),
        ("a: &x [*x]\n", "contains itself"),
        ("a: &x {<<: *x}\n", "contains itself"),
        ("[" * 100_000, "nested more than 50 levels"),
        ("a: " + "{b: " * 100_000, "nested more than 50 levels"),
        ("- " * 5000, "nested more than 50 levels"),
        ("true: 1\n", "the key 'true' is not text; quote it"),
        ("? [a]\n: 1\n", "is not text"),
        ("a: !!python/object:os.system {}\n", "tag"),
        ("a: !!python/name:os.system x\n", "tag"),
        ("a: !!binary aGk=\n", "tag"),
        ("a: !!set {b, c}\n", "tag"),
        ("a: !!timestamp 2026-03-02\n", "tag"),
        ("a: !!int abc\n", "quote it"),
        ("a: !!int ''\n", "quote it"),
        ("a: !!bool maybe\n", "quote it"),
        ("a: !!str [b]\n", "tag"),
        ("a: 0x_\n", "quote it"),
        ("a: =\n", "quote it"),
        ("a: " + "1" * 6000, "more than 100 characters"),
        ("a: 1" + ":1" * 6000, "more than 100 characters"),
        ("a: {<<: 5}\n", "not valid YAML"),
        ("a: \x07\n", "line 1: holds a control character"),
    ],
    ids=range(29),
)
def test_text_that_is_no_plain_yaml_is_refused_saying_where(load: Load, content: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_yaml(content)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        (b" " * (LARGEST_FILE + 1), "larger than 1 MB, too large for a spec"),
        (VALID_TEXT.encode() + b"a: \xff\n", "line 16: is not valid UTF-8"),
        (VALID_TEXT + "a: \x00\n", "line 16: holds a NUL byte"),
        (VALID_TEXT + "typ: 1\ntyp: 2\n", "line 17, column 1: the key 'typ' was already given in line 16"),
        (VALID_TEXT + "a: *nothing\n", "undefined alias 'nothing'"),
        (VALID_TEXT.encode("utf-16"), "which is UTF-8 text"),
    ],
    ids=range(8),
)
def test_a_spec_that_cannot_be_read_is_refused_saying_where(load: Load, content: str | bytes, said: str) -> None:
    assert said in refused(load, content)


SECRET_LINES = [
    "patient,age,ward\nSECRET,34,surgery\n",
    "SECRET",
    "- SECRET\n",
    "SECRET: SECRET\n",
    "type: SECRET\n",
    "type: [SECRET]\nattributes: SECRET\n",
    "attributes: {release: SECRET, epsilon: SECRET}\n",
    "SECRET: 1\nSECRET: 2\n",
    "a: *SECRET\n",
    "a: &SECRET x\nb: &SECRET [*SECRET]\n",
    "a: !!SECRET x\n",
    "a: !SECRET! x\n",
    "a: !!int SECRET\n",
    "%SECRET 1\n",
    "? [SECRET]\n: 1\n",
    "SECRET\tSECRET\n\t1\n",
    "a:\n\tSECRET: 1\n",
    '"SECRET\\q"\n',
    b"SECRET,\xff\n",
    b"PAR1SECRET\x00",
    "SECRET: 1\n---\nSECRET: 2\n",
    "SECRET\x07",
]


@pytest.mark.parametrize("content", SECRET_LINES, ids=range(len(SECRET_LINES)))
def test_a_file_that_is_no_spec_is_refused_without_a_word_of_it(load: Load, content: str | bytes) -> None:
    with pytest.raises(SpecError) as caught:
        load(content)
    assert len(caught.value.problems) == 1
    assert "this is no YAML spec of a release" in str(caught.value) and "`type: dphist_pip" in str(caught.value)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_alias_bombs_are_refused_without_unfolding_them(load: Load) -> None:
    started = time.process_time()
    for more in ("[*a{0}, *a{0}, *a{0}, *a{0}]", "{{<<: [*a{0}, *a{0}, *a{0}]}}", "{{b: *a{0}, c: *a{0}}}"):
        lines = [f"a{n + 1}: &a{n + 1} {more.format(n)}" for n in range(40)]
        assert f"more than {MOST_NODES:,}" in refused(load, "\n".join([OURS, "a0: &a0 {x: y}", *lines]))
    chain = [f"a{n + 1}: &a{n + 1} [*a{n}]" for n in range(5000)]
    assert "levels deep" in refused(load, "\n".join([OURS, "a0: &a0 x", *chain]))
    assert time.process_time() - started < 5


def test_honest_aliases_and_merges_are_read(load: Load) -> None:
    assert read_yaml("a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}\n") == {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}


@pytest.mark.parametrize("path", ["missing.yaml", ".", "defs.yaml/x", "a\x00b", "x" * 5000, "loop.yaml", "/dev/zero"])
def test_a_path_that_is_no_readable_file_gets_one_clear_message(tmp_path: Path, path: str) -> None:
    (tmp_path / "defs.yaml").write_text(VALID_TEXT)
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    with pytest.raises(SpecError) as caught:
        ReleaseSpec.load(tmp_path / path)
    assert len(caught.value.problems) == 1 and "Errno" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read every file")
def test_a_file_without_permission_is_refused_by_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "defs.yaml"
    file.write_text(VALID_TEXT)
    file.chmod(0)
    with pytest.raises(SpecError, match="Permission denied"):
        ReleaseSpec.load(file)


def test_environment_references_are_resolved_and_never_shown(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_ROOT", "/secret/place")
    text = VALID_TEXT.replace("data/adm", '"{{ env.DATA_ROOT }}/adm').replace("*.parquet", '*.parquet"')
    first = load(text)
    assert first.source_pattern == "/secret/place/admissions/*.parquet"
    assert first.source == "{{ env.DATA_ROOT }}/admissions/*.parquet" == first.as_json()["source"]
    assert "secret" not in repr(first) and "secret" not in str(first)
    monkeypatch.setenv("DATA_ROOT", "/moved")
    assert load(text).digest == first.digest


def test_missing_variables_and_other_templates_are_refused_by_name(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    source = "data/admissions/*.parquet"
    message = refused(load, VALID_TEXT.replace(source, '"{{ env.NOT_THERE }}"'))
    assert "attributes.source: needs the environment variable NOT_THERE" in message
    for template in ("{{ dg.x }}", "{{ env('HOME') }}", "{% if x %}", "{# x #}", "{{ env.HOME | upper }}", "{{"):
        assert "holds a template other than" in refused(load, VALID_TEXT.replace(source, f'"{template}"'))


@pytest.mark.parametrize("scalar", ["NO", "on", "12:30", "010", "~", "1", "2.5", "1.5e+3"])
def test_unquoted_yaml_that_is_not_text_is_asked_to_be_quoted(load: Load, scalar: str) -> None:
    assert "values[0]: must be text, but arrived as" in refused(load, VALID_TEXT.replace("surgery", scalar))
    assert load(VALID_TEXT.replace("surgery", f'"{scalar}"')).domain.axes[1].values[0] == scalar


@pytest.mark.parametrize("scalar", ["08", "2026-03-02", "1e-3", "NOPE"])
def test_yaml_that_arrives_as_text_needs_no_quotes(load: Load, scalar: str) -> None:
    assert load(VALID_TEXT.replace("surgery", scalar)).domain.axes[1].values[0] == scalar


@pytest.mark.skipif(
    find_spec("dagster_shared") is None, reason="dagster is not installed, so there is nothing to compare with"
)
@pytest.mark.parametrize("text", [VALID_TEXT, *(f"a: [{scalar}]" for scalar in SCALARS), "a: &x {b: 1}\nc: {<<: *x}"])
def test_yaml_is_read_as_dagster_reads_it(text: str) -> None:
    from dagster_shared.yaml_utils import safe_load_yaml  # type: ignore[import-not-found, unused-ignore]

    assert read_yaml(text) == safe_load_yaml(text)


WORDS = st.sampled_from([*VALID, "column", "values", "edges", "start", "stop", "width", "name", "levels", "calendar"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | WORDS
    | st.sampled_from(["row", "week", "none", "geometric", "x.csv", "{{ env.HOME }}", "1/3", 10**400, "../x", "NO"])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=5) | st.integers(), inner, max_size=5)
    ),
    max_leaves=12,
)
QUICK = settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@QUICK
@given(
    changes=st.dictionaries(WORDS, ANYTHING, max_size=4), dropped=st.sets(st.sampled_from(sorted(VALID)), max_size=2)
)
def test_any_attributes_give_a_spec_or_a_refusal(changes: dict[str, object], dropped: set[str]) -> None:
    attributes = {key: value for key, value in {**VALID, **changes}.items() if key not in dropped}
    try:
        ReleaseSpec.from_attributes(attributes, BASE).digest  # noqa: B018
    except DphistError as error:
        str(error).encode()


@pytest.mark.slow
@QUICK
@given(axis=st.dictionaries(WORDS, ANYTHING, max_size=5) | ANYTHING)
def test_any_axis_gives_a_spec_or_a_refusal(axis: object) -> None:
    try:
        ReleaseSpec.from_attributes({**VALID, "axes": [axis]}, BASE).digest  # noqa: B018
    except DphistError as error:
        str(error).encode()


@pytest.mark.slow
@QUICK
@given(
    cut=st.integers(0, len(VALID_TEXT)),
    length=st.integers(0, 30),
    noise=st.text(alphabet="{}[]&*!|>%@`'\"#,:?- \n\t\x00\x07=<~019.xéa", max_size=8)
    | st.text(max_size=5)
    | st.binary(max_size=5),
)
def test_any_damage_to_a_file_gives_a_spec_or_a_refusal(load: Load, cut: int, length: int, noise: str | bytes) -> None:
    patch = noise if isinstance(noise, bytes) else noise.encode("utf-8", "surrogatepass")
    text = VALID_TEXT.encode()
    try:
        load(text[:cut] + patch + text[cut + length :])
    except DphistError as error:
        str(error).encode()


READ_ALIKE = [
    "a: [1, 0.5, true, null, ~, x, 'it''s', \"b\\n\"]\n",
    "a: &b {c: 1}\nd: *b\ne:\n  <<: *b\n",
    "a: |\n  two\n  lines\nb: >-\n  folded\n  text\n",
    "a: {b: 1\nc: 2\n",
    "a: 1\na: 2\n",
    "a: &b [*b]\n",
    "1: a\n",
    "a: !!python/object 1\n",
    "a: 1\n---\nb: 2\n",
    "a: " + "[" * 60 + "]" * 60 + "\n",
    "a: 2026-01-05\nb: 0o17\nc: 017\nd: 1_000\n",
]
READ_BY_PYYAML_ALONE = ["a:\tb\n", "a: {b?: 1}\n", "a: [b::c]\n", "a: \u2028x\n", "a: 06:00\n"]


def outcome(text: str) -> object:
    """What a text holds, or the place of the mistake in it."""
    try:
        return repr(_yaml_rules.read_yaml(text))
    except SpecError as error:
        return error.problems[0][0]


@pytest.mark.parametrize("text", [*READ_ALIKE, *READ_BY_PYYAML_ALONE])
def test_long_texts_are_read_as_short_ones(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_short, quick = outcome(text), list[str]()
    monkeypatch.setattr(_yaml_rules, "LONG", 0)
    monkeypatch.setattr(_yaml_rules._QuickLoader, "only_document", counted(quick))
    assert outcome(text) == as_short
    assert bool(quick) == (text in READ_ALIKE)


def counted(calls: list[str]) -> Callable[[_yaml_rules._QuickLoader], object]:
    """Reads as the loader does, and notes that it did."""
    read = _yaml_rules._Strict.only_document

    def noted(loader: _yaml_rules._QuickLoader) -> object:
        calls.append("read")
        return read(loader)

    return noted
