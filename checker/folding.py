"""Constants that are computed from others: what a tool has folded is computed again."""
import math
from fractions import Fraction
from random import Random

from evaluation import Numbers, constant_of, elements_of, evaluated, is_float, is_move
from sizes import Refused

MOST_UNITS, MOST_SPREAD, DRAWS = 4, 8, 4  # docs/verification.md, Constants
DIGITS, LEAST = {"f16": 10, "f32": 23, "f64": 52}, {"f16": -14, "f32": -126, "f64": -1022}


class Folding:
    """How constants were computed, and whether others are the same up to rounding."""

    def __init__(self):
        self.computed = set()  # classes of constants that are results of arithmetic
        self.steps = {}  # by class: a definition, which result of it, and operands, as classes and constants
        self.fractions = {}  # by class: what its steps give exactly
        self.is_exact = False  # whether steps are kept: what the models themselves compute is rounded at each step
        self.rounds = False  # floats were computed, and rounded to their types

    def result(self, definition, which, operands):
        """The constant that an operator makes of constants, rounded to its type."""
        return constant_of(*evaluated(definition, which, [numbers_of(constant) for _, constant in operands]))

    def add(self, c, definition, which, operands, dtype):
        if self.is_exact:
            self.steps.setdefault(c, (definition, which, operands))
        if is_float(dtype) and (not is_move(definition, which) or any(c in self.computed for c, _ in operands)):
            self.computed.add(c)
            self.rounds = True

    def numbers(self, c, constant, rng, known):
        """A constant without any rounding on the way to it, or with each result rounded up or down at random."""
        if c not in self.steps:
            return numbers_of(constant)
        if c not in known:
            known[c] = numbers_of(constant)  # where a constant is made of itself
            definition, which, operands = self.steps[c]
            made = evaluated(definition, which, [self.numbers(*operand, rng, known) for operand in operands])
            if rng is not None and is_float(made.dtype) and not is_move(definition, which):
                unit = 2.0 ** -(DIGITS[made.dtype] + 1)
                made = made._replace(elements=[x * (1 + rng.choice((-unit, unit))) for x in made.elements])
            known[c] = made
        return known[c]

    def exact(self, c, constant):
        """The numbers of a constant as fractions, without any rounding on the way to it; None where they are none."""
        def numbers(c, constant):
            if c not in self.steps:
                return Numbers(constant.dtype, constant.shape, [Fraction(x) for x in elements_of(constant)])
            if c not in self.fractions:
                self.fractions[c] = None  # where a constant is made of itself
                definition, which, operands = self.steps[c]
                self.fractions[c] = evaluated(definition, which, [numbers(*operand) for operand in operands])
            return self.fractions[c]
        try:
            elements = numbers(c, constant).elements
        except (Refused, ArithmeticError, AttributeError, TypeError, ValueError):
            return None
        return tuple(elements) if all(isinstance(x, (int, Fraction)) for x in elements) else None

    def leaves(self, c, constant, seen):
        """The constants that a computed one is made of, with their classes."""
        if c not in self.steps:
            return [(c, constant)]
        if c in seen:
            return []
        seen.add(c)
        return [leaf for operand in self.steps[c][2] for leaf in self.leaves(*operand, seen)]

    def units_apart(self, c, constant, given):
        """The largest difference of a computed constant from a given one, in units of its last place; none where an
        element differs by more than rounding explains."""
        if (given.dtype, given.shape) != (constant.dtype, constant.shape) or given.dtype not in DIGITS:
            return None
        wanted, rounded = elements_of(given), elements_of(constant)
        few = range(0, len(wanted), max(len(wanted) // 16, 1))
        if sum(abs(wanted[i] - rounded[i]) > 0.01 * (abs(wanted[i]) + abs(rounded[i])) for i in few) > len(few) // 2:
            return None
        try:
            exact, draws, largest = self.numbers(c, constant, None, {}).elements, None, 0.0
            for i, (x, y) in enumerate(zip(wanted, exact)):
                if x == y:
                    continue
                if not (math.isfinite(x) and math.isfinite(y)):
                    return None
                unit = 2.0 ** (max(math.frexp(y)[1] - 1, LEAST[given.dtype]) - DIGITS[given.dtype])
                most = MOST_UNITS * unit
                if abs(x - y) > most:
                    draws = draws or [self.numbers(c, constant, Random(n), {}).elements for n in range(DRAWS)]
                    most = max(most, MOST_SPREAD * max(abs(draw[i] - y) for draw in draws))
                if abs(x - y) > most:
                    return None
                largest = max(largest, abs(x - y) / unit)
            return largest
        except Refused:
            return None


def numbers_of(constant):
    return Numbers(constant.dtype, constant.shape, elements_of(constant))
