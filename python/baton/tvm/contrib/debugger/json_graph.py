# SPDX-License-Identifier: Apache-2.0
"""Graphs as JSON whose nodes call functions of a module, as programs write them by hand: run node by node."""

import json

import numpy as np

from .... import runtime
from ....runtime import ndarray as nd
from ....runtime.values import fitted


class JsonGraph:
    """A graph (`nodes`, `arg_nodes`, `heads`, shapes and dtypes as Relay's graph executor reads them) over a module's functions, which take
    arrays: the inputs of a node, then its outputs. Has the methods of `graph_executor.GraphModule`."""

    def __init__(self, graph_json, libmod, device):
        graph = json.loads(graph_json)
        self.module, self._device, self.nodes = libmod, device, graph["nodes"]
        self.arguments, self.heads = graph["arg_nodes"], graph["heads"]
        attrs = graph["attrs"]
        rows = graph.get("node_row_ptr")
        if rows is None:
            rows = [0]
            for node in self.nodes:
                rows.append(rows[-1] + int(node.get("attrs", {}).get("num_outputs", 1)))
        self.rows, self.shapes, self.dtypes = rows, attrs["shape"][1], attrs["dltype"][1]
        self.values = [nd.array(_zeros(shape, dtype), device) for shape, dtype in zip(self.shapes, self.dtypes, strict=True)]
        self._names = {self.nodes[i]["name"]: i for i in self.arguments}

    def _input(self, key):
        if isinstance(key, int):
            return self.rows[self.arguments[key]]
        if key not in self._names:
            raise RuntimeError(f"Could not find '{key}' in graph's inputs")
        return self.rows[self._names[key]]

    def set_input(self, key=None, value=None, **params):
        """Copies a value to an input, by name or number; and those of `params` that are inputs, by name."""
        given = {n: v for n, v in params.items() if n in self._names}
        for name, array in {**({} if key is None else {key: value}), **given}.items():
            at = self._input(name)
            nd.array(fitted(array if hasattr(array, "__dlpack__") else np.asarray(array), self.dtypes[at], str(name))).copyto(self.values[at])

    def set_input_zero_copy(self, key=None, value=None, **params):
        """Lets an input refer to an array."""
        for name, array in {**({} if key is None else {key: value}), **params}.items():
            self.values[self._input(name)] = array

    def arrays_of(self, index):
        """(input arrays, output arrays) of a node."""
        ins = [self.values[self.rows[i] + k] for i, k, *_ in self.nodes[index].get("inputs", [])]
        return ins, self.values[self.rows[index] : self.rows[index + 1]]

    def run_node(self, index):
        """Computes the outputs of one node."""
        node = self.nodes[index]
        if node["op"] == "null":
            return
        ins, outs = self.arrays_of(index)
        name, flat = node["attrs"]["func_name"], str(node["attrs"].get("flatten_data", "0")) == "1"
        if name == "__nop":
            return
        if name == "__copy":
            ins[0].copyto(outs[0])
            return
        results = outs
        if flat:
            ins = [nd.array(x.numpy().reshape(-1), self._device) for x in ins]
            results = [nd.array(x.numpy().reshape(-1), self._device) for x in outs]
        self.module.get_function(name, True)(*ins, *results)
        if flat:
            for out, result in zip(outs, results, strict=True):
                nd.array(result.numpy().reshape(out.shape)).copyto(out)

    def run(self, **input_dict):
        """Runs the graph, on inputs by name if they are given."""
        self.set_input(**input_dict)
        for index in range(len(self.nodes)):
            self.run_node(index)

    def get_num_outputs(self):
        """Number of outputs."""
        return len(self.heads)

    def get_num_inputs(self):
        """Number of inputs."""
        return len(self.arguments)

    def get_input(self, index, out=None):
        """An input by number or name; copied to `out` if given."""
        found = self.values[self._input(index)]
        return found if out is None else found.copyto(out)

    def get_input_index(self, name):
        """Number of an input; -1 for an unknown name."""
        return self.arguments.index(self._names[name]) if name in self._names else -1

    def get_input_names(self):
        """Names of the inputs, in order."""
        return [self.nodes[i]["name"] for i in self.arguments]

    def get_input_info(self):
        """(shapes by name, dtypes by name) of the inputs."""
        at = {n: self.rows[i] for n, i in self._names.items()}
        return {n: tuple(self.shapes[i]) for n, i in at.items()}, {n: self.dtypes[i] for n, i in at.items()}

    def get_output(self, index, out=None):
        """An output of the last run, as a copy; copied to `out` if given."""
        node, k, *_ = self.heads[index]
        found = self.values[self.rows[node] + k]
        return found.copyto(out if out is not None else nd.empty(found.shape, found.dtype, self._device))

    def debug_get_output(self, node, out):
        """The first output of a node, by name or number, copied to `out`."""
        index = node if isinstance(node, int) else next(i for i, n in enumerate(self.nodes) if n["name"] == node)
        return self.values[self.rows[index]].copyto(out)

    def load_params(self, params_bytes):
        """Sets inputs from bytes that `save_param_dict` wrote."""
        self.set_input(**dict(runtime.load_param_dict(params_bytes).items()))

    def share_params(self, other, params_bytes):
        """Lets inputs refer to those of another executor."""
        for name in dict(runtime.load_param_dict(params_bytes).items()):
            self.values[self._input(name)] = other.get_input(name)


def _zeros(shape, dtype):
    return np.zeros([int(d) for d in shape], dtype)


def is_graph(graph_json, libmod):
    """Whether a text is a graph over single functions of a module, rather than that of a module that runs as a whole."""
    return isinstance(graph_json, str) and libmod.type_key != "rpc" and not libmod.implements_function("default")


__all__ = ["JsonGraph", "is_graph"]
