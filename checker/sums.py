"""Sums of products: what an element is, as docs/verification.md describes it.

    sum over bound where guards >= 0: coefficient * factor^exponent * ...

`normal` rebuilds a sum by the facts about functions of that document; `key` is a text that two sums
share if they are the same up to the names of bound variables and the order of terms and factors.
"""
from fractions import Fraction
from itertools import count, permutations

import signs
from sizes import Refused, num, of_atom, sym

WIDE = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8,
        "u16": 16, "u32": 32, "u64": 64, "bool": 1, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e5m2": 8,
        "f8e5m2fnuz": 8, "f8e8m0": 8, "f4e2m1": 4, "i4": 4, "u4": 4, "i2": 2, "u2": 2}
ODD = {"sin", "atan", "tanh", "erf"}
MOST_FACTORS = 8  # of a power that is written out
MOST_WRITTEN = 16  # factors of a product over a range that is written out
MOST_KEPT = 20000  # results that are kept
MOST_ABOVE = 24  # terms over a sum that may cancel
_fresh = count()


def fresh():
    return f"~{next(_fresh)}"


class Factor:
    """kind: number read apply cast power most fold group bottom; `name` is that of a tensor or
    function, `to` a type (of apply: i64 for functions of integers), `truth` says it is 0 or 1."""

    __slots__ = ("kind", "name", "to", "component", "truth", "at", "args", "exponent", "_base", "_free")

    def __init__(self, kind, name="", to="", component=0, truth=False, at=(), args=(), exponent=1):
        self.kind, self.name, self.to, self.component, self.truth = kind, name, to, component, truth
        self.at, self.args, self.exponent = tuple(at), tuple(args), Fraction(exponent)
        self._base = self._free = None

    def like(self, **changes):
        fields = {s: getattr(self, s) for s in self.__slots__ if s[0] != "_"}
        return Factor(**{**fields, **changes})

    def base(self):
        if self._base is None:
            self._base = base_key(self, {})
        return self._base

    def free(self):
        if self._free is None:
            found = set().union(*(d.symbols() for d in self.at)) if self.at else set()
            for arg in self.args:
                for term in arg:
                    found |= term.free()
            self._free = frozenset(found)
        return self._free


class Term:
    __slots__ = ("coefficient", "bound", "guards", "factors", "_free", "_body")

    def __init__(self, coefficient=1, bound=(), guards=(), factors=()):
        self.coefficient, self.bound = Fraction(coefficient), tuple(bound)
        self.guards, self.factors = tuple(guards), tuple(factors)
        self._free = self._body = None

    def like(self, **changes):
        fields = {s: getattr(self, s) for s in self.__slots__ if s[0] != "_"}
        return Term(**{**fields, **changes})

    def free(self):
        """The symbols that are spoken of and not bound here."""
        if self._free is None:
            found = set()
            for guard in self.guards:
                found |= guard.symbols()
            for factor in self.factors:
                found |= factor.free()
            self._free = frozenset(found.difference(self.bound))
        return self._free

    def mentions(self, name):
        return any(name in g.symbols() for g in self.guards) or any(name in f.free() for f in self.factors)

    def body(self):
        if self._body is None:
            self._body = body_key(self, {})
        return self._body

    def is_plain(self):
        return not self.bound and not self.guards


# --- keys


def dim_key(dim, names):
    if not names or dim.symbols().isdisjoint(names):
        return dim.key
    parts = []
    for atoms, c in dim.terms.items():
        keys = []
        for atom in atoms:
            if atom.op == "symbol":
                keys.append(names.get(atom.name, atom.key))
            else:
                sides = [dim_key(atom.a, names), dim_key(atom.b, names)]
                if atom.op in ("min", "max"):
                    sides.sort()
                keys.append(f"{atom.op}({sides[0]}, {sides[1]})")
        parts.append(("*".join(sorted(keys)), c))
    return " + ".join(f"{c}*{k}" if k else str(c) for k, c in sorted(parts)) or "0"


