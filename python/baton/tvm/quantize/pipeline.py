# SPDX-License-Identifier: Apache-2.0
"""The whole way from floats to integers."""

from ... import error as errors
from ...driver.relay_build import bind_params_by_name
from ...ir import IRModule
from ...ir.transform import PassContext, Sequential
from ...relay import transform
from ...relay.function import Function
from .annotate import annotate, partition
from .calibrate import calibrate
from .config import current_qconfig
from .partition_conversions import partition_conversions
from .realize import realize


def prerequisite_optimize(mod, params=None):
    """The steps before quantization: parameters bound as constants, batch normalization and dropout as plain arithmetic, factors folded
    into weights, constants evaluated."""
    mod = IRModule.of_main(mod) if isinstance(mod, Function) else mod
    if not isinstance(mod, IRModule):
        raise errors.TypeError(f"a program is an IRModule or a Function of Relay, not {type(mod).__name__}")
    if params:
        bound = IRModule(dict(mod.functions.items()), dict(mod.type_definitions.items()))
        bound["main"] = bind_params_by_name(mod["main"], params)
        mod = bound
    passes = [
        transform.SimplifyInference(),
        transform.FoldConstant(),
        transform.FoldScaleAxis(),
        transform.CanonicalizeOps(),
        transform.FoldConstant(),
        transform.InferType(),
    ]
    with PassContext(opt_level=3):
        return Sequential(passes)(mod)


def quantize(mod, params=None, dataset=None):
    """A network of floats as one of integers, as `qconfig` says.

    mod: a module whose @main is the network, or a function. params: arrays by name of its parameters; weights have to be among them or
    constants. dataset: dicts of arrays by name of the other parameters, where `calibrate_mode` needs one.

        with relay.quantize.qconfig(global_scale=4.0, skip_conv_layers=[]):
            quantized = relay.quantize.quantize(mod, params)
        lib = relay.build(quantized, target="llvm")

    Operators without a rule for integers compute on floats between integers. The parameters that stay, and the results, are floats as before.
    """
    config = current_qconfig()
    mod = prerequisite_optimize(mod, params)
    steps = [partition(), annotate(), calibrate(dataset)]
    if not config.do_simulation:
        steps.append(realize())
    with PassContext(opt_level=3, required_pass=["QuantizePartition", "QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize"]):
        mod = Sequential([*steps, transform.FoldConstant(), transform.InferType()])(mod)
    if config.partition_conversions != "disabled" and not config.do_simulation:
        return partition_conversions(mod, config.partition_conversions == "fully_integral")
    return mod


__all__ = ["prerequisite_optimize", "quantize"]
