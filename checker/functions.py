"""Facts about functions of reals and of integers."""
from fractions import Fraction
from math import floor

import maxima
import signs
import sums
from expressions import (Factor, Term, WIDE, constant, constant_of, factor_sum, indicator, key, only_factor, opened,
                         scaled, times_factor, value_of)
from sizes import num

ODD = {"sin", "atan", "tanh", "erf"}


def exponential(arg):
    def below(t):
        return any(f.kind == "bottom" for f in t.factors)
    low = [t for t in arg if below(t)]
    if len(low) == 1 and only_factor(low) is not None and low[0].coefficient > 0:
        return []
    if low:
        return factor_sum(Factor("apply", "exp", args=[arg]))
    result, powers = Term(), [Term()]
    for t in arg:
        only = only_factor([t])
        if only is not None and only.kind == "apply" and only.name == "log" and only.exponent == 1:
            powers = sums.product(powers, sums.power([opened(u) for u in only.args[0]], t.coefficient))
            continue
        result = times_factor(result, Factor("apply", "exp", args=[[t.like(coefficient=1)]],
                                             exponent=t.coefficient))
    return sums.product([result], powers)


def logarithm(arg):
    if len(arg) != 1 or not arg[0].is_plain():
        common = sums.common_exponentials(arg)
        if not common:
            return factor_sum(Factor("apply", "log", args=[arg]))
        result = logarithm(sums.collected(sums.divided(arg, 1, common)))
        for f in common:
            result = result + scaled([opened(t) for t in f.args[0]], f.exponent)
        return result
    rest, result = arg[0], []
    for f in rest.factors:
        even = f.exponent.denominator == 1 and f.exponent % 2 == 0
        if f.kind == "apply" and f.name == "exp":
            result += scaled([opened(t) for t in f.args[0]], f.exponent)
        elif len(rest.factors) == 1 and rest.coefficient == 1 and f.exponent != 1:
            base = factor_sum(f.like(exponent=1))
            if even:
                base = maxima.most([sums.group(base), sums.group(scaled(base, -1))])
            result += scaled(logarithm(base), f.exponent)
        else:
            continue
        rest = rest.like(factors=[g for g in rest.factors if g is not f])
    if not rest.factors and rest.coefficient == 1:
        return result
    return result + factor_sum(Factor("apply", "log", args=[[rest]]))


VALUES = {"sin": {0: 0}, "atan": {0: 0}, "tanh": {0: 0}, "erf": {0: 0}, "cos": {0: 1}, "log": {1: 0}}


def apply(fn, args):
    """A function of reals."""
    if fn == "add":
        return args[0] + args[1]
    if fn == "sub":
        return args[0] + scaled(args[1], -1)
    if fn == "neg":
        return scaled(args[0], -1)
    if fn == "mul":
        return sums.product(args[0], args[1])
    if fn == "div":
        above, below = sums.collected(args[0]), sums.collected(args[1])
        if above and key(above) == key(below):
            return [Term()]
        return sums.product(args[0], sums.power(args[1], -1))
    if fn == "sqrt":
        return sums.power(args[0], Fraction(1, 2))
    if fn == "abs":
        return maxima.most([sums.group(args[0]), sums.group(scaled(args[0], -1))])
    if fn == "max":
        return maxima.most([sums.group(args[0]), sums.group(args[1])])
    if fn == "min":
        return scaled(maxima.most([sums.group(scaled(args[0], -1)), sums.group(scaled(args[1], -1))]), -1)
    args = [sums.collected(arg) for arg in args]
    if fn == "pow" and constant_of(args[1]) is not None:
        return sums.power(args[0], constant_of(args[1]))
    if fn == "exp":
        return exponential(args[0])
    if fn == "log" and constant_of(args[0]) is None:
        return logarithm(args[0])
    truth = fn in ("less", "equal")
    if truth:  # of a difference with zero
        args = [sums.collected(args[0] + scaled(args[1], -1))]
        if args[0] and constant_of(args[0]) is None:
            measure = 1 / sums.content(args, "positive")[0]
            negative = fn == "equal" and sums.leads_negative(args[0])
            args = [scaled(args[0], -measure if negative else measure)]
        found = compared(fn, args[0])
        if found is not None:
            return found
    if fn in ("floor", "round"):
        return rounded(fn, args[0])
    by = constant_of(args[1]) if fn == "mod" else None
    if by is not None and by > 0:
        return remainder(args[0], by)
    value = constant_of(args[0]) if len(args) == 1 else None
    if value in VALUES.get(fn, {}):
        return constant(VALUES[fn][value])
    sign = 1
    if (fn in ODD or fn == "cos") and sums.leads_negative(args[0]):
        args, sign = [scaled(args[0], -1)], -1 if fn in ODD else 1
    return scaled(factor_sum(Factor("apply", fn, truth=truth, args=args)), sign)