def base_key(f, names):
    if f.kind == "bottom":
        return "bottom"
    text = f"{f.kind} {f.name!r} {f.to} {f.component}["
    text += ", ".join(dim_key(d, names) for d in f.at) + "]("
    return text + ", ".join(sum_key(arg, names) for arg in f.args) + ")"


def factor_key(f, names):
    base = f.base() if not names or f.free().isdisjoint(names) else base_key(f, names)
    return base if f.exponent == 1 else f"{base}^{f.exponent}"


def items_key(term, names):
    guards = sorted({dim_key(g, names) for g in term.guards})
    factors = [factor_key(f, names) for f in term.factors]
    if not any(f.kind == "group" for f in term.factors):
        factors.sort()  # the components of a fold stay in order
    return " & ".join(guards) + " : " + " * ".join(factors)


def body_key(term, names):
    """All but the coefficient; bound variables by what they do."""
    names = {k: v for k, v in names.items() if k not in term.bound}
    if not term.bound:
        return "; " + items_key(term, names)
    return f"{len(term.bound)}; {items_key(term, {**names, **by_use(term, names)})}"


def by_use(term, names):
    """Names of the bound variables of a term that hang on what they do alone."""
    blank = {**names, **{v: "?" for v in term.bound}}
    colours = {}
    for v in term.bound:
        colours.setdefault(items_key(term, {**blank, v: "!"}), []).append(v)
    orders = [[]]
    for _, group in sorted(colours.items()):
        orders = [before + list(p) for before in orders for p in permutations(group)]
        if len(orders) > 5040:
            raise Refused("too many bound variables look alike")
    level = len(names) + 1
    named = [{v: f"<{level}.{i}>" for i, v in enumerate(order)} for order in orders]
    return named[0] if len(named) == 1 else min(named, key=lambda n: items_key(term, {**names, **n}))


def named_by_use(term, prefix):
    """The term with such names for what it binds; nothing else may be called so."""
    names = {v: prefix + n for v, n in by_use(term, {}).items()}
    body = substituted(term.like(bound=()), {v: sym(n) for v, n in names.items()})
    return body.like(bound=tuple(sorted(names.values())))


def sum_key(terms, names):
    # Like terms may have come together under other names: their coefficients add up.
    total = {}
    for term in terms:
        body = term.body() if not names or term.free().isdisjoint(names) else body_key(term, names)
        total[body] = total.get(body, 0) + term.coefficient
    return " + ".join(f"{c} {body}" for body, c in sorted(total.items()) if c != 0)


def key(terms):
    return sum_key(terms, {})


# --- renaming and substitution


def substituted_factor(f, values):
    if f.free().isdisjoint(values):
        return f
    return f.like(at=[d.substituted(values) for d in f.at],
                  args=[[substituted(t, values) for t in arg] for arg in f.args])


def substituted(term, values):
    """Capture-free, for the symbols that are free in the term; nothing is simplified."""
    values = {k: v for k, v in values.items() if k not in term.bound}
    if term.free().isdisjoint(values):
        return term
    spoken = set().union(*(v.symbols() for v in values.values()))
    if not spoken.isdisjoint(term.bound):
        term = opened(term)
    return term.like(guards=[g.substituted(values) for g in term.guards],
                     factors=[substituted_factor(f, values) for f in term.factors])


def opened(term):
    """With fresh names for what it binds."""
    if not term.bound:
        return term
    names = {v: fresh() for v in term.bound}
    body = substituted(term.like(bound=()), {v: sym(n) for v, n in names.items()})
    return body.like(bound=names.values())


# --- making sums


def constant(value):
    return [Term(value)] if value != 0 else []


def constant_of(terms):
    if not terms:
        return Fraction(0)
    if len(terms) == 1 and terms[0].is_plain() and not terms[0].factors:
        return terms[0].coefficient
    return None


def factor_sum(f):
    return [Term(factors=[f])]


