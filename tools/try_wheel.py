# SPDX-License-Identifier: Apache-2.0
"""A user's first steps with the installed package, each step as its own program; ends with exit code 1 at the first thing that fails.

try_wheel.py                         in an environment that has the wheel and NumPy alone; run by `./dev wheel`
try_wheel.py --portable DIST         the wheels of `./dev wheel --portable --runtime` in the folder DIST, in all of these ways:
    --python 3.12                    under this CPython: the compiler, 250 tests, the runtime alone (--python may be repeated)
    --beside                         in one process with other libraries, some with their own LLVM
    --old-linux                      in an old Linux without compiler and LLVM (tools/old_linux.py); as root
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

PACKAGE = Path(sysconfig.get_paths()["purelib"]) / "baton"
BIN = Path(sys.executable).parent
FILES = (
    "py.typed",
    "lib/libbaton.so",
    "lib/libbaton_runtime.so",
    "lib/libbaton_vm.so",
    "lib/libbaton_host.so",
    "lib/libbaton_rpc.so",
    "lib/libbaton_opencl.so",
    "lib/libbaton_plugin_dnnl.so",
    "lib/libbaton_cuda.so",
    "lib/cmake/Baton/BatonConfig.cmake",
    "include/baton/runtime/c_runtime_api.h",
    "__init__.pyi",
    "relay/op/nn/__init__.pyi",
    "relay/expr.pyi",
    "include/dlpack/dlpack.h",
)
ROOT = Path(__file__).resolve().parents[1]
TRIAL = ROOT / "build-portable" / "trial"
TESTS = [
    f"tests/python/{name}"
    for name in (
        "ffi/test_containers.py",
        "ffi/test_exchange.py",
        "ffi/test_functions.py",
        "ffi/test_objects.py",
        "ffi/test_values.py",
        "runtime",
        "driver/test_build.py",
        "driver/test_executable.py",
    )
]
TEST_PACKAGES = ["pytest", "hypothesis", "onnx", "ml_dtypes"]
# PyTorch without CUDA, where pip finds it: the index has it with 3 GB of CUDA.
NEIGHBOURS = {"onnxruntime": "onnxruntime", "llvmlite": "llvmlite", "openvino": "openvino", "torch": "torch==2.13.0+cpu"}

# Compiles a network, runs it, saves it with its input and output. Its arguments: the folder.
COMPILE = """
import sys
import numpy as np
import baton
from baton import relay
rng = np.random.default_rng(1)
def weight(*shape):
    return relay.const((rng.standard_normal(shape) / 10).astype("float32"))
x = relay.var("x", shape=(1, 3, 32, 32), dtype="float32")
y = relay.nn.relu(relay.nn.conv2d(x, weight(8, 3, 3, 3), padding=(1, 1)))
y = relay.nn.relu(relay.nn.conv2d(relay.nn.max_pool2d(y, (2, 2), strides=(2, 2)), weight(16, 8, 3, 3)))
y = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), weight(10, 16)))
mod = baton.IRModule.from_expr(relay.Function([x], y))
with baton.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm")
data = rng.standard_normal((1, 3, 32, 32)).astype("float32")
model = baton.contrib.graph_executor.GraphModule(lib["default"](baton.cpu()))
model.set_input("x", data)
model.run()
got = model.get_output(0).numpy()
want = relay.create_executor("debug", mod=mod).evaluate()(data).numpy()
np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
for triple in ("aarch64-linux-gnu", "riscv64-linux-gnu", "wasm32-unknown-unknown"):
    with baton.transform.PassContext(opt_level=3):
        relay.build(mod, target=f"llvm -mtriple={triple}").save(f"{sys.argv[1]}/{triple}.o", "obj")
lib.export_library(sys.argv[1] + "/model.so")
np.savez(sys.argv[1] + "/values.npz", data=data, got=got)
print("compiled", baton.__version__, "under", sys.version.split()[0])
"""
# Runs what COMPILE saved, without Baton's compiler. Its arguments: the folder.
RUN = """
import os, sys
import numpy as np
import baton_runtime
values = np.load(sys.argv[1] + "/values.npz")
np.testing.assert_array_equal(baton_runtime.load(sys.argv[1] + "/model.so")(values["data"]).numpy(), values["got"])
with open("/proc/self/maps") as f:
    loaded = f.read()
