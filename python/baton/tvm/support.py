# SPDX-License-Identifier: Apache-2.0
"""Facts about the build, and a module of functions of Python for tests of importers."""


def libinfo():
    """Options of the build by name, as texts: "LLVM_VERSION", "USE_LLVM", "USE_CUDA", ..."""
    from ..config import version
    from ..driver.compiler import machine_facts
    from ..runtime import enabled

    facts = machine_facts()
    known = {
        "LLVM_VERSION": facts.get("llvm", ""),
        "TVM_VERSION": version(),
        "GIT_COMMIT_HASH": "unknown",
        "USE_LLVM": "ON",
        "BUILD_STATIC_RUNTIME": "OFF",
        "USE_OPENCL": "ON" if enabled("opencl") else "OFF",
    }
    absent = (
        "ARM_COMPUTE_LIB",
        "BLAS",
        "COREML",
        "CUBLAS",
        "CUDA",
        "CUDNN",
        "DNNL_CODEGEN",
        "ETHOSN",
        "HEXAGON",
        "METAL",
        "MICRO",
        "MKL",
        "MKLDNN",
        "NNPACK",
        "OPENMP",
        "PIPELINE_EXECUTOR",
        "PROFILER",
        "ROCM",
        "RPC",
        "TARGET_ONNX",
        "TENSORRT_CODEGEN",
        "TF_TVMDSOOP",
        "THRUST",
        "VITIS_AI",
        "VULKAN",
    )
    return {**known, **{f"USE_{name}": "OFF" for name in absent}}


def describe():
    """Prints facts about Python, the machine and the build."""
    import platform
    import sys

    print(f"Python {sys.version.split()[0]}, {platform.platform()}, {platform.machine()}")
    for name, value in sorted(libinfo().items()):
        print(f"{name}: {value}")


class FrontendTestModule:
    """Functions of Python by name, called as those of a module of code."""

    def __init__(self, entry_name=None):
        self._functions = {}
        self.entry_name = entry_name if entry_name is not None else "main"

    def add_function(self, name, func):
        """Adds a function; it gets arrays as code does."""
        from ..runtime import convert

        self._functions[name] = convert(func)

    __setitem__ = add_function

    def get_function(self, name, query_imports=False):
        """The function of a name. Raises AttributeError if there is none."""
        if name not in self._functions:
            raise AttributeError(f"the module has no function `{name}`")
        return self._functions[name]

    __getitem__ = get_function

    @property
    def entry_func(self):
        """The function of the entry's name."""
        return self.get_function(self.entry_name)

    def __call__(self, *args):
        return self.entry_func(*args)


__all__ = ["FrontendTestModule", "describe", "libinfo"]
