# SPDX-License-Identifier: Apache-2.0
"""Options of targets: as text, as dicts, by tag."""

import json
import shlex

_LISTS = ("keys", "libs", "mattr")
_SWITCHES = ("system-lib", "link-params", "unpacked-api", "fast-math")
# Words that programs look for in a target of a kind.
KEYS = {
    "opencl": ("opencl", "gpu"),
    "cuda": ("cuda", "gpu"),
    "nvptx": ("cuda", "gpu"),
    "rocm": ("rocm", "gpu"),
    "vulkan": ("vulkan", "gpu"),
    "metal": ("metal", "gpu"),
    "webgpu": ("webgpu", "gpu"),
    "hexagon": ("hexagon",),
    "ext_dev": ("ext_dev",),
    "aocl": ("aocl", "hls"),
    "aocl_sw_emu": ("aocl", "hls"),
    "sdaccel": ("sdaccel", "hls"),
    "stackvm": ("cpu",),
}

# Limits of GPUs where a target does not say them.
LIMITS = {
    "cuda": {"max_num_threads": 1024, "thread_warp_size": 32},
    "nvptx": {"max_num_threads": 1024, "thread_warp_size": 32},
    "rocm": {"max_num_threads": 256, "thread_warp_size": 64},
    "opencl": {"max_num_threads": 256, "thread_warp_size": 1},
    "metal": {"max_num_threads": 256, "thread_warp_size": 16},
    "vulkan": {"max_num_threads": 256, "thread_warp_size": 1},
    "webgpu": {"max_num_threads": 256},
}


_FEW_REGISTERS = ("sm_20", "sm_21", "sm_53", "sm_62")  # their blocks have half of the registers that others have


def _nvidia(arch):
    return {
        "kind": "cuda",
        "arch": arch,
        "shared_memory_per_block": 49152,
        "registers_per_block": 32768 if arch in _FEW_REGISTERS else 65536,
        "max_threads_per_block": 1024,
        "thread_warp_size": 32,
    }


def _raspberry(triple, cpu):
    return {
        "kind": "llvm",
        "mtriple": triple,
        "mcpu": cpu,
        "mattr": ["+neon"],
        "num-cores": 4,
        "host": {"kind": "llvm", "mtriple": triple, "mcpu": cpu, "mattr": ["+neon"], "num-cores": 4},
    }


# Name -> the target that it stands for.
TAGS = {
    "raspberry-pi/4b-32": _raspberry("armv8l-linux-gnueabihf", "cortex-a72"),
    "raspberry-pi/4b-64": _raspberry("aarch64-linux-gnu", "cortex-a72"),
    "raspberry-pi/4b-aarch64": _raspberry("aarch64-linux-gnu", "cortex-a72"),
    "nvidia/jetson-agx-xavier": {**_nvidia("sm_72"), "host": {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "carmel", "num-cores": 8}},
    **{
        f"nvidia/{name}": _nvidia(arch)
        for name, arch in {
            "geforce-gtx-1080": "sm_61",
            "geforce-gtx-1080-ti": "sm_61",
            "nvidia-titan-x": "sm_61",
            "geforce-rtx-2060": "sm_75",
            "geforce-rtx-2070": "sm_75",
            "geforce-rtx-2080": "sm_75",
            "geforce-rtx-2080-ti": "sm_75",
            "geforce-rtx-3070": "sm_86",
            "geforce-rtx-3080": "sm_86",
            "geforce-rtx-3090": "sm_86",
            "tesla-p100": "sm_60",
            "tesla-v100": "sm_70",
            "tesla-t4": "sm_75",
            "nvidia-a100": "sm_80",
            "jetson-nano": "sm_53",
            "jetson-tx2": "sm_62",
            **dict.fromkeys("tesla-k80".split(), "sm_37"),
            **dict.fromkeys("tesla-k40 tesla-k20 geforce-gtx-780-ti geforce-gtx-780 geforce-gtx-titan geforce-gtx-titan-black".split(), "sm_35"),
            **dict.fromkeys("geforce-gtx-750-ti geforce-gtx-750 geforce-940m geforce-gtx-860m".split(), "sm_50"),
            **dict.fromkeys(
                "tesla-m60 tesla-m40 tesla-m6 geforce-gtx-titan-x geforce-gtx-980-ti geforce-gtx-980 geforce-gtx-970 geforce-gtx-960 geforce-gtx-950 "
                "quadro-m6000 quadro-m5000 quadro-m4000".split(),
                "sm_52",
            ),
            **dict.fromkeys("quadro-gp100".split(), "sm_60"),
            **dict.fromkeys(
                "tesla-p40 tesla-p4 geforce-gtx-1070-ti geforce-gtx-1070 geforce-gtx-1060 geforce-gtx-1050-ti geforce-gtx-1050 nvidia-titan-xp "
                "quadro-p6000 quadro-p5000 quadro-p4000 quadro-p2000 quadro-p1000".split(),
                "sm_61",
            ),
            **dict.fromkeys("nvidia-titan-v quadro-gv100".split(), "sm_70"),
            **dict.fromkeys(
                "nvidia-titan-rtx geforce-rtx-2080-super geforce-rtx-2070-super geforce-rtx-2060-super geforce-gtx-1660-ti geforce-gtx-1660 "
                "geforce-gtx-1650 quadro-rtx-8000 quadro-rtx-6000 quadro-rtx-5000 quadro-rtx-4000".split(),
                "sm_75",
            ),
            "nvidia-a30": "sm_80",
            **dict.fromkeys("geforce-rtx-3080-ti geforce-rtx-3070-ti geforce-rtx-3060-ti geforce-rtx-3060 nvidia-a40 nvidia-a10".split(), "sm_86"),
        }.items()
    },
}


