"""What a certificate is about: the rule, the operators of the catalog, facts and assumptions."""
import re
from itertools import product

import expressions
from assumptions import required_assumptions
from catalog import parsed_call
from contents import Contents
from definitions import DefinitionReader
from elements import linear_in, shape_of, solved
from graphs import Call, GraphReader, Literal, parsed_graph, parsed_rule
from reader import Reader
from sizes import Refused, num, require, sym


class Binding:
    """Holds a certificate to its rule, and its definitions to the catalog."""

    def __init__(self, certificate, tensors, catalog):
        self.certificate, self.tensors, self.catalog = certificate, tensors, catalog
        require(re.match(r"rule \S+ \{\n  numerics reals\n(?!.*^  (about|found|helps))", certificate.rule, re.M | re.S),
                "the rule is not written as certificates write it")
        self.rule = parsed_rule(certificate.rule)
        self.sigma, self.contents, self.values = {}, Contents(tensors), {}
        self.sources, self.written = [], []

    def check(self):
        c = self.certificate
        for i, given in enumerate(c.inputs):
            if i < len(self.rule.inputs):
                self.input(i, given)
            else:
                require(given.content, f"{given.name} is no input of the rule")
                r = Reader(given.content)
                literal = GraphReader(r).literal()
                require(r.peek().kind == "end" and literal.dtype == given.dtype and
                        [num(n) for n in literal.shape] == given.shape and
                        (given.uniform is None or all(x == given.uniform for x in literal.elements)),
                        f"the content of {given.name} does not fit")
                self.contents.literals[given.name] = literal
        require(len(c.inputs) >= len(self.rule.inputs), "an input is missing")
        for value in c.values:
            self.value(value)
        names = {name: f"x{i}" for i, (name, _, _) in enumerate(self.rule.inputs)}
        source = self.outputs(self.rule.source, names)
        self.sources = list(self.reached(source))
        target = self.outputs(self.rule.target, names)
        require(list(zip(source, target)) == c.pairs and len(source) == len(target),
                "the pairs are not the outputs of the rule")
        self.sizes()
        required = required_assumptions(c, self.contents.literals)
        require(set(c.assumptions) == required and len(c.assumptions) == len(required) and
                c.named_reals == any(kind == "constant" for kind, _ in required),
                "the assumptions are not those of the claim")
        self.witness()

    def input(self, i, given):
        name, dtype, shape = self.rule.inputs[i]
        require(given.name == f"x{i}" and given.dtype == dtype and len(given.shape) == len(shape) and
                given.uniform is None and not given.content, f"{given.name} is not the input {name}")
        for size, found in zip(shape, given.shape):
            if size.symbol():
                require(self.sigma.setdefault(size.symbol(), found) == found, "a size has two meanings")

    def value(self, value):
        """The definition is the catalog's for this operator, and the operands are what it says. Without an operator it
        is a constant of the rule, computed from positions."""
        if not value.call:
            require(not value.operands, f"{value.name} is no constant")
            self.written.append(value.name)
            return
        require(self.catalog.definitions.get(value.call) == value.text.strip(),
                f"{value.name}: the definition is not that of the catalog")
        call, operands = parsed_call(value.call), iter(value.operands)
        names = tuple("_" if arg is None else next(operands, None) for arg in call.args)
        require(next(operands, None) is None and None not in names, f"{value.name} has other operands")
        for arg, name in zip(call.args, names):
            require(arg is None or self.contents.fits(arg, name), f"{value.name}: {name} is not what the operator is given")
        self.values.setdefault((call.op, names), []).append((call.attrs, value.output, value.name))

    # --- the graphs of the rule, in terms of the values of the certificate

    def outputs(self, body, names):
        names = dict(names)
        for left, expression in body.lets:
            for name, value in zip(left, self.results(expression, names)):
                names[name] = value
        return [self.results(e, names)[0] for e in body.outputs]

    def results(self, e, names):
        if e is None:
            return ["_"]
        if isinstance(e, str):
            require(e in names, f"{e} is not known in the rule")
            return [names[e]]
        if isinstance(e, Literal):
            found = next((n for n, literal in self.contents.literals.items() if literal == e), None) or \
                next((n for n in self.written if self.contents.is_literal(n, e)), None)
            require(found is not None, "a constant of the rule is not among the inputs")
            return [found]
        operands = tuple(self.results(a, names)[0] for a in e.args)
        outputs = {}
        for attrs, output, name in self.values.get((e.op, operands), []):
            if self.same_attributes(e, attrs):
                require(outputs.setdefault(output, name) == name, "a value is made twice")
        if outputs:
            return [outputs.get(i, "?") for i in range(max(outputs) + 1)]
        return self.expanded(e, operands)

    def expanded(self, e, operands):
        for head, text in self.catalog.composites.get(e.op, []):
            call = parsed_call(head)
            if len(call.args) == len(operands) and all(
                    (arg is None) == (name == "_") and (arg is None or self.contents.fits_known(arg, name))
                    for arg, name in zip(call.args, operands)) and self.same_attributes(e, call.attrs):
                inputs, body = parsed_graph(text)
                inner, given = [name for name, _, _ in inputs], [o for o in operands if o != "_"]
                return self.outputs(body, dict(zip(inner, given + self.attribute_inputs(e, inner[len(given):]))))
        raise Refused(f"the operator {e.op} of the rule is not among the values")

    def attribute_inputs(self, e, names):
        """The inputs of rank 0 that float attributes of an operator are called by, which its body has beside operands."""
        reals = {words[1][1] for name, words in e.attrs.items() if self.is_named_real(e, name)}
        inputs = {name: f"x{i}" for i, (name, _, shape) in enumerate(self.rule.inputs) if not shape}
        require(set(names) <= reals & set(inputs), f"the body of {e.op} has other inputs")
        return [inputs[name] for name in names]

    def is_named_real(self, e, name):
        default = self.catalog.defaults.get(e.op, {}).get(name, ((),))
        return e.attrs.get(name, ((),))[0] == ("sign", "$") and default[-1][:1] == ("float",)

    def same_attributes(self, e, attrs):
        """All attributes of the operator are those of the rule, or the default."""
        found = {}
        for name, words in attrs.items():
            given = e.attrs.get(name, self.catalog.defaults.get(e.op, {}).get(name))
            if given is not None and given[0] == ("sign", "$") and not self.is_named_real(e, name):
                symbol, size = given[1][1], None
                if words[0] == ("sign", "$"):
                    size = sym(words[1][1])
                elif words[0][0] == "integer" and len(words) == 1:
                    size = num(int(words[0][1]))
                if size is None or found.setdefault(symbol, self.sigma.get(symbol, size)) != size:
                    return False
            elif given != words:
                return False
        self.sigma.update(found)
        return all(name in attrs for name in e.attrs)

    def reached(self, names):
        seen, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name not in seen and name in self.tensors:
                seen.add(name)
                todo += self.tensors[name].operands
        return seen

    # --- sizes: what is put in follows from the guard and from what the source accepts

    def sizes(self):
        rule, c = self.rule, self.certificate
        for (_, _, shape), given in zip(rule.inputs, c.inputs):
            for size, found in zip(shape, given.shape):
                require(size.substituted(self.sigma) == found, "the size of an input is not that of the rule")
        equations = [e for condition in rule.where if len(condition) == 2 for e in condition[:1]]
        equations += self.patterns()
        rho = eliminated(equations, set(self.sigma))
        for symbol, value in self.sigma.items():
            require(value == sym(symbol) or fixed(value, rho) == fixed(sym(symbol), rho),
                    f"that {symbol} is {value.key} does not follow from the guard")
        allowed = [e.substituted(self.sigma) for condition in rule.where for e in condition]
        for name in self.sources:
            allowed += self.tensors[name].shape
        for given in c.inputs:
            allowed += [size - num(1) for size in given.shape]
        for fact in (e for condition in c.facts for e in condition):
            require(fact.never_negative() or fact in allowed, f"the fact {fact.key} >= 0 does not follow")

    def patterns(self):
        """What the source asks of sizes, in terms of the rule: those that the catalog says have to be equal,
        and an axis that is a multiple of an attribute."""
        types = {name: (dtype, shape) for name, dtype, shape in self.rule.inputs}
        equations, used = [], set()

        def results(e):
            if isinstance(e, Literal):
                return [(e.dtype, [num(n) for n in e.shape])]
            if not isinstance(e, Call):
                return [types.get(e)]
            given = [None if a is None else results(a)[0] for a in e.args]
            for text in self.catalog.calls.get(e.op, []):
                call = parsed_call(text)
                if given == [a and (a.dtype, a.shape) for a in call.args] and all(
                        e.attrs.get(n, self.catalog.defaults.get(e.op, {}).get(n)) == w
                        for n, w in call.attrs.items()):
                    definition = DefinitionReader(Reader(self.catalog.definitions[text])).definition()
                    shapes = [a.shape for a in call.args if a is not None]
                    sizes = solved(definition, shapes)
                    equations.extend(self.catalog.asked[text])
                    for operand, shape in zip(definition.inputs, shapes):
                        for pattern, size in zip(operand.shape, shape):
                            self.pattern(pattern, size, sizes, equations, used)
                    return [(o.dtype, shape_of(o, sizes)) for o in definition.outputs]
            return [None] * 64
        for names, e in self.rule.source.lets:
            types.update(zip(names, results(e)))
        for e in self.rule.source.outputs:
            results(e)
        return equations

    def pattern(self, pattern, size, sizes, equations, used):
        axes = [s for s in pattern.symbols() if s.startswith("#")]
        if pattern.symbol() or len(axes) != 1 or len(pattern.terms) != 1:
            return
        factor, _ = linear_in(pattern, axes[0])
        value = sizes[axes[0]]
        if any(True for _ in value.operations()):  # a quotient, for which the certificate has a name
            whole = self.sigma.get(size.symbol() or "", size)
            names = [s for s in whole.symbols() if s not in self.sigma and s not in used and
                     whole == sym(s) * factor.substituted(self.sigma)]
            used.update(names[:1])
            value = sym(names[0]) if names else sym(expressions.fresh())
        equations.append(size - value * factor)

    def witness(self):
        c = self.certificate
        symbols = set().union(*(d.symbols() for i in c.inputs for d in i.shape),
                              *(e.symbols() for f in c.facts for e in f))
        require(symbols == set(c.witness) and all(v >= 1 for v in c.witness.values()),
                "the witness is not one of all sizes")
        sizes = [size - num(1) for i in c.inputs for size in i.shape if size.constant() is None]
        for e in sizes + [e for fact in c.facts for e in fact]:
            require(e.evaluated(c.witness) >= 0, "the witness does not satisfy the facts")

    def words(self, sizes):
        case = " and ".join(f"{name} == {value.symbol() or value.key}" for name, value in sorted(sizes.items()))
        case = (f", in one case of broadcasting alone: {case} (the rule needs all of its cases; that the source "
                f"accepts no other sizes is not checked here)" if case else "")
        text = self.certificate.rule.split("numerics reals\n", 1)[1].rsplit("}", 1)[0].rstrip()
        text = text.replace("  both ways\n", "  both ways (that each accepts what the other does is not checked here)\n")
        said = "".join(f"\n  assuming ({kind}) that {clause}" for kind, clause in self.certificate.assumptions)
        return (f"rule {self.rule.name}{case}: for all inputs of all sizes of at least 1 that the source accepts and "
                f"that satisfy `where`, the outputs of both are equal over the reals\n{text}{said}")


