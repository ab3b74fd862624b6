"""The spec of a collection: what it declares, and every way in which it is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from collection_scenario import BASE, CITY, SCHOOLS, STATE, VALID, collected, refusal
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.errors import DphistError
from dphist_pipeline.local.costs import remarks
from dphist_pipeline.local.partition import question_of, spans_of
from dphist_pipeline.local.question import Question
from dphist_pipeline.spec.collection import CollectionSpec, load_collection
from dphist_pipeline.spec.fields import in_digest
from dphist_pipeline.spec.mistakes import SpecError
from examples import examples

VALID_TEXT = """\
type: dphist_pipeline.LocalCollection
attributes:
  collection: ages
  value: age
  start: 0
  stop: 100
  consumers:
    - {name: city, epsilon: 1, width: 5}
    - {name: state, epsilon: 2, bins: 4}
    - {name: schools, epsilon: 1, edges: [0, 6, 18, 65, 100]}
  protocol: chp
"""
ONE = [CITY]
SAMPLED: dict[str, object] = {"protocol": "sampled", "participation": "0.8"}

Load = Callable[[str], CollectionSpec]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a spec from text."""

    def from_content(content: str) -> CollectionSpec:
        file = tmp_path / "defs.yaml"
        file.write_text(content)
        return load_collection(file)

    return from_content


def consumer(**fields: object) -> dict[str, object]:
    """The changes that leave one consumer: the first with some fields changed."""
    one = {key: value for key, value in {**CITY, **fields}.items() if value is not ...}
    return {"consumers": [one]}


def test_a_file_gives_the_same_spec_as_its_attributes(load: Load, tmp_path: Path) -> None:
    loaded = load(VALID_TEXT)
    assert loaded.digest == collected().digest and loaded.base == tmp_path
    assert loaded.values_per_contributor == 1 and loaded.round == "all" and loaded.participation == 1


@pytest.mark.parametrize(
    ("width", "edges"),
    [
        (40, "0 40 80 100"),
        (99, "0 99 100"),
        ("0.3", None),
        (100, "0 100"),
        (50, "0 50 100"),
    ],
)
def test_a_width_that_does_not_divide_the_range_makes_a_shorter_last_interval(width: object, edges: str | None) -> None:
    """As equation 5 of the paper has it: interval j ends at D_L + j · l, and the range at D_U."""
    (reader,) = collected(consumers=[{"name": "city", "epsilon": 1, "width": width}]).consumers
    if edges is None:
        assert reader.intervals == 334 and reader.edges[-2:] == (Fraction(999, 10), Fraction(100))
        assert reader.edges[:334] == tuple(Fraction(3, 10) * number for number in range(334))
    else:
        assert reader.edges == tuple(map(Fraction, edges.split()))


def test_a_shorter_last_interval_is_told_before_anybody_is_asked() -> None:
    said = " ".join(remarks(collected(consumers=[{**CITY, "width": 40}, STATE])))
    assert "city: the last interval, from 80 to 100, is shorter than the others." in said
    assert "last interval" not in " ".join(remarks(collected()))


def test_a_shorter_last_interval_meets_the_boundaries_of_others() -> None:
    spec = collected(consumers=[{**CITY, "width": 40}, {**STATE, "bins": 5}])
    assert question_of(spec).parts[0].edges == tuple(map(Fraction, (0, 20, 40, 60, 80, 100)))
    assert spans_of(spec)[0].atoms == (2, 2, 1)


def test_width_bins_and_edges_cut_the_same_range() -> None:
    spec = collected()
    city, state, schools = spec.consumers
    assert city.edges == tuple(map(Fraction, range(0, 101, 5)))
    assert state.edges == (0, 25, 50, 75, 100)
    assert schools.edges == (0, 6, 18, 65, 100)
    assert spec.domain_of(schools).axes[0].edges == (0.0, 6.0, 18.0, 65.0, 100.0)  # type: ignore[union-attr]
    assert spec.release_of(schools) == "ages_schools"


