"""Reads what the peers need of an ONNX file, its nodes and weights, where the package onnx is not installed.

    nodes, weights = onnx_file.read("resnet50.onnx")     weights that lie in another file are read from there

Of each node: its kind and the names of its inputs and outputs. Weights are f32 alone; others are left out.
"""
import collections
import pathlib
import struct

import numpy as np

Node = collections.namedtuple("Node", "kind inputs outputs")

FLOAT = 1  # of TensorProto.DataType


def varint(data, at):
    """A number, and where the next begins."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a protobuf message by number: lists of bytes and integers."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at:at + size], at + size
        found[key >> 3].append(value)
    return found


def integers(values):
    """Of a repeated field, packed or not."""
    for value in values:
        at = 0
        while not isinstance(value, int) and at < len(value):
            number, at = varint(value, at)
            yield number
        if isinstance(value, int):
            yield value


def tensor(message, folder):
    """Name and contents, or None for what is not f32."""
    name, shape = bytes(message[8][0]).decode(), list(integers(message[1]))
    if message[2] != [FLOAT]:
        return name, None
    if message[13]:
        entry = {bytes(e[1][0]).decode(): bytes(e[2][0]).decode() for e in map(fields, message[13])}
        count = int(np.prod(shape, dtype=np.int64))
        file, offset = folder / entry["location"], int(entry.get("offset", 0))
        return name, np.fromfile(file, np.float32, count, offset=offset).reshape(shape)
    if message[9]:
        return name, np.frombuffer(message[9][0], np.float32).reshape(shape)
    values = b"".join(bytes(v) for v in message[4])  # packed, or one by one
    return name, np.array(struct.unpack(f"<{len(values) // 4}f", values), np.float32).reshape(shape)


def read(path):
    path = pathlib.Path(path)
    graph = fields(fields(memoryview(path.read_bytes()))[7][0])
    texts = lambda values: [bytes(v).decode() for v in values]
    nodes = [Node(texts(node[4])[0], texts(node[1]), texts(node[2])) for node in map(fields, graph[1])]
    weights = dict(tensor(fields(data), path.parent) for data in graph[5])
    return nodes, {name: value for name, value in weights.items() if value is not None}
