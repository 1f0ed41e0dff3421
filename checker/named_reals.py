"""The reals that a constant may stand for (docs/verification.md, Constants)."""
import struct
from fractions import Fraction
from math import acos, copysign, floor, inf, isfinite, nextafter, sqrt

from expressions import Factor, Term, constant, scaled
from sums import power, product

HALF = Fraction(1, 2)
# name, the square of the rational part, twice the exponent of pi
MULTIPLES = [("pi", Fraction(1), 2), ("sqrt(2/pi)", Fraction(2), -1), ("sqrt(pi/2)", HALF, 1),
             ("1/sqrt(2*pi)", HALF, -1),
             ("0.044715*sqrt(2/pi)", Fraction(159954498, 40000000000), -1),
             ("2/sqrt(pi)", Fraction(4), -1), ("1/pi", Fraction(1), -2), ("2*pi", Fraction(4), 2),
             ("pi/2", Fraction(1, 4), 2)]


def single(x):
    try:
        return struct.unpack("f", struct.pack("f", x))[0]
    except OverflowError:
        return copysign(inf, x)


def is_single(x):
    return single(x) == x or float(f"{x:.9g}") == x


def is_rounded(x, real):
    return single(x) == single(real) if is_single(x) else x == real


def is_square_of_inverse_root(x, n):
    root = single(1 / sqrt(n))
    return n & (n - 1) == 0 and is_single(x) and single(x) == single(root * root)


def is_near(x, real):
    size = abs(x)
    if is_single(x):
        bits = struct.unpack("I", struct.pack("f", single(size)))[0]
        unit = struct.unpack("f", struct.pack("I", bits + 1))[0] - single(size)
    else:
        unit = nextafter(size, inf) - size
    return isfinite(unit) and abs(x - real) <= 2 * unit  # the largest number of a type has no next one


def decimal(x):
    for digits in range(1, 7):
        text = f"{x:.{digits - 1}e}"
        if is_rounded(x, float(text)):
            value = Fraction(text)
            return None if value == Fraction(x) else (str(value), constant(value))
    return None


def named_real(value):
    """(name, sum) of a constant that is near a named real; None where it stands for itself."""
    x = float(value)
    if x == 0 or (x * 4096 == floor(x * 4096) and abs(x * 4096) < 1e9):
        return None
    found = decimal(x)
    if found is not None:
        return found
    size, sign = abs(x), -1 if x < 0 else 1

    def named(name, real):
        return ("-" if sign < 0 else "") + name, scaled(real, sign)
    inverse = round(1 / size)
    if 1 <= inverse <= 65536 and (is_rounded(size, 1 / inverse) or is_square_of_inverse_root(size, inverse)):
        return named(f"1/{inverse}", constant(Fraction(1, inverse)))
    square, over = round(size * size), round(1 / (size * size))
    if 2 <= square <= 65536 and sqrt(square) != floor(sqrt(square)) and is_near(size, sqrt(square)):
        return named(f"sqrt({square})", power(constant(Fraction(square)), HALF))
    if 2 <= over <= 65536 and sqrt(over) != floor(sqrt(over)) and is_near(size, 1 / sqrt(over)):
        return named(f"1/sqrt({over})", power(constant(Fraction(over)), -HALF))
    for name, squared, twice in MULTIPLES:
        if is_near(size, sqrt(float(squared)) * acos(-1.0) ** (twice / 2)):
            pi = [Term(factors=[Factor("read", "%pi", to="f32")])]
            return named(name, product(power(constant(squared), HALF), power(pi, Fraction(twice, 2))))
    return None