def test_three_equal_bins_of_a_hundred_thousand_are_exact_thirds() -> None:
    spec = collected(stop=100000, consumers=[{"name": "a", "epsilon": 1, "bins": 3}], protocol="shp")
    assert spec.consumers[0].edges == (0, Fraction(100000, 3), Fraction(200000, 3), 100000)


def test_numbers_are_what_their_digits_say() -> None:
    spec = collected(start=0.1, stop="7/10", consumers=[{"name": "a", "epsilon": 0.1, "edges": [0.1, 0.3, "0.7"]}])
    assert spec.consumers[0].edges == (Fraction(1, 10), Fraction(3, 10), Fraction(7, 10))
    assert spec.epsilon == Fraction(1, 10)


def test_a_contributor_spends_the_least_epsilon_for_each_value_whatever_the_protocol() -> None:
    changes: list[dict[str, object]] = [{}, {"protocol": "split_budget"}, SAMPLED, {**consumer(), "protocol": "shp"}]
    for change in changes:
        spec = collected(**{**change, "values_per_contributor": 3})
        assert spec.epsilon == 3 == question_of(spec).epsilon


def test_the_digest_follows_what_is_asked_and_published_and_nothing_else() -> None:
    plain = collected().digest
    same: list[dict[str, object]] = [
        {"title": "Ages"},
        {"language": "fr"},
        {"show_below": 10},
        {"owners": ["team:statistics"]},
        {"reports": "reports/*.parquet"},  # where they lie says nothing of what they are
        {"consumers": [{"name": "city", "epsilon": 1, "bins": 20}, STATE, SCHOOLS]},
    ]
    assert {collected(**change).digest for change in same} == {plain}
    other: list[dict[str, object]] = [
        {"collection": "lives"},
        {"value": "years"},
        {"stop": 200, "consumers": [{"name": "city", "epsilon": 1, "width": 5}]},
        {"consumers": [CITY, STATE]},
        {"protocol": "split_budget"},
        {"encoding": "grr"},
        SAMPLED,
        {"values_per_contributor": 2},
        {"values_per_contributor": 2, "values": "summed"},
        {"round": "2026-03-02"},
        {"nonnegative": True},
    ]
    digests = {collected(**change).digest for change in other}
    assert len(digests) == len(other) and plain not in digests
    assert {field for field in CollectionSpec.model_fields if not in_digest(CollectionSpec, field)} == {
        "title",
        "language",
        "show_below",
        "owners",
        "reports",
    }


def test_the_digest_of_a_collection_never_changes_between_versions() -> None:
    assert collected().digest == "9fe49eba4c8411cdb210693f8206e37a8406b952083e0597fce922d43e192991"


