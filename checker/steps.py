"""Replays proofs: applies each inference to the sums that the certificate prints, and compares."""
from fractions import Fraction

import equal
import expressions
import functions
import signs
import sums
from definitions import SORTS
from elements import Tensor, element, element_factor, constant_of_file, shape_of, solved
from expressions import Term, key, number
from reader import Reader
from sizes import Refused, num, of_atom, require, sym
from sums import normal, product


def is_shown(e, reasons, which, premises):
    """Whether a reason shows that e >= 0: scale * e + scale - 1 less multiples of premises is a sum
    without a negative part, where the scale and the multipliers are not negative."""
    if which >= len(reasons):
        return False
    scale, multiples = reasons[which]
    if not scale.never_negative():
        return False
    rest = scale * e + scale - num(1)
    for premise, often in multiples:
        if not 0 <= premise < len(premises) or not often.never_negative():
            return False
        rest = rest - often * premises[premise]
    return rest.never_negative()


def facts_of(certificate):
    facts = [e for condition in certificate.facts for e in condition]
    for tensor in certificate.inputs:
        for size in tensor.shape:
            if size.constant() is not None:
                continue
            positive = [size]
            if len(size.terms) == 1:
                positive += [sym(a.name) for a in next(iter(size.terms)) if a.op == "symbol"]
            for e in positive:
                if not (e - num(1)).never_negative() and e - num(1) not in facts:
                    facts.append(e - num(1))
    return facts


def are_equal(a, b, facts):
    return a == b or (a - b in facts and b - a in facts)


def tensors_of(certificate, facts):
    """All tensors by name, with their types; what does not fit is refused."""
    tensors = {}
    for i in certificate.inputs:
        for size in i.shape:
            for name in size.symbols():
                require(name[0] not in "%#", f"no size may be called {name}")
        require(not i.name.startswith("%") and i.name not in tensors, f"{i.name} is given twice")
        tensors[i.name] = Tensor(i.name, i.dtype, i.shape, i.uniform, None, {}, [])
    for value in certificate.values:
        require(not value.name.startswith("%") and value.name not in tensors, f"{value.name} is made twice")
        tensors[value.name] = computed_tensor(value, tensors, facts)
    return tensors


def computed_tensor(value, tensors, facts):
    """The tensor that a definition makes of others; what does not fit it is refused."""
    operands = []
    for name in value.operands:
        require(name in tensors, f"{name} is not known")
        operands.append(tensors[name])
    definition = value.definition
    require(len(operands) == len(definition.inputs) and 0 <= value.output < len(definition.outputs),
            f"{value.name} does not fit its definition")
    for given, wanted in zip(operands, definition.inputs):
        require(given.dtype == wanted.dtype and len(given.shape) == len(wanted.shape),
                f"the type of an operand of {value.name} does not fit")
    sizes = solved(definition, [t.shape for t in operands])
    for given, wanted in zip(operands, definition.inputs):
        for size, pattern in zip(given.shape, wanted.shape):
            require(are_equal(pattern.substituted(sizes), size, facts),
                    f"a size of an operand of {value.name} does not fit")
    output = definition.outputs[value.output]
    require(SORTS[output.dtype] == output.value.sort, f"the type of {value.name} does not fit")
    shape = shape_of(output, sizes)
    require(not any(s.startswith("#") for size in shape for s in size.symbols()), "an axis has no size")
    require(all((size.constant() or 0) >= 0 for size in shape), "a size is negative")
    return Tensor(value.name, output.dtype, shape, None, value, sizes, value.operands)


class Site:
    """A term of a side, what may be used there, and what surrounds it."""

    def __init__(self, terms, place, premises, within="sum", at=0):
        require(at < len(place) and place[at] < len(terms), "there is no such place")
        self.term, self.within, self.inner = terms[place[at]], within, None
        premises = [num(0) if not p.symbols().isdisjoint(self.term.bound) else p for p in premises]
        self.premises, self.own = premises + list(self.term.guards), len(premises)
        if at + 1 == len(place):
            return
        require(at + 2 < len(place), "the place ends in a factor")
        which, arg = place[at + 1], place[at + 2]
        require(which < len(self.term.factors) and arg < len(self.term.factors[which].args),
                "there is no such place")
        kind = self.term.factors[which].kind
        inner = Site(self.term.factors[which].args[arg], place, self.premises,
                     kind if kind in ("most", "fold") else "sum", at + 3)
        self.term, self.within, self.premises, self.own = inner.term, inner.within, inner.premises, inner.own