def compared(fn, arg):
    """Whether a sum is below zero, or zero, where that is seen: a sum; else None."""
    def at(value):
        return int(value < 0 if fn == "less" else value == 0)
    no, rest = constant_of([t for t in arg if not t.factors]), [t for t in arg if t.factors]
    only = only_factor(rest)
    if no is not None and only is not None and only.truth and only.exponent == 1:  # c + k*t, where t is 0 or 1
        return constant(at(no)) + scaled([Term(factors=[only])], at(no + rest[0].coefficient) - at(no))
    found, wanted = signs.of(arg), -1 if fn == "less" else 0
    if found == {wanted} or wanted not in found:
        return constant(int(wanted in found))
    dim = dim_of(arg)
    if dim is None:
        return None
    return indicator([-dim - num(1)]) if fn == "less" else indicator([dim, -dim])


def dim_of(terms):
    """A sum of sizes and indices alone."""
    total = num(0)
    for t in terms:
        if not t.is_plain() or t.coefficient.denominator != 1:
            return None
        one = num(t.coefficient.numerator)
        for f in t.factors:
            if f.kind != "number" or f.exponent.denominator != 1 or not 0 < f.exponent <= sums.MOST_FACTORS:
                return None
            for _ in range(f.exponent.numerator):
                one = one * f.at[0]
        total = total + one
    return total


def is_integer(t):
    return t.coefficient.denominator == 1 and all(is_integer_factor(f) for f in t.factors)


def is_integer_factor(f):
    if f.exponent.denominator != 1 or f.exponent < 0:
        return False
    if f.kind in ("read", "cast"):
        return f.to[0] in "iu" or f.to == "bool"
    if f.kind == "apply":
        return f.truth or f.name in ("floor", "round") or f.to == "i64"
    if f.kind == "most":
        return all(is_integer(t) for p in f.args[0] for t in value_of(p))
    return f.kind == "number" or (f.kind == "power" and all(map(is_integer, f.args[0])))


def rounded(fn, arg):
    """floor(a + n) = floor(a) + n for an integer n; round(-a) = -round(a); of max(a, b) + n for a number n: the
    largest of both"""
    if all(map(is_integer, arg)):
        return arg
    value = constant_of(arg)
    if isinstance(value, Fraction):
        return constant(Fraction(floor(value) if fn == "floor" else round(value)))
    whole = [t for t in arg if fn == "floor" and is_integer(t)]
    rest = [t for t in arg if fn != "floor" or not is_integer(t)]
    sign = -1 if fn == "round" and sums.leads_negative(rest) else 1
    rest = scaled(rest, sign)
    number = [t for t in rest if constant_of([t]) is not None]
    multiple = [t for t in rest if constant_of([t]) is None]
    only = only_factor(multiple)
    if only is not None and only.kind == "most" and only.exponent == 1 and multiple[0].coefficient > 0:
        pieces = [opened(p) for p in only.args[0]]
        made = maxima.most([p.like(factors=sums.group(apply(fn, [
            number + scaled([opened(t) for t in value_of(p)], multiple[0].coefficient)])).factors) for p in pieces])
    else:
        made = factor_sum(Factor("apply", fn, args=[rest]))
    return whole + scaled(made, sign)


def application(terms, fn):
    only = only_factor(terms)
    is_it = only is not None and only.kind == "apply" and only.name == fn and only.exponent == 1 and \
        terms[0].coefficient == 1
    return only if is_it else None


def remainder(arg, by):
    """mod(a + c*n, c) = mod(a, c) for an integer n; mod(mod(a, k*c), c) = mod(a, c)"""
    rest = [t for t in arg if not is_integer(t.like(coefficient=t.coefficient / by))]
    inner = application(rest, "mod")
    divisor = constant_of(inner.args[1]) if inner is not None else None
    if divisor and (divisor / by).denominator == 1:
        return remainder(inner.args[0], by)
    return factor_sum(Factor("apply", "mod", args=[rest, constant(by)])) if rest else []


