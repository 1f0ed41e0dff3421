"""ATen operators on elements."""

from __future__ import annotations

import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from ..emitter import Emitter, TensorValue, Unsupported, compute_dtype


def common_dtype(*arguments) -> torch.dtype:
    """The type to which torch promotes arguments before it computes."""
    stand_ins = []
    for argument in arguments:
        if isinstance(argument, TensorValue):
            # Tensors without axes promote as others of a lower category.
            argument = torch.empty([1] * argument.rank, dtype=argument.dtype, device="meta")
        stand_ins.append(argument)
    return elementwise_dtypes(*stand_ins, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1]


def operand(e: Emitter, x, dtype: torch.dtype) -> TensorValue:
    return e.cast(x, dtype) if isinstance(x, TensorValue) else e.number(x, dtype)


def _formula(f):
    """A row: f of operands in the type that torch computes in; the result has the type of the output."""

    def row(e, out, *operands, **_):
        dtype = compute_dtype(out.dtype)
        return e.cast(f(e, *(operand(e, x, dtype) for x in operands)), out.dtype)

    return row


def _op(name, **attributes):
    return _formula(lambda e, *operands: e.op(name, *operands, **attributes))


def _floats_only(f):
    """A row for floats; integers are their own result."""

    def row(e, out, x, **_):
        if not x.dtype.is_floating_point:
            return e.cast(x, out.dtype)
        return e.cast(f(e, e.cast(x, compute_dtype(x.dtype))), out.dtype)

    return row


def _arithmetic(op, of_bools=None):
    def row(e, out, x, y, alpha=1, **_):
        if out.dtype == torch.bool:
            if of_bools is None or alpha != 1:
                raise Unsupported("arithmetic of bool")
            return e.op(of_bools, operand(e, x, torch.bool), operand(e, y, torch.bool))
        dtype = compute_dtype(out.dtype)
        x, y = operand(e, x, dtype), operand(e, y, dtype)
        return e.cast(e.op(op, x, y if alpha == 1 else y * alpha), out.dtype)

    return row


def _comparison(op):
    def row(e, out, x, y, **_):
        dtype = compute_dtype(common_dtype(x, y))
        if dtype == torch.bool:
            dtype = torch.uint8
        return e.op(op, operand(e, x, dtype), operand(e, y, dtype))

    return row


def _not_equal(e, out, x, y, **_):
    return e.op("logical_not", _comparison("equal")(e, out, x, y))


def _logical(op):
    def row(e, out, *operands, **_):
        return e.op(op, *(operand(e, x, torch.bool) for x in operands))

    return row


def _bitwise(op, of_bools):
    def row(e, out, *operands, **_):
        name = of_bools if out.dtype == torch.bool else op
        return e.op(name, *(operand(e, x, out.dtype) for x in operands))

    return row


def _shift(direction):
    def row(e, out, x, y, **_):
        if out.dtype != torch.uint8:
            raise Unsupported("a shift of signed integers")
        return e.op("bit_shift", operand(e, x, out.dtype), operand(e, y, out.dtype), direction=direction)

    return row


def _trunc(e, x):
    return e.where(x.less(0), e.op("ceil", x), e.op("floor", x))


def _div(e, out, x, y, rounding_mode=None, **_):
    dtype = compute_dtype(out.dtype)
    x, y = operand(e, x, dtype), operand(e, y, dtype)
    if rounding_mode is None:
        return e.cast(x / y, out.dtype)
    if dtype.is_floating_point:
        if rounding_mode == "trunc":
            return e.cast(_trunc(e, x / y), out.dtype)
        # As torch does: the quotient of what a remainder leaves, so that it is exact where rounding is not.
        remainder = e.op("mod", x, y, fmod=1)
        quotient = (x - remainder) / y
        off = e.op("logical_and", e.op("logical_not", remainder.equals(0)),
                   e.op("logical_xor", remainder.less(0), y.less(0)))
        quotient = e.where(off, quotient - 1, quotient)
        floor = e.op("floor", quotient)
        floor = e.where((quotient - floor).greater(0.5), floor + 1, floor)
        return e.cast(e.where(y.equals(0), x / y, floor), out.dtype)
    if dtype == torch.bool:
        raise Unsupported("division of bool")
    quotient = x / y
    if rounding_mode == "trunc" or not dtype.is_signed:
        return quotient
    remainder = x - quotient * y
    off = e.op("logical_and", e.op("logical_not", remainder.equals(0)),
               e.op("logical_xor", remainder.less(0), y.less(0)))
    return e.where(off, quotient - 1, quotient)


