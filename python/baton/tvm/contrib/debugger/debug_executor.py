# SPDX-License-Identifier: Apache-2.0
"""The graph executor with times of its kernels and values of its nodes."""

import json
import os
import shutil
import time

from .... import runtime
from ....error import UnsupportedError
from ....runtime.profiling import Report
from ....runtime.steps import times_of_steps
from .. import graph_executor
from .json_graph import is_graph
from .program_graph import ProgramGraph

_GRAPH, _TENSORS, _TRACE = "_tvmdbg_graph_dump.json", "output_tensors.params", "_tvmdbg_execution_trace.json"


def create(graph_json_str, libmod, device, dump_root=None):
    """An executor of a module that says where its time goes and what its nodes compute. The nodes of a graph over single functions of a module
    are the graph's; a module of `relay.build` has the graph within, and its nodes are the operators of the program. With `dump_root`
    a run writes its graph, its values and its times into a folder there."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    if is_graph(graph_json_str, libmod):
        return JsonGraphDebug(graph_json_str, libmod, devices[0], dump_root)
    return GraphModuleDebug(libmod["default"](*devices), devices[0], graph_json_str, dump_root, libmod)


class DebugResult:
    """Nodes, values and times of the last run."""

    def __init__(self, owner):
        self._owner = owner

    def get_graph_nodes(self):
        """The nodes, a dict each with name, op, inputs (names) and shape."""
        return self._owner._graph_nodes()

    def get_graph_node_shapes(self):
        """Shapes of the nodes by name."""
        return {node["name"]: node["shape"] for node in self.get_graph_nodes()}

    def get_output_tensors(self):
        """The values of all nodes, by name."""
        nodes = self.get_graph_nodes()
        found = {f"{node['name']}____{i}": self._owner._node_value(i) for i, node in enumerate(nodes)}
        return {name: value for name, value in found.items() if isinstance(value, runtime.NDArray)}


class _Debugging:
    """The common part of executors that tell their nodes; `_graph_nodes`, `_node_value` and `_node_time` say what the nodes are."""

    def _start(self, device, dump_root):
        self._device, self._dump_path = device, None
        self.debug_datum = DebugResult(self)
        if dump_root is not None:
            os.makedirs(dump_root, exist_ok=True)
            self._dump_root = dump_root
            self._dump_path = os.path.join(dump_root, f"_tvmdbg_device_{str(device).replace('(', '_').replace(')', '').upper()}")
            os.makedirs(self._dump_path, exist_ok=True)

    def _dump(self):
        if self._dump_path is None:
            return
        nodes = self._graph_nodes()
        with open(os.path.join(self._dump_path, _GRAPH), "w", encoding="utf-8") as file:
            json.dump({"nodes": nodes}, file, indent=2)
        with open(os.path.join(self._dump_path, _TENSORS), "wb") as file:
            file.write(runtime.save_param_dict(self.debug_datum.get_output_tensors()))
        begin, events = 0.0, []
        for i, node in enumerate(nodes):
            spent = self._node_time(i, 1) * 1e6
            for phase, at in (("B", begin), ("E", begin + spent)):
                events.append({"ts": at, "ph": phase, "pid": 1, "tid": 1, "name": node["name"]})
            begin += spent
        with open(os.path.join(self._dump_path, _TRACE), "w", encoding="utf-8") as file:
            json.dump({"displayTimeUnit": "ns", "traceEvents": events}, file)

    def _find(self, node):
        names = [n["name"] for n in self._graph_nodes()]
        if isinstance(node, int) and 0 <= node < len(names):
            return node
        if node not in names:
            raise AttributeError(f"Could not find a node named {node} in this graph.")
        return names.index(node)

    def execute_node(self, node_name):
        """The value of a node, by name, on the inputs that are set."""
        return self.get_node_output(self._find(node_name), 0)

    def execute_next_node(self, node_index, output_index):
        """An output of a node, by number."""
        return self.get_node_output(node_index, output_index)

    def get_node_output(self, node_index, output_index=0):
        """An output of a node, by number."""
        value = self._node_value(self._find(node_index), output_index)
        return value if isinstance(value, runtime.NDArray) else value[output_index]

    _execute_next_node, _get_node_output = execute_next_node, get_node_output

    def debug_get_output(self, node, out=None):
        """The first output of a node, by name or number; copied to `out` if given."""
        value = self.get_node_output(self._find(node), 0)
        return value if out is None else value.copyto(out)

    def run_individual_node(self, index, number=10, repeat=1, min_repeat_ms=0, *_, **__):
        """Times of one node in seconds, `repeat` times the mean of `number` runs."""
        return runtime.module.BenchmarkResult([self._node_time(index, number) for _ in range(repeat)])

    def exit(self):
        """Removes what was written to the folder of dumps."""
        if self._dump_path is not None:
            shutil.rmtree(self._dump_path, ignore_errors=True)


class JsonGraphDebug(_Debugging, graph_executor.GraphOfFunctions):
    """A graph over single functions, node by node."""

    def __init__(self, graph_json, libmod, device, dump_root=None):
        graph_executor.GraphOfFunctions.__init__(self, graph_json, libmod, device)
        self._start(device, dump_root)

    def _graph_nodes(self):
        names = [node["name"] for node in self.nodes]
        return [
            {
                "name": node["name"],
                "op": node.get("attrs", {}).get("func_name", "param") if node["op"] != "null" else "param",
                "inputs": [names[i] for i, *_ in node.get("inputs", [])],
                "shape": self.shapes[self.rows[i]],
            }
            for i, node in enumerate(self.nodes)
        ]

    def _node_value(self, index, output=0):
        for i in range(index + 1):
            self.run_node(i)
        return self.values[self.rows[index] + output]

    def _node_time(self, index, number):
        begin = time.perf_counter()
        for _ in range(number):
            self.run_node(index)
        return (time.perf_counter() - begin) / number if self.nodes[index]["op"] != "null" else 0.0

    def run(self, **input_dict):
        """Runs the graph, on inputs by name if they are given."""
        graph_executor.GraphOfFunctions.run(self, **input_dict)
        self._dump()

    def run_individual(self, number, repeat=1, min_repeat_ms=0, *_, **__):
        """The nodes' times in seconds, in the order in which they run; 0 for arguments."""
        return [self._node_time(i, max(1, number * repeat)) for i in range(len(self.nodes))]

    def profile(self, collectors=None, **input_dict):
        """A Report of the nodes' times, on inputs by name if they are given."""
        self.set_input(**input_dict)
        device = str(self._device)
        times = [(node, self._node_time(i, 5) * 1e6) for i, node in enumerate(self.nodes) if node["op"] != "null"]
        calls = [{"Name": node["attrs"]["func_name"], "Duration (us)": t, "Count": 1, "Device": device} for node, t in times]
        return Report(calls, {device: {"Duration (us)": sum(t for _, t in times), "Count": 1}})


