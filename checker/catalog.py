"""What operators mean: what `tessera operators --definitions` prints."""
import re

from graphs import Argument, Call, GraphReader
from reader import Reader
from sizes import require


class Catalog:
    """What `tessera operators --definitions` prints."""

    def __init__(self, text):
        self.defaults, self.definitions, self.composites, self.asked, self.results = {}, {}, {}, {}, {}
        self.random, self.associative = set(), []
        for block in re.split(r"^(?=associative |defaults |random |composite |operator |results )", text, flags=re.M):
            kind, _, rest = block.partition(" ")
            head, _, body = rest.partition("\n")
            if kind == "defaults":
                op, _, attrs = head.partition(" {")
                self.defaults[op] = GraphReader(Reader(attrs)).attributes()
            elif kind == "associative":
                self.associative.append(head)
            elif kind == "random":
                self.random.add(head)
            elif kind == "operator":
                lines = body.strip().split("\nasks ")
                self.definitions[head] = lines[0].strip()
                self.asked[head] = [Reader(line).condition()[0] for line in lines[1:]]
            elif kind == "composite":
                self.composites.setdefault(head.split(" ")[0], []).append((head, body))
            elif kind == "results":
                self.results.setdefault(head.split(" ")[0], []).append((head, body))
        self.calls = {}
        for text in self.definitions:
            self.calls.setdefault(text.split(" ")[0], []).append(text)


def parsed_call(text, memo={}):
    if text not in memo:
        r = Reader(text)
        op, attrs = r.name(), GraphReader(r).attributes() if r.accept("{") else {}

        def argument():
            if r.accept("_"):
                return None
            dtype, shape = r.type(), r.dims()
            known = r.dims() if r.accept("=") else None
            return Argument(dtype, shape, known, GraphReader(r).literal() if r.accept("is") else None)
        memo[text] = Call(op, attrs, r.items("(", argument, ")"))
        require(r.peek().kind == "end", "an operator does not end")
    return memo[text]