def _floor_divide(e, out, x, y, **_):
    return _div(e, out, x, y, rounding_mode="floor")


def _remainder(e, out, x, y, **_):
    dtype = compute_dtype(out.dtype)
    if dtype == torch.bool:
        raise Unsupported("a remainder of bool")
    x, y = operand(e, x, dtype), operand(e, y, dtype)
    if not dtype.is_floating_point:
        return e.op("mod", x, y)
    remainder = e.op("mod", x, y, fmod=1)
    off = e.op("logical_and", e.op("logical_not", remainder.equals(0)),
               e.op("logical_xor", remainder.less(0), y.less(0)))
    return e.cast(e.where(off, remainder + y, remainder), out.dtype)


def _pow(e, out, x, y, **_):
    dtype = compute_dtype(out.dtype)
    if isinstance(y, (int, float)) and isinstance(x, TensorValue):
        value = e.cast(x, dtype)
        if y == 2:
            return e.cast(value * value, out.dtype)
        if y == 1:
            return e.cast(value, out.dtype)
        if y == 3:
            return e.cast(value * value * value, out.dtype)
        if dtype.is_floating_point:
            if y == 0.5:
                return e.cast(e.op("sqrt", value), out.dtype)
            if y == -0.5:
                return e.cast(1.0 / e.op("sqrt", value), out.dtype)
            if y == -1:
                return e.cast(1.0 / value, out.dtype)
    if not dtype.is_floating_point:
        raise Unsupported("a power of integers")
    return e.cast(e.op("pow", operand(e, x, dtype), operand(e, y, dtype)), out.dtype)


def _rsub(e, out, x, y, alpha=1, **_):
    dtype = compute_dtype(out.dtype)
    x = operand(e, x, dtype)
    return e.cast(e.op("sub", operand(e, y, dtype), x if alpha == 1 else x * alpha), out.dtype)


def _clamp(e, out, x, low=None, high=None, **_):
    dtype = compute_dtype(out.dtype)
    x = operand(e, x, dtype)
    if low is not None:
        x = e.op("max", x, operand(e, low, dtype))
    if high is not None:
        x = e.op("min", x, operand(e, high, dtype))
    return e.cast(x, out.dtype)


def _where(e, out, condition, x, y):
    return e.op("where", e.cast(condition, torch.bool), operand(e, x, out.dtype), operand(e, y, out.dtype))


def _masked_fill(e, out, x, mask, value):
    return e.op("where", mask, operand(e, value, out.dtype), x)


def _gelu(e, out, x, approximate="none"):
    return e.cast(e.op("gelu", e.cast(x, compute_dtype(x.dtype)), approximate=approximate), out.dtype)


def _elu(e, out, x, alpha=1.0, scale=1.0, input_scale=1.0):
    value = e.cast(x, compute_dtype(out.dtype))
    negative = (e.op("exp", value * input_scale) - 1.0) * (alpha * scale)
    return e.cast(e.where(value.greater(0), value * scale, negative), out.dtype)


def _leaky_relu(e, out, x, negative_slope=0.01):
    value = e.cast(x, compute_dtype(out.dtype))
    return e.cast(e.where(value.greater(0), value, value * negative_slope), out.dtype)


def _hardtanh(e, out, x, low=-1.0, high=1.0):
    return _clamp(e, out, x, low, high)


def _softplus(e, out, x, beta=1, threshold=20):
    value = e.cast(x, compute_dtype(out.dtype))
    scaled = value * float(beta)
    small = e.where(scaled.greater(float(threshold)), 0.0, scaled)
    return e.cast(e.where(scaled.greater(float(threshold)), value, log1p(e, e.op("exp", small)) / float(beta)),
                  out.dtype)


