"""Budgets as exact fractions: split into named shares that sum to the whole, each spent once."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from dphist_pipeline.errors import DphistError

SMALLEST_EPSILON = Fraction(1, 1_000_000)
LARGEST_EPSILON = Fraction(50)
LARGEST_SCALE = Fraction(10_000_000)


class BudgetMisuse(DphistError):
    """A mechanism split or spent a budget in a way that does not add up."""

    def __init__(self, step: str, problem: str) -> None:
        self.step, self.problem = step, problem
        super().__init__(f"budget '{step}': {problem}")


class Budget:
    """A share of a release's epsilon: split it, spend it at one door, or forfeit it; only once.

    Args:
        epsilon: the whole budget, within [10^-6, 50].
        step: its name, the key of the door's answer in the journal.
    """

    def __init__(self, epsilon: Fraction, step: str = "counts") -> None:
        if not isinstance(epsilon, Fraction):
            raise TypeError("epsilon must be a Fraction")
        if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
            raise BudgetMisuse(step, f"epsilon {epsilon} is outside [10^-6, 50]; choose other shares")
        self.epsilon, self.step = _in_whole_numbers(epsilon), step
        self._used = False
        self._charges: dict[str, Fraction] = {}

    def split(self, **shares: Fraction | str | int) -> tuple[Budget, ...]:
        """Divides the budget into named shares, given as exact parts of it that sum to 1."""
        self._use()
        parts = {name: _in_whole_numbers(Fraction(share)) for name, share in shares.items()}
        if sum(parts.values()) != 1:
            raise BudgetMisuse(self.step, f"shares sum to {sum(parts.values())}, not to 1")
        return tuple(self._child(name, part) for name, part in parts.items())

    def split_for_noise(self, sensitivity: int, **shares: Fraction | str | int) -> tuple[Budget, ...]:
        """As `split`, for shares that all buy noise against a sensitivity; refused where a scale exceeds 10^7."""
        parts = self.split(**shares)
        for part in parts:
            part.scale(sensitivity)
        return parts

    def scale(self, sensitivity: int) -> Fraction:
        """The scale of the noise that this budget buys against a sensitivity; refused above 10^7."""
        scale = sensitivity / self.epsilon
        if scale > LARGEST_SCALE:
            raise BudgetMisuse(self.step, f"would add noise of scale {scale}, and the most is 10^7; raise its epsilon")
        return scale

    def spend(self) -> Fraction:
        """Marks the whole budget as paid at a door, and gives its epsilon."""
        self._charge(self.step)
        return self.epsilon

    def forfeit(self) -> None:
        """Charges the budget without asking anything, under its own name."""
        self._charge(f"{self.step} (forfeited)")

    @property
    def charges(self) -> tuple[tuple[str, Fraction], ...]:
        """What was spent or forfeited so far by this budget and all its shares, in order."""
        return tuple(self._charges.items())

    def _child(self, name: str, part: Fraction) -> Budget:
        child = Budget(self.epsilon * part, name)
        child._charges = self._charges
        return child

    def _charge(self, entry: str) -> None:
        self._use()
        if entry in self._charges:
            raise BudgetMisuse(self.step, "two shares carry this name; every step needs its own")
        self._charges[entry] = self.epsilon

    def _use(self) -> None:
        if self._used:
            raise BudgetMisuse(self.step, "was already split, spent or forfeited; ask for a share of its own")
        self._used = True

    def __reduce__(self) -> NoReturn:
        raise BudgetMisuse(self.step, "is not pickled or copied, since a copy could be spent again; pass it on itself")


def _in_whole_numbers(exact: Fraction) -> Fraction:
    """The same fraction without NumPy integers, which a Fraction keeps as they are and which wrap around."""
    return Fraction(int(exact.numerator), int(exact.denominator))
