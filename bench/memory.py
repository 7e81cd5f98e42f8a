# SPDX-License-Identifier: Apache-2.0
"""Memory of compiling a model and of running what was saved, and the size of that, beside the model's file.

    python bench/memory.py                # all models
    python bench/memory.py --only int8    # those whose names have the word
    python bench/memory.py --check        # exit code 1 where a bar is missed

Models are generated, of 125 to 256 MB (beside less than that the 40 MB of the compiler's own code would count): float32 weights in the file and beside it, weights of 8 bits in each form that quantizers
write, tied weights. Each is compiled, saved and run in separate processes. Peak: the most memory that the compiler's process had
(VmHWM) beyond what it had after `import baton`, over the file; bar 1.3. Artifact: its bytes over those of the file; bar 1.05. Private:
memory of the process that runs it which no other process shares (RssAnon), beyond what it had before, over the file; bar 0.1.
ONNX Runtime's figure is VmHWM of a process that makes a session and runs it once, likewise over the file.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

BARS = {"peak": 1.3, "artifact": 1.05, "private": 0.1}
DEPTH, LAYERS = 2048, 16
_STATUS = """
import sys
def status(key):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(key))
import numpy as np
def feed(name, shape, dtype):
    return {name: np.ones([d if isinstance(d, int) and d > 0 else 4 for d in shape], dtype)}
"""
_COMPILE = (
    _STATUS
    + """
import baton
baton.relay.Var
before = status("VmHWM")
baton.compile(sys.argv[1]).save(sys.argv[2])
print(status("VmHWM") - before)
"""
)
_RUN = (
    _STATUS
    + """
import baton
before = status("RssAnon")
exe = baton.load(sys.argv[1])
info = exe.inputs[0]
exe(**feed(info.name, info.shape, info.dtype))
print(status("RssAnon") - before)
"""
)
_ORT = (
    _STATUS
    + """
import onnxruntime
before = status("VmHWM")
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
info = session.get_inputs()[0]
session.run(None, feed(info.name, info.shape, {"tensor(float)": "float32", "tensor(int64)": "int64"}[info.type]))
print(status("VmHWM") - before)
"""
)


def _save(path: Path, nodes, x, weights, external=False) -> Path:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    y = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "memory", [x], [y], [numpy_helper.from_array(v, k) for k, v in weights.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    if external:
        onnx.save_model(made, str(path), save_as_external_data=True, location=path.name + ".data")
    else:
        onnx.save_model(made, str(path))
    return path


def layers(path: Path, rows=16, external=False, depth=DEPTH) -> Path:
    """Products of float32, one behind the other."""
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    nodes, weights, last = [], {}, "x"
    for i in range(LAYERS):
        weights[f"w{i}"] = rng.standard_normal((depth, depth), "float32") * np.float32(depth**-0.5)
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]), helper.make_node("Relu", [f"m{i}"], [f"y{i}"])]
        last = f"y{i}"
    return _save(path, nodes, helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, depth]), weights, external)


def tied(path: Path, form: str) -> Path:
    """An embedding whose table is the last layer's weight."""
    from onnx import TensorProto, helper

    rng = np.random.default_rng(0)
    table = rng.standard_normal((32000, 1024), "float32") * np.float32(0.02)
    weights = {"table": table}
    nodes = [helper.make_node("Gather", ["table", "ids"], ["h0"]), helper.make_node("Tanh", ["h0"], ["h"])]
    if form == "once":
        nodes.append(helper.make_node("Transpose", ["table"], ["head"], perm=[1, 0]))
    else:
        weights["head"] = np.ascontiguousarray(table.T)
    nodes.append(helper.make_node("MatMul", ["h", "head"], ["y"]))
    return _save(path, nodes, helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 8]), weights)


def quantized(path: Path, form: str) -> Path:
    """The same products as ONNX Runtime's quantizer writes them: "QDQ", "QOperator" or "dynamic"."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": np.random.default_rng(i).standard_normal((16, 2 * DEPTH), "float32")} for i in range(2)]

        def get_next(self):
            return self.left.pop() if self.left else None

    plain = layers(path.with_suffix(".plain.onnx"), depth=2 * DEPTH)
    if form == "dynamic":
        quantize_dynamic(str(plain), str(path), weight_type=QuantType.QInt8)
    else:
        quantize_static(str(plain), str(path), Reader(), quant_format=QuantFormat[form], weight_type=QuantType.QInt8, per_channel=form == "QDQ")
    plain.unlink()
    return path


MODELS = {
    "float32": layers,
    "float32, open rows": lambda p: layers(p, rows="n"),
    "float32, external data": lambda p: layers(p, external=True),
    "tied, once": lambda p: tied(p, "once"),
    "tied, stored twice": lambda p: tied(p, "twice"),
    "int8, QDQ": lambda p: quantized(p, "QDQ"),
    "int8, QOperator": lambda p: quantized(p, "QOperator"),
    "int8, dynamic": lambda p: quantized(p, "dynamic"),
}


def _bytes(*command) -> int:
    done = subprocess.run([sys.executable, "-c", *map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-400:])
    return int(done.stdout.split()[-1])


def measure(path: Path) -> dict[str, float]:
    """The figures of a model, in files of its size."""
    size = sum(f.stat().st_size for f in (path, path.with_name(path.name + ".data")) if f.exists())
    saved = path.with_suffix(".so")
    figures = {"MB": size / 2**20, "peak": _bytes(_COMPILE, path, saved) / size}
    figures |= {"artifact": saved.stat().st_size / size, "private": _bytes(_RUN, saved) / size, "ort": _bytes(_ORT, path) / size}
    return figures


def missed(figures: dict[str, float]) -> list[str]:
    """The bars that figures miss."""
    return [key for key, bar in BARS.items() if figures[key] > bar]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose names have this word")
    parser.add_argument("--check", action="store_true", help="exit code 1 where a bar is missed")
    args = parser.parse_args()
    print(f"{'model':24s} {'file':>7s} {'peak':>6s} {'artifact':>9s} {'private':>8s} {'ONNX Runtime':>13s}")
    wrong = False
    for name, make in MODELS.items():
        if args.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            f = measure(make(Path(folder, "model.onnx")))
        out = missed(f)
        wrong = wrong or bool(out)
        print(f"{name:24s} {f['MB']:4.0f} MB {f['peak']:6.2f} {f['artifact']:9.2f} {f['private']:8.2f} {f['ort']:13.2f}  {', '.join(out)}", flush=True)
    return int(wrong and args.check)


if __name__ == "__main__":
    sys.exit(main())