def indicator(guards):
    return [Term(guards=guards)]


def number(dim):
    result = []
    for atoms, c in dim.terms.items():
        term = Term(c)
        for atom in atoms:
            term = times_factor(term, Factor("number", at=[type(dim)({(atom,): 1})]))
        result.append(term)
    return result


def scaled(terms, by):
    return [t.like(coefficient=t.coefficient * by) for t in terms] if by != 0 else []


def times_factor(term, f):
    if f.kind == "group":
        return term.like(factors=term.factors + (f,))
    factors = list(term.factors)
    for i, other in enumerate(factors):
        if other.base() != f.base():
            continue
        exponent = other.exponent + f.exponent
        if other.truth and exponent > 0:
            exponent = Fraction(1)
        factors[i:i + 1] = [other.like(exponent=exponent)] if exponent != 0 else []
        return term.like(factors=factors)
    return term.like(factors=factors + [f])


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
        elif f.exponent % 2 == 0 and absolute(f) is not None:
            grown = product(grown, power([opened(t) for t in absolute(f)], f.exponent))
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


def in_order(terms):
    """Terms in an order that does not hang on the names of variables as long as others tell them apart."""
    blank = {v: "?" for t in terms for v in t.free()}
    return sorted(terms, key=lambda t: (body_key(t, blank), t.body()))


def leads_negative(terms):
    """Which of a sum and its negative is written: by the sum of coefficients, else by the first."""
    terms = [t for t in terms if t.factors or not t.is_plain()] or terms
    total = sum(t.coefficient for t in terms)
    return (in_order(terms)[0].coefficient if total == 0 and terms else total) < 0


# --- functions


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
            roots = product(roots, power(apply("abs", [factor_sum(f.like(exponent=1))]), f.exponent * exponent))
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


def value_of(piece):
    return piece.factors[0].args[0]


def only_factor(terms):
    """The factor, if the sum is a number times that."""
    if len(terms) == 1 and terms[0].is_plain() and len(terms[0].factors) == 1:
        return terms[0].factors[0]
    return None


def most(groups):
    """The largest of the groups, each over the range of its term."""
    pieces, largest = [], None
    for piece in flattened(groups):
        value = constant_of(value_of(piece)) if piece.is_plain() else None
        if value is None:
            pieces.append(piece)
        elif largest is None or value > largest:
            largest = value
    if largest is not None:
        pieces.append(group(constant(largest)))
    if not pieces:
        return factor_sum(Factor("bottom"))
    pieces = [p.like(coefficient=1) for p in collected(pieces)]
    if len(pieces) == 1 and pieces[0].is_plain():
        return [opened(t) for t in value_of(pieces[0])]
    for i, piece in enumerate(pieces):
        others = pieces[:i] + pieces[i + 1:]
        if is_below(piece, others) or (len(others) < MOST_FACTORS and is_lower(piece, others)):
            return most(others)
    other = turned(pieces) or of_exponentials(pieces)
    if other is not None:
        return other
    bound = [v for p in pieces for v in p.bound]
    shared = common_terms(pieces, bound)
    if shared:
        less = scaled(shared, -1)
        return most([p.like(factors=group(value_of(p) + less).factors) for p in pieces]) + shared
    measure, factors = content([value_of(p) for p in pieces], "positive", bound)
    if measure != 1 or factors:
        pieces = [p.like(factors=group(divided(value_of(p), measure, factors)).factors) for p in pieces]
        return product([Term(measure, factors=factors)], most(pieces))
    return of_product(Factor("most", args=[pieces]))


def absolute(f):
    """x, of the largest of x and -x."""
    pieces = f.args[0] if f.kind == "most" else ()
    if len(pieces) == 2 and all(p.is_plain() for p in pieces) and \
            key(value_of(pieces[0])) == key(scaled(value_of(pieces[1]), -1)):
        return value_of(pieces[0])
    return None


