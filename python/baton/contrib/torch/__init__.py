# SPDX-License-Identifier: Apache-2.0
"""PyTorch's door: programs of `torch.export`, TorchScript, modules, and `torch.compile(backend="baton")`.

    model = baton.compile(torch.export.export(module, (x,)))
    mod, params = baton.relay.frontend.from_pytorch(module.eval(), [("x", (1, 3, 224, 224))])
    fast = torch.compile(module, backend="baton")      # baton.torch.report() says what was compiled


`baton.torch` is this module. PyTorch is imported by the first use of something here.
"""

import importlib

_NAMES = {
    "Program": "convert",
    "compile_parts": "partly",
    "convert_graph": "convert",
    "convert_program": "convert",
    "from_pytorch": "frontend",
    "load_program": "frontend",
    "nodes_of": "xray",
    "write_alone": "xray",
    "aten": "registry",
    "register": "backend",
    "report": "reports",
    "reset": "reports",
}


def require():
    """Imports PyTorch. Raises ImportError that says what to install where it is absent."""
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        raise ImportError("PyTorch is not installed: pip install torch") from None


def __getattr__(name):
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require()
    return getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)


def __dir__():
    return sorted({*globals(), *_NAMES})