def cancelled(zero, positive):
    """Without the factors of all terms that are at least 1."""
    for name in sorted(zero.symbols() & positive):
        factor, rest = linear_in(zero, name) or (None, None)
        if factor is not None and not rest.terms:
            zero = factor
    return zero


def eliminated(equations, positive):
    """Equations solved for a symbol each, as far as they are linear in one."""
    rho, todo = {}, list(equations)
    progress = True
    while progress:
        progress = False
        for e in list(todo):
            zero = cancelled(fixed(e, rho), positive)
            for symbol in sorted(zero.symbols()):
                linear = linear_in(zero, symbol)
                if linear is not None and linear[0].constant() in (1, -1) and symbol not in linear[1].symbols():
                    rho[symbol] = linear[1] if linear[0].constant() == -1 else -linear[1]
                    todo.remove(e)
                    progress = True
                    break
    return rho


def fixed(dim, rho):
    for _ in range(len(rho) + 1):
        dim = dim.substituted(rho)
    return dim


def statement(rule, defaults):
    """A rule up to the names of intermediate values and attributes with their default."""
    def tree(e, names):
        if isinstance(e, str):
            return names.get(e, e)
        if not isinstance(e, Call):
            return repr(e)
        attrs = sorted((n, w) for n, w in e.attrs.items() if defaults.get(e.op, {}).get(n) != w)
        return f"{e.op}{attrs}({', '.join(str(tree(a, names)) for a in e.args)})"

    def body(b):
        names = {}
        for left, e in b.lets:
            names.update({n: f"{tree(e, names)}.{i}" if len(left) > 1 else tree(e, names) for i, n in enumerate(left)})
        return [tree(e, names) for e in b.outputs]
    return (rule.both_ways, rule.shapes, sorted(sorted(e.key for e in w) for w in rule.where),
            [(n, t, [s.key for s in shape]) for n, t, shape in rule.inputs], body(rule.source), body(rule.target))