def test_reports_lie_in_the_project(tmp_path: Path) -> None:
    assert collected().reports_pattern is None
    assert collected(reports="in/*.parquet").reports_pattern == "/srv/office/in/*.parquet"
    assert collected(reports="/data/*.parquet").reports_pattern == "/data/*.parquet"


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"collection": ...}, "collection", "is required: the collection's name"),
        ({"collection": "Ages"}, "collection", "is not a plain name"),
        ({"value": ...}, "value", "is required: what contributors report"),
        ({"value": "estimate"}, "value", "is a column that every release has"),
        ({"value": "ci"}, "value", "would publish a column that every release has"),
        ({"start": ...}, "start", "is required: the lower end"),
        ({"stop": None}, "stop", "is required: the upper end"),
        ({"start": "now"}, "start", "must be a number"),
        ({"start": float("inf")}, "start", "must be finite"),
        ({"stop": 0}, "stop", "0 must lie above `start`"),
        ({"stop": 10**16}, "stop", "lies beyond 10^15"),
        ({"consumers": ...}, "consumers", "is required: a list of who reads a histogram"),
        ({"consumers": []}, "consumers", "must name between 1 and 100 consumers, not 0"),
        ({"consumers": [CITY] * 101}, "consumers", "must name between 1 and 100 consumers, not 101"),
        ({"consumers": CITY}, "consumers", "must be a list such as [{name: city"),
        ({"consumers": ["city"]}, "consumers[0]", "must be a mapping such as"),
        ({"consumers": [CITY, CITY]}, "consumers[1].name", "is the name of consumers[0], case ignored"),
        (consumer(name=...), "consumers[0].name", "is required: a plain name"),
        (consumer(name="new york"), "consumers[0].name", "is not a plain name"),
        (consumer(name="c" * 60), "consumers[0].name", "may have at most 63 characters"),
        (consumer(epsilon=...), "consumers[0].epsilon", "is required: what a report may spend"),
        (consumer(epsilon=0), "consumers[0].epsilon", "must lie between 10^-6 and 50, not 0"),
        (consumer(epsilon=-1), "consumers[0].epsilon", "must lie between 10^-6 and 50, not -1"),
        (consumer(epsilon=51), "consumers[0].epsilon", "must lie between 10^-6 and 50, not 51"),
        (consumer(width=...), "consumers[0].edges", "is required, unless `width` or `bins` is given"),
        (consumer(bins=4), "consumers[0].edges", "`width` and `bins` are given: keep one way to cut the range"),
        (consumer(edges=[0, 100]), "consumers[0].edges", "`width` and `edges` are given: keep one way"),
        (consumer(width=101), "consumers[0].width", "101 is more than the 100 from start to stop; use `bins: 1`"),
        (consumer(width=0), "consumers[0].width", "must be above 0"),
        (consumer(width="1/200"), "consumers[0].width", "makes more than 10,000 intervals"),
        (consumer(width=..., bins=0), "consumers[0].bins", "must be between 1 and 10,000, not 0"),
        (consumer(width=..., bins=2.0), "consumers[0].bins", "must be a whole number"),
        (consumer(width=..., edges=[0, 50, 50, 100]), "consumers[0].edges[2]", "50 must lie above edges[1]"),
        (consumer(width=..., edges=[0, 60, 50, 100]), "consumers[0].edges[2]", "bins may not overlap"),
        (consumer(width=..., edges=[0, "x", 100]), "consumers[0].edges[1]", "must be a number"),
        (consumer(width=..., edges=[1, 100]), "consumers[0].edges[0]", "must be the collection's `start`"),
        (consumer(width=..., edges=[0, 50]), "consumers[0].edges[1]", "must be the collection's `stop`"),
        (consumer(width=..., edges=[0, 50, "50.000000000000000001", 100]), "consumers[0].edges[2]", "the same double"),
        (consumer(widht=5), "consumers[0].widht", "unknown field. Did you mean 'width'?"),
        ({"consumer": 1}, "consumer", "unknown field. Did you mean 'consumers'?"),
        ({"protocol": ...}, "protocol", "is required: one of shp, chp, split_budget, sampled"),
        ({"protocol": "cph"}, "protocol", "Did you mean 'chp'"),
        ({"protocol": "shp"}, "protocol", "shp serves one consumer, and there are 3; use chp"),
        ({"encoding": "rappor"}, "encoding", "must be one of symmetric, optimized, grr, auto"),
        ({"protocol": "sampled"}, "participation", "is required with `protocol: sampled`"),
        ({"participation": "0.8"}, "participation", "has no use with `protocol: chp`, under which everybody reports"),
        ({**SAMPLED, "participation": 1}, "participation", "must lie above 0 and below 1"),
        ({**SAMPLED, "participation": 0}, "participation", "must lie above 0 and below 1"),
        ({**SAMPLED, "participation": "0.1234567891"}, "participation", "with at most 9 decimals"),
        ({"values_per_contributor": 0}, "values_per_contributor", "must be between 1 and 255, not 0"),
        ({"values_per_contributor": 256}, "values_per_contributor", "must be between 1 and 255"),
        ({"values_per_contributor": 51}, "values_per_contributor", "is more than 50, which promises a contributor"),
        ({"values": "summed"}, "values", "has no use with one value a contributor"),
        ({"values": "sum", "values_per_contributor": 2}, "values", "Did you mean 'summed'?"),
        ({"values": "summed", "values_per_contributor": 2, "encoding": "grr"}, "values", "which grr does not send"),
        ({"values": "summed", "values_per_contributor": 2, **SAMPLED}, "values", "which sampled needs"),
        ({"round": "2026-3-2"}, "round", "must be `all`, or the first day of a round"),
        ({"round": "20260302"}, "round", "must be `all`, or the first day of a round"),
        ({"nonnegative": "no"}, "nonnegative", "must be true or false"),
        ({"reports": "reports/*.csv"}, "reports", "must name Parquet files of this machine"),
        ({"reports": "s3://bucket/x.parquet"}, "reports", "must name Parquet files of this machine"),
        ({"owners": ["me"]}, "owners[0]", "must be an e-mail address"),
    ],
)
def test_a_mistake_is_refused_at_its_place_with_its_mend(changes: dict[str, object], where: str, says: str) -> None:
    found = refusal(**changes)
    assert says in found[where], found
    assert len(found) == 1, found