def keys_of(kind, device=None, given=()):
    """Words that programs look for in a target: those given, its device, those of its kind."""
    return list(dict.fromkeys([*given, *filter(None, [device]), *KEYS.get(kind, ("cpu",))]))


def _word(name, value):
    """An option as it is written in a target's text."""
    if isinstance(value, bool):
        value = int(value)
    if name == "devices":
        value = ";".join(text_of(v) for v in value)
    elif name == "host":
        value = text_of(value)
    elif isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
        value = ",".join(map(str, value))
    elif not isinstance(value, (str, int, float)):
        raise ValueError(f"the target option {name} is a text, a number or a list, not a {type(value).__name__}")
    value = str(value)
    if "\"" in value and "'" in value:
        raise ValueError(f"the target option {name} has quotes of both kinds: {value}")
    quote = "" if " " not in value and '"' not in value and "'" not in value else "'" if '"' in value else '"'
    return f"-{name}={quote}{value}{quote}"


def text_of(target, host=None):
    """The text of a target in any form: text, JSON, dict, tag, Target. Raises TypeError for others."""
    if isinstance(target, str) and target.lstrip().startswith("{"):
        target = json.loads(target)
    if isinstance(target, str) and target.strip() in TAGS:
        target = {"tag": target.strip()}
    if isinstance(target, dict):
        target = dict(target)
        if target.get("tag") in TAGS:
            target = {**TAGS[target["tag"]], **target}
        kind = target.pop("kind", "llvm")
        if list(target.get("keys") or ()) == keys_of(kind, target.get("device")):
            del target["keys"]
        text = " ".join([kind, *(_word(name, value) for name, value in target.items() if value not in ("", None))])
    elif isinstance(target, str):
        text = _regular(target)
    elif hasattr(target, "_text"):
        text = target._text()
    else:
        raise NoTarget(f"a target has to be a string or dictionary, or a Target, not {type(target).__name__}")
    if host is None:
        return text
    given = options_of(text).get("host")
    word = _word("host", host)
    if given is not None and _word("host", given) != word:
        raise ValueError(f"the target has the host `{given}` already, and is given `{word.removeprefix('-host=')}`; with_host replaces the host")
    return text if given is not None else f"{text} {word}"


class NoTarget(TypeError, ValueError):
    """A value in no form of a target."""


def _tokens(text):
    """(name, value) of each option of a text as it is written; the value is None where it is left out, the name where a word is not an option."""
    words = shlex.split(text)[1:]
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-"):
            yield None, word
            continue
        name, has, value = word.lstrip("-").partition("=")
        if not has and at < len(words) and not words[at].startswith("-"):  # `--key value`
            value, at = words[at], at + 1
            has = True
        yield name, value if has else None


def _regular(text):
    """A text with its options written `-name=value`, tags of hosts and devices replaced by what they stand for."""
    try:
        tokens = list(_tokens(text))
    except ValueError as e:
        raise ValueError(f"the target `{text}`: {e}") from None
    if not tokens:
        return text
    words = [text.split()[0]]
    for name, value in tokens:
        if name is None or value is None:
            words.append(value if name is None else f"-{name}")
        elif name == "devices":
            words.append(_word(name, _devices(value)))
        elif name in _ANY_CASE or value.lower() not in ("true", "false"):
            words.append(_word(name, value))
        else:
            words.append(_word(name, int(value.lower() == "true")))
    return " ".join(words)


_ANY_CASE = ("model", "device", "tag", "device_name", "driver_name")


def _devices(value):
    """The targets that the option `devices` names: by ";", or, where none has options, by ","."""
    return [v.strip() for v in value.split(";" if ";" in value or " " in value else ",")]


def words_of(text):
    """(name, value) of each option of a text."""
    for name, value in _tokens(text):
        yield (value, "1") if name is None else (name, "1" if value is None else value)


def options_of(text):
    """The options of a text by name, as values of Python."""
    found = {}
    for name, value in words_of(text):
        if name in _LISTS:
            value = [v for v in value.split(",") if v]
        elif name == "devices":
            value = _devices(value)
        elif name in _SWITCHES or name.startswith("fast-math-"):
            value = value not in ("0", "False", "false")
        elif value.removeprefix("-").isdigit() and name not in ("mcpu", "model", "device", "arch"):
            value = int(value)
        found[name] = value
    return found


def without_host(text):
    """The text without the option -host."""
    if "-host=" not in text:
        return text
    kind, found = text.split(None, 1)[0], [(name, value) for name, value in words_of(text) if name != "host"]
    return " ".join([kind, *(_word(name, value) for name, value in found)])
