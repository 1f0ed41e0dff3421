"""The last test of a proof: whether two sums are the same by fractions, angles and logarithms."""
from fractions import Fraction

import expressions
import functions
import signs
import sums
from expressions import constant, constant_of, only_factor, scaled
from sums import normal, power, product

MOST_TERMS, MOST_ROUNDS, MOST_TIMES = 300, 24, 4


def opened(terms):
    return [expressions.opened(t) for t in terms]


def are_equal(a, b):
    difference = normal(a + scaled(b, -1))
    if len(difference) > MOST_TERMS:
        return not difference
    for written in (by_exponentials, by_angles):
        difference = normal(sums.changed(difference, written))
    return is_zero(difference, 3)


def by_exponentials(f):
    """tanh(x) = 1 - 2/(exp(2*x) + 1)"""
    if f.kind != "apply" or f.name != "tanh":
        return None
    arg = normal(sums.changed(opened(f.args[0]), by_exponentials))
    return constant(1) + scaled(power(functions.apply("exp", [scaled(arg, 2)]) + constant(1), -1), -2)


def by_angles(f):
    return of_angle(f.name, opened(f.args[0])) if f.kind == "apply" and f.name in ("sin", "cos") else None


def of_angle(fn, angle):
    """sin(a + b) = sin(a)*cos(b) + cos(a)*sin(b), cos(a + b) = cos(a)*cos(b) - sin(a)*sin(b)"""
    angle = sums.collected(angle)
    if not angle:
        return functions.apply(fn, [angle])
    first, times = angle[0], angle[0].coefficient
    if times.denominator == 1 and 1 < abs(times) <= MOST_TIMES:
        first = first.like(coefficient=signs.sign(times))
    rest = sums.collected(angle + scaled([first], -1))
    if not rest:
        return functions.apply(fn, [angle])
    other, sign = ("cos", 1) if fn == "sin" else ("sin", -1)
    return product(of_angle(fn, [first]), of_angle("cos", opened(rest))) + \
        scaled(product(of_angle(other, opened([first])), of_angle("sin", opened(rest))), sign)


def is_zero(terms, depth):
    terms = without_cosines(terms)
    if not terms or depth == 0 or len(terms) > MOST_TERMS:
        return not terms
    terms = without_quotients(terms)
    if not terms:
        return True
    other = without_logarithms(terms)
    if other is not None:
        return is_zero(other, depth - 1)
    if all(t.is_plain() for t in terms):
        return False
    ranges = {}  # sums over the same range are zero if what they add up is
    for t in [expressions.named_by_use(t, str(depth)) for t in terms]:
        ranges.setdefault((t.bound, frozenset(g.key for g in t.guards)), []).append(t.like(bound=(), guards=()))
    return all(is_zero(inner, depth - 1) for inner in ranges.values())


def without_cosines(terms):
    """cos(x)^2 = 1 - sin(x)^2"""
    result = []
    for t in terms:
        made = [t.like(factors=())]
        for f in t.factors:
            one = expressions.factor_sum(f)
            if f.kind == "apply" and f.name == "cos" and f.exponent.denominator == 1 and 2 <= f.exponent <= 8:
                square = constant(1) + scaled(expressions.factor_sum(f.like(name="sin", exponent=2)), -1)
                one = product(power(square, f.exponent // 2), expressions.factor_sum(f.like(exponent=f.exponent % 2))
                              if f.exponent % 2 else constant(1))
            made = product(made, one)
        result += made
    return normal(result)


def is_not_zero(terms, over):
    """What is divided by is seen not to be zero, or is divided by whatever the conditions are."""
    return 0 not in signs.of(over.args[0]) or any(
        t.is_plain() and not any(f.truth for f in t.factors) and
        any(f.exponent < 0 and f.base() == over.base() for f in t.factors) for t in terms)


def without_quotients(terms):
    """Multiplied by what the terms are divided by: a number that is the same for all of them."""
    for _ in range(MOST_ROUNDS):
        for over in [f for t in terms for f in t.factors if f.kind == "power" and constant_of(f.args[0]) is None and
                     not 0 <= f.exponent < 1 and f.free().isdisjoint(t.bound)]:
            least = min(f.exponent // 1 for t in terms for f in t.factors if f.base() == over.base())
            if least >= 0 or is_not_zero(terms, over):
                terms = normal([u for t in terms for u in times_power(t, over, -min(least, 0))])
                break
        else:
            return terms
        if len(terms) > MOST_TERMS:
            return terms
    return terms


def times_power(term, over, exponent):
    """A term times a sum to a power; what has a whole exponent then is written out."""
    here = [f for f in term.factors if f.base() == over.base()]
    exponent += sum(f.exponent for f in here)
    rest = term.like(factors=[f for f in term.factors if f.base() != over.base()])
    whole = exponent // 1
    result = product([rest], power(opened(over.args[0]), whole)) if whole else [rest]
    return product(result, expressions.factor_sum(over.like(exponent=exponent - whole))) if exponent != whole else result


def without_logarithms(terms):
    """Sums of multiples of logarithms are zero where the product of powers is 1: that less 1; else None."""
    logs, rest, measure = [], [], Fraction(0)
    for t in terms:
        only = only_factor([t])
        is_log = only is not None and only.kind == "apply" and only.name == "log" and only.exponent == 1
        (logs if is_log else rest).append(t)
        measure = sums.gcd(measure, t.coefficient) if is_log else measure
    if not logs or sum(abs(t.coefficient / measure) for t in logs) > sums.MOST_FACTORS:
        return None
    sides = {1: constant(1), -1: functions.apply("exp", [scaled(opened(rest), -1 / measure)])}
    for t in logs:
        times = t.coefficient / measure
        side = signs.sign(times)
        sides[side] = product(sides[side], power(opened(t.factors[0].args[0]), abs(times)))
    return normal(sides[1] + scaled(sides[-1], -1))