def test_a_split_that_leaves_too_little_epsilon_is_refused() -> None:
    tiny = [{**reader, "epsilon": "0.000001"} for reader in (CITY, STATE)]
    assert "an epsilon below 10^-6" in refusal(consumers=tiny, protocol="split_budget")["protocol"]
    assert question_of(collected(consumers=tiny)).epsilon == Fraction(1, 10**6)


@pytest.mark.slow
def test_more_merged_intervals_than_a_report_holds_are_refused() -> None:
    readers = [{"name": f"a{bins}", "epsilon": 1, "bins": bins} for bins in (5000, 5001)]
    assert collected(consumers=readers).consumers[1].intervals == 5001
    readers[1]["bins"] = 5003
    assert "cut the range into 10,002 intervals, all boundaries merged" in refusal(consumers=readers)["consumers"]
    many = [{"name": f"a{number}", "epsilon": 1, "bins": 10_000} for number in range(5)]
    assert "more than 50,000 edges together" in refusal(consumers=many)["consumers"]


def test_edges_of_two_consumers_that_only_doubles_confuse_are_refused() -> None:
    near = {"name": "near", "epsilon": 1, "edges": [0, "18.0000000000000000001", 100]}
    assert "same double as one of consumers[0]" in refusal(consumers=[SCHOOLS, near])["consumers[1]"]


def test_edges_with_more_digits_than_a_question_holds_are_refused() -> None:
    long = "0." + "1" * 57
    reader = {"name": "a", "epsilon": 1, "bins": 7000}
    found = refusal(start=long, consumers=[reader])
    assert found == {
        "consumers[0]": "has an edge of more than 60 digits; write `start`, `stop` and the edges with fewer"
    }


