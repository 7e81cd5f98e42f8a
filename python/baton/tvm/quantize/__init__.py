# SPDX-License-Identifier: Apache-2.0
"""Networks of floats become networks of integers.

with relay.quantize.qconfig(calibrate_mode="percentile", weight_scale="max"):
    quantized = relay.quantize.quantize(mod, params, dataset)
"""

from .annotate import annotate, attach_simulated_quantize, partition, simulated_quantize
from .calibrate import calibrate, collect_stats
from .config import QAnnotateKind, QConfig, current_qconfig, kind2str, qconfig
from .pipeline import prerequisite_optimize, quantize
from .realize import realize

__all__ = [
    "QAnnotateKind",
    "QConfig",
    "annotate",
    "attach_simulated_quantize",
    "calibrate",
    "collect_stats",
    "current_qconfig",
    "kind2str",
    "partition",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "realize",
    "simulated_quantize",
]
