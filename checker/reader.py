"""Words of a text; sizes, conditions and sums: the grammar of docs/verification.md."""
import re
from collections import namedtuple
from fractions import Fraction

from expressions import WIDE, Factor, Term
from sizes import OPERATIONS, Refused, num, sym

TOKEN = re.compile(r"""
    (?P<space>(?:\s+|//[^\n]*)+)
  | (?P<float>0x[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?p[-+]?\d+|\d+(?:\.\d+)?[eE][-+]?\d+|\d+\.\d+)
  | (?P<integer>\d+u?(?![\w.#%]))
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<quoted>'(?:[^'\\]|\\.)*')
  | (?P<name>[A-Za-z_\#%][\w.\#%]*)
  | (?P<sign>->|=>|:=|==|!=|<=|>=|&&|\|\||[-()\[\]{},:;.+*/=<>!?@&|^~$])
""", re.X)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
Token = namedtuple("Token", "kind text at")


def unescaped(text):
    def one(match):
        code = match.group(1)
        return chr(int(code[1:], 16)) if code[0] == "x" else ESCAPES.get(code, code)
    return re.sub(r"\\(x[0-9a-fA-F]{2}|.)", one, text, flags=re.S)


class Reader:
    def __init__(self, text):
        self.tokens, at = [], 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                raise Refused(f"unreadable: {text[at:at + 20]!r}")
            kind, word = match.lastgroup, match.group()
            if kind in ("string", "quoted"):
                word = unescaped(word[1:-1])
            if kind != "space":
                self.tokens.append(Token(kind, word, at))
            at = match.end()
        self.tokens.append(Token("end", "", at))
        self.next = 0

    def peek(self, ahead=0):
        return self.tokens[min(self.next + ahead, len(self.tokens) - 1)]

    def take(self):
        token = self.peek()
        self.next += 1
        return token

    def at(self, word, ahead=0):
        token = self.peek(ahead)
        return token.kind in ("name", "sign") and token.text == word

    def accept(self, word):
        if not self.at(word):
            return False
        self.next += 1
        return True

    def expect(self, word):
        if not self.accept(word):
            raise Refused(f"{word} is expected before {self.peek().text!r}")

    def name(self):
        if self.peek().kind not in ("name", "quoted"):
            raise Refused(f"a name is expected before {self.peek().text!r}")
        return self.take().text

    def string(self):
        if self.peek().kind != "string":
            raise Refused(f"a string is expected before {self.peek().text!r}")
        return self.take().text

    def integer(self):
        sign = -1 if self.accept("-") else 1
        if self.peek().kind != "integer":
            raise Refused(f"an integer is expected before {self.peek().text!r}")
        return sign * int(self.take().text.rstrip("u"))

    def number(self):
        """A float or an integer, as a fraction; infinities as floats."""
        sign = -1 if self.accept("-") else 1
        token = self.take()
        if token.text in ("inf", "nan"):
            return sign * float(token.text)
        if token.kind not in ("integer", "float"):
            raise Refused(f"a number is expected before {token.text!r}")
        if token.kind == "integer":
            return Fraction(sign * int(token.text))
        return sign * Fraction(float.fromhex(token.text) if "x" in token.text else float(token.text))

    def rational(self):
        value = Fraction(self.integer())
        if self.accept("/"):
            value /= self.integer()
        return value

    def items(self, opening, item, closing):
        self.expect(opening)
        result = []
        while not self.accept(closing):
            if result:
                self.expect(",")
            result.append(item())
        return result

    def type(self):
        if self.peek().text not in WIDE:
            raise Refused(f"{self.peek().text!r} is no type of numbers")
        return self.take().text

    # --- sizes

    def dim(self):
        total = self.dim_product()
        while True:
            if self.accept("+"):
                total = total + self.dim_product()
            elif self.at("-"):
                total = total + self.dim_product()
            else:
                return total

    def dim_product(self):
        result = self.dim_atom()
        while self.accept("*"):
            result = result * self.dim_atom()
        return result

    def dim_atom(self):
        if self.accept("-"):
            return -self.dim_atom()
        if self.accept("("):
            inner = self.dim()
            self.expect(")")
            return inner
        token = self.take()
        if token.kind == "integer":
            return num(int(token.text))
        if token.kind == "quoted":
            return sym(token.text)
        if token.kind != "name" or token.text == "undefined":
            raise Refused(f"a size is expected before {token.text!r}")
        if token.text in OPERATIONS and self.at("("):
            a, b = self.items("(", self.dim, ")")
            return OPERATIONS[token.text](a, b)
        return sym(token.text)

    def dims(self):
        return self.items("[", self.dim, "]")

    def condition(self):
        """A condition as what is >= 0."""
        left = self.dim()
        equal = self.accept("==")
        if not equal:
            self.expect("<=")
        right = self.dim()
        return [right - left, left - right] if equal else [right - left]

    # --- sums

    def sum(self, types):
        """`types` are those of tensors, by name."""
        if self.at_zero():
            self.take()
            return []
        terms = [self.term(types)]
        while self.accept("+"):
            terms.append(self.term(types))
        return terms

    def at_zero(self):
        return self.peek().text == "0" and self.peek().kind == "integer" and not self.at("*", 1) \
            and not self.at("/", 1)

    def term(self, types):
        bound, guards = [], []
        if self.at("sum") and self.at("(", 1):
            self.take(), self.take()
            while not self.accept(";"):
                bound.append(self.name())
                self.accept(",")
            while not self.accept(")"):
                guards.append(self.dim())
                self.accept(",")
        coefficient, factors = self.rational(), []
        while self.accept("*"):
            factors.append(self.factor(types))
        if len(set(bound)) != len(bound):
            raise Refused("a variable is bound twice")
        return Term(coefficient, bound, guards, factors)

    def factor(self, types):
        base = self.base(types)
        return base.like(exponent=self.rational()) if self.accept("^") else base

    def base(self, types):
        def sums(opening="(", closing=")"):
            return self.items(opening, lambda: self.sum(types), closing)
        if self.at("("):
            return Factor("power", args=sums())
        if self.at("{"):
            return Factor("group", args=sums("{", "}"))
        if self.accept("@"):
            name = self.name()
            to = types.get(name, "f32" if name.startswith("%") else None)
            if to is None:
                raise Refused(f"there is no tensor {name}")
            return Factor("read", name, to=to, truth=to == "bool", at=self.dims())
        word = self.name()
        if word == "size":
            return Factor("number", at=self.dims())
        if word == "bottom":
            return Factor("bottom")
        if word == "most":
            return Factor("most", args=sums())
        if word == "fold":
            return Factor("fold", component=self.integer(), args=sums())
        if word == "cast":
            return Factor("cast", to=self.type(), args=sums())
        if word == "integer":
            return Factor("apply", self.name(), to="i64", args=sums())
        return Factor("apply", word, truth=word in ("less", "equal"), args=sums())