def edited(terms, place, made, at=0):
    """The sum with the term at a place replaced."""
    term = terms[place[at]]
    if at + 1 < len(place):
        which, arg = place[at + 1], place[at + 2]
        f = term.factors[which]
        args = list(f.args)
        args[arg] = edited(args[arg], place, made, at + 3)
        factors = list(term.factors)
        factors[which] = f.like(args=args)
        made = [term.like(factors=factors)]
    return list(terms[:place[at]]) + made + list(terms[place[at] + 1:])


def is_of_fold(f):
    return (f.kind == "read" and f.name.startswith("%")) or any(
        is_of_fold(g) for arg in f.args for t in arg for g in t.factors)


def has_bottom(f):
    return f.kind == "bottom" or any(has_bottom(g) for arg in f.args for t in arg for g in t.factors)


def is_divided_by(side, of):
    """Whether a term that is there whatever the conditions are divides by a sum."""
    def base(f):
        return key(f.args[0]) if f.kind == "power" else key([Term(factors=[f.like(exponent=1)])])
    return any(f.exponent < 0 and base(f) == key(of) for t in side for f in t.factors
               if t.is_plain() and not any(g.truth for g in t.factors))


def partial(terms, bound=(), guards=()):
    """What is not defined everywhere: divisors, arguments of roots and logarithms, and minus infinity,
    each with the guards under which it has to be."""
    for t in terms:
        inner, around = bound + t.bound, guards + t.guards
        for f in t.factors:
            root, base = f.exponent.denominator != 1, signs.of_base(f, ())
            if f.kind == "bottom" or (f.exponent < 0 and base != signs.POSITIVE) or (root and -1 in base) or \
                    (f.kind == "apply" and f.name == "log" and signs.of(f.args[0]) != signs.POSITIVE):
                yield f, inner, around
            for arg in f.args:
                yield from partial(arg, inner, around)


def place_of(f, bound, guards):
    """A key of what is partial, and those of its guards, up to the names of bound variables."""
    what = f if f.kind in ("bottom", "apply") else f.like(exponent=Fraction(-1 if f.exponent < 0 else Fraction(1, 2)))
    own = [v for v in bound if v in f.free()]
    names = {**dict.fromkeys(bound, "?"), **expressions.by_use(Term(bound=own, factors=[what]), {})}
    return expressions.factor_key(what, names), {expressions.dim_key(g, names) for g in guards if not g.never_negative()}


def are_defined(terms, made):
    """Whether a sum is defined wherever another one is of which it is said to be the normal form. A sum that
    is divided by, and that goes by normalising, would else bring in that it is not zero."""
    def is_there(one):
        key_of, guards = place_of(*one)
        return any(key_of == other and around <= guards for other, around in there)
    asked, there = list(partial(terms)), None
    if not asked:
        return True
    there = [place_of(*one) for one in partial(made)]
    if all(map(is_there, asked)):
        return True

    def by_facts(one):
        f, bound, guards = one
        return [(g, bound + b, guards + around) for g, b, around in partial(normal([Term(factors=[f])]))]
    there += [place_of(*other) for one in partial(made) for other in by_facts(one)]
    there += [place_of(*one) for one in partial(normal(made))]
    return all(is_there(one) or all(map(is_there, by_facts(one))) for one in asked)


def replaced_atom(term, atom, by):
    """With an operation on sizes replaced, where it means the same."""
    spoken = by.symbols() | atom.a.symbols() | atom.b.symbols()

    def factor(f):
        return f.like(at=[d.replaced(atom, by) for d in f.at], args=[
            [t if set(t.bound) & spoken else inner(t) for t in arg] for arg in f.args])

    def inner(t):
        return t.like(guards=[g.replaced(atom, by) for g in t.guards], factors=[factor(f) for f in t.factors])
    return inner(term)


