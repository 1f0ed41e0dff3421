"""Arithmetic on sums of products, as docs/verification.md describes them: products, powers, the normal form.

`normal` rebuilds a sum by the facts about functions of that document.
"""
from fractions import Fraction

import functions
import maxima
import signs
from expressions import (Factor, Term, constant, constant_of, factor_key, factor_sum, in_order, key, number, opened,
                         scaled, substituted, times_factor, value_of)
from sizes import Refused, num, sym

MOST_FACTORS = 8  # of a power that is written out
MOST_WRITTEN = 16  # factors of a product over a range that is written out
MOST_KEPT = 20000  # results that are kept
MOST_ABOVE = 24  # terms over a sum that may cancel


def product(a, b):
    result = []
    for x in a:
        for y in b:
            z = y
            if y.bound and not set(y.bound).isdisjoint(set(x.bound) | x.free()):
                z = opened(y)
            term = x.like(coefficient=x.coefficient * z.coefficient, bound=x.bound + z.bound,
                          guards=x.guards + tuple(g for g in z.guards if g not in x.guards))
            for f in z.factors:
                term = times_factor(term, f)
            result += whole_powers(term)
    if len(result) > 20000:
        raise Refused("the sums grow too large")
    return result


def whole_powers(term):
    """Whole powers of sums are written out; those of numbers keep exponents below 1."""
    rest, grown = term.like(factors=()), [Term()]
    for f in term.factors:
        base = constant_of(f.args[0]) if f.kind == "power" else None
        if base is not None:
            steps = f.exponent.numerator // f.exponent.denominator
            if base == 0 and steps < 0:
                raise Refused("zero is divided by")
            rest = rest.like(coefficient=rest.coefficient * base ** steps)
            if f.exponent != steps:
                rest = rest.like(factors=rest.factors + (f.like(exponent=f.exponent - steps),))
        elif f.kind == "power" and f.exponent.denominator == 1 and 0 < f.exponent <= MOST_FACTORS:
            grown = product(grown, power([opened(t) for t in f.args[0]], f.exponent))
        elif f.exponent % 2 == 0 and maxima.absolute(f) is not None:
            grown = product(grown, power([opened(t) for t in maxima.absolute(f)], f.exponent))
        else:
            rest = rest.like(factors=rest.factors + (f,))
    return [rest] if len(grown) == 1 and grown[0].is_plain() and not grown[0].factors else \
        product([rest], grown)


def collected(terms):
    """Guards that say nothing and terms that are nothing go; like terms are added."""
    bodies, order = {}, []
    for term in terms:
        guards = [g for g in dict.fromkeys(term.guards) if not g.never_negative()]
        if any(g.constant() is not None for g in guards):  # a negative number
            continue
        term = term.like(guards=guards) if len(guards) != len(term.guards) else term
        if term.body() in bodies:
            at = bodies[term.body()]
            order[at] = order[at].like(coefficient=order[at].coefficient + term.coefficient)
        else:
            bodies[term.body()] = len(order)
            order.append(term)
    result = [t for t in order if t.coefficient != 0]
    shorter = without_quotient(result)
    return result if shorter is None else collected(shorter)


def where_equal(term):
    """A term with a factor a = b, with a for b in its other factors; None where that changes nothing."""
    for equality in term.factors:
        zero = signs.solved(equality.args[0]) if equality.kind == "apply" and equality.name == "equal" else None
        if zero is None or equality.exponent != 1:
            continue
        found = []

        def put_in(f, zero=zero, found=found):
            if f.base() != zero[0].base() or (f.exponent < 0 and not zero[1]):
                return None
            found.append(f)
            return [opened(t) for t in zero[1]]
        made = changed([term.like(bound=(), factors=[f for f in term.factors if f is not equality])], put_in)
        if found:
            return normal([t.like(bound=term.bound + t.bound) for t in product(made, factor_sum(equality))])
    return None


def without_quotient(terms):
    """Terms over S that together are q*S, for a product q, are q."""
    for over in [f for t in terms for f in t.factors if f.kind == "power"]:
        base = over.args[0]
        if over.exponent.denominator != 1 or over.exponent >= 0 or not base:
            continue
        above, rest = [], []
        for t in terms:
            here = next((f for f in t.factors if f.base() == over.base() and f.exponent == over.exponent), None)
            (rest if here is None else above).append(t.like(factors=[f for f in t.factors if f is not here]))
        if not len(base) <= len(above) <= MOST_ABOVE:
            continue
        bodies = {}
        for t in above:
            bodies[t.body()] = bodies.get(t.body(), 0) + t.coefficient
        for t in above:
            q = quotient(t, base[0])
            there = product([q], [opened(t) for t in base]) if q is not None else []
            if there and all(bodies.get(t.body()) == t.coefficient for t in there) and \
                    len({t.body() for t in there}) == len(there):
                used = {t.body() for t in there}
                left = [t.like(factors=t.factors + (over,)) for t in above if t.body() not in used]
                once = [over.like(exponent=over.exponent + 1)] if over.exponent < -1 else []
                return rest + left + product([q], [Term(factors=once)])
    return None


