"""Graphs and rules as text (docs/ir.md, docs/rules.md)."""
from collections import namedtuple
from fractions import Fraction

from expressions import WIDE
from named_reals import single
from reader import Reader
from sizes import require, sym

Rule = namedtuple("Rule", "name both_ways where shapes inputs source target")
Broadcast = namedtuple("Broadcast", "shape to")      # `*b <= *s`
Call = namedtuple("Call", "op attrs args")          # args: None where left out
Argument = namedtuple("Argument", "dtype shape known content")
Literal = namedtuple("Literal", "dtype shape elements")
Body = namedtuple("Body", "lets outputs")           # lets: (names, expression)


class GraphReader:
    """Graphs and rules as text (docs/ir.md, docs/rules.md)."""

    def __init__(self, reader, aliases={}, associative=()):
        self.r, self.aliases = reader, aliases  # of operators
        self.associative = associative

    def literal(self):
        r = self.r
        if r.peek().text in WIDE and r.at("[", 1):
            dtype, shape = r.type(), [d.constant() for d in r.dims()]
            require(None not in shape, "the shape of a constant is no number")
            values = r.items("[", self.element, "]") if r.at("[") else [self.element()]
            return Literal(dtype, shape, rounded(dtype, values))
        start = r.next
        values = r.items("[", self.element, "]") if r.at("[") else [self.element()]
        is_float = any(t.kind == "float" or t.text in ("inf", "nan") for t in r.tokens[start:r.next])
        dtype = "f32" if is_float else "i64"
        return Literal(dtype, [len(values)] if r.tokens[start].text == "[" else [], rounded(dtype, values))

    def element(self):
        if self.r.peek().text in ("true", "false"):
            return Fraction(int(self.r.take().text == "true"))
        return self.r.number()

    def attributes(self):
        """Values as their words."""
        attrs = {}
        while not self.r.accept("}"):
            if attrs:
                self.r.expect(",")
            name, words, depth = self.r.name(), [], 0
            self.r.expect("=")
            while depth or not (self.r.at(",") or self.r.at("}")):
                token = self.r.take()
                require(token.kind != "end", "attributes do not end")
                depth += (token.text in "[(") - (token.text in "])") if token.kind == "sign" else 0
                words.append((token.kind, token.text))
            require(attrs.setdefault(name, tuple(words)) == tuple(words), "an attribute is given twice")
        return attrs

    def expression(self):
        r, token = self.r, self.r.peek()
        if r.accept("const"):
            return self.literal()
        if token.kind in ("integer", "float") or r.at("-") or r.at("[") or token.text in ("inf", "nan") \
                or (token.text in WIDE and r.at("[", 1)):
            return self.literal()
        name = r.name()
        if not r.at("("):
            return None if name == "_" and token.kind == "name" else name
        args = r.items("(", self.expression, ")")
        attrs = self.attributes() if r.accept("{") else {}
        if r.accept("@"):
            r.name()
        return Call(self.aliases.get(name, name), attrs, args)

    def body(self):
        r, lets = self.r, []
        r.expect("{")
        while not r.accept("return"):
            names = []
            while not r.accept("="):
                names.append(r.name())
                if r.accept(":"):
                    r.type(), r.dims()
                r.accept(",")
            lets.append((names, self.literal() if r.accept("const") else self.expression()))
        outputs = [self.expression()]
        while r.accept(","):
            outputs.append(self.expression())
        r.expect("}")
        return Body(lets, outputs)

    def inputs(self):
        def one():
            name = self.r.name()
            self.r.expect(":")
            self.r.accept("const")
            return name, self.r.type(), self.r.items("[", self.size, "]")
        return self.r.items("(", one, ")")

    def size(self):
        return sym("*" + self.r.name()) if self.r.accept("*") else self.r.dim()

    def axes(self):
        self.r.expect("*")
        return "*" + self.r.name()

    def broadcast(self):
        shape = self.axes()
        self.r.expect("<=")
        return Broadcast(shape, self.axes())

    def rules(self):
        """A rule, or one for each operator that it is for."""
        r = self.r
        r.expect("rule")
        name = r.name()
        r.expect("{")
        if not r.accept("for"):
            return [self.rule(name)]
        alias = r.name()
        r.expect("in")
        ops = [r.name()]
        while r.accept(","):
            ops.append(r.name())
        if ops == ["associative"]:
            ops = self.associative
        start, rules = r.next, []
        for op in ops:
            r.next = start
            rules.append(GraphReader(r, {alias: op}).rule(f"{name}_{op}"))
        return rules

    def rule(self, name):
        r, both, where, shapes, mutant = self.r, False, [], [], False
        while not r.accept("source"):
            word = r.name()
            if word in ("about", "found"):
                r.string()
            elif word == "wrong":
                mutant = True
                while r.at("["):
                    while not r.accept("]"):
                        r.next += 1
                    r.accept(",")
            elif word == "numerics":
                kind = r.name()
                if kind == "error":
                    r.number()
                elif kind == "as":
                    r.name()
            elif word == "where":
                more = True
                while more:
                    shapes.append(self.broadcast()) if r.at("*") else where.append(r.condition())
                    more = r.accept(",")
            else:
                require((word, r.name()) in (("both", "ways"), ("helps", "everywhere"), ("helps", "smaller"), ("helps", "mutants")), f"{word} is not known")
                both = both or word == "both"
        inputs, source = self.inputs(), self.body()
        r.expect("target")
        target = self.body()
        r.expect("}")
        # The target of a mutant is wrong in some boxes; certificates are of its correction, which they state.
        return None if mutant else Rule(name, both, where, shapes, inputs, source, target)


def rounded(dtype, values):
    return [Fraction(single(float(v))) if dtype == "f32" and not isinstance(v, float) else v for v in values]


def parsed_graph(text):
    """Inputs and body of a graph."""
    reader = Reader(text)
    reader.expect("graph")
    if not reader.at("("):
        reader.name()
    graph = GraphReader(reader)
    inputs, body = graph.inputs(), graph.body()
    require(reader.peek().kind == "end", "the graph does not end")
    return inputs, body


def parsed_rule(text):
    reader = Reader(text)
    rules = GraphReader(reader).rules()
    require(reader.peek().kind == "end" and len(rules) == 1, "the rule does not end")
    return rules[0]


def read_book(text, associative=()):
    """The rules of a text. associative: the operators that `for op in associative` stands for."""
    reader, rules = Reader(text), {}
    while reader.peek().kind != "end":
        read = GraphReader(reader, associative=associative).rules()
        rules.update({rule.name: rule for rule in read if rule is not None})
    return rules
