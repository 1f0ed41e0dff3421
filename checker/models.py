"""Certificates of two models: the files, and lemmas by which values of one are values of the other."""
import hashlib
import re
from fractions import Fraction
from math import prod
from pathlib import Path

from assumptions import CLAUSES, Inspection
from certificates import CertificateReader, seal
from claims import Binding
from classes import Classes, Pattern, constant_of_literal
from evaluation import constant_of, elements_of, is_float
from folding import DIGITS
from graphs import Call, Literal, parsed_graph, parsed_rule
from onnx_file import Model, read_model
from reader import Reader
from sizes import Refused, require
from steps import Replay

HEADER = "certificate 2 of models\n"
FOLDED = ("rounding", "constants that follow from others are rounded to their types")
WRAPS = ("wrap-around", CLAUSES["wrap-around"])
ROUNDED = re.compile(r"\d+ constants? of one model (?:is|are) what the constants of the other compute to, rounded: "
                     r"elements differ by at most (\d+\.\d) units in the last place")
MOST_ROUNDS = 8  # of putting lemmas in
MOST_RESHAPED = 1 << 12  # elements
MOST_JOINED = 4  # computed constants that are equal up to rounding


def checked_rule(certificate, catalog):
    """What binds the certificate of a rule to the catalog, checked, after the proof itself."""
    require(certificate.rule, "the certificate does not say what it is about")
    replay = Replay(certificate)
    binding = Binding(certificate, replay.tensors, catalog)
    binding.check()
    replay.check()
    return binding


class ModelCertificate:
    """What a certificate of models says."""

    def __init__(self, text):
        at = text.rfind("// seal ")
        require(at >= 0 and text[at:] == seal(text[:at]), "the certificate has been changed or is not whole")
        head, *self.lemmas = re.split(r"^lemma\n", text[len(HEADER):at], flags=re.M)
        r = Reader(head)

        def quoted(word):
            r.expect(word)
            return r.string()
        self.files = [{word: quoted(word) for word in (side, "file", "weights")} for side in ("source", "target")]
        r.expect("seed")
        r.integer()
        self.inputs, self.outputs, self.assumptions = [], [], []
        while r.at("input"):
            self.inputs.append(quoted("input"))
        while r.at("output"):
            self.outputs.append(quoted("output"))
        while r.at("assume"):
            self.assumptions.append((quoted("assume"), r.string()))
        require(r.peek().kind == "end", f"{r.peek().text!r} is not expected")
        require(len(set(self.lemmas)) == len(self.lemmas), "a lemma is there twice")

    def words(self):
        names = [file[side] for file, side in zip(self.files, ("source", "target"))]
        said = "".join(f"\n  assuming ({kind}) that {clause}" for kind, clause in self.assumptions)
        hashes = "".join(f"\n  {side} sha256 {file['file']}" for file, side in zip(self.files, ("source", "target")))
        return (f"models {names[0]} and {names[1]}\n  for all inputs {' '.join(self.inputs)} of all sizes of at least 1\n"
                f"  the outputs {' '.join(self.outputs)} are equal over the reals{said}{hashes}")


def read_file(path):
    if path.suffix not in (".tessera", ".txt"):
        return read_model(path)
    inputs, body = parsed_graph(path.read_text())
    constants = sorted((left[0], constant_of_literal(e)) for left, e in body.lets if isinstance(e, Literal))
    return Model(inputs, body, [constant.data for _, constant in constants])