def quotient(term, by):
    """A product q for which the term may be q*by; it speaks of nothing that is bound."""
    if len(term.bound) != len(by.bound) or len(term.guards) != len(by.guards):
        return None
    q = Term(term.coefficient / by.coefficient)
    if not term.is_plain():
        return q.like(factors=[f for f in term.factors if f.free().isdisjoint(term.bound)])
    for f in term.factors:
        q = times_factor(q, f)
    for f in by.factors:
        q = times_factor(q, f.like(exponent=-f.exponent))
    return q


def leads_negative(terms):
    """Which of a sum and its negative is written: by the sum of coefficients, else by the first."""
    terms = [t for t in terms if t.factors or not t.is_plain()] or terms
    total = sum(t.coefficient for t in terms)
    return (in_order(terms)[0].coefficient if total == 0 and terms else total) < 0


def is_positive(f):
    """Whether a factor is never negative."""
    return -1 not in signs.of_factor(f)


def gcd(a, b):
    while b:
        a, b = b, a - b * (a // b)
    return abs(a)


def content(sums, leaves, free=()):
    """What all terms have in common: a measure and factors (`leaves`: all, positive, base)."""
    terms = [t for s in sums for t in s]
    if not terms:
        return Fraction(1), []
    measure = Fraction(0)
    for t in terms:
        measure = gcd(measure, t.coefficient)
    common = []
    for candidate in terms[0].factors:
        if candidate.kind in ("bottom", "group") or not candidate.free().isdisjoint(free):
            continue
        exponents = []
        for t in terms:
            here = next((f for f in t.factors if f.base() == candidate.base()), None)
            if here is None or not candidate.free().isdisjoint(t.bound) or \
                    (here.exponent > 0) != (candidate.exponent > 0):
                break
            exponents.append(here.exponent)
        else:
            f = candidate.like(exponent=min(exponents))
            if leaves == "all" or is_positive(f.like(exponent=1) if leaves == "base" else f):
                common.append(f)
    return measure, common


def common_exponentials(terms):
    """Exponentials, each to the least exponent that a term has it to; a term without one has it to 0."""
    common = []
    for candidate in [f for t in terms for f in t.factors if f.kind == "apply" and f.name == "exp"]:
        if any(f.base() == candidate.base() for f in common) or \
                any(not candidate.free().isdisjoint(t.bound) for t in terms):
            continue
        least = min(next((f.exponent for f in t.factors if f.base() == candidate.base()), Fraction(0)) for t in terms)
        common.append(candidate.like(exponent=least))
    return [f for f in common if f.exponent != 0]


def divided(terms, measure, factors):
    result = scaled(terms, 1 / measure)
    for f in factors:
        result = [times_factor(t, f.like(exponent=-f.exponent)) for t in result]
    return result


def number_power(value, exponent):
    """None where it is not written by square roots."""
    if exponent.denominator == 1:
        if value == 0 and exponent < 0:
            raise Refused("zero is divided by")
        return constant(value ** exponent.numerator)
    if exponent.denominator != 2 or value <= 0:
        return None
    # sqrt(n/d) = sqrt(n*d)/d, with the squares of small primes taken out
    left, root = value.numerator * value.denominator, Fraction(1, value.denominator)
    primes = []
    p = 2
    while p < 1000 and p <= left:
        while left % (p * p) == 0:
            left //= p * p
            root *= p
        if left % p == 0:
            left //= p
            primes.append(p)
        p += 1
    if left > 1:
        whole = int(left ** 0.5)
        exact = next((r for r in (whole - 1, whole, whole + 1) if r * r == left), None)
        if exact:
            root *= exact
        else:
            primes.append(left)
    steps = (exponent - Fraction(1, 2)).numerator
    factors = [Factor("power", args=[constant(p)], exponent=Fraction(1, 2)) for p in primes]
    return [Term(root * value ** steps, factors=factors)]


def power(base, exponent):
    exponent = Fraction(exponent)
    if exponent == 1:
        return base
    whole = exponent.denominator == 1
    if whole and 0 <= exponent <= MOST_FACTORS:
        result = [Term()]
        for _ in range(exponent.numerator):
            result = product(result, base)
        return result
    inner = collected(base)
    if not inner:
        if exponent > 0:
            return []
        raise Refused("zero is divided by")
    if len(inner) == 1 and inner[0].is_plain():
        return power_of_term(inner[0], exponent)
    measure, factors = content([inner], "all" if whole else "base")
    if whole and leads_negative(inner):
        measure = -measure
    outer = number_power(measure, exponent)
    if outer is None:
        outer, measure = [Term()], Fraction(1)
    inner = divided(inner, measure, factors)
    exponentials = common_exponentials(inner)
    common = Term()
    for f in factors + exponentials:
        common = times_factor(common, f.like(exponent=f.exponent * exponent))
    result = product(outer, whole_powers(common))
    inner = collected(divided(inner, 1, exponentials))
    return product(result, factor_sum(Factor("power", args=[inner], exponent=exponent)))


def power_of_term(term, exponent):
    whole = exponent.denominator == 1
    taken, kept, roots = Term(), [], [Term()]
    for f in term.factors:
        even = f.exponent.denominator == 1 and f.exponent % 2 == 0
        if whole or is_positive(f.like(exponent=1) if even else f):
            taken = times_factor(taken, f.like(exponent=f.exponent * exponent))
        elif even:
            roots = product(roots, power(functions.apply("abs", [factor_sum(f.like(exponent=1))]), f.exponent * exponent))
        else:
            kept.append(f)
    root = number_power(term.coefficient, exponent) if whole or term.coefficient > 0 else None
    result = product(product(whole_powers(taken), roots), root if root is not None else [Term()])
    left = Fraction(1) if root is not None else term.coefficient
    if not kept and left == 1:
        return result
    inner = [Term(left, factors=kept)]
    return product(result, factor_sum(Factor("power", args=[inner], exponent=exponent)))


def group(value):
    return Term(factors=[Factor("group", args=[collected(value)])])


_remade = {}


def remade(f):
    """A factor made anew of its normal arguments; the same one is met in many steps."""
    if not f.args or f.kind == "group":
        return remade_by_facts(f)
    at = factor_key(f, {})
    if at not in _remade:
        if len(_remade) > MOST_KEPT:
            _remade.clear()
        _remade[at] = remade_by_facts(f)
    return _remade[at]


def remade_by_facts(f):
    args = [normal(arg) for arg in f.args]
    if f.kind == "number":
        return power(number(f.at[0]), f.exponent)
    if f.kind == "power":
        return power(args[0], f.exponent)
    if f.kind == "most":
        return power(maxima.most(args[0]), f.exponent)
    if f.kind == "cast":
        return power(functions.cast(f.to, args[0]), f.exponent)
    if f.kind == "apply":
        if f.truth:
            args.append([])
        made = functions.apply_to_integers(f.name, args) if f.to == "i64" else functions.apply(f.name, args)
        return power(made, f.exponent)
    if f.kind == "fold":
        return power(folded(f.like(args=args, exponent=1)), f.exponent)
    return factor_sum(f.like(args=args))


BOTH = [Term(factors=[Factor("read", "%L0", to="f32"), Factor("read", "%R0", to="f32")])]


def folded(fold):
    """A fold of one element is what its start combines to with it; products over ranges come apart."""
    run, = fold.args[0]
    components = len(run.factors)
    last = (run.guards[0] + sym(run.bound[0])).constant() if len(run.bound) == len(run.guards) == 1 else None

    def lifted(component, at):
        return [substituted(opened(t), {run.bound[0]: num(at)}) for t in run.factors[component].args[0]]

    def put_in(f):
        if f.kind == "read" and f.name[:2] in ("%L", "%R"):
            which = int(f.name[2:])
            return [opened(t) for t in fold.args[1 + which]] if f.name[1] == "L" else lifted(which, 0)
        return None
    if last == 0:
        return normal(changed(fold.args[1 + components + fold.component], put_in))
    start = constant_of(fold.args[1])
    if components != 1 or len(fold.args) != 3 or start is None or key(fold.args[2]) != key(BOTH):
        return factor_sum(fold)
    result = constant(start)
    if last is not None and 0 < last < MOST_WRITTEN:
        for i in range(last + 1):
            result = product(result, normal(lifted(0, i)))
        return result
    value = value_of(run)

    def over(value):
        return factor_sum(Factor("fold", args=[[run.like(factors=group(value).factors)], [Term()], BOTH]))
    if len(value) != 1 or not value[0].is_plain() or not value[0].factors:
        return product(result, over(value))
    if value[0].coefficient != 1:
        result = product(result, over(constant(value[0].coefficient)))
    for f in value[0].factors:
        if f.kind == "apply" and f.name == "exp":
            total = [opened(t) for t in product([run.like(factors=())], [opened(t) for t in f.args[0]])]
            result = product(result, functions.apply("exp", [scaled(total, f.exponent)]))
        elif f.exponent.denominator == 1:
            result = product(result, power(over(factor_sum(f.like(exponent=1))), f.exponent))
        else:
            result = product(result, over(factor_sum(f)))
    return result


def normal(terms):
    """The sum by the facts, all the way down; bound variables get fresh names."""
    result = []
    for term in terms:
        term = opened(term)
        made = [term.like(factors=())]
        for f in term.factors:
            made = product(made, remade(f))
        for t in made:
            other = where_equal(t)
            result += [t] if other is None else other
    return collected(result)


def changed(terms, change):
    """With factors replaced by sums, wherever `change` gives one."""
    result = []
    for term in map(opened, terms):
        made = [term.like(factors=())]
        for f in term.factors:
            other = change(f)
            if other is None:
                other = factor_sum(f.like(args=[changed(arg, change) for arg in f.args]))
            else:
                other = [opened(t) for t in power(other, f.exponent)]
            made = product(made, other)
        result += made
    return result