def broadcasting_to(shape):
    """Shapes of as many axes or fewer, each of the same size or 1."""
    return [list(sizes) for first in range(len(shape) + 1)
            for sizes in product(*([d] if d.constant() == 1 else [d, num(1)] for d in shape[first:]))]


def instances(rule):
    """With `*s` as 0 to 4 axes s0, s1, ..., and each shape that broadcasts to it."""
    symbols = {s.symbol() for _, _, shape in rule.inputs for s in shape if (s.symbol() or "")[:1] == "*"}
    all_shapes = [{}]
    for symbol in sorted(symbols - {condition.shape for condition in rule.shapes}):
        all_shapes = [{**shapes, symbol: [sym(f"{symbol[1:]}{i}") for i in range(k)]}
                      for shapes in all_shapes for k in range(5)]
    for condition in rule.shapes:
        all_shapes = [{**shapes, condition.shape: shape} for shapes in all_shapes
                      for shape in broadcasting_to(shapes[condition.to])]
    for shapes in all_shapes:
        yield rule._replace(shapes=[], inputs=[
            (n, t, [d for s in shape for d in shapes.get(s.symbol(), [s])]) for n, t, shape in rule.inputs])


def check_against(rule, book, defaults, listed):
    """The sizes of which the rule is one case, where it is one of the book with sizes put in; else none."""
    require(rule.name in book or not listed, f"there is no rule {rule.name}")
    if rule.name not in book:
        return {}
    wanted = statement(rule, defaults)
    for instance in instances(book[rule.name]):
        sizes = case_of(instance, rule)
        if sizes is not None and statement(instance._replace(inputs=[
                (n, t, [s.substituted(sizes) for s in shape]) for n, t, shape in instance.inputs]), defaults) == wanted:
            return sizes
    raise Refused(f"the rule {rule.name} is another one than that of the book")


def case_of(instance, rule):
    """Sizes that meet by broadcasting are equal, or one of them is 1: what is put in for those of a rule that
    states no guard; None where it is no such case."""
    sizes, given = {}, [s for _, _, shape in rule.inputs for s in shape]
    wanted = [s for _, _, shape in instance.inputs for s in shape]
    if len(given) != len(wanted):
        return None
    for size, found in zip(wanted, given):
        if size.symbol() and sizes.setdefault(size.symbol(), found) != found:
            return None
    symbols = set(sizes)
    sizes = {s: d for s, d in sizes.items() if d.symbol() != s}
    allowed = all(d.constant() == 1 or (d.symbol() in symbols and d.symbol() not in sizes) for d in sizes.values())
    return sizes if allowed and not (sizes and instance.where) else None
