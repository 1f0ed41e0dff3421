"""Operators that torch's nn.TransformerEncoderLayer and nn.MultiheadAttention run in evaluation."""

from __future__ import annotations

import torch

from ..emitter import Unsupported, compute_dtype, dtype_name


def _linear(e, x, weight, bias):
    product = x @ e.permute(e.cast(weight, x.dtype), [1, 0])
    return product if bias is None else product + e.cast(bias, x.dtype)


def _kept(e, mask, kind, batch):
    """The mask of attention, true where a key is seen, from torch's, which is not 0 where it is not."""
    if mask is None:
        return None
    kept = e.op("logical_not", e.cast(mask, torch.bool))
    if kind == 1 and mask.rank == 2:  # [batch, keys]
        return e.reshape(kept, [batch, 1, 1, mask.shape[-1]])
    if kind == 0 and mask.rank == 2:  # [queries, keys]
        return e.reshape(kept, [1, 1, *mask.shape])
    if kind == 2 and mask.rank == 4:
        return kept
    raise Unsupported("attention with this kind of mask")


def _self_attention(e, x, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, kept):
    batch, length, size = x.shape
    qkv = e.reshape(_linear(e, x, qkv_weight, qkv_bias), [batch, length, 3, heads, size // heads])
    q, k, v = (e.reshape(e.slice(qkv, 2, i, i + 1), [batch, length, heads, size // heads]) for i in range(3))
    q, k, v = (e.permute(t, [0, 2, 1, 3]) for t in (q, k, v))
    y = e.op("attention", q, k, v, kept)
    y = y[0] if isinstance(y, tuple) else y
    return _linear(e, e.reshape(e.permute(y, [0, 2, 1, 3]), x.shape), proj_weight, proj_bias)


def _norm(e, x, weight, bias, eps):
    y = e.op("layer_normalization", x, e.cast(weight, x.dtype), e.cast(bias, x.dtype), axis=2, epsilon=eps,
             stash_type=dtype_name(x.dtype))
    return y[0] if isinstance(y, tuple) else y


def _encoder_layer(e, out, x, size, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight,
                   norm_bias, norm_weight_2, norm_bias_2, ffn_weight, ffn_bias, ffn_weight_2, ffn_bias_2, mask=None,
                   mask_type=None):
    value = e.cast(x, compute_dtype(x.dtype))
    kept = _kept(e, mask, mask_type, x.shape[0])

    def attention(t):
        return _self_attention(e, t, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, kept)

    def feed_forward(t):
        hidden = e.op("gelu" if use_gelu else "relu", _linear(e, t, ffn_weight, ffn_bias))
        return _linear(e, hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        value = value + attention(_norm(e, value, norm_weight, norm_bias, eps))
        value = value + feed_forward(_norm(e, value, norm_weight_2, norm_bias_2, eps))
    else:
        value = _norm(e, value + attention(value), norm_weight, norm_bias, eps)
        value = _norm(e, value + feed_forward(value), norm_weight_2, norm_bias_2, eps)
    return e.cast(value, x.dtype)


def _multi_head_attention(e, out, query, key, value, size, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
                          need_weights=True, average_attn_weights=True, mask_type=None):
    if need_weights or query is not key or query is not value:
        raise Unsupported("attention that gives its weights, or of several tensors")
    x = e.cast(query, compute_dtype(query.dtype))
    y = _self_attention(e, x, heads, qkv_weight, qkv_bias, proj_weight, proj_bias, _kept(e, mask, mask_type, x.shape[0]))
    return (e.cast(y, query.dtype), None)


ROWS = {
    "_native_multi_head_attention": _multi_head_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
}
