"""tools/triton-kernels: finds the kernels of a source tree, gives them signatures and compiles them to PTX."""

import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="Triton's kernels run on tensors of torch")
pytest.importorskip("triton", reason="the backend is for Triton, which is not installed")

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "triton-kernels"
if not TOOL.exists():
    pytest.skip("the tests do not run in the source tree", allow_module_level=True)

ROWS = '''
import a_package_that_does_not_exist
from a_package_that_does_not_exist import needed
import triton, triton.language as tl

LEAKY = tl.constexpr(3)

@triton.jit
def leaky(x, slope: tl.constexpr):
    return tl.where(x > 0, x, x * slope)

@triton.jit
def rows(x_ptr, index_ptr, out_ptr, stride, n, eps, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr, HAS_EPS: tl.constexpr):
    row = tl.load(index_ptr + tl.program_id(0))
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n)
    if HAS_EPS:
        x = x + eps
    if ACTIVATION == LEAKY:
        x = leaky(x, 0.1)
    tl.store(out_ptr + tl.program_id(0) * n + i, x, mask=i < n)

@triton.autotune(configs=a_package_that_does_not_exist.configs, key=[])
@triton.jit
def products(a, b, c, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    s = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K):
        s += tl.dot(tl.load(a + k * BLOCK * BLOCK + at), tl.load(b + at))
    tl.store(c + at, s)
'''

ASSEMBLY = '''
import triton, triton.language as tl

@triton.jit
def assembly(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x_ptr + i).to(tl.int32)], tl.int32, True, 1)
    tl.store(x_ptr + i, x.to(tl.bfloat16))
'''


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The outcome of each kernel of a package in which one import fails."""
    folder = tmp_path_factory.mktemp("tree")
    package = folder / "some_kernels"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this package needs a GPU')\n")
    (package / "rows.py").write_text(ROWS)
    (package / "assembly.py").write_text(ASSEMBLY)
    command = [sys.executable, TOOL, package, "--json", folder / "out.json", "--ptx", folder / "ptx"]
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "1 device functions" in ran.stdout
    found = {row["name"].split(".")[-1]: row for row in json.loads((folder / "out.json").read_text())}
    return found, folder / "ptx"


def test_kernels_compile_to_ptx_that_ptxas_accepts(results):
    found, ptx = results
    assert found["rows"]["outcome"] == "compiled", found["rows"]
    assert found["products"]["outcome"] == "compiled", found["products"]
    assert ".target sm_90a" in (ptx / "some_kernels.rows.products.ptx").read_text()


def test_device_functions_are_no_kernels(results):
    assert set(results[0]) == {"rows", "products", "assembly"}


def test_signatures_follow_the_use_of_a_parameter(results):
    signature = results[0]["rows"]["signature"]
    assert signature["x_ptr"] == "*bf16" and signature["index_ptr"] == "*i32"
    assert signature["stride"] == "i32" and signature["n"] == "i32" and signature["eps"] == "fp32"
    assert signature["ACTIVATION"] == "3" and signature["HAS_EPS"] == "True"


def test_what_is_not_supported_says_so(results):
    row = results[0]["assembly"]
    assert row["outcome"] == "unsupported" and "inline assembly" in row["reason"]