def test_all_mistakes_come_in_one_message(load: Load) -> None:
    text = VALID_TEXT.replace("name: city, epsilon: 1", "name: City, epsilon: 0").replace("65, 100", "65, 99")
    with pytest.raises(SpecError) as caught:
        load(text.replace("chp", "chip").replace("value: age", "valu: age") + "  round: soon\nextra: 1\n")
    places = [place for place, _ in caught.value.problems]
    assert sorted(places) == sorted(
        [
            "extra",
            *(f"attributes.{field}" for field in ("value", "valu", "protocol", "round")),
            *(f"attributes.consumers{at}" for at in ("[0].name", "[0].epsilon", "[2].edges[4]")),
        ]
    )
    assert "defs.yaml: 8 mistakes, nothing was read or spent" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "the file is empty; it needs `type: dphist_pipeline.LocalCollection`"),
        (
            "name,salary\nANNA,1\n",
            "no YAML spec of a collection, which is UTF-8 text with `type: dphist_pipeline.Local",
        ),
        ("type: dphist_pipeline.HistogramRelease\nattributes: {}\n", "use the commands without `local`"),
        ("type: dphist_pipeline.LocalCollections\nattributes: {}\n", "type: must be dphist_pipeline.LocalCollection"),
        ("type: dphist_pipeline.LocalCollection\n", "attributes: must be a mapping"),
        ("attributes: {}\n", "no YAML spec of a collection"),
        ("ANNA: 1\nANNA: 2\n", "no YAML spec of a collection"),
    ],
)
def test_a_file_that_is_no_collection_is_refused(load: Load, content: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(content)
    assert says in str(caught.value)


def test_a_missing_file_is_one_clear_message(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        load_collection(tmp_path / "none.yaml")


@pytest.mark.parametrize("field", ["reports", "title", "owners", "value", "start"])
def test_no_template_is_resolved_in_a_collection(load: Load, monkeypatch: pytest.MonkeyPatch, field: str) -> None:
    monkeypatch.setenv("INBOX", "s3cr3t")
    lines = [line for line in VALID_TEXT.splitlines() if not line.startswith(f"  {field}:")]
    value = '["{{ env.INBOX }}"]' if field == "owners" else '"{{ env.INBOX }}/*.parquet"'
    with pytest.raises(
        SpecError, match=rf"attributes.{field}\S*: holds a template, and none is resolved here"
    ) as caught:
        load("\n".join([*lines, f"  {field}: {value}", ""]))
    assert "s3cr3t" not in str(caught.value)


WORDS = st.sampled_from([*CollectionSpec.model_fields, "name", "epsilon", "width", "bins", "edges"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["sampled", "split_budget", "summed", "grr", "0.8", "1/3", "x.parquet", "2026-03-02", 10**400])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS | st.text(max_size=4), inner, max_size=5),
    max_leaves=10,
)
ENDS = st.fractions(min_value=-1000, max_value=1000, max_denominator=1000)
EPSILONS = st.fractions(min_value="0.000001", max_value=50, max_denominator=10**6)


@pytest.mark.slow
@examples(200, derandomize=True)
@given(changes=st.dictionaries(WORDS, ANYTHING, max_size=4), reader=st.dictionaries(WORDS, ANYTHING, max_size=5))
def test_any_attributes_give_a_spec_or_a_refusal(changes: dict[str, object], reader: dict[str, object]) -> None:
    for attributes in ({**VALID, **changes}, {**VALID, "consumers": [CITY, reader]}):
        try:
            CollectionSpec.from_attributes(attributes, BASE).digest  # noqa: B018
        except DphistError as error:
            str(error).encode()


@examples(60, derandomize=True)
@given(
    ends=st.lists(ENDS, min_size=2, max_size=2, unique=True),
    readers=st.lists(st.tuples(EPSILONS, st.integers(1, 60)), min_size=1, max_size=4),
    protocol=st.sampled_from(["shp", "chp", "split_budget", "sampled"]),
    encoding=st.sampled_from(["symmetric", "optimized", "grr", "auto"]),
    values=st.tuples(st.sampled_from([1, 2, 255]), st.sampled_from(["separate", "summed"])),
)
def test_whatever_is_accepted_makes_a_question_that_contributors_can_read(
    ends: list[Fraction],
    readers: list[tuple[Fraction, int]],
    protocol: str,
    encoding: str,
    values: tuple[int, str],
) -> None:
    start, stop = sorted(ends)
    try:
        spec = collected(
            start=str(start),
            stop=str(stop),
            consumers=[
                {"name": f"a{number}", "epsilon": str(epsilon), "bins": bins}
                for number, (epsilon, bins) in enumerate(readers)
            ],
            protocol=protocol,
            participation="1/3" if protocol == "sampled" else ...,
            encoding=encoding,
            values_per_contributor=values[0],
            values=values[1],
        )
    except SpecError:
        return
    asked = question_of(spec)
    assert Question.from_json(asked.to_json()) == asked
    assert asked.epsilon == spec.epsilon
    for reader in spec.consumers:
        assert (reader.edges[0], reader.edges[-1]) == (spec.start, spec.stop)
        assert all(low < high for low, high in pairwise(reader.edges))
