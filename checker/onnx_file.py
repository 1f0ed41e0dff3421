"""ONNX files as graphs of the operators of the catalog: a reader of its own of the protobuf format."""
import re
import struct
from collections import namedtuple
from math import prod
from pathlib import Path

from expressions import WIDE
from graphs import Body, Call
from sizes import Refused, num, require, sym

# inputs: (name, dtype, shape); weights: bytes, in order of names; defaulted: names of inputs that have an initializer
Model = namedtuple("Model", "inputs body weights defaulted", defaults=((),))
Constant = namedtuple("Constant", "dtype shape data")  # data: bytes, little-endian, an element of at least 8 bits each

DTYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64",
          12: "u32", 13: "u64", 16: "bf16"}
DTYPE_ATTRIBUTES = {"dtype", "output_datatype", "output_dtype", "precision", "stash_type", "softmax_precision", "to"}
NAMES = {"And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Not": "logical_not", "PRelu": "prelu",
         "IsNaN": "is_nan", "GatherND": "gather_nd", "ScatterND": "scatter_nd", "QGemm": "qgemm",
         "Col2Im": "col2im", "SwiGLU": "swiglu",
         "SimplifiedLayerNormalization": "ms_simplified_layer_normalization"}
# What has graphs inside, is no tensor of numbers, or has another meaning than its name in the catalog.
NOT_READ = set("""If Loop Scan SequenceMap Optional OptionalGetElement OptionalHasElement StringConcat StringSplit
    StringNormalizer RegexFullMatch TfIdfVectorizer Upsample Scatter""".split())
OLDEST, NEWEST = 7, 28  # opsets
# Operators whose meaning changed, with the first opset of the meaning that is read.
SINCE = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "BatchNormalization": 7, "Resize": 11, "GroupNormalization": 21,
         "GridSample": 20, "RoiAlign": 16, "Pad": 11, "Slice": 10, "TopK": 10, "DFT": 20, "Clip": 11}
AXES_UNTIL = {**dict.fromkeys("L1 L2 LogSum LogSumExp Max Mean Min Prod SumSquare".split(), 18), "Sum": 13}
INPUT_UNTIL = {**{f"Reduce{name}": ("axes", 1, opset) for name, opset in AXES_UNTIL.items()},
               "Squeeze": ("axes", 1, 13), "Unsqueeze": ("axes", 1, 13), "Split": ("split", 1, 13)}


VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types


class Message:
    """The fields of a message by number, as they are in the file."""

    def __init__(self, data):
        self.fields, at, data = {}, 0, memoryview(data)
        while at < len(data):
            key, at = varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = varint(data, at)
            elif kind in (1, 5):
                value, at = data[at:at + (8 if kind == 1 else 4)], at + (8 if kind == 1 else 4)
            else:
                require(kind == 2, "a field of the file is not read")
                size, at = varint(data, at)
                value, at = data[at:at + size], at + size
            require(at <= len(data) and key >> 3, "the file is not whole")
            self.fields.setdefault(key >> 3, []).append((kind, value))

    def all(self, field, *kinds):
        """The values of a field; other readers would leave out those of another wire type."""
        values = self.fields.get(field, [])
        require(all(kind in kinds for kind, _ in values), "a field of the file has another wire type")
        return [value for _, value in values]

    def one(self, field, kind, default):
        values = self.all(field, kind) or [default]
        require(len(values) == 1, "a field is given twice")
        return values[0]

    def bytes(self, field):
        return bytes(self.one(field, BYTES, b""))

    def text(self, field):
        return self.bytes(field).decode()

    def texts(self, field):
        return [bytes(value).decode() for value in self.all(field, BYTES)]

    def integer(self, field, default=0):
        return signed(self.one(field, VARINT, default))

    def message(self, field):
        return Message(self.one(field, BYTES, b""))

    def messages(self, field):
        return [Message(value) for value in self.all(field, BYTES)]

    def integers(self, field):
        result = []
        for value in self.all(field, VARINT, BYTES):
            at = 0
            while not isinstance(value, int) and at < len(value):  # packed
                number, at = varint(value, at)
                result.append(signed(number))
            if isinstance(value, int):
                result.append(signed(value))
        return result

    def packed(self, field, kind):
        """Numbers of 4 or 8 bytes, together or apart."""
        width = 4 if kind == FIXED32 else 8
        values = self.all(field, kind, BYTES)
        require(all(len(value) % width == 0 for value in values), "the file is not whole")
        return b"".join(bytes(value) for value in values)


def varint(data, at):
    value = shift = 0
    while True:
        require(at < len(data) and shift < 70, "the file is not whole")
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value & (1 << 64) - 1, at


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def distinct(pairs):
    pairs = list(pairs)
    require(len(dict(pairs)) == len(pairs), "a name is given twice")
    return dict(pairs)


def snake_case(name):
    name = name.replace("MatMul", "Matmul").replace("QLinear", "Qlinear")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def width_of(dtype):
    return (WIDE[dtype] + 7) // 8


