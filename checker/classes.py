"""Values of graphs in classes of equal ones: congruence, constants, sizes, bodies of composites, lemmas."""
import re
from collections import namedtuple
from fractions import Fraction
from math import prod

import expressions
from catalog import parsed_call
from certificates import Value
from contents import MOST_KNOWN, Contents
from definitions import DefinitionReader
from elements import Tensor
from evaluation import Numbers, constant_of, elements_of, evaluated, is_float, is_move
from folding import Folding, numbers_of
from graphs import GraphReader, Literal, parsed_graph
from onnx_file import Constant
from reader import Reader
from sizes import Refused, num, require
from steps import computed_tensor

CONVERSIONS = "cast", "quantize_linear", "dequantize_linear"  # of each element by itself, where scales are numbers
ABSENT = -1  # an operand that is left out
MOST_MOVED = 1 << 20  # elements of a value whose places are followed
MOST_SIZES = 64  # elements of an integer tensor whose elements are looked at
# Operators whose axis is one of the first operand, counted from the start in the catalog.
AXIS_OF_FIRST = {"compress", "scatter_elements", "tensor_scatter", "top_k", "unique"}
Node = namedtuple("Node", "op attrs operands count")  # attrs: a frozenset; count: of results


def attribute_value(value):
    """An attribute as a Python value; text gives it as words."""
    if isinstance(value, Constant):
        return value.dtype, tuple(value.shape), value.data
    if type(value) is not tuple or not value or type(value[0]) is not tuple:
        return value
    if value[0] == ("sign", "["):
        items, one = [], []
        for word in value[1:]:
            if word in (("sign", ","), ("sign", "]")):
                items += [attribute_value(tuple(one))] if one else []
                one = []
            else:
                one.append(word)
        return tuple(items)
    if len(value) > 2:
        return attribute_value(constant_of_literal(GraphReader(Reader(" ".join(text for _, text in value))).literal()))
    sign = -1 if value[0] == ("sign", "-") else 1
    kind, text = value[-1]
    if kind == "integer":
        return sign * int(text)
    if kind == "float" or (kind == "name" and text in ("inf", "nan")):
        return sign * float(text)
    return value if value[0] == ("sign", "$") else text


def constant_of_literal(literal):
    count = prod(literal.shape)
    elements = literal.elements * count if len(literal.elements) == 1 else literal.elements
    require(len(elements) == count, "a constant has another number of elements than its shape")
    number = float if is_float(literal.dtype) else int
    return constant_of(literal.dtype, literal.shape, [number(x) for x in elements])


