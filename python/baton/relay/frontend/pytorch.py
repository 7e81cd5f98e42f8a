# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch as Relay modules."""

from ..._ffi.hook import Hook

_convert = Hook("relay.from_pytorch")


def from_pytorch(
    script_module,
    input_infos=None,
    custom_convert_map=None,
    default_dtype="float32",
    use_parser_friendly_name=False,
    keep_quantized_weight=False,
    export_renamed_c_graph_path=None,
):
    """Imports a model of PyTorch.

        mod, params = baton.relay.frontend.from_pytorch(module.eval(), [("x", (1, 3, 224, 224))])

    script_module: a TorchScript module, as `torch.jit.trace` gives, a `torch.nn.Module`, or an ExportedProgram of `torch.export`, whose
    open dimensions stay open. input_infos: name and shape of each input, in order: ("x", (1, 3)) or ("ids", ((1, 16), "int64")); an
    example tensor may stand for shape and dtype. An ExportedProgram knows its inputs: names alone are taken. default_dtype: of inputs that
    say none. use_parser_friendly_name: names of weights have `_` in place of `.`. custom_convert_map, export_renamed_c_graph_path: taken where
    they are empty. keep_quantized_weight: taken for Relay's sake.

    Gives `(mod, params)`: `main` has the inputs, then the weights; buffers that the model changes are further outputs, behind its own.

    Raises ImportError where PyTorch is not installed, and one UnsupportedError that names every operator without a rule, with the user's
    file and line (`error.missing`) and a script that shows each (`error.scripts`).
    """
    return _convert(script_module, input_infos, custom_convert_map, default_dtype, use_parser_friendly_name, keep_quantized_weight, export_renamed_c_graph_path)
