"""Samples of torch's own OpInfo through the torch backend against eager execution; for tools/torch-suite."""

import json
import os
import pathlib
import select
import signal
import sys
import time

# From the best outcome of a sample to the worst. skipped: eager execution fails. untraceable: AOT Autograd does.
OUTCOMES = ("skipped", "whole", "partial", "untraceable", "error", "hang", "crash", "wrong")
FAILURES = OUTCOMES[OUTCOMES.index("error"):]
HANG = 10  # a sample hangs that takes so many times the limit of its operator, on a machine that other processes share


class OperatorSample:
    """A call of an operator with one of the inputs that torch tests it with, as a function of tensors."""

    def __init__(self, op, sample):
        import torch
        import torch.utils._pytree as pytree

        self.op, self.sample = op, sample
        leaves, self.spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.leaves = leaves
        self.tensors = [leaves[i] for i in self.positions]

    def __call__(self, *tensors):
        import torch
        import torch.utils._pytree as pytree

        leaves = list(self.leaves)
        for position, tensor in zip(self.positions, tensors):
            leaves[position] = tensor
        first, positional, keywords = pytree.tree_unflatten(leaves, self.spec)
        results = pytree.tree_leaves(self.op(first, *positional, **keywords))
        return [result for result in results if isinstance(result, torch.Tensor)]


def close(actual, expected):
    """How results differ from the expected ones; None if they do not."""
    import torch

    if len(actual) != len(expected):
        return f"{len(actual)} results in place of {len(expected)}"
    for a, b in zip(actual, expected):
        if a is None and b is None:
            continue
        try:
            relative, absolute = {torch.float64: (1e-9, 1e-10), torch.bfloat16: (3e-2, 1e-2), torch.float16: (5e-3, 2e-3)}.get(
                b.dtype, (1e-4, 2e-5))
            torch.testing.assert_close(a, b, rtol=relative, atol=absolute, equal_nan=True)
        except AssertionError as failure:
            return str(failure).replace("\n", " ")[:300]
    return None


def as_accurate(actual, expected, exact):
    """Whether results are as close to those of f64 as eager execution's are."""
    for a, e, x in zip(actual, expected, exact, strict=True):
        if a is None or not a.is_floating_point():
            if a is not None and not a.equal(e):
                return False
            continue
        ours, theirs = ((t.detach().double() - x.detach().double()).abs() for t in (a, e))
        if not bool(((ours <= 4 * theirs + 2e-5 + 1e-4 * x.detach().abs()) | (a.isnan() & e.isnan())).all()):
            return False
    return True


def results_of(function, tensors, gradients):
    """Results of a function, and gradients of them for cotangents that differ from element to element."""
    import torch

    torch.manual_seed(0)
    with torch.set_grad_enabled(gradients):
        results = [result if result.layout == torch.strided else result.to_dense() for result in function(*tensors)]
        outputs = [r for r in results if r.requires_grad]
        inputs = [t for t in tensors if t.requires_grad]
        if not outputs or not inputs:
            return results
        generator = torch.Generator().manual_seed(1)
        cotangents = [torch.rand(o.shape, generator=generator, dtype=torch.float64).add_(0.5).to(o.dtype) for o in outputs]
        return results + list(torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True))


def run_sample(call, gradients, left_to_torch):
    """(outcome, detail) of one sample."""
    import torch
    from functorch.compile import aot_function
    from tessera.torch.decompositions import decompositions
    from tessera.torch.dynamo import _compiler
    from tessera.torch.options import Options

    graphs, options = [], Options(threads=1)
    tensors = [t.detach().requires_grad_(gradients and t.is_floating_point()) for t in call.tensors]
    try:
        expected = results_of(call, tensors, gradients)
    except Exception as failure:
        return "skipped", str(failure)[:100]
    compilers = {kind: _compiler(kind, options, graphs) for kind in ("forward", "backward", "inference")}
    compiled = aot_function(call, fw_compiler=compilers["forward"], bw_compiler=compilers["backward"],
                            inference_compiler=compilers["inference"], decompositions=decompositions(),
                            keep_inference_input_mutations=True)
    try:
        actual = results_of(compiled, tensors, gradients)
        again = results_of(compiled, tensors, gradients)  # without compilation, by the shorter way of repeated calls
    except Exception as failure:
        what = f"{type(failure).__name__}: {failure}"[:300]
        return ("error" if graphs else "untraceable"), what
    if call.op.name.startswith(("empty", "new_empty")):  # of any content
        actual, again, expected = ([torch.zeros_like(t) for t in tensors] for tensors in (actual, again, expected))
    for first, second in zip(actual, again, strict=True):
        if first is not None and not (first.stride() == second.stride() and torch.allclose(first, second, 0, 0, equal_nan=True)):
            return "wrong", "a second call has other results"
    how = close([None if a is None else a.detach() for a in actual], [None if e is None else e.detach() for e in expected])
    if how is not None:
        # Where eager execution is as far from what f64 gives, the difference is rounding.
        tensors = [t.detach().double().requires_grad_(t.requires_grad) if t.is_floating_point() else t for t in tensors]
        try:
            exact = results_of(call, tensors, gradients)
        except Exception:
            return "wrong", how
        if not as_accurate(actual, expected, exact):
            return "wrong", how
    left = left_to_torch(graphs)
    return ("partial", json.dumps(left)) if left else ("whole", "")


