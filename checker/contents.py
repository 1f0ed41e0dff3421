"""What is known of the elements of small tensors: constants, and what follows from constants and sizes."""
from itertools import product
from math import prod

import expressions
import sums
from elements import constant_of_file, element, element_factor
from evaluation import Numbers, constant_of, elements_of, evaluated, is_float
from sizes import Refused, num, require, sym

MOST_KNOWN = 1024  # elements


class Contents:
    """`literals` are the constants among some tensors, by name."""

    def __init__(self, tensors):
        self.tensors, self.literals = tensors, {}

    def fits(self, arg, name):
        """Whether a tensor is what an operator is given by its call."""
        tensor = self.tensors[name]
        if arg.dtype != tensor.dtype or arg.shape != tensor.shape:
            return False
        if arg.content is not None and name in self.literals:
            return arg.content == self.literals[name]
        if arg.known is None and arg.content is None:
            return True
        wanted = [expressions.number(d) for d in arg.known] if arg.known is not None else \
            [constant_of_file(x, False) for x in arg.content.elements]
        if [expressions.key(x) for x in wanted] == [expressions.key(x) for x in self.elements(tensor)]:
            return True
        return arg.content is not None and is_float(arg.dtype) and \
            [float(x) for x in arg.content.elements] == self.rounded(tensor).elements

    def rounded(self, tensor):
        """The elements that the operators compute, each result rounded to its type, as the models that run do."""
        if tensor.name in self.literals:
            elements = [float(x) if is_float(tensor.dtype) else int(x) for x in self.literals[tensor.name].elements]
        else:
            require(tensor.value is not None, "the content of an input is not known")
            elements = evaluated(tensor.value.definition, tensor.value.output,
                                 [self.rounded(self.tensors[name]) for name in tensor.operands]).elements
        shape = [size.constant() for size in tensor.shape]
        require(None not in shape and prod(shape) <= MOST_KNOWN, "the content of a tensor is not known")
        return Numbers(tensor.dtype, shape, list(elements_of(constant_of(tensor.dtype, shape, elements))))

    def fits_known(self, arg, name):
        try:
            return self.fits(arg, name)
        except Refused:
            return False

    def is_literal(self, name, literal):
        """Whether a computed tensor has the elements of a constant."""
        tensor = self.tensors[name]
        return tensor.dtype == literal.dtype and tensor.shape == [num(n) for n in literal.shape] and \
            [expressions.key(constant_of_file(x, False)) for x in literal.elements] == \
            [expressions.key(x) for x in self.elements(tensor)]

    def elements(self, tensor):
        """The elements of a small tensor, which follow from constants and sizes."""
        if tensor.name in self.literals:
            return [constant_of_file(x, False) for x in self.literals[tensor.name].elements]
        counts = [size.constant() for size in tensor.shape]
        require(None not in counts and prod(counts) <= MOST_KNOWN, "the content of a tensor is not known")
        return [self.unfolded(element_factor(tensor, [num(i) for i in at])) for at in product(*map(range, counts))]

    def unfolded(self, terms):
        def put_in(f):
            tensor = self.tensors.get(f.name) if f.kind == "read" else None
            if f.kind == "read" and f.name in self.literals:
                place, literal = 0, self.literals[f.name]
                for d, count in zip(f.at, literal.shape):
                    require(d.constant() is not None and 0 <= d.constant() < count, "an element is not known")
                    place = place * count + d.constant()
                return constant_of_file(literal.elements[place], False)
            if f.kind == "apply" and f.name == "div" and f.to == "i64":
                return exact_quotient(*map(self.unfolded, f.args))
            if tensor is None:
                return None
            require(tensor.value is not None, "an element of an input is not known")
            return self.unfolded(element(self.tensors, tensor, f.at, False))
        terms = [t for term in sums.normal(terms) for t in written_out(term)]
        return sums.normal(sums.changed(terms, put_in))


def exact_quotient(whole, by):
    """Of sizes by a number that divides all their coefficients: however quotients are rounded. Else none."""
    divisor = expressions.constant_of(by)
    sizes = all(t.is_plain() and all(f.kind == "number" and f.exponent.denominator == 1 and f.exponent > 0
                                     for f in t.factors) for t in whole)
    if not divisor or not sizes or any((t.coefficient / divisor).denominator != 1 for t in whole):
        return None
    return [t.like(coefficient=t.coefficient / divisor) for t in whole]


def written_out(term):
    """A term for each value of its variables, where their ranges are numbers."""
    if not term.bound:
        return [term]
    name = term.bound[0]
    last = min((c for c in ((g + sym(name)).constant() for g in term.guards) if c is not None), default=-1)
    require(0 <= last < MOST_KNOWN, "the content of a tensor is not known")
    inner = term.like(bound=term.bound[1:])
    return [t for i in range(last + 1) for t in written_out(expressions.substituted(inner, {name: num(i)}))]
