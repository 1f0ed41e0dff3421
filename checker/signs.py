"""Which signs a sum may have, as far as it is seen: sets of -1, 0 and 1 (docs/verification.md)."""
from fractions import Fraction

import expressions
import maxima
import sums

ANY, NOT_NEGATIVE, POSITIVE = frozenset((-1, 0, 1)), frozenset((0, 1)), frozenset((1,))
MOST_TERMS = 24  # of a sum that is looked at


def sign(number):
    return (number > 0) - (number < 0)


def of_product(a, b):
    return frozenset(x * y for x in a for y in b)


def of_sum(a, b):
    def one(x, y):
        return (x or y,) if x * y >= 0 else ANY
    return frozenset(s for x in a for y in b for s in one(x, y))


def of_base(f, known):
    if f.truth:
        return NOT_NEGATIVE
    if f.kind == "number":
        least = f.at[0].least()
        return ANY if least is None or least < 0 else POSITIVE if least > 0 else NOT_NEGATIVE
    if f.kind in ("read", "cast"):
        return NOT_NEGATIVE if f.to[0] == "u" or f.to == "bool" else ANY
    if f.kind == "apply":
        return POSITIVE if f.name == "exp" else ANY
    if f.kind == "power":
        return of(f.args[0], known)
    found = ANY
    if f.kind == "most":  # at least any part that is always there
        if maxima.absolute(f) is not None:
            found = NOT_NEGATIVE
        for piece in f.args[0]:
            own = of(expressions.value_of(piece), known) if piece.is_plain() else ANY
            if -1 not in own:
                found &= POSITIVE if own == POSITIVE else NOT_NEGATIVE
    return found


def of_factor(f, known=()):
    found = of_base(f, known)
    for terms, its in known:
        only = expressions.only_factor(terms)
        if only is not None and only.exponent == 1 and only.base() == f.base():
            found &= {sign(terms[0].coefficient) * its}
    if f.exponent.denominator != 1:
        found &= NOT_NEGATIVE  # there is a root of it
    if f.exponent < 0:
        found -= {0}  # what is divided by is not zero
    if f.exponent % 2 == 0:
        found = frozenset(s * s for s in found)
    return found


def of_term(t, known):
    found = frozenset((sign(t.coefficient),))
    for f in t.factors:
        found = of_product(found, of_factor(f, known))
    return found if t.is_plain() else found | {0}


def of_exponentials(terms):
    """c*exp(a) - c*exp(b) has the sign of c*(a - b), which is given."""
    if len(terms) != 2 or terms[0].coefficient + terms[1].coefficient != 0:
        return None
    difference = []
    for t in terms:
        if not t.is_plain() or any(f.kind != "apply" or f.name != "exp" for f in t.factors):
            return None
        for f in t.factors:
            difference += expressions.scaled(f.args[0], t.coefficient * f.exponent)
    return sums.collected(difference)


def bounds_of_factor(f):
    """The least and the largest value of an element of a small type, a remainder, a maximum; None where none is seen."""
    if f.exponent != 1:
        return None, None
    if f.truth:
        return 0, 1
    if f.kind == "apply" and f.name == "mod":
        by = expressions.constant_of(f.args[1])
        return (0, by) if by is not None and by > 0 else (None, None)
    if f.kind in ("read", "cast") and f.to[0] in "ui" and expressions.WIDE[f.to] <= 32:
        width = expressions.WIDE[f.to]
        return (0, 2 ** width - 1) if f.to[0] == "u" else (-2 ** (width - 1), 2 ** (width - 1) - 1)
    if f.kind == "most":  # at least each part that is always there, at most the largest of all
        ranges = [(p, bounds(expressions.value_of(p))) for p in f.args[0]]
        lows = [low for p, (low, _) in ranges if p.is_plain() and low is not None]
        highs = [high for _, (_, high) in ranges]
        return max(lows, default=None), None if None in highs else max(highs)
    return None, None


def bounds(terms):
    """The least and the largest value of a sum, where they are seen."""
    low = high = 0
    for t in terms:
        only = expressions.only_factor([t])
        own = (1, 1) if not t.factors and t.is_plain() else bounds_of_factor(only) if only is not None else (None, None)
        least, most = own if t.coefficient > 0 else own[::-1]
        low = None if None in (low, least) else low + t.coefficient * least
        high = None if None in (high, most) else high + t.coefficient * most
    return low, high


def of(terms, known=(), depth=2):
    """The signs of a sum of which `known` are pairs of a sum and its sign."""
    if len(terms) > MOST_TERMS:
        return ANY
    found = frozenset((0,))
    for t in terms:
        found = of_sum(found, of_term(t, known))
    difference = of_exponentials(terms)
    if difference is not None:
        found &= of(difference, known, depth)
    low, high = bounds(terms)
    if low is not None and low >= 0:
        found -= {-1, 0} if low > 0 else {-1}
    if high is not None and high <= 0:
        found -= {1, 0} if high < 0 else {1}
    if depth == 0 or len(found) <= 1:
        return found
    # a multiple of what is known, and something else
    for of_what, its in known:
        first = next((t for t in of_what if t.factors or not t.is_plain()), None)
        own = next((t for t in terms if first is not None and t.body() == first.body()), None)
        if own is not None:
            ratio = own.coefficient / first.coefficient
            rest = sums.collected(terms + expressions.scaled(of_what, -ratio))
            found &= of_sum({sign(ratio) * its}, of(rest, known, depth - 1))
    return found


def solved(zero):
    """The factor and its value, of a sum that is zero: one that stands alone in a term, where nothing
    else in the sum could speak of it."""
    for term in expressions.in_order(zero):
        f = expressions.only_factor([term])
        if f is None or f.exponent != 1 or f.kind in ("number", "bottom"):
            continue
        if not any(g is not f and (g.args or g.base() == f.base()) for t in zero for g in t.factors):
            return f, expressions.scaled([t for t in zero if t is not term], -1 / term.coefficient)
    return None


def decided(terms, known):
    """The sum where what is known holds."""
    zeros = [s for of_what, its in known if its == 0 for s in [solved(of_what)] if s is not None]

    def put_in(f):
        for factor, value in zeros:
            if factor.base() == f.base():
                return [expressions.opened(t) for t in value]
        own = of_factor(f.like(exponent=1), known) if f.truth else ANY
        if len(own) == 1:
            return expressions.constant(Fraction(*own))
        if f.kind == "apply" and f.truth:
            found, wanted = of(f.args[0], known), -1 if f.name == "less" else 0
            if found == {wanted} or wanted not in found:
                return expressions.constant(Fraction(int(wanted in found)))
        if f.kind == "most":
            pieces = list(f.args[0])
            for piece in f.args[0]:
                others = [p for p in pieces if p is not piece]
                if maxima.is_lower(piece, others, known):
                    pieces = others
            if len(pieces) < len(f.args[0]):
                return maxima.most([expressions.opened(p) for p in pieces])
        return None
    before = None
    for _ in range(4):
        terms = sums.normal(sums.changed(sums.normal(terms), put_in))
        if expressions.key(terms) == before:
            break
        before = expressions.key(terms)
    return terms
