# SPDX-License-Identifier: Apache-2.0
"""The graph executor over CUDA's graphs; there is no code for NVIDIA's GPUs, so it is the plain one, and says so for a GPU."""

from ....error import UnsupportedError, ValueError
from ..graph_executor import GraphModule
from ..graph_executor import create as _create


def create(graph_json_str, libmod, device):
    """An executor of a module of code. Raises UnsupportedError for an NVIDIA GPU."""
    for one in device if isinstance(device, (list, tuple)) else [device]:
        if str(one).startswith("cuda"):
            raise UnsupportedError("no code is made for NVIDIA's GPUs; there is code for c, llvm and opencl")
    if libmod is None:
        raise ValueError("a graph executor takes the module that relay.build gives, not None")
    return _create(graph_json_str, libmod, device)


class GraphModuleCudaGraph(GraphModule):
    """A model with its inputs and outputs; `run_cuda_graph` runs it."""

    def run_cuda_graph(self):
        """Runs the model."""
        self.run()

    def capture_cuda_graph(self):
        """Nothing is captured."""


__all__ = ["GraphModuleCudaGraph", "create"]
