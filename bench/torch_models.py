# SPDX-License-Identifier: Apache-2.0
"""Models of `transformers`, torchvision and timm, and PyTorch's own table of modules, through Baton beside eager: how many are equal.

    python bench/torch_models.py transformers               60 types, shrunk, random weights
    python bench/torch_models.py torchvision timm modules   80 classifiers; the smallest model of each file; `module_db` in both modes
    python bench/torch_models.py transformers --only bert,t5 --door compile

Packages that are not installed are an error. `--door export` (default) compiles the program of `torch.export`, `--door compile` calls
`torch.compile(backend="baton")` with fallback="error". Exits with 1 where a result differs from eager's.
"""

import argparse
import collections
import inspect
import itertools
import json
import os
import sys
import time
import warnings

import torch
from torch.utils import _pytree as pytree

import baton
from baton.contrib.torch import register
from baton.error import UnsupportedError

os.environ.setdefault("HF_HUB_OFFLINE", "1")

TEXT = "bert roberta albert electra distilbert deberta deberta-v2 mpnet xlm-roberta camembert convbert fnet modernbert roformer ernie megatron-bert layoutlm"
DECODERS = "gpt2 gpt_neo gpt_neox gptj opt bloom llama mistral qwen2 qwen3 gemma gemma2 phi phi3 falcon stablelm starcoder2 olmo cohere mamba xglm codegen"
EXPERTS = "mixtral qwen2_moe olmoe"
BOTH = "t5 bart pegasus marian"
IMAGES = "vit deit beit swin convnext convnextv2 dinov2 resnet mobilevit mobilenet_v2 segformer"
SOUND = "wav2vec2 hubert whisper"
TYPES = " ".join([TEXT, DECODERS, EXPERTS, BOTH, IMAGES, SOUND]).split()

