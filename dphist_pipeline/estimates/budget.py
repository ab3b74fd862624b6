"""Privacy budgets as exact fractions. A budget is split into named shares that sum to it; each share is spent once."""

from __future__ import annotations

from fractions import Fraction
from typing import NoReturn

from dphist_pipeline.errors import Halted

SMALLEST_EPSILON = Fraction(1, 1_000_000)
LARGEST_EPSILON = Fraction(50)
LARGEST_SCALE = Fraction(10_000_000)


class BudgetMisuse(Halted):
    """A mechanism split a budget into wrong shares, or used a budget twice."""

    def __init__(self, step: str, problem: str) -> None:
        self.step, self.problem = step, problem
        super().__init__(f"budget '{step}': {problem}")


class Budget:
    """A share of a release's epsilon. It is used once: split, spent at one noisy measurement, or forfeited.

    Args:
        epsilon: size of the budget, from 10^-6 to 50.
        step: name of the budget; the journal stores the measurement's answer under this name.
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
        """Divides the budget into one budget for each named share, in the given order.

        Raises:
            BudgetMisuse: the fractions do not sum to exactly 1, or the budget was used before.
        """
        self._use()
        parts = {name: _in_whole_numbers(Fraction(share)) for name, share in shares.items()}
        if sum(parts.values()) != 1:
            raise BudgetMisuse(self.step, f"shares sum to {sum(parts.values())}, not to 1")
        children = tuple(Budget(self.epsilon * part, name) for name, part in parts.items())
        for child in children:
            child._charges = self._charges
        return children

    def split_for_noise(self, sensitivity: int, **shares: Fraction | str | int) -> tuple[Budget, ...]:
        """Divides the budget as `split` does, and checks that each share can pay for noise.

        Raises:
            BudgetMisuse: as in `split`, or the noise scale of a share exceeds 10^7.
        """
        parts = self.split(**shares)
        for part in parts:
            part.scale(sensitivity)
        return parts

    def scale(self, sensitivity: int) -> Fraction:
        """The scale of the Laplace noise that this budget pays for, in records, as the sensitivity is.

        Raises:
            BudgetMisuse: the scale exceeds 10^7.
        """
        scale = sensitivity / self.epsilon
        if scale > LARGEST_SCALE:
            raise BudgetMisuse(self.step, f"would add noise of scale {scale}, and the most is 10^7; raise its epsilon")
        return scale

    def spend(self) -> Fraction:
        """Marks the budget as spent at a measurement, and returns its epsilon."""
        self._charge(self.step)
        return self.epsilon

    def forfeit(self) -> None:
        """Charges the budget without a measurement."""
        self._charge(f"{self.step} (forfeited)")

    @property
    def charges(self) -> tuple[tuple[str, Fraction], ...]:
        """(step, epsilon) of everything that this budget and its shares spent or forfeited so far, in order."""
        return tuple(self._charges.items())

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
    """The same fraction with Python integers: a Fraction keeps NumPy integers, which overflow."""
    return Fraction(int(exact.numerator), int(exact.denominator))
