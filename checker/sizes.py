"""Arithmetic on sizes and indices: polynomials with integer coefficients over atoms.

An atom is a symbol, which stands for an integer >= 0, or an operation (floor_div, mod, min, max)
that did not simplify. Undefined sizes do not exist here: what has none is refused.
"""


class Refused(Exception):
    """The certificate is not accepted; the message says why."""


def require(condition, why):
    if not condition:
        raise Refused(why)


class Atom:
    __slots__ = ("op", "name", "a", "b", "key")

    def __init__(self, op, name="", a=None, b=None):
        self.op, self.name, self.a, self.b = op, name, a, b
        self.key = repr(name) if op == "symbol" else f"{op}({a.key}, {b.key})"


class Dim:
    """Monomials (tuples of atoms, in the order of their keys) and their coefficients."""

    __slots__ = ("terms", "key", "_symbols")

    def __init__(self, terms):
        self.terms = {atoms: c for atoms, c in terms.items() if c != 0}
        if sum(len(atoms) for atoms in self.terms) > 3000:
            raise Refused("a size grows too large")
        parts = sorted(("*".join(a.key for a in atoms), c) for atoms, c in self.terms.items())
        self.key = " + ".join(f"{c}*{name}" if name else str(c) for name, c in parts) or "0"
        self._symbols = None

    def __eq__(self, other):
        return self.key == other.key

    def __hash__(self):
        return hash(self.key)

    def constant(self):
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def symbols(self):
        if self._symbols is None:
            found = set()
            for atoms in self.terms:
                for atom in atoms:
                    if atom.op == "symbol":
                        found.add(atom.name)
                    else:
                        found |= atom.a.symbols() | atom.b.symbols()
            self._symbols = frozenset(found)
        return self._symbols

    def symbol(self):
        """The name, if this is a bare symbol."""
        atom = self.atom()
        return atom.name if atom is not None and atom.op == "symbol" else None

    def atom(self):
        if len(self.terms) != 1:
            return None
        (atoms, c), = self.terms.items()
        return atoms[0] if c == 1 and len(atoms) == 1 else None

    def __add__(self, other):
        terms = dict(self.terms)
        for atoms, c in other.terms.items():
            terms[atoms] = terms.get(atoms, 0) + c
        return merged(terms)

    def __neg__(self):
        return Dim({atoms: -c for atoms, c in self.terms.items()})

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        terms = {}
        for x, c in self.terms.items():
            for y, d in other.terms.items():
                atoms = tuple(sorted(x + y, key=lambda atom: atom.key))
                terms[atoms] = terms.get(atoms, 0) + c * d
        return merged(terms)

    def least(self):
        """A lower bound, or None: symbols are >= 0."""
        total = 0
        for atoms, c in self.terms.items():
            product = c
            for atom in atoms:
                low = atom_least(atom)
                if c <= 0 or low is None or (low < 0 and len(atoms) > 1):
                    return None
                product *= low
            total += product
        return total

    def never_negative(self):
        low = self.least()
        return low is not None and low >= 0

    def mapped(self, change):
        """With each atom replaced by what `change` makes of it; None: its sides are changed."""
        total = num(0)
        for atoms, c in self.terms.items():
            value = num(c)
            for atom in atoms:
                other = change(atom)
                if other is None:
                    other = of_atom(atom) if atom.op == "symbol" else OPERATIONS[atom.op](
                        atom.a.mapped(change), atom.b.mapped(change))
                value = value * other
            total = total + value
        return total

    def substituted(self, values):
        if self.symbols().isdisjoint(values):
            return self
        return self.mapped(lambda a: values.get(a.name) if a.op == "symbol" else None)

    def replaced(self, atom, by):
        return self.mapped(lambda a: by if a.key == atom.key else None)

    def operations(self):
        for atoms in self.terms:
            for atom in atoms:
                if atom.op != "symbol":
                    yield atom
                    yield from atom.a.operations()
                    yield from atom.b.operations()

    def evaluated(self, sizes):
        total = 0
        for atoms, c in self.terms.items():
            for atom in atoms:
                c *= atom_value(atom, sizes)
            total += c
        return total