assert "libbaton.so" not in loaded and "LLVM" not in loaded
print("ran under", sys.version.split()[0], "with", os.confstr("CS_GNU_LIBC_VERSION"))
"""
# Work for the other libraries, before and after Baton's.
NEIGHBOUR = {
    "onnxruntime": "import onnxruntime; onnxruntime.InferenceSession({onnx!r}).run(None, {{'a': np.ones((2, 2), 'float32')}})",
    "openvino": "import openvino; openvino.Core().compile_model({onnx!r}, 'CPU')(np.ones((2, 2), 'float32'))",
    "torch": "import torch; torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()",
    "llvmlite": "import llvmlite.binding as llvm; llvm.initialize_native_target(); llvm.initialize_native_asmprinter(); "
    "m = llvm.parse_assembly('define i32 @f(i32 %a) {{ %b = add i32 %a, 1 ret i32 %b }}'); "
    "e = llvm.create_mcjit_compiler(m, llvm.Target.from_default_triple().create_target_machine()); e.finalize_object(); "
    "import ctypes; assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(e.get_function_address('f'))(1) == 2",
}

C_PROGRAM = "#include <baton/runtime/c_runtime_api.h>\nint main(void) { return BatonAbiVersion() != BATON_ABI_VERSION; }\n"


def do(*argv, cwd, env=None):
    """Runs a program; returns its output, or ends this one with what went wrong. A text of several lines is shown as its first."""
    print("$", shlex.join(str(a).strip().splitlines()[0] if "\n" in str(a) else str(a) for a in argv), flush=True)
    done = subprocess.run([str(a) for a in argv], cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def c_programs(folder, python, module, components):
    """A C program by the flags that `python -m module` prints, and a CMake project for these components."""
    flags = shlex.split(do(python, "-m", module, "--cflags", "--libs", cwd=folder))
    Path(folder, "main.c").write_text(C_PROGRAM)
    do("gcc", "main.c", *flags, "-o", "main", cwd=folder)
    do("./main", cwd=folder)
    lines = ["cmake_minimum_required(VERSION 3.18)", "project(user C CXX)", f"find_package(Baton CONFIG REQUIRED COMPONENTS {' '.join(components)})"]
    for component in components:
        lines += [f"add_executable({component} main.c)", f"target_link_libraries({component} PRIVATE Baton::{component})"]
    Path(folder, "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    cmakedir = do(python, "-m", module, "--cmakedir", cwd=folder).strip()
    do("cmake", "-S", ".", "-B", "b", "-G", "Ninja", f"-DBaton_DIR={cmakedir}", cwd=folder)
    do("cmake", "--build", "b", cwd=folder)
    for component in components:
        do(f"b/{component}", cwd=folder)


def first_steps():
    """Files, import, command, flags, a C program, a CMake project."""
    missing = [name for name in FILES if not (PACKAGE / name).exists()]
    if not list(PACKAGE.glob("_core*.so")):
        missing.append("_core*.so")
    if missing:
        sys.exit(f"{PACKAGE} lacks {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        python = sys.executable
        print(do(python, "-c", "import baton; print('baton', baton.__version__, baton.__file__)", cwd=folder))
        print(do(BIN / "baton", "--version", cwd=folder))
        do(BIN / "baton", "--help", cwd=folder)
        c_programs(folder, python, "baton.config", ["runtime", "compiler"])
    print("the wheel works")


def wheels(dist):
    """(compiler's wheel, runtime's wheel) in a folder."""
    found = []
    for name in ("baton_compiler", "baton_runtime"):
        paths = sorted(Path(dist).glob(f"{name}-*-manylinux_2_28_x86_64.whl"))
        if not paths:
            sys.exit(f"{dist} has no portable wheel of {name}: `./dev wheel --portable --runtime` makes it")
        found.append(paths[-1].resolve())
    return found


def environment(folder, interpreter, *packages):
    """A fresh virtual environment with these packages. Returns its Python."""
    do(interpreter, "-m", "venv", "--clear", folder, cwd=ROOT)
    do(folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages, cwd=ROOT)
    return folder / "bin/python"


def bare():
    """The environment's variables without those that lead to other Batons."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV")}


def under(version, interpreter, compiler, runtime):
    """One CPython: compiles and saves with one wheel, runs with the other alone, and the tests with the first."""
    folder = TRIAL / version
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder / "compiler", interpreter, compiler, *TEST_PACKAGES)
    print(do(python, "-I", "-c", COMPILE, folder, cwd=folder, env=bare()), end="")
    do(python, "-I", Path(__file__).resolve(), cwd=folder, env=bare())
    alone = environment(folder / "runtime", interpreter, runtime)
    with tempfile.TemporaryDirectory() as empty:
        c_programs(empty, alone, "baton_runtime", ["runtime"])
    print(do(alone, "-I", "-c", RUN, folder, cwd=folder, env=bare()), end="")
    # A copy of the tests, so that they meet the installed package and no checkout.
    tree = TRIAL / "tree"
    if not tree.exists():
        shutil.copytree(ROOT / "tests", tree / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tree)
    told = do(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=tree, env={**bare(), "CI": "true"})  # no deadlines
    print(f"CPython {version}: {told.strip().splitlines()[-1]}", flush=True)


