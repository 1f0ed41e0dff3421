
import os
os.environ['TRITON_DEFAULT_FP_FUSION'] = '1'
os.environ['TORCHINDUCTOR_CACHE_DIR'] = '/work/inductor/tmp/tmptc5zr4vf'
os.environ['TRITON_CACHE_DIR'] = '/work/inductor/tmp/tmptc5zr4vf/triton'
os.environ['TRITON_CPU_BACKEND'] = '1'
os.environ['TORCHINDUCTOR_COMPILE_THREADS'] = '1'
os.environ['TORCHINDUCTOR_VEC_ISA_OK'] = '1'

import torch
from torch import tensor, device
import torch.fx as fx
from torch._dynamo.testing import rand_strided
from math import inf
import torch._inductor.inductor_prims



import torch._dynamo.config
import torch._inductor.config
import torch._functorch.config
import torch.fx.experimental._config
torch._dynamo.config.suppress_errors = False
torch._dynamo.config.raise_on_ctx_manager_usage = True
torch._dynamo.config.log_compilation_metrics = False
torch._inductor.config.debug = True
torch._inductor.config.fx_graph_cache = True
torch._inductor.config.implicit_fallbacks = False
torch._inductor.config.deterministic = False
torch._inductor.config.debug_index_asserts = True
torch._inductor.config.comprehensive_padding = True
torch._inductor.config.generate_intermediate_hooks = True
torch._inductor.config.cpp.min_chunk_size = 1
torch._inductor.config.triton.autotune_pointwise = False
torch._inductor.config.triton.store_cubin = False
torch._inductor.config.cpu_backend = 'triton'
torch._inductor.config.trace.enabled = False
torch._inductor.config.trace.save_real_tensors = False
torch._functorch.config.functionalize_rng_ops = False
torch._functorch.config.enable_autograd_cache = True
torch._functorch.config.fake_tensor_allow_unsafe_data_ptr_access = True
torch._functorch.config.unlift_effect_tokens = True
torch._functorch.config.selective_decompose = False



isolate_fails_code_str = None





if "__compile_source__" in globals():
    import inspect as __after_aot_inspect
    import linecache as __after_aot_linecache
    __after_aot_filename = __after_aot_inspect.currentframe().f_code.co_filename
    __after_aot_linecache.cache[__after_aot_filename] = (
        len(__compile_source__),
        None,
        __compile_source__.splitlines(True),
        __after_aot_filename,
    )
# torch version: 2.10.0+cu128
# torch cuda version: 12.8
# torch git version: 449b1768410104d3ed79d3bcfe4ba1d65c7f22c0


# torch.cuda.is_available()==False, no GPU info collected

from torch.nn import *
class Repro(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()

    
    
    def forward(self, arg0_1, arg1_1, arg2_1):
        var_mean = torch.ops.aten.var_mean.correction(arg2_1, [1], correction = 0, keepdim = True)
        getitem = var_mean[0]
        getitem_1 = var_mean[1];  var_mean = None
        add = torch.ops.aten.add.Tensor(getitem, 1e-05);  getitem = None
        rsqrt = torch.ops.aten.rsqrt.default(add);  add = None
        sub = torch.ops.aten.sub.Tensor(arg2_1, getitem_1);  arg2_1 = getitem_1 = None
        mul = torch.ops.aten.mul.Tensor(sub, rsqrt);  sub = rsqrt = None
        mul_1 = torch.ops.aten.mul.Tensor(mul, arg0_1);  mul = arg0_1 = None
        add_1 = torch.ops.aten.add.Tensor(mul_1, arg1_1);  mul_1 = arg1_1 = None
        relu = torch.ops.aten.relu.default(add_1);  add_1 = None
        return (relu,)
        
def load_args(reader):
    buf0 = reader.storage(None, 128)
    reader.tensor(buf0, (32,), is_leaf=True)  # arg0_1
    buf1 = reader.storage(None, 128)
    reader.tensor(buf1, (32,), is_leaf=True)  # arg1_1
    buf2 = reader.storage(None, 2048)
    reader.tensor(buf2, (16, 32), is_leaf=True)  # arg2_1
load_args._version = 0
mod = Repro()
if __name__ == '__main__':
    from torch._dynamo.repro.after_aot import run_repro
    with torch.no_grad():
        run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, tracing_mode='real', check_str=None)
        # To run it separately, do 
        # mod, args = run_repro(mod, load_args, accuracy=False, command='get_args', save_dir=None, tracing_mode='real', check_str=None)
        # mod(*args)