def log1p(e, x):
    """log(1 + x), accurate near 0 (Kahan): log(u) x / (u - 1) for u = 1 + x rounded."""
    u = x + 1.0
    exact = u.equals(1.0)
    infinite = e.op("is_inf", u, detect_negative=0)
    safe = e.where(exact, 2.0, u)
    return e.where(exact, x, e.where(infinite, u, e.op("log", safe) * (x / (safe - 1.0))))


def expm1(e, x):
    """exp(x) - 1, accurate near 0: 2 sinh(x/2) exp(x/2) for small x."""
    half = x * 0.5
    small = e.op("abs", x).less(0.5)
    safe = e.where(small, half, 0.0)
    return e.where(small, 2.0 * e.op("sinh", safe) * e.op("exp", safe), e.op("exp", x) - 1.0)


def _round(e, out, x, decimals=0):
    if decimals:
        factor = float(10 ** abs(decimals))
        value = e.cast(x, compute_dtype(x.dtype))
        scaled = e.op("round", value * factor if decimals > 0 else value / factor)
        return e.cast(scaled / factor if decimals > 0 else scaled * factor, out.dtype)
    return _floats_only(lambda e, x: e.op("round", x))(e, out, x)


def _sign(e, out, x):
    if x.dtype == torch.bool:
        return x
    # Of NaN it is 0.
    one, zero = e.number(1, x.dtype), e.number(0, x.dtype)
    return e.op("where", x.greater(0), one, e.op("where", x.less(0), e.number(-1, x.dtype), zero)) if x.dtype.is_signed \
        else e.op("where", x.greater(0), one, zero)


def _is_negative(e, x):
    """Whether the sign bit is set; -0 is told by its reciprocal."""
    if not x.dtype.is_floating_point:
        return x.less(0) if x.dtype.is_signed else e.full(x.shape, False, torch.bool)
    zero = x.equals(0)
    return e.op("logical_or", x.less(0), e.op("logical_and", zero, (1.0 / e.where(zero, x, 1.0)).less(0)))


def _copysign(e, out, x, y):
    dtype = compute_dtype(out.dtype)
    magnitude = e.op("abs", operand(e, x, dtype))
    return e.cast(e.where(_is_negative(e, operand(e, y, dtype)), -magnitude, magnitude), out.dtype)


def _angle(e, out, x):
    if not x.dtype.is_floating_point:
        return e.cast(e.where(x.less(0), e.number(math.pi, out.dtype), 0.0), out.dtype) if x.dtype.is_signed \
            else e.full(out.shape, 0.0, out.dtype)
    return e.where(e.op("is_nan", x), x, e.where(x.less(0), e.number(math.pi, x.dtype), 0.0))


def _is(op):
    def row(e, out, x):
        if not x.dtype.is_floating_point:
            return e.full(out.shape, False, torch.bool)
        return e.op(op, e.cast(x, compute_dtype(x.dtype)))

    return row


def _is_signed_infinity(**signs):
    def row(e, out, x):
        if not x.dtype.is_floating_point:
            return e.full(out.shape, False, torch.bool)
        return e.op("is_inf", e.cast(x, compute_dtype(x.dtype)), **signs)

    return row


def _abs(e, out, x):
    if not x.dtype.is_signed:
        return x
    return e.cast(e.op("abs", e.cast(x, compute_dtype(x.dtype))), out.dtype)


def _relu(e, out, x):
    value = e.cast(x, compute_dtype(x.dtype))
    if x.dtype.is_floating_point:
        return e.cast(e.op("relu", value), out.dtype)
    return e.op("max", value, e.number(0, x.dtype))