def of_product(largest):
    """abs(x * y) = abs(x) * abs(y)."""
    value = absolute(largest)
    if value is None or len(value) != 1 or not value[0].is_plain() or \
            (len(value[0].factors) == 1 and value[0].factors[0].exponent == 1):
        return factor_sum(largest)
    result = constant(abs(value[0].coefficient))
    for f in value[0].factors:
        base = factor_sum(f.like(exponent=1))
        result = product(result, power(base if f.exponent % 2 == 0 else apply("abs", [base]), f.exponent))
    return result


def of_exponentials(pieces):
    """max(exp(a), exp(b)) = exp(max(a, b))"""
    exponents = []
    for p in pieces:
        value = value_of(p)
        if not p.is_plain() or len(value) != 1 or not value[0].is_plain() or value[0].coefficient != 1 or \
                any(f.kind != "apply" or f.name != "exp" for f in value[0].factors):
            return None
        exponents.append(group([t for f in value[0].factors for t in scaled([opened(t) for t in f.args[0]], f.exponent)]))
    return apply("exp", [most(exponents)])


def is_lower(piece, others, known=()):
    """Whether a part is nowhere above another one that is always there."""
    return any(-1 not in signs.of(collected(value_of(p) + scaled(value_of(piece), -1)), known)
               for p in others if p.is_plain())


def flattened(groups):
    """The largest of largest ones is the largest of all; below every number is nothing."""
    for piece in groups:
        only = only_factor(value_of(piece))
        scale = value_of(piece)[0].coefficient if only is not None else 0
        if scale > 0 and only.kind == "bottom":
            continue
        if scale <= 0 or only.kind != "most" or only.exponent != 1:
            yield piece
            continue
        for inner in only.args[0]:
            inner = opened(inner)
            yield inner.like(bound=inner.bound + piece.bound, guards=inner.guards + piece.guards,
                             factors=group(scaled(value_of(inner), scale)).factors)


def is_below(piece, others):
    """min(x, y), as one of them, is below x, which is another."""
    only = only_factor(value_of(piece))
    if only is None or only.kind != "most" or only.exponent != 1:
        return False
    scale = value_of(piece)[0].coefficient
    if scale > 0:
        return False
    plain = {key(value_of(p)) for p in others if p.is_plain()}
    return any(p.is_plain() and key(scaled(value_of(p), scale)) in plain for p in only.args[0])


def bounded(pieces):
    """The number and the other one of two."""
    if len(pieces) == 2 and all(p.is_plain() for p in pieces):
        for i in (0, 1):
            value = constant_of(value_of(pieces[i]))
            if value is not None:
                return value, value_of(pieces[1 - i])
    return None


def turned(pieces):
    """max(a, min(b, x)) = min(b, max(a, x)) for numbers a <= b: one of the two forms."""
    outer = bounded(pieces)
    only = only_factor(outer[1]) if outer else None
    if only is None or only.kind != "most" or only.exponent != 1:
        return None
    scale = outer[1][0].coefficient
    inner = bounded(only.args[0])
    if scale >= 0 or inner is None or inner[0] * scale < outer[0] or leads_negative(inner[1]):
        return None
    larger = most([group(constant(outer[0])), group(scaled(inner[1], scale))])
    return scaled(most([group(constant(-inner[0] * scale)), group(scaled(larger, -1))]), -1)


def common_terms(pieces, bound):
    def whole(t):
        return f"{t.coefficient} {t.body()}"
    there = [{whole(t) for t in value_of(p)} for p in pieces]
    return [t for t in value_of(pieces[0])
            if t.free().isdisjoint(bound) and all(whole(t) in texts for texts in there)]


def exponential(arg):
    def below(t):
        return any(f.kind == "bottom" for f in t.factors)
    low = [t for t in arg if below(t)]
    if len(low) == 1 and only_factor(low) is not None and low[0].coefficient > 0:
        return []
    if low:
        return factor_sum(Factor("apply", "exp", args=[arg]))
    result, powers = Term(), [Term()]
    for t in arg:
        only = only_factor([t])
        if only is not None and only.kind == "apply" and only.name == "log" and only.exponent == 1:
            powers = product(powers, power([opened(u) for u in only.args[0]], t.coefficient))
            continue
        result = times_factor(result, Factor("apply", "exp", args=[[t.like(coefficient=1)]],
                                             exponent=t.coefficient))
    return product([result], powers)