class Classes:
    def __init__(self, catalog):
        self.catalog, self.parents, self.nodes, self.uses = catalog, [], {}, {}
        self.constants, self.by_content, self.by_sizes = {}, {}, {}  # by class; classes by what they are
        self.real = set()  # classes of constants that are no rounded numbers
        self.is_lemma = False  # whether values are added that are real numbers
        self.rounded = set()  # results of operators over constants that are rounded numbers
        self.near = []  # classes that a constant was joined with up to rounding, and the exact numbers of those
        self.read = set()  # classes of constants that a lemma takes for the numbers that they are
        self.tensors, self.folding, self.counts_narrow_sizes = {}, Folding(), False
        self.conversions = []  # of elements by themselves: result, call, operands
        self.contents, self.meanings, self.defaults = Contents(self.tensors), {}, {}
        for op, attrs in catalog.defaults.items():
            self.defaults[op] = {name: attribute_value(words) for name, words in attrs.items()}
        entries = [("definition", head, text) for head, text in catalog.definitions.items()
                   if not re.search(r"\bscatter\b", text)]  # forward writes are not read
        entries += [("composite", *e) for all_of in catalog.composites.values() for e in all_of]
        entries += [("results", *e) for all_of in catalog.results.values() for e in all_of]
        for kind, head, text in entries:
            call = parsed_call(head)
            types = tuple(a and (a.dtype, tuple(d.key for d in a.shape)) for a in call.args)
            attrs = frozenset((n, attribute_value(w)) for n, w in call.attrs.items())
            self.meanings.setdefault((call.op, attrs, types), []).append((kind, call, text))

    # --- classes

    def find(self, c):
        while c != ABSENT and self.parents[c] != c:
            self.parents[c] = self.parents[self.parents[c]]
            c = self.parents[c]
        return c

    def fresh(self, tensor=None):
        """A class of its own; a tensor gives its type."""
        c = len(self.parents)
        self.parents.append(c)
        if tensor is not None:
            self.tensors[str(c)] = tensor._replace(name=str(c))
        return c

    def input(self, dtype, shape):
        return self.fresh(Tensor("", dtype, shape, None, None, {}, []))

    def type(self, c):
        tensor = self.tensors.get(str(self.find(c)))
        return tensor and (tensor.dtype, tuple(d.key for d in tensor.shape))

    def is_near(self, c):
        return any(self.find(c) == self.find(other) for other, _ in self.near)

    def constant(self, constant):
        key = constant.dtype, tuple(constant.shape), constant.data
        if key not in self.by_content:
            c = self.input(constant.dtype, [num(n) for n in constant.shape])
            self.by_content[key], self.constants[c] = c, constant
            if prod(constant.shape) <= MOST_KNOWN:
                self.contents.literals[str(c)] = literal_of(constant)
        return self.find(self.by_content[key])

    def union(self, a, b):
        pending = [(a, b)]
        while pending:
            a, b = (self.find(c) for c in pending.pop())
            if a == b:
                continue
            require(None in (self.type(a), self.type(b)) or self.type(a) == self.type(b),
                    "values of two types are taken for equal")
            if (b in self.constants) != (a in self.constants):
                a, b = (a, b) if a in self.constants else (b, a)  # what is known stays
            elif self.type(a) is None:
                a, b = b, a
            self.parents[b] = a
            for node in self.uses.pop(b, []):
                results = self.nodes.pop(node, None)
                if results is None:
                    continue
                changed = node._replace(operands=tuple(self.find(c) for c in node.operands))
                if changed in self.nodes:
                    pending += zip(self.nodes[changed], results)
                else:
                    self.keep(changed, results)
                    pending += self.folded(changed, results)

    def keep(self, node, results):
        self.nodes[node] = results
        for c in set(node.operands) - {ABSENT}:
            self.uses.setdefault(c, []).append(node)

    # --- nodes

    def add(self, call, operands, count):
        """The classes of the results of an operator."""
        require(call.op not in self.catalog.random and call.op != "bernoulli", f"the results of {call.op} are random")
        given = {name: attribute_value(value) for name, value in call.attrs.items()}
        given = {**self.defaults.get(call.op, {}), **given}
        if call.op in AXIS_OF_FIRST and given.get("axis", 0) < 0 and self.type(operands[0]) is not None:
            given["axis"] += len(self.type(operands[0])[1])
        node = Node(call.op, frozenset(given.items()), tuple(self.find(c) for c in operands), count)
        if node in self.nodes:
            require(not self.is_lemma or not self.rounded & set(self.nodes[node]),
                    "a lemma calculates with what is rounded")
            return self.nodes[node]
        kind, text = self.meaning(node)
        # Operators of ONNX that have no meaning here are functions; others might not be.
        require(kind or not node.op.startswith("ms_"), f"{node.op} is not known")
        present = [c for c in node.operands if c != ABSENT]
        if kind == "composite":
            inputs, body = parsed_graph(text)
            results = self.body(body, dict(zip([name for name, _, _ in inputs], present)))
            require(len(results) == count, f"{call.op} has another number of results")
            self.keep(node, results)
            return results
        results = [self.result(kind, text, i, present) for i in range(count)]
        self.keep(node, results)
        self.join_converted_rows(call, node, results)
        if node.op == "cast" and self.type(results[0]) == self.type(present[0]) is not None:
            self.union(results[0], present[0])
        for c, other in self.folded(node, results):
            self.union(c, other)
        for c in results:
            self.same_by_definition(c)
        return results

    def join_converted_rows(self, call, node, results):
        """Rows of what is converted element by element are the converted rows, where constants are real numbers."""
        if not self.folding.is_exact:
            return
        if call.op in CONVERSIONS and all(o == ABSENT or self.type(o) and not self.type(o)[1] for o in node.operands[1:]):
            self.conversions.append((results[0], call, node.operands))
        elif call.op == "gather":
            for c, conversion, (first, *others) in list(self.conversions):
                if self.find(c) == node.operands[0]:
                    rows, = self.add(call, [first, node.operands[1]], 1)
                    self.union(self.add(conversion, [rows, *others], 1)[0], results[0])

    def meaning(self, node):
        types = tuple(None if c == ABSENT else self.type(c) for c in node.operands)
        names = [str(c) for c in node.operands]
        for kind, call, text in self.meanings.get((node.op, node.attrs, types), []):
            if all(arg is None or self.contents.fits_known(arg, name) for arg, name in zip(call.args, names)):
                return kind, text
        return "", ""

    def result(self, kind, text, which, operands):
        if kind == "definition":
            definition = DefinitionReader(Reader(text)).definition()
            require(which < len(definition.outputs), "an operator has fewer results")
            value = Value("", "", which, [str(c) for c in operands], definition, "")
            return self.fresh(computed_tensor(value, self.tensors, []))
        if kind == "results":
            reader = Reader(f"({text})")
            types = reader.items("(", lambda: (reader.type(), reader.dims()), ")")
            return self.input(*types[which])
        return self.fresh()

    def value_of(self, node, c):
        """How a result is computed of the operands of its node; None of a composite, whose body computes it of others."""
        value = self.tensors[str(c)].value if str(c) in self.tensors else None
        if value is None or [self.find(int(name)) for name in value.operands] != \
                [self.find(o) for o in node.operands if o != ABSENT]:
            return None
        return value

    def folded(self, node, results):
        """The results of a node whose operands are constants, and what they are."""
        operands = [(c, self.constants.get(c)) for c in node.operands if c != ABSENT]
        if not operands or any(constant is None for _, constant in operands):
            return []
        made = []
        for c in results:
            value = self.value_of(node, c)
            if self.find(c) in self.constants or value is None:
                continue
            try:
                constant = self.folding.result(value.definition, value.output, operands)
            except Refused:
                continue
            is_moved = is_move(value.definition, value.output) and not any(c in self.real for c, _ in operands)
            if self.folding.is_exact and is_float(constant.dtype) and not is_moved:
                # What a lemma brings in is a real number: its rounded value is no other constant.
                own = self.fresh(self.tensors[str(c)])
                self.constants[own] = constant
                self.real.add(own)
                made.append((c, own))
            else:
                if is_float(constant.dtype) and not is_moved:
                    self.rounded.add(c)
                made.append((c, self.constant(constant)))
            self.folding.add(made[-1][1], value.definition, value.output, operands, constant.dtype)
        return made

    def same_by_definition(self, c):
        """An operator that changes nothing, and integers that follow from sizes."""
        tensor = self.tensors.get(str(c))
        if tensor is None or tensor.value is None or self.find(c) in self.constants:
            return
        operand = unchanged_operand(tensor)
        if operand is not None and self.type(int(operand)) == self.type(c):
            return self.union(c, int(operand))
        counts = [size.constant() for size in tensor.shape]
        if 0 in counts and None not in counts:
            return self.union(c, self.constant(constant_of(tensor.dtype, counts, [])))
        if tensor.dtype[0] not in "iu" or None in counts or prod(counts) > MOST_SIZES:
            return
        try:
            elements = self.contents.elements(tensor)
        except Refused:
            return
        numbers = [expressions.constant_of(e) for e in elements]
        if None not in numbers and all(n.denominator == 1 for n in numbers):
            return self.union(c, self.constant(constant_of(tensor.dtype, counts, [int(n) for n in numbers])))
        self.counts_narrow_sizes |= tensor.dtype != "i64" and None in numbers
        key = (*self.type(c), tuple(expressions.key(e) for e in elements))
        self.union(c, self.by_sizes.setdefault(key, c))

    def join_moved(self):
        """Values that have the same elements of one value at the same places are equal."""
        makers, known, first = {}, {}, {}
        for node, results in list(self.nodes.items()):
            for c in results:
                makers.setdefault(self.find(c), []).append((node, c))
        for c in list(makers):
            root, places = self.origins(c, makers, known)
            if places is None or root == c:
                continue
            if self.type(root) == self.type(c) and all(i == place for i, place in enumerate(places)):
                self.union(root, c)
            else:
                self.union(first.setdefault((root, self.type(c), tuple(places)), c), c)

    def origins(self, c, makers, known):
        """The value that the elements of a class are moved from, and their places in it; None where there are many."""
        if c in known:
            return known[c]
        shape = [size.constant() for size in self.tensors[str(c)].shape] if str(c) in self.tensors else [None]
        small = None not in shape and prod(shape) <= MOST_MOVED
        known[c] = c, range(prod(shape)) if small else None
        for node, result in makers.get(c, []):
            value = self.value_of(node, result)
            if not small or value is None or not is_move(value.definition, value.output):
                continue
            read = value.definition.outputs[value.output].value.parts
            operands = [self.find(o) for o in node.operands if o != ABSENT]
            moved = [o for o, wanted in zip(operands, value.definition.inputs) if wanted.name == read[0]][0]
            if read[2] is not None or any(o != moved and o not in self.constants for o in operands) or \
                    moved in self.constants or self.type(moved) is None or self.type(moved)[0] != self.type(c)[0]:
                continue
            root, places = self.origins(moved, makers, known)
            if places is None:
                continue
            of = [Numbers(self.type(o)[0], [d.constant() for d in self.tensors[str(o)].shape], places) if o == moved
                  else numbers_of(self.constants[o]) for o in operands]
            try:
                known[c] = root, [int(n) for n in evaluated(value.definition, value.output, of).elements]
            except Refused:
                continue
            break
        return known[c]

    def body(self, body, names):
        """The classes of the outputs of a graph, given those of its inputs."""
        names = dict(names)
        for left, expression in body.lets:
            names.update((n, c) for n, c in zip(left, self.results(expression, names, len(left))) if n)
        return [self.results(e, names, 1)[0] for e in body.outputs]

    def results(self, e, names, count):
        if e is None:
            return [ABSENT]
        if isinstance(e, str):
            require(e in names, f"there is no value {e}")
            return [names[e]]
        if isinstance(e, (Literal, Constant)):
            return [self.constant(e if isinstance(e, Constant) else constant_of_literal(e))]
        return self.add(e, [self.results(a, names, 1)[0] for a in e.args], count)