def _atan2(e, y, x):
    """Angle of the point (x, y), by its quadrant; zeros count by their sign."""
    left, below = _is_negative(e, x), _is_negative(e, y)
    signed_pi = e.where(below, e.number(-math.pi, y.dtype), math.pi)
    upright = signed_pi * 0.5
    plain = e.op("atan", y / x)
    result = e.where(x.equals(0), upright, e.where(left, plain + signed_pi, plain))
    result = e.where(e.op("logical_and", x.equals(0), y.equals(0)), e.where(left, signed_pi, y), result)
    both_infinite = e.op("logical_and", e.op("is_inf", x), e.op("is_inf", y))
    return e.where(e.op("is_nan", y), y, e.where(both_infinite, upright * e.where(left, e.number(1.5, y.dtype), 0.5), result))


# erfc(x) exp(x²) / t for t = 1 / (1 + x/2), of 0.4 ≤ x ≤ 10.2: a least squares fit with a relative error of 1.3e-8.
ERFC = (0.282073972, 0.2826319, 0.240915545, 0.212784051, -0.0542732003, 0.324221906, -0.533240688, 0.309755133, -0.0648688823)


def _erfc(e, x):
    """1 - erf(x); where that cancels, by exp(-x²)."""
    if x.dtype == torch.float64:
        raise Unsupported("erfc of f64")
    t = 1.0 / (x * 0.5 + 1.0)
    polynomial = e.number(ERFC[-1], x.dtype)
    for coefficient in reversed(ERFC[:-1]):
        polynomial = polynomial * t + coefficient
    return e.where(x.greater(0.5), e.op("exp", -(x * x)) * (t * polynomial), 1.0 - e.op("erf", x))


def _to_copy(e, out, x, **_):
    return e.cast(x, out.dtype)


def _copy(e, out, x, source, non_blocking=False):
    return e.expand(e.cast(source, out.dtype), out.shape)


def _fill(e, out, x, value):
    return e.expand(operand(e, value, out.dtype), out.shape)


def _scaled(f):
    def row(e, out, x, y, z, value=1):
        dtype = compute_dtype(out.dtype)
        x, y, z = (operand(e, v, dtype) for v in (x, y, z))
        return e.cast(f(x, y, z, value), out.dtype)

    return row


def _log_sigmoid(e, out, x):
    value = e.cast(x, compute_dtype(out[0].dtype if isinstance(out, (tuple, list)) else out.dtype))
    result = e.op("min", value, e.number(0.0, value.dtype)) - log1p(e, e.op("exp", -e.op("abs", value)))
    return (e.cast(result, x.dtype), None)


def _nan_to_num(e, out, x, nan=None, posinf=None, neginf=None):
    if not x.dtype.is_floating_point:
        return x
    limits = torch.finfo(x.dtype)
    value = e.cast(x, compute_dtype(x.dtype))
    value = e.where(e.op("is_nan", value), 0.0 if nan is None else float(nan), value)
    positive = e.op("is_inf", value, detect_negative=0)
    negative = e.op("is_inf", value, detect_positive=0)
    value = e.where(positive, limits.max if posinf is None else float(posinf), value)
    return e.cast(e.where(negative, limits.min if neginf is None else float(neginf), value), out.dtype)


def _ignoring_nan(op):
    def row(e, out, x, y):
        x, y = operand(e, x, out.dtype), operand(e, y, out.dtype)
        if not out.dtype.is_floating_point:
            return _bitwise(op, "logical_or" if op == "max" else "logical_and")(e, out, x, y)
        larger = e.op(op, x, y)
        return e.where(e.op("is_nan", x), y, e.where(e.op("is_nan", y), x, larger))

    return row


def _lerp(e, out, x, end, weight):
    dtype = compute_dtype(out.dtype)
    x, end, weight = (operand(e, v, dtype) for v in (x, end, weight))
    step = end - x
    near = e.op("abs", weight).less(0.5)
    return e.cast(e.where(near, x + weight * step, end - step * (1.0 - weight)), out.dtype)


def _hypot(e, x, y):
    """Length of (x, y) without overflow: the larger one times sqrt(1 + ratio^2)."""
    x, y = e.op("abs", x), e.op("abs", y)
    large, small = e.op("max", x, y), e.op("min", x, y)
    ratio = small / e.where(large.equals(0), 1.0, large)
    finite = large * e.op("sqrt", ratio * ratio + 1.0)
    infinite = e.op("logical_or", e.op("is_inf", x), e.op("is_inf", y))
    return e.where(infinite, e.number(math.inf, x.dtype), finite)