def merged(terms):
    """Equal atoms may be different objects: monomials are told apart by their keys."""
    by_key, result = {}, {}
    for atoms, c in terms.items():
        same = by_key.setdefault(tuple(a.key for a in atoms), atoms)
        result[same] = result.get(same, 0) + c
    return Dim(result)


def atom_least(atom):
    if atom.op == "symbol":
        return 0
    a, b = atom.a.least(), atom.b.least()
    if atom.op == "floor_div":
        if a is None or b is None or b < 0:
            return None
        return 0 if a >= 0 else a // max(b, 1)
    if atom.op == "mod":
        return 0 if b is not None and b >= 0 else None
    if atom.op == "min":
        return min(a, b) if a is not None and b is not None else None
    return max((x for x in (a, b) if x is not None), default=None)


def atom_value(atom, sizes):
    if atom.op == "symbol":
        if atom.name not in sizes:
            raise Refused(f"{atom.name} has no value")
        return sizes[atom.name]
    a, b = atom.a.evaluated(sizes), atom.b.evaluated(sizes)
    if atom.op in ("floor_div", "mod"):
        if b == 0:
            raise Refused("a size is divided by zero")
        return a // b if atom.op == "floor_div" else a % b
    return min(a, b) if atom.op == "min" else max(a, b)


def num(value):
    return Dim({(): value})


def sym(name):
    return of_atom(Atom("symbol", name))


def of_atom(atom):
    return Dim({(atom,): 1})


def floor_div(a, b):
    if b.constant() == 0:
        raise Refused("a size is divided by zero")
    if b.constant() == 1 or a.constant() == 0:
        return a
    if a.constant() is not None and b.constant() is not None:
        return num(a.constant() // b.constant())
    # Multiples of a divisor of one term leave: (k*x + r)/k = x + r/k.
    if len(b.terms) == 1 and next(iter(b.terms.values())) > 0:
        (divisor, c), = b.terms.items()
        quotient, rest = num(0), num(0)
        for atoms, k in a.terms.items():
            left = without(atoms, divisor)
            if left is not None and k % c == 0:
                quotient = quotient + Dim({left: k // c})
            elif left is not None and not atoms:
                quotient, rest = quotient + num(k // c), rest + num(k % c)
            else:
                rest = rest + Dim({atoms: k})
        if not rest.terms:
            return quotient
        if quotient.terms:
            return quotient + floor_div(rest, b)
    # (x/c)/b = x/(c*b) for positive numbers.
    inner = a.atom()
    if inner is not None and inner.op == "floor_div" and (inner.b.constant() or 0) > 0 and (b.constant() or 0) > 0:
        return floor_div(inner.a, inner.b * b)
    return of_atom(Atom("floor_div", "", a, b))


def without(atoms, divisor):
    """The product without the atoms of another; None where it has not all of them."""
    left = list(atoms)
    for atom in divisor:
        here = next((i for i, x in enumerate(left) if x.key == atom.key), None)
        if here is None:
            return None
        del left[here]
    return tuple(left)


def mod(a, b):
    quotient = floor_div(a, b)
    atom = Atom("floor_div", "", a, b)
    if quotient.key != of_atom(atom).key:
        return a - quotient * b
    return of_atom(Atom("mod", "", a, b))


def extreme(op, a, b):
    below, above = (a, b) if op == "min" else (b, a)
    if (b - a).never_negative():
        return below
    if (a - b).never_negative():
        return above
    return of_atom(Atom(op, "", *sorted((a, b), key=lambda side: side.key)))


OPERATIONS = {
    "floor_div": floor_div,
    "mod": mod,
    "min": lambda a, b: extreme("min", a, b),
    "max": lambda a, b: extreme("max", a, b),
    "ceil_div": lambda a, b: -floor_div(-a, b),
}