def apply_to_integers(fn, args):
    args = [sums.collected(a) for a in args]
    second = constant_of(args[1]) if len(args) > 1 else None
    if fn in ("shift_left", "shift_right") and second is not None and second.denominator == 1 and 0 <= second < 32:
        times = constant(Fraction(2) ** second)
        if fn == "shift_left":
            return sums.product(args[0], times)
        if -1 not in signs.of(args[0]):
            return apply_to_integers("div", [args[0], times])
    if fn == "div":
        if second == 1:
            return args[0]
        inner = application(args[0], "div")
        first = constant_of(inner.args[1]) if inner is not None and inner.to == "i64" else None
        if first is not None and second is not None and first > 0 and second > 0:
            return apply_to_integers("div", [inner.args[0], constant(first * second)])
    elif fn in ("not", "and", "or", "xor"):
        return of_bits(fn, args)
    elif fn != "pow" or (second is not None and second >= 0):
        return apply(fn, args)
    return factor_sum(Factor("apply", fn, to="i64", args=args))


def bits(terms):
    """The type whose bits a number has: an element, a function of bits, or all bits less those; else None."""
    if len(terms) == 2:
        number, rest = sorted(terms, key=lambda t: len(t.factors))
        to = bits([rest.like(coefficient=-rest.coefficient)]) if not number.factors and number.is_plain() else None
        return to if to is not None and number.coefficient == all_bits(to) else None
    f = only_factor(terms)
    if f is None or f.exponent != 1 or terms[0].coefficient != 1:
        return None
    if f.kind in ("read", "cast"):
        return f.to if f.to in ("i8", "i16", "i32", "i64", "u8", "u16", "u32") else None
    if f.kind != "apply" or f.name not in ("and", "xor"):
        return None
    return bits(f.args[0]) if bits(f.args[0]) == bits(f.args[1]) else None


def all_bits(to):
    return -1 if to[0] == "i" else 2 ** WIDE[to] - 1


def of_bits(fn, args):
    """Functions of the bits of integers."""
    kept = factor_sum(Factor("apply", fn, to="i64", args=sorted(args, key=key)))
    if fn == "not":
        to = bits(args[0])
        return kept if to is None else constant(all_bits(to)) + scaled(args[0], -1)
    if key(args[0]) == key(args[1]):
        return [] if fn == "xor" else args[0]
    if fn == "or":
        return args[0] + args[1] + scaled(of_bits("and", args), -1)
    for one, other in (args, args[::-1]):
        inner = application(one, fn)
        for k in (0, 1):
            if inner is not None and key(inner.args[k]) == key(other):
                return [opened(t) for t in inner.args[1 - k]] if fn == "xor" else one
        if fn == "and" and len(one) == 2 and bits(one) is not None and bits(one) == bits(other):
            complement = [t.like(coefficient=1) for t in one if t.factors]
            return other + scaled(of_bits("and", [complement, other]), -1)
    return kept


def fits(source, to):
    """Whether every number of a type is one of another."""
    if source == to or source == "bool":
        return True
    width = (WIDE[source] + 7) // 8, (WIDE[to] + 7) // 8
    if to[0] in "fb" and to != "bool":
        return width[1] > 2 if source == "f8e8m0" else width[0] < width[1] and to != "bf16"
    unsigned, signed = source in ("u8", "u16", "u32"), source in ("i8", "i16", "i32")
    if to in ("i16", "i32", "i64"):
        return (unsigned or signed) and width[0] < width[1]
    return unsigned and to in ("u16", "u32", "u64") and width[0] < width[1]


def holds(to, value):
    """Whether a type has this integer."""
    if to in ("f16", "bf16"):
        return abs(value) <= (2048 if to == "f16" else 256)
    if to[0] == "u":
        return 0 <= value < 2 ** WIDE[to]
    return to[0] == "i" and -2 ** (WIDE[to] - 1) <= value < 2 ** (WIDE[to] - 1)


def cast(to, arg):
    arg = sums.collected(arg)
    value = constant_of(arg)
    if value is not None and value.denominator == 1 and holds(to, value):
        return arg
    only = only_factor(arg)
    if only is not None and arg[0].coefficient == 1 and only.exponent == 1:
        if only.kind in ("read", "cast") and only.to and fits(only.to, to):
            return arg
    low, high = signs.bounds(arg)
    if to[0] in "iu" and WIDE[to] <= 32 and None not in (low, high) and holds(to, low) and holds(to, high) and \
            all(map(is_integer, arg)):
        return arg
    return factor_sum(Factor("cast", to=to, args=[arg]))