def neighbours(interpreter, compiler):
    """One process with other libraries, loaded and used before Baton, and after it."""
    folder = TRIAL / "neighbours"
    folder.mkdir(parents=True, exist_ok=True)
    python = environment(folder / "env", interpreter, compiler, "onnx")
    there = []
    for name, requirement in NEIGHBOURS.items():
        done = subprocess.run(
            [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", requirement], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        there += [name] if done.returncode == 0 else []
    onnx = str(folder / "add.onnx")
    do(
        python,
        "-I",
        "-c",
        f"""import onnx
from onnx import TensorProto as T, helper as h
a, b = (h.make_tensor_value_info(n, T.FLOAT, [2, 2]) for n in 'ab')
onnx.save(h.make_model(h.make_graph([h.make_node('Relu', ['a'], ['b'])], 'g', [a], [b]), ir_version=8, opset_imports=[h.make_opsetid('', 17)]), {onnx!r})
""",
        cwd=folder,
    )
    for name in there:
        theirs = "import numpy as np\n" + NEIGHBOUR[name].format(onnx=onnx) + "\n"
        for text in (theirs + COMPILE + theirs, COMPILE + theirs + COMPILE):
            do(python, "-I", "-c", f"# beside {name}\n" + text, folder, cwd=folder, env=bare())
    together = "\n".join(["import numpy as np", *(NEIGHBOUR[n].format(onnx=onnx) for n in there), ""])
    do(python, "-I", "-c", "# beside all of them\n" + together + COMPILE + together, folder, cwd=folder, env=bare())
    print(f"in one process with {', '.join(there)}, and with all of them", flush=True)


def in_old_linux(compiler, runtime):
    """Both wheels in a root with an old glibc, without compiler and LLVM."""
    sys.path.insert(0, str(ROOT / "tools"))
    import old_linux

    root = old_linux.make(ROOT / "build-portable" / "old-linux")
    for name in ("gcc", "cc", "c++", "clang", "ld"):
        if shutil.which(name, path=f"{root}/usr/bin:{root}/bin"):
            sys.exit(f"{root} has {name}: it is not a bare system")
    shutil.rmtree(root / "trial", ignore_errors=True)
    for wheel in (compiler, runtime):
        target = root / "trial" / wheel.name.split("-")[0]
        # By pip of this machine, which is told what the other one is.
        do(
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--target",
            target,
            "--only-binary=:all:",
            "--python-version",
            "3.13",
            "--implementation",
            "cp",
            "--platform",
            "manylinux_2_28_x86_64",
            "--platform",
            "manylinux_2_27_x86_64",
            "--platform",
            "manylinux2014_x86_64",
            wheel,
            cwd=ROOT,
        )
    (root / "proc").mkdir(exist_ok=True)
    mounted = not (root / "proc/self").exists()
    if mounted:
        do("mount", "-t", "proc", "proc", root / "proc", cwd=ROOT)
    try:
        for package, text in (("baton_compiler", COMPILE), ("baton_runtime", RUN)):
            env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"/trial/{package}", "HOME": "/trial", "LANG": "C.UTF-8"}
            print(do(shutil.which("chroot"), root, "/opt/python/bin/python3", "-c", text, "/trial", cwd=ROOT, env=env), end="")
        env["PYTHONPATH"] = "/trial/baton_compiler"
        print(do(shutil.which("chroot"), root, "/opt/python/bin/python3", "-m", "baton", "--version", cwd=ROOT, env=env), end="")
    finally:
        if mounted:
            do("umount", root / "proc", cwd=ROOT)


def portable(args):
    """Tries the wheels for any Linux."""
    compiler, runtime = wheels(args.portable)
    everything = not (args.python or args.beside or args.old_linux)
    sys.path.insert(0, str(ROOT / "tools"))
    from devtool.wheel import pythons

    found = pythons()
    shutil.rmtree(TRIAL / "tree", ignore_errors=True)
    for version in args.python or (found if everything else ()):
        if version not in found:
            sys.exit(f"this machine has no CPython {version}")
        under(version, found[version], compiler, runtime)
    if args.beside or everything:
        neighbours(found.get("3.11") or next(iter(found.values())), compiler)
    if args.old_linux or everything:
        in_old_linux(compiler, runtime)


def main():
    """Parses the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--portable", metavar="DIST", help="folder with the wheels for any Linux")
    parser.add_argument("--python", action="append", metavar="3.X")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--old-linux", action="store_true")
    args = parser.parse_args()
    if args.portable:
        portable(args)
    else:
        first_steps()


if __name__ == "__main__":
    main()
