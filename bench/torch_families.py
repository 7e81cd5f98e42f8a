# SPDX-License-Identifier: Apache-2.0
"""The models that `torch_models.py` runs: for each family names, and functions that make a module and its arguments."""

import inspect
import itertools

import torch

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
# Further settings of single types.
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
TORCHVISION_SIZES = {"inception_v3": 96, "maxvit_t": 224, "vit_h_14": 224}


def stirred(module):
    """The module with tensors that start at zero, or near it, filled with random numbers: layers behind them would go untested."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.numel() and parameter.abs().max() < 1e-3:
                parameter.normal_(std=0.1)
    return module


def spread(module, *args):
    """The module with weights such that each layer's results differ from place to place, by 1: scores of a deep network of random weights are else
    so near to each other that rounding orders them."""
    seen, hooks = set(), []

    def scale(layer, _, out):
        if id(layer) in seen or out.numel() == out.shape[1]:
            return out
        seen.add(id(layer))
        axes = [a for a in range(out.ndim) if a != 1]
        by = out.std(axes).mean().clamp(min=1e-6)
        layer.weight.div_(by)
        return out / by

    for layer in module.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            hooks.append(layer.register_forward_hook(scale))
    with torch.no_grad():
        module(*args)
    for hook in hooks:
        hook.remove()
    return module


def torchvision_models(only):
    """The classifiers of torchvision."""
    import torchvision

    def made(name):
        def of():
            size, options = TORCHVISION_SIZES.get(name, 64), {}
            if name.startswith("vit_"):
                options["image_size"] = size
            if name in ("inception_v3", "googlenet"):
                options["init_weights"] = False
            module = torchvision.models.get_model(name, weights=None, num_classes=10, **options).eval()
            return stirred(module), (torch.randn(2, 3, size, size),), {}

        return of

    return [(name, made(name)) for name in torchvision.models.list_models(torchvision.models) if not only or name in only]


def detector_models(only):
    """The detectors of torchvision on two images; boxes are kept whatever their scores."""
    import torchvision

    def made(name):
        def of():
            options = {"weights": None, "weights_backbone": None, "num_classes": 5, "min_size": 64, "max_size": 96}
            if name.startswith("ssd"):
                del options["min_size"], options["max_size"]
            if "rcnn" in name:
                options["box_score_thresh"] = 0.0
            else:
                options["score_thresh"] = 0.0
            images = [torch.rand(3, 64, 80), torch.rand(3, 72, 64)]
            return spread(torchvision.models.get_model(name, **options).eval(), images), (images,), {}

        return of

    return [(name, made(name)) for name in torchvision.models.list_models(torchvision.models.detection) if not only or name in only]


# A small model of each of timm's files.
TIMM = dict(
    row.split("=")
    for row in """
    beit=beit_base_patch16_224 byoanet=halonet_h1 byobnet=test_byobnet cait=cait_xxs24_224 coat=coat_tiny convit=convit_tiny
    convmixer=convmixer_768_32 convnext=test_convnext cpubone=cpubone_nano crossvit=crossvit_tiny_240 csatv2=csatv2
    cspnet=cs3darknet_focus_s cspnext=cspnext_tiny davit=davit_tiny deepseek_vit=deepseek_vit_412m deit=deit_tiny_patch16_224
    densenet=densenet121 dla=dla34 dpn=dpn48b edgenext=edgenext_xx_small efficientformer=efficientformer_l1
    efficientformer_v2=efficientformerv2_s0 efficientnet=test_efficientnet efficientvim=efficientvim_m1 efficientvit_mit=efficientvit_b0
    efficientvit_msra=efficientvit_m0 eva=vit_tiny_patch16_dinov3_qkvb fasternet=fasternet_t0 fastvit=fastvit_t8
    focalnet=focalnet_tiny_srf gcvit=gcvit_xxtiny gemma4_vit=gemma4_vit_167m ghostnet=ghostnet_050 hardcorenas=hardcorenas_b
    hgnet=hgnetv2_b0 hiera=hiera_tiny_224 hieradet_sam2=sam2_hiera_tiny hrnet=hrnet_w18_small iformer=iformer_t
    inception_next=inception_next_atto inception_resnet_v2=inception_resnet_v2 inception_v3=inception_v3 inception_v4=inception_v4
    lcnetv2=lcnetv2_small levit=levit_128 lowformer=lowformer_b0 mambaout=test_mambaout maxxvit=test_coatnet metaformer=poolformer_s12
    mlp_mixer=gmixer_12_224 mobilenetv3=mobilenetv3_small_050 mobilenetv5=mobilenetv5_base mobilevit=mobilevit_xxs mvitv2=mvitv2_tiny
    naflexvit=naflexvit_base_patch16_gap nasnet=nasnetalarge nest=nest_tiny nextvit=nextvit_small nfnet=test_nfnet pit=pit_ti_224
    pnasnet=pnasnet5large pvt_v2=pvt_v2_b0 qwen3_vit=qwen3_vit_88m rdnet=rdnet_tiny regnet=regnetx_002 repghost=repghostnet_050
    repvit=repvit_m1 res2net=res2next50 resnest=resnest14d resnet=test_resnet resnetv2=resnetv2_18 rexnet=rexnet_100 selecsls=selecsls42
    senet=legacy_seresnet18 sequencer=sequencer2d_s shvit=shvit_s1 sknet=skresnet18 starnet=starnet_s050 swiftformer=swiftformer_xs
    swin_transformer=swin_tiny_patch4_window7_224 swin_transformer_v2=swinv2_tiny_window8_256 swin_transformer_v2_cr=swinv2_cr_tiny_224
    tiny_vit=tiny_vit_5m_224 tnt=tnt_s_legacy_patch16_224 tresnet=tresnet_m twins=twins_svt_small vgg=vgg11 visformer=visformer_tiny
    vision_transformer=test_vit vision_transformer_hybrid=vit_tiny_r_s16_p8_224 vision_transformer_relpos=test_vit_relpos
    vision_transformer_sam=samvit_base_patch16_224 vitamin=vitamin_small_224 volo=volo_d1_224 vovnet=ese_vovnet19b_slim_dw
    xception=xception xception_aligned=xception41p xcit=xcit_nano_12_p8_224
    """.split()
)
# Sides of images, in the order in which they are tried; the last is the model's own.
TIMM_SIDES = (64, 96, 128, 192, 224, 256, None)


def _timm_model(name):
    """(a model, an image): the smallest that eager takes."""
    import timm

    config = timm.models.get_pretrained_cfg(name)
    own = config.input_size if config else (3, 299, 299)
    for side in TIMM_SIDES:
        image = torch.randn(1, own[0], side or own[1], side or own[2])
        try:
            if config and config.fixed_input_size and side is not None:
                module = timm.create_model(name, img_size=side).eval()
            else:
                module = timm.create_model(name).eval()
            with torch.no_grad():
                module(image)
        except Exception:  # noqa: BLE001 - too small for it, or not the side that it is made for
            if side is None:
                raise
            continue
        return stirred(module), image
    raise AssertionError(name)


def timm_models(only):
    """A small model of each of timm's files, by the file's name or its own."""

    def made(name):
        def of():
            module, image = _timm_model(name)
            return module, (image,), {}

        return of

    return [(file, made(name)) for file, name in TIMM.items() if not only or file in only or name in only]


def module_models(only):
    """PyTorch's `module_db`: the samples of each module, in evaluation and in training."""
    from torch.testing._internal.common_modules import module_db

    out = []
    for info in module_db:
        for training in (False, True):
            name = f"{info.name}.{'train' if training else 'eval'}"
            if not only or info.name in only or name in only:
                out.append((name, ModuleSamples(info, training)))
    return out


class ModuleSamples:
    """The samples of a module of `module_db`, four at most; of float64 where eager takes no others."""

    def __init__(self, info, training):
        self.info, self.training, self.dtype = info, training, torch.float32

    def samples(self):
        """(module, arguments, keyword arguments) of each."""
        given = self.info.module_inputs_func(self.info, device="cpu", dtype=self.dtype, requires_grad=False, training=self.training)
        for sample in itertools.islice(given, 4):
            if sample.forward_input is None:
                continue
            made = sample.constructor_input
            module = self.info.module_cls(*made.args, **made.kwargs).to(self.dtype)
            yield module.train(self.training), sample.forward_input.args, sample.forward_input.kwargs


FAMILIES = {
    "transformers": transformers_models,
    "torchvision": torchvision_models,
    "detectors": detector_models,
    "timm": timm_models,
    "modules": module_models,
}