class Goal:
    """Two sums that have to become the same."""

    def __init__(self, checker, sides, facts, known=()):
        self.checker, self.sides, self.facts = checker, sides, facts
        self.known = list(known)  # sums and their signs in the case that this is

    def replay(self, proof):
        for i, step in enumerate(proof):
            try:
                self.apply(step)
            except Refused as refused:
                raise Refused(f"step {i}, {step.kind}: {refused}") from None
            except RecursionError:
                raise Refused(f"step {i}, {step.kind}: it is nested too deeply") from None
        require(self.same(*self.sides) or equal.are_equal(*self.sides), "the proof does not end in equal sums")
        for side in self.sides:
            loose = {s for t in side for s in t.free() if s[0] == "%" and s[1:2].isdigit()}
            require(not loose, "a variable is spoken of that nothing binds")

    def same(self, a, b):
        """What a simplification makes may simplify again: a few rounds."""
        for _ in range(4):
            a, b = normal(a), normal(b)
            if key(a) == key(b):
                return True
        return False

    def stated(self, text, made, why):
        """The sum that the certificate states, if it is the one that was made."""
        terms = self.checker.sum(text)
        require(self.same(terms, made), why)
        require(are_defined(terms, made), "a sum is stated that has to be defined where the other does not")
        return terms

    def apply(self, step):
        if step.kind == "divide" and not step.place:
            return self.divide_position(step)
        site = Site(self.sides[step.side], step.place, self.facts)
        if step.kind in ("cases", "signs"):
            require(not step.results, "cases end a proof")
            self.prove(step, self.cases(site, step.item) if step.kind == "cases" else self.signs(site, step))
            self.sides = [[], []]
            return None
        require(site.within != "fold" or step.kind in ("drop", "settle"), "this is not for folds")
        made = getattr(self, step.kind)(step, site)
        require(len(step.results) == 1, "the result is not stated")
        self.sides[step.side] = self.stated(step.results[0], edited(self.sides[step.side], step.place, made),
                                            "another sum is made than is stated")
        return None

    def prove(self, step, goals):
        """Goals are their sides, what holds of sizes, and signs that are known."""
        require(len(step.parts) == len(goals) == len(step.goals), f"there are {len(goals)} obligations")
        for (sides, facts, known), texts, part in zip(goals, step.goals, step.parts):
            sides = [self.stated(text, side, "an obligation is another one") for text, side in zip(texts, sides)]
            Goal(self.checker, sides, facts, known).replay(part)

    # --- the inferences; each gives the sum that takes the place of a term

    def unfold(self, step, site):
        require(step.item < len(site.term.factors), "there is no such factor")
        f = site.term.factors[step.item]
        tensor = self.checker.tensors.get(f.name) if f.kind == "read" else None
        require(tensor is not None and tensor.value is not None, "it is not computed")
        made = element(self.checker.tensors, tensor, f.at, self.checker.named)
        return product([without(site.term, step.item)], sums.power(made, f.exponent))

    def split(self, step, site):
        require(len(step.dims) == 1, "one condition is needed")
        return [site.term.like(guards=site.term.guards + (e,))
                for e in (step.dims[0], -step.dims[0] - num(1))]

    def void(self, step, site):
        require(is_shown(num(-1), step.reasons, 0, site.premises), "the guards do not contradict each other")
        return []

    def drop(self, step, site):
        require(step.item < len(site.term.guards) and len(step.reasons) == 1, "there is no such guard")
        require(all(premise != site.own + step.item for premise, _ in step.reasons[0][1]) and
                is_shown(site.term.guards[step.item], step.reasons, 0, site.premises), "it does not follow")
        return [site.term.like(guards=[g for i, g in enumerate(site.term.guards) if i != step.item])]

    def tighten(self, step, site):
        require(step.item < len(site.term.guards) and len(step.dims) == 1, "two guards are needed")
        require(is_shown(step.dims[0], step.reasons, 0, site.premises), "the new guard does not follow")
        others = list(site.premises)
        others[site.own + step.item] = step.dims[0]
        require(is_shown(site.term.guards[step.item], step.reasons, 1, others), "the old one does not follow")
        guards = list(site.term.guards)
        guards[step.item] = step.dims[0]
        return [site.term.like(guards=guards)]

    def variable(self, step, site):
        require(step.item < len(site.term.bound), "there is no such variable")
        name = site.term.bound[step.item]
        require(len(step.dims) == 1 and name not in step.dims[0].symbols(), "a value is needed")
        return name, step.dims[0]

    def substituted(self, term, name, value):
        """The term with a variable, no longer bound, replaced; the value may speak of the others."""
        made = expressions.substituted(term.like(bound=()), {name: value})
        return [made.like(bound=[b for b in term.bound if b != name])]

    def solve(self, step, site):
        name, value = self.variable(step, site)
        guards = list(site.term.guards)
        for e in (sym(name) - value, value - sym(name)):
            if not e.never_negative():
                require(e in guards, f"{name} is not pinned down")
                guards.remove(e)
        outside = site.term.like(guards=guards + [value])
        return self.substituted(outside, name, value)

    def pin(self, step, site):
        require(len(step.dims) == 2 and step.dims[0].symbol(), "a variable and its value are needed")
        name, value = step.dims[0].symbol(), step.dims[1]
        require(name not in value.symbols() and name not in site.term.bound, "it is bound")
        difference = step.dims[0] - value
        require(is_shown(difference, step.reasons, 0, site.premises) and
                is_shown(-difference, step.reasons, 1, site.premises), "it may have other values")
        made, = self.substituted(site.term, name, value)
        return [made.like(guards=made.guards + (difference, -difference))]

    def shift(self, step, site):
        name, value = self.variable(step, site)
        require(is_shown(sym(name) - value, step.reasons, 0, site.premises), "it may be less")
        made, = self.substituted(site.term.like(guards=site.term.guards + (sym(name),)), name, sym(name) + value)
        return [made.like(bound=made.bound + (name,))]

    def reverse(self, step, site):
        name, last = self.variable(step, site)
        require(last - sym(name) in site.term.guards, "it may be larger")
        made, = self.substituted(site.term.like(guards=site.term.guards + (sym(name),)), name, last - sym(name))
        return [made.like(bound=made.bound + (name,))]

    def divide(self, step, site):
        name, size = self.variable(step, site)
        require(is_shown(size - num(1), step.reasons, 0, site.premises), "the size may be less than 1")
        multiple, rest = expressions.fresh(), expressions.fresh()
        made, = self.substituted(site.term, name, sym(multiple) * size + sym(rest))
        return [made.like(bound=made.bound + (multiple, rest), guards=made.guards + (size - num(1) - sym(rest),))]

    def divide_position(self, step):
        require(len(step.dims) == 2 and len(step.reasons) == 1, "a position and a size are needed")
        position, size = step.dims[0].symbol(), step.dims[1]
        require(position is not None and position.startswith("%i") and position not in size.symbols(),
                "a position is needed")
        require(is_shown(size - num(1), step.reasons, 0, self.facts), "the size may be less than 1")
        require(any(position in f.symbols() for f in self.facts), "it is no position any more")
        multiple, rest = sym(position + "a"), sym(position + "b")
        values = {position: multiple * size + rest}
        self.facts = [f.substituted(values) for f in self.facts] + [size - num(1) - rest]
        require(len(step.results) == 2, "the results are not stated")
        self.sides = [self.stated(text, [expressions.substituted(t, values) for t in side],
                                  "another sum is made than is stated")
                      for text, side in zip(step.results, self.sides)]

    def operation(self, step, site):
        atom = step.dims[0].atom() if step.dims else None
        require(atom is not None and atom.op != "symbol", "an operation is needed")
        for _, multiples in step.reasons:
            for premise, _ in multiples:
                require(0 <= premise < len(site.premises) and all(
                    a.key != atom.key for a in site.premises[premise].operations()), "a premise speaks of it")
        return atom

    def settle(self, step, site):
        atom = self.operation(step, site)
        a, b = atom.a, atom.b
        require(len(step.dims) == 2, "a value is needed")
        value = step.dims[1]
        if atom.op in ("min", "max"):
            require(value in (a, b), "one of both sides is needed")
            difference = b - a if value == a else a - b
            require(is_shown(difference if atom.op == "min" else -difference, step.reasons, 0, site.premises),
                    "the order is not known")
            return [replaced_atom(site.term, atom, value)]
        require(is_shown(b - num(1), step.reasons, 0, site.premises) and
                is_shown(a - b * value, step.reasons, 1, site.premises) and
                is_shown(b * value + b - num(1) - a, step.reasons, 2, site.premises), "it is not the quotient")
        return [replaced_atom(site.term, atom, a - b * value if atom.op == "mod" else value)]

    def quotient(self, step, site):
        atom = self.operation(step, site)
        a, b = atom.a, atom.b
        require(atom.op in ("floor_div", "mod"), "a quotient is needed")
        require(is_shown(b - num(1), step.reasons, 0, site.premises) and
                is_shown(a, step.reasons, 1, site.premises), "what is divided may be negative")
        q = sym(expressions.fresh())
        made = replaced_atom(site.term, atom, a - b * q if atom.op == "mod" else q)
        return [made.like(bound=made.bound + (q.symbol(),),
                          guards=made.guards + (a - b * q, b * q + b - num(1) - a))]

    def count(self, step, site):
        require(step.item < len(site.term.bound), "there is no such variable")
        name = site.term.bound[step.item]
        limits = [g + sym(name) for g in site.term.guards if name in g.symbols()]
        require(len(limits) == 1 and name not in limits[0].symbols(), "it has several limits")
        rest = site.term.like(bound=[b for b in site.term.bound if b != name],
                              guards=[g for g in site.term.guards if name not in g.symbols()])
        require(not rest.mentions(name), "it is spoken of")
        others = [num(0) if name in p.symbols() else p for p in site.premises]
        in_most = site.within == "most"
        needed = limits[0] if in_most else limits[0] + num(1)
        require(len(step.reasons) == 1 and is_shown(needed, step.reasons, 0, others), "it may have no value")
        return [rest] if in_most else product([rest], number(limits[0] + num(1)))

    def attain(self, step, site):
        term = site.term
        require(site.within == "most" and len(step.dims) == len(term.bound), "a maximum is needed")
        for name in term.bound:
            require(all(name not in d.symbols() for d in step.dims) and
                    name not in term.factors[0].free(), "it is spoken of")
        values, outside = dict(zip(term.bound, step.dims)), site.premises[:site.own]
        needed, kept = list(step.dims), []
        for guard in term.guards:
            at = guard.substituted(values)
            (kept if at == guard else needed).append(at)
        require(len(step.reasons) == len(needed) and all(
            is_shown(e, step.reasons, i, outside) for i, e in enumerate(needed)), "a value is out of range")
        return [term.like(bound=(), guards=kept)]

    def cases(self, site, which):
        """Both sides where a maximum is the first, the second, … of what it is taken of."""
        require(which < len(site.term.factors) and site.term.factors[which].kind == "most", "there is no maximum")
        most = site.term.factors[which].like(exponent=1)
        loose = {s for s in most.free() if s[0] == "%" and s[1:2].isdigit()}
        require(not loose and not is_of_fold(most), "the maximum hangs on a bound variable")
        pieces = most.args[0]
        require(all(not p.bound and not p.guards for p in pieces), "the maximum is over a range")
        target = key(normal([Term(factors=[most])]))
        values = [p.factors[0].args[0] for p in pieces]
        least = None
        if len(pieces) == 2:
            least = key(normal(expressions.scaled(functions.apply("min", values), -1)))
        goals = []
        for i, value in enumerate(values):
            def put_in(f, value=value, i=i):
                this = key(normal([Term(factors=[f.like(exponent=1)])])) if f.kind == "most" else None
                if this == target:
                    return value
                if this is not None and this == least:
                    return expressions.scaled(values[1 - i], -1)
                return None
            sides = self.sides
            for _ in range(4):
                sides = [normal(sums.changed(normal(side), put_in)) for side in sides]
            goals.append((sides, self.facts, self.known))
        return goals

    def signs(self, site, step):
        """Both sides where a sum is below, at and above zero, as far as it may be."""
        require(step.item < len(site.term.factors), "there is no such factor")
        chosen = site.term.factors[step.item].like(exponent=1)
        if chosen.kind == "most":
            which = [d.constant() for d in step.dims]
            require(len(which) == 2 and all(i is not None and 0 <= i < len(chosen.args[0]) for i in which),
                    "two parts of the maximum are needed")
            parts = [chosen.args[0][i] for i in which]
            require(all(p.is_plain() for p in parts), "the part is over a range")
            of = expressions.value_of(parts[0]) + expressions.scaled(expressions.value_of(parts[1]), -1)
        else:
            require(chosen.truth, "the factor is neither a maximum nor 0 or 1")
            of = chosen.args[0] if chosen.kind == "apply" else [Term(factors=[chosen])]
        of = normal(of)
        factors = [f for t in of for f in t.factors]
        loose = {s for t in of for s in t.free() if s[0] == "%" and s[1:2].isdigit()}
        require(not loose and not any(is_of_fold(f) or has_bottom(f) for f in factors), "the sum hangs on more")
        may = signs.of(of, self.known)
        if any(is_divided_by(normal(side), of) for side in self.sides):
            may = may - {0}
        goals = []
        for one in sorted(may):
            known = self.known + [(of, one)]
            goals.append(([signs.decided(side, known) for side in self.sides], self.facts, known))
        return goals

    def induct(self, step, site):
        """A fold is H: H of each component is read off the goals, and shown for 1 and k + 1."""
        require(step.item < len(site.term.factors) and site.term.factors[step.item].kind == "fold",
                "there is no fold")
        fold = site.term.factors[step.item]
        require("%k" not in fold.free(), "one induction at a time")
        run, = fold.args[0]
        require(len(run.bound) == 1 and len(run.guards) == 1, "the fold has no plain range")
        name, components = run.bound[0], len(run.factors)
        last = run.guards[0] + sym(name)
        require(name not in last.symbols(), "the fold has no plain range")
        require(is_shown(last, step.reasons, 0, site.premises), "the fold may take in nothing")
        require(len(step.goals) == 2 * components, "each component has two obligations")
        after = [self.checker.sum(step.goals[2 * c + 1][1]) for c in range(components)]
        require(all(are_defined(form, [Term(factors=[fold])]) for form in after), "a closed form may be undefined")

        def form(c, steps):  # H(steps), of H(k + 1)
            return [expressions.substituted(t, {"%k": steps - num(1)}) for t in after[c]]

        def lift(c, at):
            return [expressions.substituted(t, {name: at}) for t in run.factors[c].args[0]]

        def combined(c, left, right):
            def put_in(f):
                if f.kind == "read" and f.name[:2] in ("%L", "%R"):
                    return (left if f.name[1] == "L" else right)[int(f.name[2:])]
                return None
            return sums.changed(fold.args[1 + components + c], put_in)
        k, goals, everything = sym("%k"), [], range(components)
        first = [lift(c, num(0)) for c in everything], [fold.args[1 + c] for c in everything]
        for c in everything:
            goals.append(((combined(c, first[1], first[0]), form(c, num(1))), site.premises, self.known))
            goals.append(((combined(c, [form(d, k) for d in everything], [lift(d, k) for d in everything]),
                           form(c, k + num(1))), site.premises + [k - num(1)], self.known))
        self.prove(step, goals)
        made = form(fold.component, last + num(1))
        return product([without(site.term, step.item)], sums.power([expressions.opened(t) for t in made], fold.exponent))