def logarithm(arg):
    if len(arg) != 1 or not arg[0].is_plain():
        common = common_exponentials(arg)
        if not common:
            return factor_sum(Factor("apply", "log", args=[arg]))
        result = logarithm(collected(divided(arg, 1, common)))
        for f in common:
            result = result + scaled([opened(t) for t in f.args[0]], f.exponent)
        return result
    rest, result = arg[0], []
    for f in rest.factors:
        even = f.exponent.denominator == 1 and f.exponent % 2 == 0
        if f.kind == "apply" and f.name == "exp":
            result += scaled([opened(t) for t in f.args[0]], f.exponent)
        elif len(rest.factors) == 1 and rest.coefficient == 1 and f.exponent != 1:
            base = factor_sum(f.like(exponent=1))
            if even:
                base = most([group(base), group(scaled(base, -1))])
            result += scaled(logarithm(base), f.exponent)
        else:
            continue
        rest = rest.like(factors=[g for g in rest.factors if g is not f])
    if not rest.factors and rest.coefficient == 1:
        return result
    return result + factor_sum(Factor("apply", "log", args=[[rest]]))


VALUES = {"sin": {0: 0}, "atan": {0: 0}, "tanh": {0: 0}, "erf": {0: 0}, "cos": {0: 1}, "log": {1: 0}}


def apply(fn, args):
    """A function of reals."""
    if fn == "add":
        return args[0] + args[1]
    if fn == "sub":
        return args[0] + scaled(args[1], -1)
    if fn == "neg":
        return scaled(args[0], -1)
    if fn == "mul":
        return product(args[0], args[1])
    if fn == "div":
        above, below = collected(args[0]), collected(args[1])
        if above and key(above) == key(below):
            return [Term()]
        return product(args[0], power(args[1], -1))
    if fn == "sqrt":
        return power(args[0], Fraction(1, 2))
    if fn == "abs":
        return most([group(args[0]), group(scaled(args[0], -1))])
    if fn == "max":
        return most([group(args[0]), group(args[1])])
    if fn == "min":
        return scaled(most([group(scaled(args[0], -1)), group(scaled(args[1], -1))]), -1)
    args = [collected(arg) for arg in args]
    if fn == "pow" and constant_of(args[1]) is not None:
        return power(args[0], constant_of(args[1]))
    if fn == "exp":
        return exponential(args[0])
    if fn == "log" and constant_of(args[0]) is None:
        return logarithm(args[0])
    truth = fn in ("less", "equal")
    if truth:  # of a difference with zero
        args = [collected(args[0] + scaled(args[1], -1))]
        if args[0] and constant_of(args[0]) is None:
            measure = 1 / content(args, "positive")[0]
            negative = fn == "equal" and leads_negative(args[0])
            args = [scaled(args[0], -measure if negative else measure)]
        found = compared(fn, args[0])
        if found is not None:
            return found
    if fn in ("floor", "round"):
        return rounded(fn, args[0])
    by = constant_of(args[1]) if fn == "mod" else None
    if by is not None and by > 0:
        return remainder(args[0], by)
    value = constant_of(args[0]) if len(args) == 1 else None
    if value in VALUES.get(fn, {}):
        return constant(VALUES[fn][value])
    sign = 1
    if (fn in ODD or fn == "cos") and leads_negative(args[0]):
        args, sign = [scaled(args[0], -1)], -1 if fn in ODD else 1
    return scaled(factor_sum(Factor("apply", fn, truth=truth, args=args)), sign)


