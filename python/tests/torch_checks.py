"""What tests of torch.compile(backend="tessera") share: compilation with options, and comparison with eager execution."""

import copy
import warnings

import pytest
import torch

from tessera.torch.dynamo import backend


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def compiled(function, graphs=None, dynamic=None, **options):
    return torch.compile(
        function,
        backend=lambda module, inputs: backend(module, inputs, options=options, recorder=graphs),
        dynamic=dynamic,
    )


def check(function, *arguments, left=0, **options):
    """Compares values, dtypes and strides with eager's; the number of nodes that are left to torch is as expected."""
    expected = function(*copy.deepcopy(arguments))
    graphs = []
    actual = compiled(function, graphs, **options)(*arguments)
    for a, b in zip(torch.utils._pytree.tree_leaves(actual), torch.utils._pytree.tree_leaves(expected), strict=True):
        torch.testing.assert_close(a, b, check_stride=True, equal_nan=True)
    assert sum(bool(why) for graph in graphs for plan in graph.plans for why in plan.declined.values()) == left
    return graphs
