"""Noise: the true law is accepted, and a scale 30 % off refused by the same test; no seed, and a self-test.

Draws are recorded, so a test passes or fails once and for all. Those of the operating system's own source carry the
marker.
"""

from __future__ import annotations

import ast
import math
import multiprocessing
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fork_server import PROCESSES
from numpy.typing import NDArray
from scipy import stats  # type: ignore[import-untyped]

import dphist_pipeline
from dphist_pipeline.base import random_words
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.base.random_words import NoiseSelfTestFailed
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.noise import BLOCK, LARGEST_TABLE, discrete_laplace
from dphist_pipeline.confidential.scores import CutByBalance
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import noise_law

DRAWS = 200_000
UNLIKELY = 1e-14
SCALES = [
    Fraction(scale) for scale in ("1/5", "2/3", "3", "355/7", "4096", "4097", "70001/3", "10000000")
]  # the table ends at 4096


def at_least(k: NDArray[np.float64], scale: Fraction) -> NDArray[np.float64]:
    """P(|noise| >= k) in doubles."""
    return np.where(k <= 0, 1.0, 2 * np.exp(-k / float(scale)) / (1 + math.exp(-1 / scale)))


def fit(draws: NDArray[np.int64], scale: Fraction) -> float:
    """How likely draws of the law fit it as badly, by chi-square over about 60 signed classes."""
    least = 60 / draws.size
    bounds = np.unique(stats.dlaplace.ppf(np.linspace(least, 1 - least, 60), 1 / float(scale)))
    bounds = bounds[at_least(bounds + 1, scale) > least]
    below = np.where(bounds < 0, at_least(-bounds, scale) / 2, 1 - at_least(bounds + 1, scale) / 2)
    masses = np.diff(np.concatenate([[0.0], below, [1.0]]))
    counts = np.bincount(np.searchsorted(bounds, draws, side="left"), minlength=masses.size)
    expected = draws.size * masses
    assert masses.size >= 3 and expected.min() > 15
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), masses.size - 1))


def tail_fit(draws: NDArray[np.int64], scale: Fraction, share: float) -> float:
    """How likely draws of the law have a share beyond its own tail of about `share` that is as far off."""
    start = noise_law(scale).half_width(1 - Fraction(share)) + 1
    expected = float(at_least(np.array(float(start)), scale))
    return float(stats.binomtest(int((np.abs(draws) >= start).sum()), draws.size, expected).pvalue)


def symmetry(draws: NDArray[np.int64]) -> float:
    """How likely fair signs are as uneven."""
    return float(stats.binomtest(int((draws > 0).sum()), int((draws != 0).sum()), 0.5).pvalue)


# A distance of magnitudes from their law: above `allowed` with a probability of at most 10^-9, by the inequality of
# Dvoretzky, Kiefer, Wolfowitz and Massart, P(D > d) <= 2·exp(-2·n·d²), which holds for discrete laws, too.


def allowed(size: int) -> float:
    return math.sqrt(math.log(2 / 1e-9) / (2 * size))


def distance(draws: NDArray[np.int64], scale: Fraction) -> float:
    """The largest distance of the share of draws with |noise| <= k from its probability, over all k."""
    sizes, counts = np.unique(np.abs(draws), return_counts=True)
    shares = np.cumsum(counts) / draws.size
    below = np.concatenate([[0.0], shares[:-1]])  # the share just before each size
    return float(
        max(
            np.abs(shares - (1 - at_least(sizes + 1.0, scale))).max(),
            np.abs(below - (1 - at_least(sizes.astype(np.float64), scale))).max(),
        )
    )


def apart(one: NDArray[np.int64], two: NDArray[np.int64]) -> float:
    """The largest distance between two sets of draws, less what is allowed to both."""
    distance = stats.ks_2samp(np.abs(one), np.abs(two), method="asymp").statistic
    return float(distance) - allowed(one.size) - allowed(two.size)