def compared(fn, arg):
    """Whether a sum is below zero, or zero, where that is seen: a sum; else None."""
    def at(value):
        return int(value < 0 if fn == "less" else value == 0)
    no, rest = constant_of([t for t in arg if not t.factors]), [t for t in arg if t.factors]
    only = only_factor(rest)
    if no is not None and only is not None and only.truth and only.exponent == 1:  # c + k*t, where t is 0 or 1
        return constant(at(no)) + scaled([Term(factors=[only])], at(no + rest[0].coefficient) - at(no))
    found, wanted = signs.of(arg), -1 if fn == "less" else 0
    if found == {wanted} or wanted not in found:
        return constant(int(wanted in found))
    dim = dim_of(arg)
    if dim is None:
        return None
    return indicator([-dim - num(1)]) if fn == "less" else indicator([dim, -dim])


def dim_of(terms):
    """A sum of sizes and indices alone."""
    total = num(0)
    for t in terms:
        if not t.is_plain() or t.coefficient.denominator != 1:
            return None
        one = num(t.coefficient.numerator)
        for f in t.factors:
            if f.kind != "number" or f.exponent.denominator != 1 or not 0 < f.exponent <= MOST_FACTORS:
                return None
            for _ in range(f.exponent.numerator):
                one = one * f.at[0]
        total = total + one
    return total


def is_integer(t):
    return t.coefficient.denominator == 1 and all(is_integer_factor(f) for f in t.factors)


def is_integer_factor(f):
    if f.exponent.denominator != 1 or f.exponent < 0:
        return False
    if f.kind in ("read", "cast"):
        return f.to[0] in "iu" or f.to == "bool"
    if f.kind == "apply":
        return f.truth or f.name in ("floor", "round") or f.to == "i64"
    if f.kind == "most":
        return all(is_integer(t) for p in f.args[0] for t in value_of(p))
    return f.kind == "number" or (f.kind == "power" and all(map(is_integer, f.args[0])))


def rounded(fn, arg):
    """floor(a + n) = floor(a) + n for an integer n; round(-a) = -round(a)"""
    if all(map(is_integer, arg)):
        return arg
    whole = [t for t in arg if fn == "floor" and is_integer(t)]
    rest = [t for t in arg if fn != "floor" or not is_integer(t)]
    sign = -1 if fn == "round" and leads_negative(rest) else 1
    return whole + scaled(factor_sum(Factor("apply", fn, args=[scaled(rest, sign)])), sign)


def application(terms, fn):
    only = only_factor(terms)
    is_it = only is not None and only.kind == "apply" and only.name == fn and only.exponent == 1 and \
        terms[0].coefficient == 1
    return only if is_it else None


def remainder(arg, by):
    """mod(a + c*n, c) = mod(a, c) for an integer n; mod(mod(a, k*c), c) = mod(a, c)"""
    rest = [t for t in arg if not is_integer(t.like(coefficient=t.coefficient / by))]
    inner = application(rest, "mod")
    divisor = constant_of(inner.args[1]) if inner is not None else None
    if divisor and (divisor / by).denominator == 1:
        return remainder(inner.args[0], by)
    return factor_sum(Factor("apply", "mod", args=[rest, constant(by)])) if rest else []


def apply_to_integers(fn, args):
    args = [collected(a) for a in args]
    second = constant_of(args[1]) if len(args) > 1 else None
    if fn in ("shift_left", "shift_right") and second is not None and second.denominator == 1 and 0 <= second < 32:
        times = constant(Fraction(2) ** second)
        if fn == "shift_left":
            return product(args[0], times)
        if -1 not in signs.of(args[0]):
            return apply_to_integers("div", [args[0], times])
    if fn == "div":
        if second == 1:
            return args[0]
        inner = application(args[0], "div")
        first = constant_of(inner.args[1]) if inner is not None and inner.to == "i64" else None
        if first is not None and second is not None and first > 0 and second > 0:
            return apply_to_integers("div", [inner.args[0], constant(first * second)])
    elif fn in ("not", "and", "or", "xor"):
        return of_bits(fn, args)
    elif fn != "pow" or (second is not None and second >= 0):
        return apply(fn, args)
    return factor_sum(Factor("apply", fn, to="i64", args=args))