def run_operator(op, dtype, arguments, left_to_torch, report):
    """Reports the number of samples, then (outcome, detail) of each, up to the limit of CPU time."""
    import torch

    torch.set_num_threads(1)  # a thread pool does not survive the fork
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))
        if arguments.noncontiguous:
            samples = [sample.noncontiguous() for sample in samples]
    except Exception as failure:
        report(("skipped", f"{type(failure).__name__}: {failure}"[:200]))
        return
    if arguments.samples and len(samples) > arguments.samples:
        step = len(samples) / arguments.samples
        samples = [samples[int(i * step)] for i in range(arguments.samples)]
    report(len(samples))
    end = time.process_time() + arguments.limit
    for sample in samples:
        if time.process_time() > end:
            return
        report(run_sample(OperatorSample(op, sample), arguments.gradients, left_to_torch))


def reports_of(function, limit):
    """What a function reports in a process of its own: a crash, or no report for `limit` seconds, ends that process alone."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            function(lambda what: os.write(writer, (json.dumps(what) + "\n").encode()))
            code = 0
        except Exception as failure:
            os.write(writer, (json.dumps(["error", f"{type(failure).__name__}: {failure}"[:200]]) + "\n").encode())
        finally:
            os._exit(code)
    os.close(writer)
    text, is_hanging = b"", False
    while True:
        if not select.select([reader], [], [], limit)[0]:
            is_hanging = True
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reader, 65536)
        if not part:
            break
        text += part
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    reports = [json.loads(line) for line in text.decode().splitlines()]
    if is_hanging:
        reports.append(["hang", f"no result within {limit} s"])
    elif os.WIFSIGNALED(status):
        reports.append(["crash", signal.Signals(os.WTERMSIG(status)).name])
    return reports


def row_of(name, reports):
    """One line of the suite: the worst outcome, and all that failed."""
    total = reports[0] if reports and isinstance(reports[0], int) else 0
    results = [tuple(report) for report in reports if isinstance(report, list)]
    outcome, detail = max(results, key=lambda result: OUTCOMES.index(result[0]), default=("skipped", "no samples"))
    counts = {kind: sum(result[0] == kind for result in results) for kind in OUTCOMES}
    return {"name": name, "ok": outcome not in FAILURES, "outcome": outcome, "samples": len(results), "of": total,
            "outcomes": {kind: count for kind, count in counts.items() if count}, "detail": detail,
            "failures": [[i, *result] for i, result in enumerate(results) if result[0] in FAILURES][:20]}


def check_operators(names, arguments, left_to_torch):
    """A row for each operator; those whose row is in arguments.results already are not run again."""
    import torch
    from torch.testing._internal import common_methods_invocations
    from torch.testing._internal.common_methods_invocations import op_db

    # Seeds that samples set are not part of what is traced: each run is seeded from outside.
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    part, parts = (int(number) for number in arguments.part.split("/"))
    dtype = getattr(torch, arguments.dtype)
    chosen = [op for op in op_db if dtype in op.supported_dtypes("cpu") and (not names or op.name in names or op.full_name in names)]
    results = pathlib.Path(arguments.results) if arguments.results else None
    rows = {row["name"]: row for row in map(json.loads, results.open())} if results and results.exists() else {}
    for number, op in enumerate(chosen):
        if number % parts != part - 1 or (arguments.gradients and not op.supports_autograd):
            continue
        if op.full_name not in rows:
            rows[op.full_name] = row_of(op.full_name, reports_of(
                lambda report: run_operator(op, dtype, arguments, left_to_torch, report), HANG * arguments.limit))
            if results:
                with results.open("a") as file:
                    file.write(json.dumps(rows[op.full_name]) + "\n")
        yield rows[op.full_name]