class File:
    """One model, with the files of weights beside it."""

    def __init__(self, path):
        self.folder, self.beside = Path(path).parent, {}
        model = Message(Path(path).read_bytes())
        require(not model.fields.get(25), "functions of a model are not read")
        opsets = distinct(("" if m.text(1) == "ai.onnx" else m.text(1), m.integer(2)) for m in model.messages(8))
        self.opset = opsets.get("", 0)
        require(OLDEST <= self.opset <= NEWEST, f"opset {self.opset} is not read")
        graph = model.message(7)
        require(not graph.fields.get(15), "sparse weights are not read")
        self.constants = distinct((t.text(8), self.tensor(t)) for t in graph.messages(5))
        self.lets = [([name], constant) for name, constant in self.constants.items()]
        inputs = [self.input(m) for m in graph.messages(11) if m.text(1) not in self.constants]
        for node in graph.messages(1):
            self.node(node)
        outputs = [m.text(1) for m in graph.messages(12)]
        given = {m.text(1) for m in graph.messages(11)} if model.integer(1) >= 4 else set()
        self.model = Model(inputs, Body(self.lets, outputs),
                           [constant.data for _, constant in sorted(self.constants.items())],
                           sorted(given & set(self.constants)))
        names = [name for name, _, _ in inputs] + [n for left, _ in self.lets for n in left if n]
        require(len(set(names)) == len(names), "a value is made twice")

    def input(self, info):
        tensor = info.message(2).message(1)
        shape = []
        for size in tensor.message(2).messages(1):
            known = size.fields.get(1)
            require(known or size.text(2), "an input has a size without a name")
            shape.append(num(size.integer(1)) if known else sym(size.text(2)))
        require(2 in tensor.fields and tensor.integer(1) in DTYPES, "the type of an input is not read")
        return info.text(1), DTYPES[tensor.integer(1)], shape

    def tensor(self, t):
        shape, kind = t.integers(1), t.integer(2)
        require(kind in DTYPES and all(n >= 0 for n in shape), "the type of a constant is not read")
        dtype, size = DTYPES[kind], prod(shape) * width_of(DTYPES[kind])
        if t.integer(14) == 1:
            data = self.external({m.text(1): m.text(2) for m in t.messages(13)}, size)
        elif 9 in t.fields:
            data = t.bytes(9)
        elif dtype in ("f32", "f64"):
            data = t.packed(4, FIXED32) if dtype == "f32" else t.packed(10, FIXED64)
        else:
            field = {"i64": 7, "u64": 11, "u32": 11}.get(dtype, 5)
            data = b"".join((n & (1 << 64) - 1).to_bytes(8, "little")[:width_of(dtype)] for n in t.integers(field))
        require(len(data) == size, "a constant has another size than its shape")
        return Constant(dtype, shape, data)

    def external(self, place, size):
        name = place.get("location", "")
        require(name and not Path(name).is_absolute() and ".." not in Path(name).parts, "weights lie elsewhere")
        if name not in self.beside:
            self.beside[name] = (self.folder / name).read_bytes()
        offset = int(place.get("offset", 0))
        require(int(place.get("length", size)) == size, "a constant has another size than its shape")
        return self.beside[name][offset:offset + size]

    def attribute(self, a):
        name, kind = a.text(1), a.integer(20)
        require(not a.text(21), "an attribute of a function is not read")
        if kind == 1:
            return name, struct.unpack("<f", a.one(2, FIXED32, b"\0\0\0\0"))[0]
        if kind == 2:
            number = a.integer(3)
            return name, DTYPES.get(number, number) if name in DTYPE_ATTRIBUTES else number
        if kind == 3:
            return name, a.text(4)
        if kind == 4:
            return name, self.tensor(a.message(5))
        if kind == 6:
            data = a.packed(7, FIXED32)
            return name, tuple(struct.unpack(f"<{len(data) // 4}f", data))
        require(kind in (7, 8), f"the attribute {name} is not read")
        return name, tuple(a.integers(8)) if kind == 7 else tuple(a.texts(9))

    def given(self, elements):
        """A list of integers as a constant of its own."""
        return Constant("i64", [len(elements)], struct.pack(f"<{len(elements)}q", *elements))

    def node(self, node):
        kind, domain = node.text(4), node.text(7)
        own = domain in ("", "ai.onnx")
        require(domain == "com.microsoft" or (own and kind not in NOT_READ and self.opset >= SINCE.get(kind, 1)),
                f"the operator {domain}{'.' if domain else ''}{kind} of opset {self.opset} is not read")
        attrs = distinct(self.attribute(a) for a in node.messages(5))
        args = [name or None for name in node.texts(1)]
        outputs = node.texts(2)
        if own and kind == "Constant":
            return self.constant(outputs[0], attrs)
        until = INPUT_UNTIL.get(kind)
        if until and self.opset < until[2] and until[0] in attrs:
            args = (args + [None])[:until[1]] + [self.given(attrs.pop(until[0]))]
        if kind == "Split" and len(args) < 2:
            attrs.setdefault("num_outputs", len(outputs))
        if kind == "BatchNormalization" and self.opset < 14:
            require(len(outputs) == 1 and attrs.pop("spatial", 1) == 1, "a batch norm of training is not read")
            attrs["training_mode"] = 0
        if kind == "Dropout":
            require(len(outputs) == 1 and (self.opset < 12 or len(args) < 3), "Dropout of training is not read")
        if own and kind in ("Dropout", "Identity"):
            return self.lets.append((outputs, args[0]))
        while args and args[-1] is None:
            args.pop()
        name = ("" if own else "ms_") + (NAMES.get(kind) or snake_case(kind))
        return self.lets.append((outputs, Call(name, attrs, args)))

    def constant(self, name, attrs):
        (kind, value), = attrs.items()
        if kind == "value":
            made = value
        else:
            letter = {"value_int": "q", "value_ints": "q", "value_float": "f", "value_floats": "f"}.get(kind)
            require(letter is not None, "a constant is text")
            elements = value if isinstance(value, tuple) else (value,)
            made = Constant("i64" if letter == "q" else "f32", [len(elements)] if isinstance(value, tuple) else [],
                            struct.pack(f"<{len(elements)}{letter}", *elements))
        self.constants[name] = made
        self.lets.append(([name], made))
        return None


def read_model(path):
    try:
        return File(path).model
    except (struct.error, UnicodeDecodeError) as error:
        raise Refused(f"the file is not read: {error}") from error