def without(term, factor):
    return term.like(factors=[f for i, f in enumerate(term.factors) if i != factor])


class Replay:
    """All pairs of a certificate."""

    def __init__(self, certificate):
        self.certificate, self.named = certificate, certificate.named_reals
        doubles = [i for i in certificate.inputs if i.dtype == "f64"] + \
            [o for v in certificate.values for o in v.definition.outputs if o.dtype == "f64"]
        require(not (self.named and doubles), "constants of doubles are named")
        self.facts = facts_of(certificate)
        for fact in self.facts:
            require(not any(s[0] in "%#" for s in fact.symbols()), "a fact speaks of a position")
        self.tensors = tensors_of(certificate, self.facts)
        self.types = {name: t.dtype for name, t in self.tensors.items()}

    def sum(self, text):
        reader = Reader(text)
        terms = reader.sum(self.types)
        require(reader.peek().kind == "end", "a sum does not end")
        return terms

    def check(self):
        require(self.certificate.pairs, "it claims nothing: there is no pair")
        for (left, right), proof in zip(self.certificate.pairs, self.certificate.proofs):
            self.goal(left, right).replay(proof)

    def goal(self, left, right):
        require(left in self.tensors and right in self.tensors, "a pair names no tensor")
        a, b = self.tensors[left], self.tensors[right]
        require(a.dtype == b.dtype and len(a.shape) == len(b.shape), "the types of a pair differ")
        facts, at = list(self.facts), []
        for axis, (x, y) in enumerate(zip(a.shape, b.shape)):
            require(are_equal(x, y, self.facts), "the shapes of a pair differ")
            at.append(num(0) if x.constant() == 1 else sym(f"%i{axis}"))
            facts.append(x - num(1) - at[-1])
            for atom in x.operations():
                if atom.op == "floor_div" and (atom.b.constant() or 0) >= 1:
                    whole = of_atom(atom)
                    for e in (atom.a - atom.b * whole, atom.b * whole + atom.b - num(1) - atom.a):
                        if e not in facts:
                            facts.append(e)
        sides = [constant_of_file(t.uniform, self.named) if t.uniform is not None else element_factor(t, at)
                 for t in (a, b)]
        return Goal(self, sides, facts)