class GraphModuleDebug(_Debugging, graph_executor.GraphModule):
    """A model with its inputs and outputs, and times of its kernels. `libmod`: the module that was compiled in this process, without
    which the time of the whole is all that can be told."""

    def __init__(self, module, device, graph_json_str=None, dump_root=None, libmod=None):
        graph_executor.GraphModule.__init__(self, module)
        self._libmod, self._program = libmod if libmod is not None else getattr(module, "_made_by", None), None
        self._start(device[0] if isinstance(device, (list, tuple)) else device, dump_root)

    def _graph(self):
        """The operators of the program that was compiled."""
        if self._program is None:
            mod = getattr(self._libmod, "ir_mod", None)
            if mod is None:
                raise UnsupportedError("the program of a loaded module is not known; debug what relay.build gave in this process")
            self._program = ProgramGraph(mod, self.get_input)
        return self._program

    def _graph_nodes(self):
        graph = self._graph()
        return [
            {"name": name, "op": "param" if graph.is_argument(i) else name, "inputs": [graph.names[k] for k in graph.inputs[i]], "shape": graph.shape(i)}
            for i, name in enumerate(graph.names)
        ]

    def _node_value(self, index, output=0):
        return self._graph().value(index)

    def _node_time(self, index, number):
        if self._graph().is_argument(index):
            return 0.0
        self._graph().value(index)
        begin = time.perf_counter()
        for _ in range(number):
            self._graph()._compute(index)
        return (time.perf_counter() - begin) / number

    def set_input(self, key=None, value=None, **params):
        """Copies a value to an input, by name or number; and those of `params`, by name."""
        super().set_input(key, value, **params)
        if self._program is not None:
            self._program.forget()

    def run(self, **input_dict):
        """Runs the model, on inputs by name if they are given."""
        super().run(**input_dict)
        if self._dump_path is not None and getattr(self._libmod, "ir_mod", None) is not None:
            self._dump()

    def _steps(self, rounds):
        if not self.module.implements_function("profile"):
            times = self.module.time_evaluator("run", self._device, 1, rounds)()
            return [{"kernel": "run", "median_us": times.median * 1e6}], times.median * 1e6
        inputs = [self.get_input(i) for i in range(self.get_num_inputs())]
        found, _ = times_of_steps(self.module, inputs, rounds)
        return found["steps"], found["total_us"]

    def profile(self, collectors=None, **input_dict):
        """A Report of the kernels' times, on inputs by name if they are given."""
        if input_dict:
            self.set_input(**input_dict)
        steps, total = self._steps(5)
        device = str(self._device)
        calls = [{"Name": s["kernel"], "Duration (us)": s["median_us"], "Count": 1, "Device": device} for s in steps]
        return Report(calls, {device: {"Duration (us)": total, "Count": 1}})

    def run_individual(self, number, repeat=1, min_repeat_ms=0, *_, **__):
        """The kernels' times in microseconds, in the order in which they run, over `number * repeat` rounds."""
        return [s["median_us"] for s in self._steps(max(1, number * repeat))[0]]


__all__ = ["GraphModuleDebug", "create"]