def bits(terms):
    """The type whose bits a number has: an element, a function of bits, or all bits less those; else None."""
    if len(terms) == 2:
        number, rest = sorted(terms, key=lambda t: len(t.factors))
        to = bits([rest.like(coefficient=-rest.coefficient)]) if not number.factors and number.is_plain() else None
        return to if to is not None and number.coefficient == all_bits(to) else None
    f = only_factor(terms)
    if f is None or f.exponent != 1 or terms[0].coefficient != 1:
        return None
    if f.kind in ("read", "cast"):
        return f.to if f.to in ("i8", "i16", "i32", "i64", "u8", "u16", "u32") else None
    if f.kind != "apply" or f.name not in ("and", "xor"):
        return None
    return bits(f.args[0]) if bits(f.args[0]) == bits(f.args[1]) else None


def all_bits(to):
    return -1 if to[0] == "i" else 2 ** WIDE[to] - 1


def of_bits(fn, args):
    """Functions of the bits of integers."""
    kept = factor_sum(Factor("apply", fn, to="i64", args=sorted(args, key=key)))
    if fn == "not":
        to = bits(args[0])
        return kept if to is None else constant(all_bits(to)) + scaled(args[0], -1)
    if key(args[0]) == key(args[1]):
        return [] if fn == "xor" else args[0]
    if fn == "or":
        return args[0] + args[1] + scaled(of_bits("and", args), -1)
    for one, other in (args, args[::-1]):
        inner = application(one, fn)
        for k in (0, 1):
            if inner is not None and key(inner.args[k]) == key(other):
                return [opened(t) for t in inner.args[1 - k]] if fn == "xor" else one
        if fn == "and" and len(one) == 2 and bits(one) is not None and bits(one) == bits(other):
            complement = [t.like(coefficient=1) for t in one if t.factors]
            return other + scaled(of_bits("and", [complement, other]), -1)
    return kept


def fits(source, to):
    """Whether every number of a type is one of another."""
    if source == to or source == "bool":
        return True
    width = (WIDE[source] + 7) // 8, (WIDE[to] + 7) // 8
    if to[0] in "fb" and to != "bool":
        return width[1] > 2 if source == "f8e8m0" else width[0] < width[1] and to != "bf16"
    unsigned, signed = source in ("u8", "u16", "u32"), source in ("i8", "i16", "i32")
    if to in ("i16", "i32", "i64"):
        return (unsigned or signed) and width[0] < width[1]
    return unsigned and to in ("u16", "u32", "u64") and width[0] < width[1]


def holds(to, value):
    """Whether a type has this integer."""
    if to in ("f16", "bf16"):
        return abs(value) <= (2048 if to == "f16" else 256)
    if to[0] == "u":
        return 0 <= value < 2 ** WIDE[to]
    return to[0] == "i" and -2 ** (WIDE[to] - 1) <= value < 2 ** (WIDE[to] - 1)


def cast(to, arg):
    arg = collected(arg)
    value = constant_of(arg)
    if value is not None and value.denominator == 1 and holds(to, value):
        return arg
    only = only_factor(arg)
    if only is not None and arg[0].coefficient == 1 and only.exponent == 1:
        if only.kind in ("read", "cast") and only.to and fits(only.to, to):
            return arg
    return factor_sum(Factor("cast", to=to, args=[arg]))


# --- the normal form


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
        return power(most(args[0]), f.exponent)
    if f.kind == "cast":
        return power(cast(f.to, args[0]), f.exponent)
    if f.kind == "apply":
        if f.truth:
            args.append([])
        made = apply_to_integers(f.name, args) if f.to == "i64" else apply(f.name, args)
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
            result = product(result, apply("exp", [scaled(total, f.exponent)]))
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
