# SPDX-License-Identifier: Apache-2.0
"""Small models of `transformers`, exported by PyTorch and fused by `onnxruntime.transformers.optimizer`, beside ONNX Runtime.

    python bench/exported_graphs.py                 # needs torch, transformers, onnxscript, sympy
    python bench/exported_graphs.py --only t5,swin
    python bench/exported_graphs.py --check         # exit code 1 where a graph is refused or differs

A model has random weights. Both exporters write it (the one that traces, and the one of `torch.export`); the optimizer fuses each file as
it is told the architecture: alone, behind ONNX Runtime's own basic fusions, for GPUs, and with weights of float16. A file that ONNX Runtime
does not load (operators of GPUs alone) has to compile, or be refused with an error of Baton.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from tools_graphs import FLOATS, differs, quiet, session

HALF_FLOATS = 2e-2
WAYS = {"alone": {}, "basic": {"opt_level": 1}, "gpu": {"use_gpu": True}, "float16": {}}
KINDS = {"whisper": "bart", "clip_vision": "clip"}  # what the optimizer calls them, where that is another name
_WORDS = {"vocab_size": 99, "attn_implementation": "eager"}
_ENCODER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "attn_implementation": "eager"}
_PAIR = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
         "encoder_ffn_dim": 96, "decoder_ffn_dim": 96}  # fmt: skip
_IMAGE = {"image_size": 32, "patch_size": 8}

# Model class, configuration class, its fields, inputs of the model.
MODELS = {
    "bart": ("BartModel", "BartConfig", _WORDS | _PAIR, ("input_ids", "attention_mask", "decoder_input_ids")),
    "whisper": (
        "WhisperModel",
        "WhisperConfig",
        _WORDS
        | _PAIR
        | {
            "max_source_positions": 20,
            "max_target_positions": 24,
            "num_mel_bins": 16,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        ("input_features", "decoder_input_ids"),
    ),  # fmt: skip
    "t5": (
        "T5Model",
        "T5Config",
        _WORDS | {"d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4},
        ("input_ids", "attention_mask", "decoder_input_ids"),
    ),  # fmt: skip
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", _WORDS | {"n_embd": 64, "n_layer": 2, "n_head": 4}, ("input_ids", "attention_mask")),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", _WORDS | _ENCODER, ("input_ids", "attention_mask")),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", _WORDS | _ENCODER | {"num_key_value_heads": 2, "head_dim": 16}, ("input_ids", "attention_mask")),
    "phi": ("PhiForCausalLM", "PhiConfig", _WORDS | _ENCODER, ("input_ids", "attention_mask")),
    "vit": ("ViTModel", "ViTConfig", _ENCODER | _IMAGE, ("pixel_values",)),
    "swin": (
        "SwinModel",
        "SwinConfig",
        {"image_size": 32, "patch_size": 2, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4, "attn_implementation": "eager"},
        ("pixel_values",),
    ),  # fmt: skip
    "clip": ("CLIPTextModel", "CLIPTextConfig", _WORDS | _ENCODER | {"max_position_embeddings": 24, "eos_token_id": 2}, ("input_ids",)),
    "clip_vision": ("CLIPVisionModel", "CLIPVisionConfig", _ENCODER | _IMAGE, ("pixel_values",)),
    "conformer": (
        "Wav2Vec2ConformerModel",
        "Wav2Vec2ConformerConfig",
        _WORDS
        | _ENCODER
        | {
            "conv_dim": (32, 32),
            "conv_stride": (5, 2),
            "conv_kernel": (10, 3),
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
            "conv_depthwise_kernel_size": 7,
        },
        ("input_values",),
    ),  # fmt: skip
    "sam2": (
        "Sam2HieraDetModel",
        "Sam2HieraDetConfig",
        {
            "hidden_size": 32,
            "num_attention_heads": 1,
            "image_size": [64, 64],
            "patch_stride": [4, 4],
            "blocks_per_stage": [1, 1, 2, 1],
            "embed_dim_per_stage": [32, 64, 128, 256],
            "num_attention_heads_per_stage": [1, 2, 4, 8],
            "window_size_per_stage": [4, 2, 4, 2],
            "global_attention_blocks": [3],
            "window_positional_embedding_background_size": [4, 4],
            "attn_implementation": "eager",
        },
        ("pixel_values",),
    ),  # fmt: skip
}


def feed_of(name: str, inputs: tuple[str, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    side = 64 if name == "sam2" else 32
    made = {
        "input_ids": lambda: rng.integers(3, 90, (2, 12)),
        "attention_mask": lambda: np.ones((2, 12), np.int64),
        "decoder_input_ids": lambda: rng.integers(3, 90, (1 if name == "whisper" else 2, 5)),
        "input_features": lambda: rng.standard_normal((1, 16, 40), "float32"),
        "input_values": lambda: rng.standard_normal((1, 600), "float32"),
        "pixel_values": lambda: rng.standard_normal((2, 3, side, side), "float32"),
    }
    return {key: made[key]() for key in inputs}


def exported(name: str, folder: Path):
    """(path, inputs) by each exporter that takes the model."""
    import torch
    import transformers

    model_class, config_class, fields, inputs = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, model_class)(getattr(transformers, config_class)(**fields)).eval()
    cached = "decoder_input_ids" in inputs or model_class.endswith("LM") or "LMHead" in model_class
    options = {"use_cache": False} if cached else {}

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *args):
            return self.model(**dict(zip(inputs, args, strict=True)), **options, return_dict=True)[0]

    feed = feed_of(name, inputs)
    args = tuple(torch.from_numpy(value) for value in feed.values())
    ways = (("trace", {"dynamo": False, "opset_version": 17}), ("export", {"dynamo": True, "opset_version": 18, "external_data": False}))
    for how, choice in ways:
        path = folder / f"{name}-{how}.onnx"
        try:
            with quiet(), torch.no_grad():
                torch.onnx.export(First(), args, str(path), input_names=list(inputs), verbose=False, **choice)
        except Exception as error:  # several classes of torch's: the exporter has no rule for an operator
            print(f"     {path.stem}: not exported: {type(error).__name__}", flush=True)
            continue
        yield path, feed


def fused(name: str, path: Path):
    """The file, and what the optimizer makes of it."""
    from onnxruntime.transformers import optimizer

    yield path
    heads, hidden = (0, 0) if name in ("swin", "sam2") else (4, 64)
    for way, options in WAYS.items():
        save = path.with_name(f"{path.stem}-{way}.onnx")
        try:
            with quiet():
                made = optimizer.optimize_model(str(path), KINDS.get(name, name), num_heads=heads, hidden_size=hidden, **{"opt_level": 0, **options})
                if way == "float16":
                    made.convert_float_to_float16(keep_io_types=True)
                made.save_model_to_file(str(save))
        except Exception as error:  # faults of the optimizer's own
            print(f"     {save.stem}: not fused: {type(error).__name__}", flush=True)
            continue
        yield save


def compare(path: Path, feed) -> tuple[bool, str]:
    """Whether Baton agrees with ONNX Runtime, or there is nothing to agree with; and what there is to say."""
    import baton

    try:
        peer = session(path)
        want = peer.run(None, {value.name: feed[value.name] for value in peer.get_inputs()})
    except Exception:  # several classes of onnxruntime's, none of them public
        want = None
    try:
        model = baton.compile(str(path))
        got = model(**{value.name: feed[value.name] for value in model.inputs})
    except baton.BatonError as error:
        return want is None, f"{type(error).__name__}: {str(error)[:300]}"
    if want is None:
        return True, "compiles; ONNX Runtime does not load it"
    difference = differs(got if isinstance(got, (tuple, list)) else [got], want)
    return difference <= (HALF_FLOATS if "float16" in path.stem else FLOATS), f"{difference:.1e}"


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="models, with commas between them")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a graph is refused or differs")
    args = parser.parse_args(argv)
    good, bad = 0, 0
    for name in args.only.split(",") if args.only else MODELS:
        with tempfile.TemporaryDirectory() as folder:
            for exported_path, feed in exported(name, Path(folder)):
                for path in fused(name, exported_path):
                    fine, text = compare(path, feed)
                    good, bad = good + fine, bad + (not fine)
                    print(f"{'ok  ' if fine else 'FAIL'} {path.stem:32} {text}", flush=True)
    print(f"{good} of {good + bad} graphs agree")
    return int(bad > 0 and args.check)


if __name__ == "__main__":
    sys.exit(main())