class ModelCheck:
    def __init__(self, certificate, catalog):
        self.certificate, self.catalog = certificate, catalog
        self.units = max([float(m.group(1)) for _, text in certificate.assumptions for m in [ROUNDED.fullmatch(text)]
                          if m], default=None)

    def check(self, paths):
        models = []
        for path, said in zip(paths, self.certificate.files):
            require(hashlib.sha256(path.read_bytes()).hexdigest() == said["file"], f"{path.name} is another file")
            models.append(read_file(path))
            weights = hashlib.sha256(b"".join(models[-1].weights)).hexdigest()
            require(weights == said["weights"], f"{path.name} has other weights")
        self.defaulted = {("declared", f"the input {name} has the value that its file gives it")
                          for model in models for name in model.defaulted}
        lemmas = [CertificateReader(text).certificate() for text in self.certificate.lemmas]
        rules = [parsed_rule(lemma.rule) for lemma in lemmas]
        try:
            self.show(models, rules, False)
        except Refused:
            self.show(models, rules, True)  # scales that lemmas calculate with are products and no rounded numbers
        self.check_assumptions(lemmas)
        named, plain = set(), set()
        for lemma in lemmas:
            contents = checked_rule(lemma, self.catalog).contents.literals
            (named if lemma.named_reals else plain).update(Inspection(lemma, contents).reals)
        require(not named & plain, "a constant is read in two ways")

    def show(self, models, rules, is_exact):
        """That the outputs of both models are in the same classes. If it is exact, what the models compute of constants
        is a real number, otherwise it is rounded to its type; what lemmas bring in always is real."""
        self.classes = Classes(self.catalog)
        self.tried = set()  # pairs of constants
        self.reshaped = set()  # computed constants, and shapes that they were compared in
        self.joined = {}  # by class: the different computed constants that others were joined with
        self.classes.folding.is_exact = is_exact
        outputs = self.numbered(*models)
        self.given = set(self.classes.constants)
        self.classes.folding.is_exact = True
        self.match_rounded()

        def is_shown(used):
            return len(used) == len(rules) and all(self.classes.find(a) == self.classes.find(b) for a, b in outputs)
        used = self.put_in(rules)
        if not is_shown(used):  # moving positions takes long
            self.classes.join_moved()
            used |= self.put_in(rules)
        require(len(used) == len(rules), "a lemma is not about these models")
        require(is_shown(used), "the lemmas do not show that the models are equal")
        self.check_readings()

    def check_readings(self):
        """A constant that stands for a number near it does so for one, and nowhere for itself."""
        classes, numbers = self.classes, {}
        for c, exact in classes.near:
            numbers.setdefault(classes.find(c), set()).add(exact)
        require(all(len(several) == 1 for several in numbers.values()) and
                not {classes.find(c) for c in classes.read} & set(numbers), "a constant is read in two ways")

    def is_made_of_given(self, a):
        """Whether a real number is computed of constants of the models, and of 0 and 1."""
        folding, constants = self.classes.folding, self.classes.constants
        return all(c in self.given or not is_float(constant.dtype) or set(elements_of(constant)) <= {0.0, 1.0}
                   for c, constant in folding.leaves(a, constants[a], set()))

    def joins_reals(self, a, b):
        """Whether a real number may be joined with a constant near it: one that stands for no other, nor for itself."""
        classes = self.classes
        exact = classes.folding.exact(a, classes.constants[a])
        if exact is not None and exact == tuple(Fraction(x) for x in elements_of(classes.constants[b])):
            return True
        here = {classes.find(a), classes.find(b)}
        if here & {classes.find(c) for c in classes.read} or not self.is_made_of_given(a):
            return False
        others = {other for c, other in classes.near if classes.find(c) in here}
        require(others <= {exact}, "several numbers are taken for one up to rounding")
        classes.near.append((a, exact if exact is not None else a))
        return True

    def numbered(self, source, target):
        """The values of both models; pairs of the classes of their outputs."""
        places = paired([n for n, _, _ in source.inputs], [n for n, _, _ in target.inputs])
        given = [self.classes.input(dtype, shape) for _, dtype, shape in source.inputs]
        for i, (name, dtype, shape) in enumerate(source.inputs):
            require(target.inputs[places[i]][1:] == (dtype, shape), f"the input {name} has two types")
        self.states(self.certificate.inputs, source.inputs)
        first = self.classes.body(source.body, {n: c for (n, _, _), c in zip(source.inputs, given)})
        second = self.classes.body(target.body, {target.inputs[places[i]][0]: c for i, c in enumerate(given)})
        names = [[str(e) for e in model.body.outputs] for model in (source, target)]
        places = paired(*names)
        for (name, said), c in zip([stated(text) for text in self.certificate.outputs], first):
            require(self.classes.type(c) == said, f"the type of the output {name} is another one")
        require(len(first) == len(self.certificate.outputs), "the outputs are others")
        return [(c, second[places[i]]) for i, c in enumerate(first)]

    def states(self, texts, inputs):
        said = [stated(text) for text in texts]
        require(said == [(n, (t, tuple(d.key for d in s))) for n, t, s in inputs], "the inputs are others")

    def put_in(self, lemmas):
        """Wherever one side of a lemma is found, the other is equal to it: the lemmas that are."""
        sides, used = [], set()
        for i, rule in enumerate(lemmas):
            require(not rule.where and len(rule.source.outputs) == 1, "a lemma has a guard")
            patterns = [Pattern(self.classes, rule.inputs, body) for body in (rule.source, rule.target)]
            sides += [(i, patterns[0], patterns[1]), (i, patterns[1], patterns[0])]
        self.reshape_constants({tuple(int(x) for x in e.args[1].elements) for rule in lemmas
                                for body in (rule.source, rule.target) for _, e in body.lets
                                if isinstance(e, Call) and e.op == "reshape" and isinstance(e.args[1], Literal)})
        for _ in range(MOST_ROUNDS):
            before = len(self.classes.parents), self.count()
            for i, here, other in sides:
                for found in list(here.matches()):
                    if set(other.inputs) <= set(found):
                        used.add(i)
                        self.classes.read |= {c for name, c in found.items() if isinstance(name, tuple)}
                        self.classes.is_lemma = True
                        made, = self.classes.body(other.body, {n: found[n] for n in other.inputs})
                        self.classes.is_lemma = False
                        self.classes.union(made, found[here.root])
                self.match_rounded()
            if before == (len(self.classes.parents), self.count()):
                break
        return used

    def count(self):
        return sum(self.classes.find(c) == c for c in range(len(self.classes.parents)))

    def match_rounded(self):
        """Constants of one model that are what those of the other compute to, rounded, if the certificate says so."""
        classes = self.classes
        if self.units is None:
            return
        self.reshape_computed()
        for a in sorted(classes.folding.computed):
            for b in list(classes.constants):
                if classes.find(a) == classes.find(b) or (a, b) in self.tried or b in classes.real:
                    continue
                self.tried.add((a, b))
                apart = classes.folding.units_apart(a, classes.constants[a], classes.constants[b])
                if apart is not None and apart <= self.units + 0.05 and (  # which is printed with one digit
                        a not in classes.real or self.joins_reals(a, b)):
                    # Of what is near and near again, some may be far.
                    joined = self.joined.pop(classes.find(a), set()) | self.joined.pop(classes.find(b), set())
                    joined.add(bytes(classes.constants[a].data))
                    require(len(joined) <= MOST_JOINED, "too many constants are taken for one up to rounding")
                    classes.union(b, a)
                    self.joined[classes.find(a)] = joined

    def reshape_constants(self, shapes):
        """Constants of the models that are others in a shape that a lemma makes are results of reshape."""
        classes = self.classes
        for (dtype, shape, data), c in list(classes.by_content.items()):
            for to in shapes - {shape}:
                if prod(to) == prod(shape) and (dtype, to, data) in classes.by_content:
                    self.reshaped_class(c, to)

    def reshaped_class(self, c, shape):
        to = self.classes.constant(constant_of("i64", [len(shape)], list(shape)))
        return self.classes.add(Call("reshape", {}, []), [c, to], 1)[0]

    def reshape_computed(self):
        """Computed constants are compared with those of other shapes too: scales of channels, and one for all."""
        classes, shapes = self.classes, {}
        for b in classes.constants.values():
            if b.dtype in DIGITS and prod(b.shape) <= MOST_RESHAPED:
                shapes.setdefault((b.dtype, prod(b.shape)), {}).setdefault(tuple(b.shape), []).append(elements_of(b)[0])
        for a in sorted(classes.folding.computed):
            constant = classes.constants[a]
            for shape, firsts in shapes.get((constant.dtype, prod(constant.shape)), {}).items():
                first = elements_of(constant)[0]
                if shape == tuple(constant.shape) or (classes.find(a), shape) in self.reshaped or \
                        not any(abs(x - first) <= 0.01 * abs(first) for x in firsts):
                    continue
                self.reshaped.add((classes.find(a), shape))
                classes.union(a, self.reshaped_class(self.reshaped_class(a, shape), constant.shape))

    def check_assumptions(self, lemmas):
        """All that the lemmas and the constants need, and nothing that is not checked here."""
        said = set(self.certificate.assumptions)
        require(len(said) == len(self.certificate.assumptions), "an assumption is there twice")
        needed = {assumption for lemma in lemmas for assumption in lemma.assumptions}
        rounding = {a for a in said if ROUNDED.fullmatch(a[1]) and a[0] == "rounding"} | ({FOLDED} & said)
        needed |= self.defaulted
        if self.classes.counts_narrow_sizes:
            needed.add(WRAPS)
        require(needed <= said and (not self.classes.folding.rounds or rounding), "an assumption is missing")
        for kind, text in said - needed - rounding - {WRAPS}:
            raise Refused(f"the assumption ({kind}) that {text} is not checked here")


def stated(text):
    """`x: f32[n, 3]`"""
    r = Reader(text)
    name = r.name()
    r.expect(":")
    result = name, (r.type(), tuple(d.key for d in r.dims()))
    require(r.peek().kind == "end", "a type does not end")
    return result


def paired(first, second):
    """For each name its place among the others: by name, or by position where the names differ."""
    require(len(first) == len(second), "the models have other numbers of inputs or outputs")
    by_name = set(first) == set(second) and len(set(first)) == len(first)
    return [second.index(n) for n in first] if by_name else list(range(len(first)))


def checked_models(path, text, catalog, files):
    """The claim in words; `files` are those of the models, where they are not beside the certificate."""
    certificate = ModelCertificate(text)
    paths = []
    for said, side, given in zip(certificate.files, ("source", "target"), files):
        require(said[side] and Path(said[side]).name == said[side], "a model is not named by a plain name")
        paths.append(Path(given) if given else Path(path).parent / said[side])
    ModelCheck(certificate, catalog).check(paths)
    return certificate.words()