# Sizes of a shrunk model, for the names that a configuration has.
SMALL = {
    **dict.fromkeys(["hidden_size", "n_embd", "d_model", "word_embed_proj_dim", "embed_dim"], 32),
    **dict.fromkeys(["num_hidden_layers", "n_layer", "encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers", "n_layers"], 2),
    **dict.fromkeys(["num_attention_heads", "n_head", "encoder_attention_heads", "decoder_attention_heads", "num_heads", "n_heads", "attention_heads"], 4),
    **dict.fromkeys(["intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "moe_intermediate_size", "hidden_dim"], 64),
    **{"num_key_value_heads": 2, "vocab_size": 100, "head_dim": 8, "d_kv": 8, "max_position_embeddings": 64, "n_positions": 64, "embedding_size": 16},
    **{"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 64, "rotary_dim": 4, "state_size": 4},
    **{"image_size": 32, "patch_size": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "dim": 32},
    **{"max_source_positions": 32, "max_target_positions": 32, "num_mel_bins": 16, "use_cache": False, "query_pre_attn_scalar": 8},
}
# What single types need beside.
OWN = {
    "swin": {"patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    "convnext": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "patch_size": 4},
    "convnextv2": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "patch_size": 4},
    "resnet": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1]},
    "mobilevit": {"image_size": 64, "patch_size": 2, "hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 16, 16, 16, 16, 16, 16]},
    "mobilenet_v2": {"image_size": 64},
    "segformer": {"image_size": 64, "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4], "patch_sizes": [7, 3, 3, 3]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "attention_layers": ["global", "local"], "window_size": 4},
    "wav2vec2": {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    "hubert": {"conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4},
    "falcon": {"new_decoder_architecture": False},
    "mamba": {"num_hidden_layers": 2, "time_step_rank": 2, "intermediate_size": 64},
}


def _config(kind):
    from transformers import AutoConfig

    plain = AutoConfig.for_model(kind).to_dict()
    layers = SMALL["num_hidden_layers"]
    given = {name: value for name, value in SMALL.items() if name in plain}
    if isinstance(plain.get("layer_types"), list):
        given["layer_types"] = plain["layer_types"][:layers]
    if kind in ("wav2vec2", "hubert"):
        given["num_feat_extract_layers"] = 2
    return AutoConfig.for_model(kind, **{**given, **OWN.get(kind, {})})


def _text_of(module, config):
    ids = torch.randint(3, 99, (2, 9))
    takes = inspect.signature(module.forward).parameters
    given = {"input_ids": ids}
    if "attention_mask" in takes and getattr(config, "model_type", "") not in ("fnet", "mamba"):
        given["attention_mask"] = torch.tensor([[1] * 9, [1] * 9])
    if "decoder_input_ids" in takes:
        given["decoder_input_ids"] = torch.randint(3, 99, (2, 5))
    return given


def transformers_models(only):
    """(name, function that gives a module and its keyword arguments) of each type."""
    from transformers import AutoModel

    def made(kind):
        def of():
            config = _config(kind)
            module = AutoModel.from_config(config).eval()
            if kind in IMAGES.split():
                size = getattr(config, "image_size", 32)
                return module, (), {"pixel_values": torch.randn(2, 3, size, size)}
            if kind in ("wav2vec2", "hubert"):
                return module, (), {"input_values": torch.randn(2, 400)}
            if kind == "whisper":
                given = {"input_features": torch.randn(2, 16, 64), "decoder_input_ids": torch.randint(3, 99, (2, 5))}
                return module, (), given
            return module, (), _text_of(module, config)

        return of

    return [(kind, made(kind)) for kind in TYPES if not only or kind in only]


# Square images of these models; others take 64.
TORCHVISION_SIZES = {"inception_v3": 96, "googlenet": 64, "alexnet": 64, "maxvit_t": 224}


def torchvision_models(only):
    """The classifiers of torchvision."""
    import torchvision

    def made(name):
        def of():
            size, options = TORCHVISION_SIZES.get(name, 64), {}
            if name.startswith("vit_"):
                options["image_size"] = size = 224 if name == "vit_h_14" else 64
            if name in ("inception_v3", "googlenet"):
                options["init_weights"] = False
            module = torchvision.models.get_model(name, weights=None, num_classes=10, **options).eval()
            return module, (torch.randn(2, 3, size, size),), {}

        return of

    return [(name, made(name)) for name in torchvision.models.list_models(torchvision.models) if not only or name in only]


def timm_models(only):
    """The model with fewest parameters of each of timm's files."""
    import timm
    from timm.models._registry import _module_to_models

    def made(names, file):
        def of():
            with torch.device("meta"):
                sizes = {}
                for name in sorted(names):
                    try:
                        sizes[name] = sum(p.numel() for p in timm.create_model(name).parameters())
                    except Exception:  # noqa: BLE001 - a model that needs a package or real tensors while it is made
                        continue
            name = min(sizes, key=sizes.get)
            module = timm.create_model(name, pretrained=False).eval()
            shape = module.pretrained_cfg.get("input_size", (3, 224, 224)) if hasattr(module, "pretrained_cfg") else (3, 224, 224)
            return module, (torch.randn(1, *shape),), {}

        return of

    return [(file, made(names, file)) for file, names in sorted(_module_to_models.items()) if not only or file in only]


def module_models(only):
    """PyTorch's `module_db`: the samples of each module, in evaluation and in training."""
    from torch.testing._internal.common_modules import module_db

    out = []
    for info in module_db:
        for training in (False, True):
            name = f"{info.name}.{'train' if training else 'eval'}"
            if not only or info.name in only or name in only:
                out.append((name, _ModuleSamples(info, training)))
    return out


class _ModuleSamples:
    """The samples of a module of `module_db`, four at most."""

    def __init__(self, info, training):
        self.info, self.training = info, training

    def samples(self):
        """(module, arguments, keyword arguments) of each."""
        given = self.info.module_inputs_func(self.info, device="cpu", dtype=torch.float32, requires_grad=False, training=self.training)
        for sample in itertools.islice(given, 4):
            if sample.forward_input is None:
                continue
            made = sample.constructor_input
            module = self.info.module_cls(*made.args, **made.kwargs)
            yield module.train(self.training), sample.forward_input.args, sample.forward_input.kwargs


FAMILIES = {"transformers": transformers_models, "torchvision": torchvision_models, "timm": timm_models, "modules": module_models}


def tensors(value):
    """The tensors of a result, in order."""
    value = value.to_tuple() if hasattr(value, "to_tuple") else value
    return [v for v in pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def close(got, want):
    """None, or how far results are from eager's."""
    if len(got) != len(want):
        return f"{len(got)} results, eager {len(want)}"
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        # Eager's own rounding grows with depth: the bound is one of the largest element.
        bound = 1e-4 * max(1.0, b.detach().abs().max().item()) if b.is_floating_point() and b.numel() else 0
        try:
            torch.testing.assert_close(a, b, rtol=1e-3, atol=bound, equal_nan=True)
        except AssertionError as error:
            return f"result {index}: {' '.join(str(error).split())[:250]}"
    return None


def run_export(module, args, kwargs):
    """The results of the compiled program of `torch.export`."""
    program = torch.export.export(module, args, kwargs, strict=False)
    model = baton.compile(program)
    flat = pytree.tree_leaves((args, kwargs))
    out = model(*[v for v in flat if isinstance(v, torch.Tensor)])
    return [torch.from_dlpack(v) for v in (out if isinstance(out, tuple) else (out,))]


def run_compile(module, args, kwargs):
    """The results of `torch.compile` without fallback."""
    register()
    torch._dynamo.reset()
    return tensors(torch.compile(module, backend="baton", options={"fallback": "error"})(*args, **kwargs))


def one(module, args, kwargs, door):
    """(how it went, why)"""
    torch.manual_seed(1)
    try:
        with torch.no_grad():
            if any(isinstance(p, torch.nn.parameter.UninitializedTensorMixin) for p in module.parameters()):
                module(*args, **kwargs)  # lazy modules learn their sizes
                torch.manual_seed(1)
            state = {k: v.clone() for k, v in module.state_dict().items()}
            want = [w.clone() for w in tensors(module(*args, **kwargs))]
            module.load_state_dict(state)
    except Exception as error:  # noqa: BLE001 - eager refuses it, too
        return "eager", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    try:
        torch.manual_seed(1)
        with torch.no_grad():
            got = (run_compile if door == "compile" else run_export)(module, args, kwargs)
    except UnsupportedError as error:
        return "unsupported", "; ".join(f"{n}: {r}" for n, _, r in getattr(error, "missing", [])[:4]) or " ".join(str(error).split())[:300]
    except Exception as error:  # noqa: BLE001 - counted
        cause = next((e for e in _chain(error) if isinstance(e, UnsupportedError)), None)
        if cause is not None:
            return "unsupported", "; ".join(f"{n}: {r}" for n, _, r in getattr(cause, "missing", [])[:4]) or str(cause)[:300]
        kind = "untraced" if type(error).__module__.startswith("torch") else "failed"
        return kind, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    why = close(got[: len(want)] if door == "export" else got, want)
    return ("wrong", why) if why else ("right", "")


def _chain(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def run(make, door):
    """How a model went: the worst of its samples."""
    order = ("wrong", "failed", "unsupported", "untraced", "right", "eager")
    try:
        samples = list(make.samples()) if isinstance(make, _ModuleSamples) else [make()]
    except Exception as error:  # noqa: BLE001
        return "eager", f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return min((one(*sample, door) for sample in samples), key=lambda went: order.index(went[0]), default=("eager", "no sample"))


def main(argv=None):
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="+", choices=list(FAMILIES))
    parser.add_argument("--door", choices=["export", "compile"], default="export")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    given = parser.parse_args(argv)
    warnings.filterwarnings("ignore")
    wrong, table = 0, {}
    for family in given.families:
        begin, counts = time.perf_counter(), collections.Counter()
        for name, make in FAMILIES[family](set(filter(None, given.only.split(",")))):
            torch.manual_seed(0)
            start = time.perf_counter()
            how, why = run(make, given.door)
            counts[how] += 1
            table[f"{family}:{name}"] = (how, why)
            print(f"{how:12} {family}:{name} {time.perf_counter() - start:.1f} s {why}", flush=True)
        wrong += counts["wrong"]
        print(f"{family}, door {given.door}: {dict(counts)} of {sum(counts.values())}, {time.perf_counter() - begin:.0f} s", flush=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
