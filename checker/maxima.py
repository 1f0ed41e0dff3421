"""Facts about the largest of some sums, each over a range."""
import functions
import signs
import sums
from expressions import Factor, Term, constant, constant_of, factor_sum, key, only_factor, opened, scaled, value_of


def most(groups):
    """The largest of the groups, each over the range of its term."""
    pieces, largest = [], None
    for piece in flattened(groups):
        value = constant_of(value_of(piece)) if piece.is_plain() else None
        if value is None:
            pieces.append(piece)
        elif largest is None or value > largest:
            largest = value
    if largest is not None:
        pieces.append(sums.group(constant(largest)))
    if not pieces:
        return factor_sum(Factor("bottom"))
    pieces = [p.like(coefficient=1) for p in sums.collected(pieces)]
    if len(pieces) == 1 and pieces[0].is_plain():
        return [opened(t) for t in value_of(pieces[0])]
    for i, piece in enumerate(pieces):
        others = pieces[:i] + pieces[i + 1:]
        if is_below(piece, others) or (len(others) < sums.MOST_FACTORS and is_lower(piece, others)):
            return most(others)
    other = clipped(pieces) or largest_clip(pieces) or of_exponentials(pieces)
    if other is not None:
        return other
    bound = [v for p in pieces for v in p.bound]
    shared = common_terms(pieces, bound)
    if shared:
        less = scaled(shared, -1)
        return most([p.like(factors=sums.group(value_of(p) + less).factors) for p in pieces]) + shared
    measure, factors = sums.content([value_of(p) for p in pieces], "positive", bound)
    if measure != 1 or factors:
        pieces = [p.like(factors=sums.group(sums.divided(value_of(p), measure, factors)).factors) for p in pieces]
        return sums.product([Term(measure, factors=factors)], most(pieces))
    return of_product(Factor("most", args=[pieces]))


def absolute(f):
    """x, of the largest of x and -x."""
    pieces = f.args[0] if f.kind == "most" else ()
    if len(pieces) == 2 and all(p.is_plain() for p in pieces) and \
            key(value_of(pieces[0])) == key(scaled(value_of(pieces[1]), -1)):
        return value_of(pieces[0])
    return None


def of_product(largest):
    """abs(x * y) = abs(x) * abs(y)."""
    value = absolute(largest)
    if value is None or len(value) != 1 or not value[0].is_plain() or \
            (len(value[0].factors) == 1 and value[0].factors[0].exponent == 1):
        return factor_sum(largest)
    result = constant(abs(value[0].coefficient))
    for f in value[0].factors:
        base = factor_sum(f.like(exponent=1))
        result = sums.product(result, sums.power(base if f.exponent % 2 == 0 else functions.apply("abs", [base]), f.exponent))
    return result


def of_exponentials(pieces):
    """max(exp(a), exp(b)) = exp(max(a, b))"""
    exponents = []
    for p in pieces:
        value = value_of(p)
        if not p.is_plain() or len(value) != 1 or not value[0].is_plain() or value[0].coefficient != 1 or \
                any(f.kind != "apply" or f.name != "exp" for f in value[0].factors):
            return None
        exponents.append(sums.group([t for f in value[0].factors for t in scaled([opened(t) for t in f.args[0]], f.exponent)]))
    return functions.apply("exp", [most(exponents)])


def is_lower(piece, others, known=()):
    """Whether a part is nowhere above another one that is always there."""
    return any(-1 not in signs.of(sums.collected(value_of(p) + scaled(value_of(piece), -1)), known)
               for p in others if p.is_plain())


def without_number(terms):
    """A sum as a number and what is left of it."""
    rest = [t for t in terms if t.factors or not t.is_plain()]
    return constant_of([t for t in terms if not t.factors and t.is_plain()]), rest


def flattened(groups):
    """The largest of largest ones is the largest of all; below every number is nothing."""
    for piece in groups:
        shift, rest = without_number(value_of(piece))
        only = only_factor(rest)
        scale = rest[0].coefficient if only is not None else 0
        if scale > 0 and only.kind == "bottom":
            continue
        if scale <= 0 or only.kind != "most" or only.exponent != 1:
            yield piece
            continue
        for inner in only.args[0]:
            inner = opened(inner)
            yield inner.like(bound=inner.bound + piece.bound, guards=inner.guards + piece.guards,
                             factors=sums.group(scaled(value_of(inner), scale) + constant(shift)).factors)


def is_below(piece, others):
    """min(x, y), as one of them, is below x, which is another."""
    only = only_factor(value_of(piece))
    if only is None or only.kind != "most" or only.exponent != 1:
        return False
    scale = value_of(piece)[0].coefficient
    if scale > 0:
        return False
    plain = {key(value_of(p)) for p in others if p.is_plain()}
    return any(p.is_plain() and key(scaled(value_of(p), scale)) in plain for p in only.args[0])


def bounded(pieces):
    """The number and the other one of two."""
    if len(pieces) == 2 and all(p.is_plain() for p in pieces):
        for i in (0, 1):
            value = constant_of(value_of(pieces[i]))
            if value is not None:
                return value, value_of(pieces[1 - i])
    return None


def clip_operand(terms):
    """The largest of a number and of another one that a negative multiple is of, as in a clip."""
    only = only_factor(terms)
    is_it = only is not None and only.kind == "most" and only.exponent == 1 and terms[0].coefficient < 0
    return only if is_it and bounded(only.args[0]) else None


def clipped(pieces):
    """max(a, min(b, x)) = min(b, max(a, x)) for numbers a <= b, and max(n, x) = n + max(0, x - n) inside: one form."""
    outer = bounded(pieces)
    if outer is None:
        return None
    shift, operand = without_number(outer[1])
    only = clip_operand(operand)
    if only is None:
        return None

    def with_shift(by, other):
        return most([sums.group(constant(outer[0] - by)), sums.group(other)]) + constant(by)
    if shift != 0:
        return with_shift(shift, operand)
    scale, inner = operand[0].coefficient, bounded(only.args[0])
    if sums.leads_negative(inner[1]):
        if inner[0] == 0 or clip_operand(inner[1]):
            return None
        larger = most([sums.group([]), sums.group([opened(t) for t in inner[1]] + constant(-inner[0]))])
        return with_shift(inner[0] * scale, scaled(larger, scale))
    if inner[0] * scale < outer[0]:
        return None
    larger = most([sums.group(constant(outer[0])), sums.group(scaled(inner[1], scale))])
    return scaled(most([sums.group(constant(-inner[0] * scale)), sums.group(scaled(larger, -1))]), -1)


def largest_clip(pieces):
    """max(n, x, y) = n + max(0, x - n, y - n), for the largest of several clips, or of many elements plus a number."""
    number = next((n for p in pieces for n in [constant_of(value_of(p))] if p.is_plain() and n is not None), None)

    def is_shifted(piece):
        shift, rest = without_number(value_of(piece))
        return len(pieces) > 2 and clip_operand(rest) or piece.bound and shift
    if not number or not any(map(is_shifted, pieces)):
        return None
    less = constant(-number)
    return most([p.like(factors=sums.group(value_of(p) + less).factors) for p in pieces]) + constant(number)


def common_terms(pieces, bound):
    def whole(t):
        return f"{t.coefficient} {t.body()}"
    there = [{whole(t) for t in value_of(p)} for p in pieces]
    return [t for t in value_of(pieces[0])
            if t.free().isdisjoint(bound) and all(whole(t) in texts for texts in there)]
