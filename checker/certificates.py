"""Certificates of rules as text: the grammar of docs/verification.md."""
from collections import namedtuple

from definitions import DefinitionReader
from reader import Reader
from sizes import Refused

Input = namedtuple("Input", "name dtype shape uniform content")
Value = namedtuple("Value", "name call output operands definition text")
Step = namedtuple("Step", "kind side place item dims reasons results goals parts")
Certificate = namedtuple(
    "Certificate", "rule assumptions witness named_reals inputs values facts pairs proofs")
KINDS = ("unfold split void drop tighten solve pin shift reverse divide settle quotient count attain induct "
         "cases signs").split()


def seal(text):
    """The seal over a text: its length, then its bytes in words of eight, are mixed in."""
    data, state = text.encode(), 0xcbf29ce484222325
    for word in [len(data)] + [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)] \
            + [int.from_bytes(data[len(data) // 8 * 8:], "little")]:
        state = (state ^ word) * 0x9e3779b97f4a7c15 & 0xffffffffffffffff
        state ^= state >> 29
    return f"// seal {state:016x}\n"


class CertificateReader:
    def __init__(self, text):
        at = text.rfind("// seal ")
        if at < 0 or text[at:] != seal(text[:at]):
            raise Refused("the certificate has been changed or is not whole")
        if not text.startswith("certificate 2\n"):
            raise Refused("the certificate is of another format")
        body, self.rule = text[len("certificate 2\n"):at], ""
        if body.startswith("rule "):
            end = body.find("\n}\n")
            if end < 0:
                raise Refused("the rule has no end")
            self.rule, body = body[:end + 3], body[end + 3:]
        self.r, self.body = Reader(body), body

    def certificate(self):
        r = self.r
        assumptions, witness = [], {}
        while r.accept("assume"):
            assumptions.append((r.string(), r.string()))
        while r.accept("witness"):
            name = r.name()
            r.expect("=")
            if witness.setdefault(name, None) is not None:
                raise Refused("a size is given twice")
            witness[name] = r.integer()
        named = r.accept("named_reals")
        inputs, values, facts, pairs, proofs = [], [], [], [], []
        while r.accept("input"):
            inputs.append(self.input())
        while r.accept("value"):
            values.append(self.value())
        while r.accept("fact"):
            facts.append(r.condition())
        while r.accept("pair"):
            pairs.append((r.name(), r.name()))
            r.expect("{")
            proofs.append(self.proof())
        if r.peek().kind != "end":
            raise Refused(f"{r.peek().text!r} is not expected")
        return Certificate(self.rule, assumptions, witness, named, inputs, values, facts, pairs, proofs)

    def input(self):
        r, name = self.r, self.r.name()
        r.expect(":")
        dtype, shape = r.type(), r.dims()
        uniform = r.number() if r.accept("=") else None
        return Input(name, dtype, shape, uniform, r.string() if r.accept("is") else "")

    def value(self):
        r, name = self.r, self.r.name()
        r.expect("=")
        call = r.string() if r.accept("of") else ""  # without: a constant, by positions
        output, operands = r.integer(), r.items("(", r.name, ")")
        start = r.peek().at
        definition = DefinitionReader(r).definition()
        return Value(name, call, output, operands, definition, self.body[start:r.tokens[r.next - 1].at + 1])

    def proof(self):
        steps = []
        while not self.r.accept("}"):
            steps.append(self.step())
        return steps

    def step(self):
        r, kind = self.r, self.r.name()
        if kind not in KINDS:
            raise Refused(f"there is no inference {kind}")
        side = r.integer()
        if side not in (0, 1):
            raise Refused("there are two sides")
        place, item, dims = r.items("[", r.integer, "]"), r.integer(), r.dims()
        if item < 0 or any(p < 0 for p in place):
            raise Refused("a number is negative")
        reasons, results, goals, parts = [], [], [], []
        while r.accept("since"):
            reasons.append((r.dim(), r.items("(", self.multiple, ")")))
        while r.accept("=>"):
            results.append(r.string())
        while r.accept("{"):
            r.expect("goal")
            goals.append((r.string(), r.string()))
            parts.append(self.proof())
        return Step(kind, side, place, item, dims, reasons, results, goals, parts)

    def multiple(self):
        premise = self.r.integer()
        self.r.expect(":")
        return premise, self.r.dim()
