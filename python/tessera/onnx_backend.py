"""Tessera as an ONNX backend (onnx.backend.base), for ONNX's backend test suite and scoreboard.

    import onnx, tessera.onnx_backend as backend
    outputs = backend.run_model(onnx.load("model.onnx"), [x])
"""

from __future__ import annotations

import pathlib
import tempfile

import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

import tessera


def _raise_unsupported(error: tessera.Error) -> None:
    """Tells ONNX's tests what is missing by design from what is wrong."""
    if "unsupported" in error.id:
        from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

        raise BackendIsNotSupposedToImplementIt(str(error)) from error


class TesseraRep(BackendRep):
    """A prepared model."""

    def __init__(self, program: tessera.Program):
        self._program = program
        self._result = namedtupledict("Outputs", program.output_names)

    def run(self, inputs, **kwargs):
        """Outputs for inputs: a list in order, a dictionary by name, or the only one."""
        if not isinstance(inputs, (dict, list, tuple)):
            inputs = [inputs]
        if not isinstance(inputs, dict):
            if len(inputs) > len(self._program.input_names):
                raise ValueError(f"{len(inputs)} inputs are given, and the model has {len(self._program.input_names)}")
            inputs = dict(zip(self._program.input_names, inputs))
        try:
            results = self._program.run(inputs)
        except tessera.Error as error:
            _raise_unsupported(error)
            raise
        return self._result(*[results[name] for name in self._program.output_names])


class TesseraBackend(Backend):
    """Compiles models for the CPU of this computer."""

    @classmethod
    def is_compatible(cls, model, device: str = "CPU", **kwargs) -> bool:
        try:
            cls._load(model)
        except tessera.Error:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model, device: str = "CPU", **kwargs) -> TesseraRep:
        """kwargs: those of tessera.Model.compile."""
        if not cls.supports_device(device):
            raise ValueError(f"device is 'CPU' or 'CUDA', not {device!r}")
        target = "cpu" if device.split(":")[0] == "CPU" else "cuda"
        return TesseraRep(cls._load(model).compile(target=target, **kwargs))

    @classmethod
    def run_model(cls, model, inputs, device: str = "CPU", **kwargs):
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node, inputs, device: str = "CPU", outputs_info=None, **kwargs):
        """Runs one operator, in the newest opset that onnx has."""
        graph = onnx.helper.make_graph(
            [node],
            "node",
            [
                onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
                for name, x in zip(node.input, inputs)
            ],
            [onnx.ValueInfoProto(name=name) for name in node.output],
        )
        return cls.run_model(onnx.helper.make_model(graph), inputs, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] in ("CPU", "CUDA")

    @staticmethod
    def _load(model) -> tessera.Model:
        with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
            path = pathlib.Path(folder, "model.onnx")
            path.write_bytes(model.SerializeToString())
            return tessera.load(path)


is_compatible = TesseraBackend.is_compatible
prepare = TesseraBackend.prepare
run_model = TesseraBackend.run_model
run_node = TesseraBackend.run_node
supports_device = TesseraBackend.supports_device