@pytest.fixture(scope="module")
def draws() -> dict[Fraction, NDArray[np.int64]]:
    return {scale: discrete_laplace(scale, DRAWS) for scale in SCALES}


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_noise_has_its_law(draws: dict[Fraction, NDArray[np.int64]], scale: Fraction) -> None:
    assert fit(draws[scale], scale) > UNLIKELY
    assert symmetry(draws[scale]) > UNLIKELY
    for share in (0.05, 1e-3, 1e-4):
        assert tail_fit(draws[scale], scale, share) > UNLIKELY


@pytest.mark.parametrize("off", [Fraction(7, 10), Fraction(13, 10)], ids=str)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_scale_thirty_percent_off_is_noticed(
    draws: dict[Fraction, NDArray[np.int64]], scale: Fraction, off: Fraction
) -> None:
    assert fit(draws[scale], scale * off) < UNLIKELY**2
    # A share of 0.001 leaves 18 draws of the smallest scale beyond its tail: too few, in one run of thirty.
    assert tail_fit(draws[scale], scale * off, 0.01) < UNLIKELY


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_wrong_signs_and_wrong_zeros_are_noticed(draws: dict[Fraction, NDArray[np.int64]], scale: Fraction) -> None:
    assert symmetry(np.where(np.arange(DRAWS) % 4 == 0, np.abs(draws[scale]), draws[scale])) < UNLIKELY
    shifted = draws[scale] + (max(1, round(scale / 10)))
    assert fit(shifted, scale) < UNLIKELY


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_draws_do_not_depend_on_each_other(draws: dict[Fraction, NDArray[np.int64]], scale: Fraction) -> None:
    standard = draws[scale] / math.sqrt(noise_law(scale).variance)
    ranks = np.clip(standard, -3, 3)
    for lag in (1, 2, 3, BLOCK - 1, BLOCK, BLOCK + 1):
        overlap = ranks.size - lag
        assert abs(float(np.mean(ranks[:-lag] * ranks[lag:]))) < 8 / math.sqrt(overlap), lag
        sizes = np.abs(ranks) - np.abs(ranks).mean()
        assert abs(float(np.mean(sizes[:-lag] * sizes[lag:]))) < 8 / math.sqrt(overlap), lag


def test_the_smallest_scale_adds_nothing_that_anybody_will_ever_see() -> None:
    # P(noise != 0) = 2·exp(-50) / (1 + exp(-50)) < 10^-21.
    assert not discrete_laplace(Fraction(1, 50), DRAWS).any()


# Four sets of draws, each further from its law than allowed with 10^-9. At 9,000, laws of 0.6 and 1.5 times it
# lie 0.148 away or further; twice what is allowed to both sets is 0.1464 (for 20,000 draws 0.093).
@pytest.mark.draws("two-sided geometric, 1e-8")
@pytest.mark.parametrize(("scale", "size"), [(Fraction(7, 2), 20_000), (Fraction(9000), 8_000)])
def test_opendp_draws_from_the_same_law(scale: Fraction, size: int) -> None:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    oracle = make_laplace(vector_domain(atom_domain(T=int)), l1_distance(T=int), scale=float(scale))
    theirs = np.array(oracle([0] * size))
    assert distance(theirs, scale) < allowed(size)
    assert apart(theirs, discrete_laplace(scale, size)) < 0
    for off in (Fraction(6, 10), Fraction(15, 10)):
        assert apart(theirs, discrete_laplace(scale * off, size)) > 0


@pytest.mark.parametrize("scale", [Fraction(1, 50), *SCALES], ids=str)
def test_variance_and_half_width_are_those_of_the_law(scale: Fraction) -> None:
    with localcontext(Context(prec=60)):
        q = (Decimal(-scale.denominator) / scale.numerator).exp()
        assert noise_law(scale).variance == pytest.approx(float(2 * q / (1 - q) ** 2), rel=1e-12)
        for level in (Fraction(1, 2), Fraction(19, 20), Fraction(99999, 100000)):
            width = noise_law(scale).half_width(level)
            outside = Decimal(level.denominator - level.numerator) / level.denominator
            assert 2 * q ** (width + 1) / (1 + q) <= outside
            assert width == 0 or 2 * q**width / (1 + q) > outside


# The self-test


