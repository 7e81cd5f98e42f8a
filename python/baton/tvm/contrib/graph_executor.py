# SPDX-License-Identifier: Apache-2.0
"""The graph executor's API that Relay's users know, over the one engine."""

import re
import warnings

from ... import runtime
from ...error import UnsupportedError
from ...runtime.runner import Runner
from ...runtime.values import fitted
from .debugger.json_graph import JsonGraph, is_graph

# Names of constants in the graph that `relay.build` tells of.
_WEIGHT = re.compile(r"p\d+")


def create(graph_json_str, libmod, device):
    """An executor of a module of code. A module of `relay.build` has the graph within, and `graph_json_str` is not read; a graph over single
    functions of a module is run node by node."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    if is_graph(graph_json_str, libmod):
        return GraphOfFunctions(graph_json_str, libmod, devices[0])
    return GraphModule(libmod["default"](*devices))


def get_device(libmod, device):
    """(devices, their number, their types): a device or a list of them as a list."""
    devices = device if isinstance(device, (list, tuple)) else [device]
    return list(devices), len(devices), [d.device_type for d in devices]


class GraphModule:
    """A model with its inputs and outputs.

        model = graph_executor.GraphModule(lib["default"](baton.cpu()))
        model.set_input("data", x)
        model.run()
        y = model.get_output(0).numpy()

    Outputs that are kept are never overwritten by a later run.
    """

    def __init__(self, module):
        if not isinstance(module, runtime.Module):
            raise TypeError(f'GraphModule takes what `lib["default"](device)` gives, not {type(module).__name__}')
        self.module = module
        self._set_input, self._run, self._get_output = module["set_input"], module["run"], module["get_output"]
        self._get_input, self._inputs, self._outputs = module["get_input"], module["get_num_inputs"], module["get_num_outputs"]
        self._dtypes = None
        self._remote = module.type_key == "rpc"
        for f in (self._set_input, self._get_output, self._get_input, self._inputs, self._outputs):
            f.release_gil = self._remote  # those of another machine wait for it

    def set_input(self, key=None, value=None, **params):
        """Copies a value to an input, by name or number; and those of `params`, by name. Names in `params` without an input are left
        out: weights are part of the code."""
        if key is not None and not self._is_weight(key):
            self._set_input(key, self._fitted(key, value))
        if params:
            known = set(self.get_input_names())
            for name, array in params.items():
                if name in known:
                    self._set_input(name, self._fitted(name, array))

    def _is_weight(self, key):
        """Whether a key is a constant's name as `get_params()` of what `relay.build` gives has them, and no input's. Says so once."""
        if not (isinstance(key, str) and _WEIGHT.fullmatch(key)) or key in self.get_input_names():
            return False
        warnings.warn("`p0` and the like are not inputs: weights are part of the code, and stay as relay.build had them", stacklevel=3)
        return True

    def _fitted(self, key, value):
        """A value as an array of the dtype of an input, which a name or a number tells."""
        if self._dtypes is None:
            self._dtypes = {k: row[2] for i, row in enumerate(Runner(self.module).rows("input")) for k in (i, row[0])}
        return fitted(_array(value), self._dtypes.get(key), str(key))

    def set_input_zero_copy(self, key=None, value=None, **params):
        """Lets an input refer to an array, which must stay as it is until the run is over."""
        for name, array in {**({} if key is None else {key: value}), **params}.items():
            self.module["set_input_zero_copy"](name, _array(array))

    def run(self, **input_dict):
        """Runs the model, on inputs by name if they are given."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_num_outputs(self):
        """Number of outputs."""
        return self._outputs()

    def get_num_inputs(self):
        """Number of inputs."""
        return self._inputs()

    def get_input(self, index, out=None):
        """An input by number or name; copied to `out` if given."""
        found = self._get_input(index)
        return found if out is None else found.copyto(out)

    def get_input_index(self, name):
        """Number of an input; -1 for an unknown name."""
        return self.module["get_input_index"](name)

    def get_input_names(self):
        """Names of the inputs, in order."""
        return Runner(self.module).names("input")

    def get_output_names(self):
        """Names of the outputs, in order."""
        return Runner(self.module).names("output")

    def get_input_info(self):
        """(shapes by name, dtypes by name) of the inputs."""
        rows = Runner(self.module).rows("input")
        return {r[0]: r[1] for r in rows}, {r[0]: r[2] for r in rows}

    def get_output(self, index, out=None):
        """An output of the last run; copied to `out` if given."""
        if out is None:
            return self._get_output(index)
        if self._remote:
            return self._get_output(index).copyto(out)
        self._get_output(index, out)
        return out

    def load_params(self, params_bytes):
        """Sets inputs from bytes that `save_param_dict` wrote."""
        self.set_input(**dict(runtime.load_param_dict(params_bytes).items()))

    def share_params(self, other, params_bytes):
        """Weights are part of the code, so that executors of one module share them already."""

    def debug_get_output(self, node, out):
        """Not there: nodes are fused."""
        raise UnsupportedError('values between operators are not kept; use relay.create_executor("debug")')

    def __getitem__(self, key):
        """A function of the executor's module."""
        return self.module[key]

    def benchmark(
        self,
        device=None,
        func_name="run",
        repeat=5,
        number=5,
        min_repeat_ms=None,
        limit_zero_time_iterations=100,
        end_to_end=False,
        cooldown_interval_ms=0,
        repeats_to_cooldown=1,
        **kwargs,
    ):
        """Times runs of the model, on inputs by name if they are given: seconds a run, averaged over `number` runs, `repeat`
        times. With `end_to_end`, copying inputs in and outputs out counts too."""
        self.set_input(**kwargs)
        if not end_to_end:
            return self.module.time_evaluator(func_name, device, number, repeat, min_repeat_ms or 0, cooldown_interval_ms, repeats_to_cooldown)()
        names = kwargs or {n: self.get_input(n) for n in self.get_input_names()}

        def once():
            self.set_input(**names)
            self._run()
            for i in range(self.get_num_outputs()):
                self.get_output(i).numpy()

        return runtime.module.timed(once, number, repeat, min_repeat_ms, cooldown_interval_ms, repeats_to_cooldown, limit_zero_time_iterations)


class GraphOfFunctions(JsonGraph, GraphModule):
    """A graph over single functions of a module, as an executor."""


def _array(value):
    if hasattr(value, "__dlpack__"):
        return value
    import numpy as np

    return np.asarray(value)
