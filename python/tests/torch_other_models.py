"""Further architectures of torchvision and transformers, which `tools/torch-suite models others` runs."""

import torch

VISION = "efficientnet_v2_s regnet_x_400mf swin_v2_t convnext_small wide_resnet50_2 mobilenet_v3_large".split()
SEGMENTATION = "deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large fcn_resnet50".split()
VIDEO = "r2plus1d_18 s3d mvit_v2_s".split()
# Names of the classes of a configuration and a model, and what the configuration has beside SIZES.
TEXT = {
    "albert": ("AlbertConfig", "AlbertModel", {"embedding_size": 64}),
    "electra": ("ElectraConfig", "ElectraModel", {"embedding_size": 64}),
    "mpnet": ("MPNetConfig", "MPNetModel", {}),
    "opt": ("OPTConfig", "OPTForCausalLM", {"ffn_dim": 256, "word_embed_proj_dim": 128}),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {}),
    "bloom": ("BloomConfig", "BloomForCausalLM", {"n_layer": 2, "n_head": 4}),
    "falcon": ("FalconConfig", "FalconForCausalLM", {}),
    "mistral": ("MistralConfig", "MistralForCausalLM", {"num_key_value_heads": 2, "sliding_window": 16}),
    "phi": ("PhiConfig", "PhiForCausalLM", {}),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {"num_key_value_heads": 1, "head_dim": 32}),
    "mobilebert": ("MobileBertConfig", "MobileBertModel", {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32}),
    "longformer": ("LongformerConfig", "LongformerModel", {"attention_window": 16}),
    "xlnet": ("XLNetConfig", "XLNetModel", {"d_model": 128, "n_layer": 2, "n_head": 4, "d_inner": 256, "use_mems_eval": False}),
    "mamba": ("MambaConfig", "MambaForCausalLM", {"state_size": 8}),
}
SIZES = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 256, "vocab_size": 500,
         "use_cache": False}
OTHERS = [*VISION, *SEGMENTATION, *VIDEO, "raft_small", *TEXT, "bart", "vit_mae", "segformer", "wav2vec2"]
TRAINED = "efficientnet_v2_s regnet_x_400mf swin_v2_t r2plus1d_18 albert electra opt gpt_neox bloom mistral gemma".split()


def text(name, batch):
    import transformers

    config, model, keywords = TEXT[name]
    ids = torch.randint(2, 500, (batch, 48))
    return getattr(transformers, model)(getattr(transformers, config)(**{**SIZES, **keywords})), (ids,), {}


def signals(name, batch):
    """Models that read images or sound."""
    import transformers as t

    if name == "bart":
        config = t.BartConfig(d_model=128, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                              encoder_ffn_dim=256, decoder_ffn_dim=256, vocab_size=500, use_cache=False)
        ids = torch.randint(3, 500, (batch, 48))
        return t.BartModel(config), (), {"input_ids": ids, "decoder_input_ids": ids[:, :16]}
    if name == "vit_mae":
        config = t.ViTMAEConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, image_size=64,
                                decoder_hidden_size=64, decoder_num_hidden_layers=2, decoder_num_attention_heads=4,
                                decoder_intermediate_size=128)
        return t.ViTMAEForPreTraining(config), (torch.randn(batch, 3, 64, 64),), {"noise": torch.rand(batch, 16)}
    if name == "segformer":
        config = t.SegformerConfig(hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], decoder_hidden_size=64, num_labels=10)
        return t.SegformerForSemanticSegmentation(config), (torch.randn(batch, 3, 96, 96),), {}
    config = t.Wav2Vec2Config(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256, vocab_size=40,
                              conv_dim=(64,) * 7, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)
    return t.Wav2Vec2ForCTC(config), (torch.randn(batch, 8000),), {}


def other(name, batch, size):
    """A model, and positional and keyword arguments for it."""
    import torchvision

    if name in VISION:
        return torchvision.models.get_model(name, weights=None), (torch.randn(batch, 3, size, size),), {}
    if name in SEGMENTATION:
        model = torchvision.models.get_model(name, weights=None, weights_backbone=None)
        return model, (torch.randn(batch, 3, size, size),), {}
    if name in VIDEO:
        frames = 16 if name == "mvit_v2_s" else 14
        side = 64 if name == "r2plus1d_18" else 224
        return torchvision.models.get_model(name, weights=None), (torch.randn(batch, 3, frames, side, side),), {}
    if name == "raft_small":
        images = (torch.rand(batch, 3, 128, 128), torch.rand(batch, 3, 128, 128))
        return torchvision.models.optical_flow.raft_small(weights=None), images, {"num_flow_updates": 3}
    return text(name, batch) if name in TEXT else signals(name, batch)
