"""Terms and factors of sums of products: keys, renaming, substitution.

    sum over bound where guards >= 0: coefficient * factor^exponent * ...

`key` is a text that two sums share if they are the same up to the names of bound variables and the order of terms and
factors.
"""
from fractions import Fraction
from itertools import count, permutations

from sizes import Refused, sym

WIDE = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "u8": 8,
        "u16": 16, "u32": 32, "u64": 64, "bool": 1, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e5m2": 8,
        "f8e5m2fnuz": 8, "f8e8m0": 8, "f4e2m1": 4, "i4": 4, "u4": 4, "i2": 2, "u2": 2}
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


def in_order(terms):
    """Terms in an order that does not hang on the names of variables as long as others tell them apart."""
    blank = {v: "?" for t in terms for v in t.free()}
    return sorted(terms, key=lambda t: (body_key(t, blank), t.body()))


def value_of(piece):
    return piece.factors[0].args[0]


def only_factor(terms):
    """The factor, if the sum is a number times that."""
    if len(terms) == 1 and terms[0].is_plain() and len(terms[0].factors) == 1:
        return terms[0].factors[0]
    return None