def literal_of(constant):
    if is_float(constant.dtype):
        elements = [Fraction(x) if x - x == 0 else float(x) for x in elements_of(constant)]
    else:
        elements = [Fraction(int(x)) for x in elements_of(constant)]
    return Literal(constant.dtype, list(constant.shape), elements)


def unchanged_operand(tensor):
    """The operand whose element at the same place each element is."""
    output = tensor.value.definition.outputs[tensor.value.output]
    if output.value.kind != "read":
        return None
    name, at, _ = output.value.parts
    if len(at) != len(output.axes) or not all(
            i.kind == "index" and len(parts) == 1 and parts[0][0] == i.parts[0] for i, parts in zip(at, output.axes)):
        return None
    return next(given for wanted, given in zip(tensor.value.definition.inputs, tensor.operands) if wanted.name == name)


class Pattern:
    """One side of a lemma, matched with classes."""

    def __init__(self, classes, inputs, body):
        self.classes, self.inputs, self.body = classes, {n: (t, tuple(d.key for d in s)) for n, t, s in inputs}, body
        self.made = {name: (e, i, len(left)) for left, e in body.lets for i, name in enumerate(left)}
        self.literals = {}  # classes of the constants, by identity
        self.root, = body.outputs
        while self.root in self.made and isinstance(self.made[self.root][0], str):
            self.root = self.made[self.root][0]

    def matches(self):
        """Names of inputs and values with their classes, wherever the root may be."""
        self.nodes = {}
        for node, results in self.classes.nodes.items():
            for i, c in enumerate(results):
                self.nodes.setdefault(self.classes.find(c), []).append((node, i))
        if self.root in self.inputs:
            return
        for c in list(self.nodes):
            yield from self.match(self.root, 0, 1, c, {})

    def match(self, e, which, count, c, found):
        classes = self.classes
        if e is None or c == ABSENT:
            if e is None and c == ABSENT:
                yield found
        elif isinstance(e, str):
            if e in found:
                if classes.find(found[e]) == c:
                    yield found
            elif e in self.inputs:
                if classes.type(c) == self.inputs[e]:
                    yield {**found, e: c}
            else:
                expression, output, of = self.made[e]
                for more in self.match(expression, output, of, c, found):
                    yield {**more, e: c}
        elif isinstance(e, Literal):
            if id(e) not in self.literals:
                self.literals[id(e)] = classes.constant(constant_of_literal(e))
            if classes.find(self.literals[id(e)]) == c and not (is_float(e.dtype) and classes.is_near(c)):
                yield {**found, ("read", c): c} if is_float(e.dtype) else found
        else:
            given = {name: attribute_value(value) for name, value in e.attrs.items()}
            attrs = frozenset({**classes.defaults.get(e.op, {}), **given}.items())
            for node, output in self.nodes.get(c, []):
                # A lemma is about real numbers: a result that was rounded is none of its values.
                if (node.op, node.attrs, node.count, output) == (e.op, attrs, count, which) and \
                        len(node.operands) == len(e.args) and classes.nodes[node][output] not in classes.rounded:
                    yield from self.match_all(list(zip(e.args, node.operands)), found)

    def match_all(self, pairs, found):
        if not pairs:
            yield found
            return
        for more in self.match(pairs[0][0], 0, 1, self.classes.find(pairs[0][1]), found):
            yield from self.match_all(pairs[1:], more)