UNARY = ("acos acosh asin asinh atan atanh cos cosh erf exp log reciprocal sigmoid sin sinh sqrt tan tanh mish "
         "neg").split()

ROWS = {
    **{name: _op(name) for name in UNARY},
    "abs": _abs,
    "add": _arithmetic("add", "logical_or"),
    "addcdiv": _scaled(lambda x, y, z, value: x + y / z * value),
    "addcmul": _scaled(lambda x, y, z, value: x + y * z * value),
    "angle": _angle,
    "atan2": _formula(_atan2),
    "bitwise_and": _bitwise("bitwise_and", "logical_and"),
    "bitwise_left_shift": _shift("LEFT"),
    "bitwise_not": _bitwise("bitwise_not", "logical_not"),
    "bitwise_or": _bitwise("bitwise_or", "logical_or"),
    "bitwise_right_shift": _shift("RIGHT"),
    "bitwise_xor": _bitwise("bitwise_xor", "logical_xor"),
    "ceil": _floats_only(lambda e, x: e.op("ceil", x)),
    "clamp": _clamp,
    "clamp_max": lambda e, out, x, high: _clamp(e, out, x, None, high),
    "clamp_min": lambda e, out, x, low: _clamp(e, out, x, low, None),
    "copy": _copy,
    "copysign": _copysign,
    "div": _div,
    "elu": _elu,
    "eq": _comparison("equal"),
    "erfc": _formula(_erfc),
    "exp2": _formula(lambda e, x: e.op("exp", x * math.log(2))),
    "expm1": _formula(expm1),
    "fill": _fill,
    "floor": _floats_only(lambda e, x: e.op("floor", x)),
    "floor_divide": _floor_divide,
    "fmod": _op("mod", fmod=1),
    "fmax": _ignoring_nan("max"),
    "fmin": _ignoring_nan("min"),
    "frac": _formula(lambda e, x: x - _trunc(e, x)),
    "ge": _comparison("greater_or_equal"),
    "gelu": _gelu,
    "gt": _comparison("greater"),
    "hardsigmoid": _formula(lambda e, x: e.op("hard_sigmoid", x, alpha=1 / 6, beta=0.5)),
    "hardswish": _op("hard_swish"),
    "hardtanh": _hardtanh,
    "hypot": _formula(_hypot),
    "isinf": _is("is_inf"),
    "isnan": _is("is_nan"),
    "isneginf": _is_signed_infinity(detect_positive=0),
    "isposinf": _is_signed_infinity(detect_negative=0),
    "le": _comparison("less_or_equal"),
    "leaky_relu": _leaky_relu,
    "lerp": _lerp,
    "log10": _formula(lambda e, x: e.op("log", x) * (1 / math.log(10))),
    "log1p": _formula(log1p),
    "log2": _formula(lambda e, x: e.op("log", x) * (1 / math.log(2))),
    "log_sigmoid_forward": _log_sigmoid,
    "logical_and": _logical("logical_and"),
    "logical_not": _logical("logical_not"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "lt": _comparison("less"),
    "masked_fill": _masked_fill,
    "maximum": _bitwise("max", "logical_or"),
    "minimum": _bitwise("min", "logical_and"),
    "mul": _arithmetic("mul", "logical_and"),
    "nan_to_num": _nan_to_num,
    "ne": _not_equal,
    "pow": _pow,
    "relu": _relu,
    "remainder": _remainder,
    "round": _round,
    "rsqrt": _formula(lambda e, x: 1.0 / e.op("sqrt", x)),
    "rsub": _rsub,
    "sgn": _sign,
    "sign": _sign,
    "signbit": lambda e, out, x: _is_negative(e, e.cast(x, compute_dtype(x.dtype))),
    "silu": _op("swish"),
    "softplus": _softplus,
    "sub": _arithmetic("sub"),
    "trunc": _floats_only(_trunc),
    "where": _where,
    "_to_copy": _to_copy,
}
