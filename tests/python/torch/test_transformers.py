# SPDX-License-Identifier: Apache-2.0
"""Models of the package `transformers`, shrunk and with random weights, where it is installed: equal to eager."""

import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch==2.13.0")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
hf = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers==5.23.0")

import baton as tvm  # noqa: E402

pytestmark = pytest.mark.slow

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 100}
DECODER = {**SIZES, "num_key_value_heads": 2, "use_cache": False}
IMAGE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "image_size": 32, "patch_size": 8}


def text():
    return {"input_ids": torch.randint(1, 99, (2, 9)), "attention_mask": torch.ones(2, 9, dtype=torch.int64)}


def ids():
    return {"input_ids": torch.randint(1, 99, (2, 9))}


def image():
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


def sound():
    return {"input_values": torch.randn(2, 400)}


MODELS = {
    "Bert": ("BertModel", SIZES, text),
    "DebertaV2": ("DebertaV2Model", SIZES, text),
    "GPT2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 100, "use_cache": False}, ids),
    "Llama": ("LlamaForCausalLM", DECODER, ids),
    "Qwen2": ("Qwen2ForCausalLM", DECODER, ids),
    "Mamba": ("MambaModel", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "vocab_size": 100, "use_cache": False}, ids),
    "ViT": ("ViTModel", IMAGE, image),
    "ConvNext": ("ConvNextModel", {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "image_size": 32}, image),
    "Swin": ("SwinModel", {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}, image),
    "Wav2Vec2": (
        "Wav2Vec2Model",
        {
            **{name: size for name, size in SIZES.items() if name != "vocab_size"},
            **{"conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2},
            **{"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
        },
        sound,
    ),
}


def tensors(value):
    value = value.to_tuple() if hasattr(value, "to_tuple") else value
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    kind, sizes, inputs = MODELS[name]
    module = getattr(hf, kind)(getattr(hf, name + "Config")(**sizes)).eval()
    given = inputs()
    with torch.no_grad():
        want = tensors(module(**given))
        model = tvm.compile(torch.export.export(module, (), given, strict=False))
    out = model(*[given[info.name] for info in model.inputs])
    got = [torch.from_dlpack(v) for v in (out if isinstance(out, tuple) else (out,))]
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
