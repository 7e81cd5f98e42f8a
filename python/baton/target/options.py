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
    "sdaccel": ("sdaccel", "hls"),
    "stackvm": ("cpu",),
}

# What GPUs have where a target does not say it.
LIMITS = {
    "cuda": {"max_num_threads": 1024, "thread_warp_size": 32},
    "nvptx": {"max_num_threads": 1024, "thread_warp_size": 32},
    "rocm": {"max_num_threads": 256, "thread_warp_size": 64},
    "opencl": {"max_num_threads": 256, "thread_warp_size": 1},
    "metal": {"max_num_threads": 256, "thread_warp_size": 16},
    "vulkan": {"max_num_threads": 256, "thread_warp_size": 1},
    "webgpu": {"max_num_threads": 256},
}


def _nvidia(arch):
    return {"kind": "cuda", "arch": arch, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "thread_warp_size": 32}


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
        text = target
    elif hasattr(target, "_text"):
        text = target._text()
    else:
        raise TypeError(f"a target is a text, a dict or a Target, not {type(target).__name__}")
    return text if host is None else f"{without_host(text)} {_word('host', host)}"


def words_of(text):
    """(name, value) of each option of a text."""
    for word in shlex.split(text)[1:]:
        name, has, value = word.lstrip("-").partition("=")
        yield name, value if has else "1"


def options_of(text):
    """The options of a text by name, as values of Python."""
    found = {}
    for name, value in words_of(text):
        if name in _LISTS:
            value = [v for v in value.split(",") if v]
        elif name == "devices":
            value = value.split(";")
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
