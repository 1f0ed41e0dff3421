"""Models of torchvision and transformers with random weights, for the suite of the torch backend."""

import torch
import torch_other_models

VISION = ("resnet18 resnet50 resnext50_32x4d mobilenet_v2 mobilenet_v3_small efficientnet_b0 densenet121 squeezenet1_1 "
          "shufflenet_v2_x1_0 mnasnet1_0 regnet_y_400mf inception_v3 googlenet vgg16 vit_b_16 swin_t convnext_tiny "
          "maxvit_t").split()
TEXT = "bert distilbert roberta gpt2 llama qwen3 t5 clip whisper deberta".split()
TIMED = "resnet18 resnet50 mobilenet_v2 efficientnet_b0 densenet121 squeezenet1_1 vit_b_16 swin_t convnext_tiny bert gpt2 llama".split()
TIMED_IN_TRAINING = "resnet18 mobilenet_v2 densenet121 bert gpt2".split()
TRAINED = "resnet18 mobilenet_v2 densenet121 squeezenet1_1 vit_b_16 convnext_tiny bert gpt2 llama".split()


def vision(name, batch=1, size=None):
    import torchvision

    size = size or (299 if name == "inception_v3" else 224)
    keywords = {"init_weights": True, "aux_logits": False} if name in ("googlenet", "inception_v3") else {}
    if name == "vit_b_16":  # its position embeddings have the size of the image
        keywords["image_size"] = size
    model = getattr(torchvision.models, name)(weights=None, **keywords)
    return model, (torch.randn(batch, 3, size, size),), {}


def text(name, batch=1, length=64):
    import transformers as t

    small = dict(hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=1000)
    ids = torch.randint(0, 1000, (batch, length))
    if name == "bert":
        return t.BertModel(t.BertConfig(**small)), (ids,), {}
    if name == "distilbert":
        return t.DistilBertModel(t.DistilBertConfig(dim=256, n_layers=2, n_heads=4, hidden_dim=512, vocab_size=1000)), (ids,), {}
    if name == "roberta":
        return t.RobertaModel(t.RobertaConfig(**small)), (ids,), {}
    if name == "gpt2":
        return t.GPT2LMHeadModel(t.GPT2Config(n_embd=256, n_layer=2, n_head=4, vocab_size=1000, use_cache=False)), (ids,), {}
    if name == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(**small, num_key_value_heads=2, use_cache=False)), (ids,), {}
    if name == "qwen3":
        return t.Qwen3ForCausalLM(t.Qwen3Config(**small, num_key_value_heads=2, head_dim=64, use_cache=False)), (ids,), {}
    if name == "t5":
        config = t.T5Config(d_model=256, d_ff=512, num_layers=2, num_heads=4, d_kv=64, vocab_size=1000, use_cache=False)
        return t.T5Model(config), (), {"input_ids": ids, "decoder_input_ids": ids[:, :16]}
    if name == "clip":
        vision_config = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, image_size=64, patch_size=16)
        config = t.CLIPConfig(text_config={**small, "eos_token_id": 999}, vision_config=vision_config, projection_dim=64)
        return t.CLIPModel(config), (), {"input_ids": ids, "pixel_values": torch.randn(batch, 3, 64, 64)}
    if name == "whisper":
        config = t.WhisperConfig(d_model=256, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                                 decoder_attention_heads=4, encoder_ffn_dim=512, decoder_ffn_dim=512, vocab_size=1000,
                                 max_source_positions=50, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                                 decoder_start_token_id=1)
        return t.WhisperModel(config), (), {"input_features": torch.randn(batch, 80, 100), "decoder_input_ids": ids[:, :16]}
    if name == "deberta":
        return t.DebertaModel(t.DebertaConfig(**small, relative_attention=True, pos_att_type=["c2p", "p2c"])), (ids,), {}
    raise ValueError(f"there is no model {name!r}")


def model(name, batch=1, small=False):
    """A model in evaluation mode, and positional and keyword arguments for it."""
    torch.manual_seed(0)
    if name in torch_other_models.OTHERS:
        made, arguments, keywords = torch_other_models.other(name, batch, 96 if small else 224)
    else:
        made, arguments, keywords = vision(name, batch, 96 if small else None) if name in VISION else text(name, batch)
    with torch.no_grad():
        # Heads that are initialized with zeros would hide what comes before them; scales of 1 would be folded away.
        for parameter in made.parameters():
            if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(torch.randn_like(parameter), alpha=0.02)
    return made.eval(), arguments, keywords


def tensors(output):
    """The tensors of an output of any structure."""
    import torch.utils._pytree as pytree

    if hasattr(output, "to_tuple"):
        output = output.to_tuple()
    return [leaf for leaf in pytree.tree_leaves(output) if isinstance(leaf, torch.Tensor)]