@pytest.fixture
def untested(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """As in a new process: the self-test has not run yet."""
    noise._self_test.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    noise._self_test.cache_clear()


def break_sampler(
    name: str,
    change: Callable[[NDArray[np.int64]], NDArray[np.int64]] = lambda drawn: drawn,
    off: Fraction = Fraction(1),
) -> dict[str, object]:
    whole = getattr(noise, name)
    return {name: lambda scale, size: change(whole(scale * off, size))}


def constant(size: int) -> NDArray[np.uint64]:
    return np.full(size, 0x123456789ABCDEF0, dtype=np.uint64)


def repeating(size: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(0, 2**64, size, dtype=np.uint64)


def from_the_second_word(
    key: bytes, nonce: bytes, size: int, whole: Any = random_words._keystream
) -> NDArray[np.uint64]:
    return np.asarray(whole(key, nonce, size + 1)[1:])


def ones_for_zeros_and_twos(drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """Leaves mean and spread as they are."""
    zeros, twos = np.flatnonzero(drawn == 0), np.flatnonzero(drawn == 2)
    pairs = min(zeros.size, twos.size)
    drawn[zeros[:pairs]] = drawn[twos[:pairs]] = 1
    return drawn


BROKEN: dict[str, dict[str, object]] = {
    "constant words": {"random_words": constant},
    "words that come again": {"random_words": repeating},
    "another key stream": {"_keystream": from_the_second_word},
    "words of 62 bits": {"random_words": lambda size, whole=random_words.random_words: whole(size) >> np.uint64(1)},
    "scale too large": break_sampler("_signed_value", off=Fraction(11, 10)),
    "scale too small": break_sampler("_signed_value", off=Fraction(9, 10)),
    "off by one": break_sampler("_signed_value", lambda drawn: drawn + 1),
    "no minus": break_sampler("_signed_value", np.abs),
    "large scale too large": break_sampler("_difference", off=Fraction(11, 10)),
    "one side only": break_sampler("_difference", np.abs),
    "too few zeros": break_sampler("_signed_value", ones_for_zeros_and_twos),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_sampler_draws_nothing_for_a_release(
    untested: pytest.MonkeyPatch, tmp_path: Path, broken: str
) -> None:
    for name, stand_in in BROKEN[broken].items():
        for module in (noise, random_words):
            if hasattr(module, name):
                untested.setattr(module, name, stand_in)
    journal = Journal(tmp_path / "journal", tmp_path, "charge")
    counts = PrivateCounts(Domain.from_shape((3,)), 1, lambda: np.array([5, 6, 7]), journal)
    whole, score = [np.arange(3)], CutByBalance()
    draws: tuple[Callable[[Budget], object], ...] = (
        counts.noisy_cells,
        lambda budget: counts.choose(whole, score, budget),
    )
    for draw in (*draws, *draws):  # a failure is not forgotten
        with pytest.raises(NoiseSelfTestFailed):
            draw(Budget(Fraction(1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("draw", [discrete_laplace, noise.geometric])
def test_the_self_test_runs_at_first_use_and_once(
    untested: pytest.MonkeyPatch, draw: Callable[[Fraction, int], object]
) -> None:
    checked: list[Fraction] = []
    untested.setattr(noise, "_check_law", lambda scale, drawn: checked.append(scale))
    for _ in range(3):
        draw(Fraction(1), 1)
    assert len(checked) == 2 and checked[0] <= LARGEST_TABLE < checked[1]


# No seed


def numbers() -> list[int]:
    return [*map(int, random_words.random_words(2)), *map(int, discrete_laplace(Fraction(10**6), 4))]


@pytest.mark.draws("three keys of 256 uniform bits all differ, 1e-70")
def test_every_call_takes_a_new_key_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []
    keys: list[bytes] = []
    urandom, keystream = os.urandom, random_words._keystream

    def noted_urandom(size: int) -> bytes:
        given.append(urandom(size))
        return given[-1]

    def noted_keystream(key: bytes, nonce: bytes, size: int) -> NDArray[np.uint64]:
        keys.append(key)
        return keystream(key, nonce, size)

    monkeypatch.setattr(os, "urandom", noted_urandom)
    monkeypatch.setattr(random_words, "_keystream", noted_keystream)
    for _ in range(3):
        random_words.random_words(4)
    assert len(set(keys)) == 3
    assert all(len(key) == 32 and key in given for key in keys)


@pytest.mark.draws("three times two uniform words all differ, 1e-30")
def test_seeds_of_other_generators_change_nothing() -> None:
    drawn = []
    for _ in range(3):
        np.random.seed(0)
        random.seed(0)
        drawn.append(tuple(numbers()))
    assert len(set(drawn)) == 3


@pytest.mark.slow
@pytest.mark.draws("two processes' four uniform words differ, 1e-70")
def test_new_processes_with_the_same_environment_draw_differently() -> None:
    program = "from dphist_pipeline.base.random_words import random_words; print(random_words(4).tolist())"
    seeds = {"PYTHONHASHSEED": "0", "SEED": "0", "DPHIST_SEED": "0", "NUMPY_SEED": "0", "SOURCE_DATE_EPOCH": "0"}
    started = [
        subprocess.Popen([sys.executable, "-c", program], env=os.environ | seeds, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    first, second = (process.communicate(timeout=300)[0] for process in started)
    assert first and second and first != second


def drawn_after_forks(answers: multiprocessing.SimpleQueue[list[list[int]]]) -> None:
    """Draws, then forks three times, and collects what the four processes draw after that."""
    drawn, pipes = [numbers()], []
    for _ in range(3):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, repr(numbers()).encode())
            os._exit(0)
        os.close(writing)
        pipes.append(reading)
    drawn.append(numbers())
    drawn += [ast.literal_eval(os.read(reading, 65536).decode()) for reading in pipes]
    answers.put(drawn)


@pytest.mark.draws("ten uniform words all differ, 1e-17")  # 45 pairs of 2^64
def test_forked_processes_share_no_stream() -> None:
    answers = PROCESSES.SimpleQueue()
    process = PROCESSES.Process(target=drawn_after_forks, args=(answers,))
    process.start()
    drawn = answers.get()
    process.join(300)
    words = [word for numbers in drawn for word in numbers[:2]]
    assert len(drawn) == 5 and len(set(words)) == len(words)


FORBIDDEN = {"seed", "rng", "random", "random_state", "random_words", "randomness", "generator", "noise_source"}


def ways_to_give_randomness(source: str) -> set[str]:
    """Parameters, fields and imports in a module through which somebody could choose the noise."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg) and node.arg in FORBIDDEN:
            found.add(node.arg)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in FORBIDDEN:
            found.add(node.target.id)
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names} & {"random", "numpy.random"}
        elif isinstance(node, ast.ImportFrom) and node.module in ("random", "numpy.random"):
            found.add(node.module)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {f"{node.value.id}.{node.attr}"} & {"np.random"}
    return found


@pytest.mark.slow
def test_nothing_in_the_release_path_takes_a_seed_or_a_source_of_noise() -> None:
    package = Path(str(dphist_pipeline.__file__)).parent
    public = {"evaluation", "applications", "planning"}  # they see public or invented data only
    modules = [path for path in package.rglob("*.py") if not public & set(path.relative_to(package).parts)]
    assert len(modules) > 20
    found = {path.name: ways for path in modules if (ways := ways_to_give_randomness(path.read_text()))}
    # A published release hands a reader's seed on to synthetic records.
    assert found == {"releases.py": {"seed"}, "synthesize.py": {"seed"}}


@pytest.mark.parametrize(
    "source",
    [
        "def draw(size, rng=None): ...",
        "def f(*, random_words): ...",
        "g = lambda seed: 1",
        "class A:\n    seed: int = 0",
        "import random",
        "from numpy.random import default_rng",
        "x = np.random.default_rng()",
    ],
)
def test_a_seed_would_be_noticed(source: str) -> None:
    assert ways_to_give_randomness(source)


def test_no_environment_variable_is_read_by_the_sampler() -> None:
    for module in ("confidential/noise", "estimates/certified", "base/random_words"):
        source = (Path(str(dphist_pipeline.__file__)).parent / f"{module}.py").read_text()
        assert "environ" not in source and "getenv" not in source
