# SPDX-License-Identifier: Apache-2.0
"""Capsules: a failed compilation as a file, and the way back."""

import json
import os
import pathlib
import random
import re
import subprocess
import sys

import numpy as np
import pytest

import baton as tvm
from baton import capsule, relay
from baton._ffi import get_global_func
from baton.capsule import CapsuleError
from baton.transform import PassContext, Sequential, module_pass, parse_pipeline

HERE = pathlib.Path(__file__).parent
BAD = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32], %y: Tensor[(3), float32]) { add(%x, %y) }\n'


def _module(weights=None):
    x = relay.var("x", shape=(4, 64))
    w = relay.const(np.linspace(-1, 2, 64 * 64, dtype="float32").reshape(64, 64) if weights is None else weights)
    return tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(relay.nn.dense(x, w))))


def _env(**more):
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(HERE)]), **more}


def _cli(*args, **env):
    return subprocess.run([sys.executable, "-m", "baton", *map(str, args)], capture_output=True, text=True, env=_env(**env))


def test_sixty_failures_of_six_kinds_fail_again(tmp_path):
    done = subprocess.run([sys.executable, HERE / "injected.py", tmp_path], capture_output=True, text=True, env=_env())
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert len(rows) == 60 and len({row["kind"] for row in rows}) == 6
    for row in rows:
        assert row.get("replay1") == [] and row.get("replay2") == [], row
        assert row["signature1"] == row["signature2"] == row["signature"], row
        assert row["signature"]["kind"] and row["signature"]["pass"] and row["ir"] == "relay", row
    named = {row["name"]: row["signature"] for row in rows}
    assert named["segfaults 0"]["kind"] == "SIGSEGV" and named["segfaults 0"]["pass"] == "segfaults"
    assert named["hangs"]["kind"] == "timeout" and named["eats_memory 0"]["kind"] == "MemoryError"
    assert named["raises_deeply"]["frames"][:2] == ["broken_passes.py:_value", "broken_passes.py:_deep"]
    assert named["raises_value"]["message"] == "module at @ has # functions"
    # Failures that differ have signatures that differ.
    assert len({json.dumps(row["signature"]) for row in rows if row["kind"] in ("c++", "python")}) == 20


@pytest.mark.parametrize("fault", ["throw", "abort", "segfault", "bad_ir", pytest.param("hang", marks=pytest.mark.slow)])
def test_planted_faults_fail_again_and_shrink(tmp_path, fault):
    """Reliability figure 34: 20 planted faults, four of each kind; one file, one command, a program of a tenth of the size or less."""
    done = subprocess.run([sys.executable, HERE / "planted.py", tmp_path, fault], capture_output=True, text=True, env=_env())
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["trigger"] for row in rows] == ["operator", "attribute", "projection", "two"]
    kind = {"throw": "LookupError", "abort": "SIGABRT", "segfault": "SIGSEGV", "bad_ir": "InternalError", "hang": "timeout"}[fault]
    for row in rows:
        assert row["signature"]["kind"] == kind and row["signature"]["pass"] == f"{fault}_{row['trigger']}", row
        assert row["differences"] == [] and row["still"] and row["before"] >= 100 >= 10 * row["after"], row
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(pathlib.Path(row["path"]).name for row in rows), "one file each"
    again = _cli("replay", rows[0]["path"])
    assert again.returncode == 0 and again.stdout.startswith("reproduced: ") and f"`{fault}_operator`" in again.stdout, again.stderr


def test_it_holds_what_is_needed_to_read_it(tmp_path):
    path = tmp_path / "f.capsule"
    with pytest.raises(tvm.Error) as seen, tvm.Capsule(path) as c, PassContext(opt_level=3, disabled_pass=["FuseOps"]):
        with tvm.target.Target("llvm"):
            parse_pipeline("InferType,FuseOps")(relay.fromtext(BAD))
    assert c.path == str(path) and f"capsule: {path}" in seen.value.capsule_note
    text = path.read_text()
    assert text.startswith("== baton capsule 1\n{") and text.endswith("== end\n") and "add(%x, %y)" in text
    file = capsule.load(str(path))
    assert file.stage == "pass" and file.pipeline == "InferType" and file.context["opt_level"] == 3
    assert file.context["disabled_pass"] == ["FuseOps"] and file.target.startswith("llvm") and file.threads >= 1
    assert file.versions["baton"] == tvm.__version__ and file.versions["llvm"] and file.versions["python"]
    assert file.signature["kind"] == "TypeInferenceError" or file.signature["kind"] == "CompileError"
    assert "do not broadcast" in file.error and file.weights["mode"] == "inline"
    assert capsule.replay(str(path)).reproduced


def test_nothing_is_written_where_nothing_of_the_compiler_fails(tmp_path):
    with tvm.Capsule(tmp_path / "a") as c:
        relay.transform.InferType()(_module())
    assert c.path is None and not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError) as seen, tvm.Capsule(tmp_path / "a"):
        1 // 0  # noqa: B018
    assert not list(tmp_path.iterdir()) and "no pass" in seen.value.capsule_note
    with pytest.raises(ValueError, match="weights is one of"):
        tvm.Capsule(weights="all")


def test_the_exception_goes_on_where_the_capsule_cannot_be_written(tmp_path):
    with pytest.raises(tvm.Error, match="do not broadcast") as seen, tvm.Capsule(tmp_path / "no" / "such" / "f.capsule"):
        relay.transform.InferType()(relay.fromtext(BAD))
    assert "no capsule was written: FileNotFoundError" in seen.value.capsule_note


def test_in_a_directory_it_is_named_by_pass_and_content(tmp_path, monkeypatch):
    names = set()
    for _ in range(2):
        with pytest.raises(tvm.Error), tvm.Capsule(tmp_path):
            relay.transform.InferType()(relay.fromtext(BAD))
        names.add(tuple(p.name for p in tmp_path.iterdir()))
    assert len(names) == 1 and re.fullmatch(r"InferType-[0-9a-f]{10}\.capsule", names.pop()[0])
    monkeypatch.setenv("BATON_CAPSULE_DIR", str(tmp_path / "all"))
    with pytest.raises(tvm.Error):
        tvm.relay.build(relay.fromtext(BAD), target="llvm")
    with pytest.raises(tvm.Error):
        tvm.compile(BAD, shape={})
    assert [p.name[:10] for p in (tmp_path / "all").iterdir()]


def test_programs_for_several_devices(tmp_path):
    """What fails outside of passes is kept as an entry with a target for each device."""
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { on_device(add(%x, %x), device_type=2) }')
    path = tmp_path / "f.capsule"
    with pytest.raises(ValueError, match="the program runs on cuda") as seen, tvm.Capsule(path):
        tvm.relay.build(mod, target={"cpu": "llvm", "ext_dev": "llvm"})
    assert f"capsule: {path}" in seen.value.capsule_note
    file = capsule.load(str(path))
    assert file.stage == "entry" and file.entry == "driver.CompileForDevices"
    assert json.loads(file.target) == {"cpu(0)": "llvm", "ext_dev(0)": "llvm"} and "device_type=2" in file.ir
    assert capsule.replay(str(path)).reproduced
    # What fails behind the passes starts from what they made.
    planned = relay.transform.InferType()(
        relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {\n  on_device(argsort(%x, axis=0), device_type=2, is_fixed=True)\n}')
    )
    llvm = tvm.target.Target("llvm")
    with pytest.raises(ValueError, match="the program runs on cuda, for which no target is given"), tvm.Capsule(tmp_path / "g.capsule"):
        get_global_func("driver.GenerateForDevices")(planned, {"cpu": llvm, "ext_dev": llvm})
    again = capsule.load(str(tmp_path / "g.capsule"))
    assert again.stage == "pass" and again.header["pipeline"] == 'LowerToTIR(devices={"cpu": "llvm", "ext_dev": "llvm"})'
    assert capsule.replay(again).reproduced


def _fail_with(mod):
    """A pass at the top of this module, which is imported by its path."""
    raise RuntimeError("seen")


fails_here = module_pass(lambda mod, ctx: _fail_with(mod), opt_level=0, name="fails_here")


@pytest.mark.parametrize("mode", ["inline", "hash", "synthetic", "auto"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "bool", "bfloat16"])
def test_weights_are_kept_hashed_or_replaced(tmp_path, mode, dtype):
    from baton.capsule import weights as w

    rng = np.random.default_rng(3)
    values = rng.integers(-5, 100, (64, 64)).astype("float32")
    if dtype == "bfloat16":
        array = tvm.nd.array((values.view("u4") >> 16).astype("u2")).view_as_bfloat16() if hasattr(tvm.nd.NDArray, "view_as_bfloat16") else None
        if array is None:
            pytest.importorskip("ml_dtypes")
            import ml_dtypes

            array = values.astype(ml_dtypes.bfloat16)
    else:
        array = values.astype(dtype)
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(array)))
    text = tvm.ir.save_json(mod)
    packed, facts, notes = w.pack(text, mode, 100 if mode == "auto" else 1 << 20, seed=7)
    back, more = w.unpack(packed)
    assert w.unpack(packed)[0] == back, "not the same twice"
    again = tvm.ir.load_json(back)["main"].body.data
    got = again.numpy()
    assert got.shape == (64, 64) and str(again.dtype) == dtype
    if mode == "inline":
        assert packed == text and facts["replaced"] == 0
    else:
        assert facts["replaced"] == 1 and len(packed) < len(text) / 2 and bool(more) == (mode == "hash")
    if mode == "synthetic":
        wide, is_wide = np.asarray(array).astype("float64"), got.astype("float64")
        assert wide.min() == is_wide.min() and wide.max() == is_wide.max() and not np.array_equal(wide, is_wide)
    if mode == "hash" and dtype != "bfloat16":
        np.savez(tmp_path / "w.npz", w=array)
        true, none = w.unpack(packed, w.read_given([tmp_path / "w.npz"]))
        assert not none and tvm.ir.structural_equal(tvm.ir.load_json(true), mod)


def test_special_values_of_weights_are_there_again():
    from baton.capsule import weights as w

    values = np.ones((40, 40), "float32")
    values[3, :5], values[4, :2], values[5, 0] = np.nan, np.inf, -np.inf
    mod = tvm.IRModule.from_expr(relay.Function([], relay.const(values)))
    got = tvm.ir.load_json(w.unpack(w.pack(tvm.ir.save_json(mod), "synthetic", 0, 0)[0])[0])["main"].body.data.numpy()
    assert np.isnan(got).sum() == 5 and np.isposinf(got).sum() == 2 and np.isneginf(got).sum() == 1


def test_a_cap_on_size_makes_the_largest_synthetic(tmp_path):
    with pytest.raises(ZeroDivisionError), tvm.Capsule(tmp_path / "f.capsule", weights="inline", max_bytes=1000):
        Sequential([module_pass(lambda mod, ctx: 1 // 0 or mod, opt_level=0, name="divides")])(_module())
    file = capsule.load(str(tmp_path / "f.capsule"))
    assert file.weights["replaced"] == 1 and any("more than the cap" in str(n) for n in file.notes)
    assert os.path.getsize(tmp_path / "f.capsule") < 5000


def test_a_closure_has_no_name_and_the_capsule_says_so(tmp_path):
    def inner():
        return module_pass(lambda mod, ctx: {}["x"], opt_level=0, name="closure")

    with pytest.raises(KeyError), tvm.Capsule(tmp_path / "f.capsule"):
        inner()(_module())
    file = capsule.load(str(tmp_path / "f.capsule"))
    assert not file.replayable and any("`closure` cannot be named" in str(n) for n in file.notes)
    with pytest.raises(CapsuleError, match="cannot be run again"):
        capsule.replay(file)


def test_code_generation_that_fails_is_an_entry(tmp_path, monkeypatch):
    mod = _module()
    with pytest.raises(tvm.Error) as seen, tvm.Capsule(tmp_path / "f.capsule"):
        get_global_func("driver.EmitText")(mod, tvm.target.Target("llvm"), "tea leaves")
    file = capsule.load(str(tmp_path / "f.capsule"))
    assert file.stage == "entry" and file.entry == "driver.EmitText" and file.argument == "tea leaves", seen.value
    assert capsule.replay(file).reproduced
    file.header["argument"] = "tir"
    again = capsule.replay(file)
    assert not again.reproduced and again.differences == ["nothing failed"]


def _unknown_operator(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph(
        [helper.make_node("Frobnicate", ["x"], ["y"], domain="some.where")], "g", [x], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("some.where", 1)], ir_version=8)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("source", ["path", "bytes", "from_onnx"])
def test_a_model_that_is_not_imported(tmp_path, source):
    path = _unknown_operator(tmp_path)
    with pytest.raises(tvm.UnsupportedError), tvm.Capsule(tmp_path / "f.capsule"):
        if source == "from_onnx":
            relay.frontend.from_onnx(path.read_bytes())
        else:
            tvm.compile(str(path) if source == "path" else path.read_bytes())
    file = capsule.load(str(tmp_path / "f.capsule"))
    assert file.stage == "import" and file.ir_format == "onnx" and file.signature["kind"] == "UnsupportedError"
    path.unlink()
    assert capsule.replay(file).reproduced
    file.header["signature"]["message"] = "another"
    assert not capsule.replay(file).reproduced


def test_a_large_model_that_is_not_imported_is_named_by_its_hash(tmp_path):
    path = _unknown_operator(tmp_path)
    with pytest.raises(tvm.UnsupportedError), tvm.Capsule(tmp_path / "f.capsule", weights="hash"):
        tvm.compile(str(path))
    file = capsule.load(str(tmp_path / "f.capsule"))
    assert file.ir == ""
    with pytest.raises(CapsuleError, match="--weights MODEL.onnx"):
        capsule.replay(file)
    assert capsule.replay(file, weights_from=[str(path)]).reproduced
    done = _cli("replay", tmp_path / "f.capsule", "--weights", path)
    assert done.returncode == 0 and done.stdout.startswith("reproduced: UnsupportedError"), done.stderr


def test_command_line_writes_the_model_that_is_not_imported(tmp_path):
    path = _unknown_operator(tmp_path)
    done = _cli("compile", path, "-o", tmp_path / "m.so", "--capsule", tmp_path / "f.capsule")
    assert done.returncode == 1 and "`baton replay" in done.stderr, done.stderr
    assert _cli("replay", tmp_path / "f.capsule", "--stop", "--ir", tmp_path / "again.onnx").returncode == 0
    assert (tmp_path / "again.onnx").read_bytes() == path.read_bytes()
    text = (tmp_path / "f.capsule").read_text()
    for broken in (
        text.replace('"sha256": "', '"sha256": "0', 1),
        text.replace('\\"name\\": \\"m.onnx', '\\"name\\": \\"../m.onnx'),
        text.replace("== ir onnx\n", "== ir onnx\nAAAA"),
    ):
        assert broken != text
        (tmp_path / "g.capsule").write_text(broken)
        again = _cli("replay", tmp_path / "g.capsule")
        assert again.returncode == 1 and "Traceback" not in again.stderr


def test_prim_funcs_travel_too(tmp_path):
    with tvm.History() as h:
        tvm.compile(_module())
    step = h["VectorizeLoop"]
    with pytest.raises(KeyError), tvm.Capsule(tmp_path / "f.capsule"):
        Sequential([step.pass_, module_pass(lambda mod, ctx: {}["x"], opt_level=0, name="closure")])(step.before)
    file = capsule.load(str(tmp_path / "f.capsule"))
    from baton.capsule.replay import module_of

    assert "tir.PrimFunc" in file.ir and tvm.ir.structural_equal(module_of(file)[0], h["VectorizeLoop"].after)


def test_broken_files_are_errors_that_say_where(tmp_path):
    with pytest.raises(tvm.Error), tvm.Capsule(tmp_path / "f.capsule"):
        relay.transform.InferType()(relay.fromtext(BAD))
    good = (tmp_path / "f.capsule").read_text()
    for text, what in [
        ("", "is not a capsule"), ("hello", "is not a capsule: its first line is 'hello'"), (good.replace("capsule 1", "capsule 99"), "of version '99'"),
        (good[:200], "no line `== ir FORMAT`"), (good[:-8], "was it cut"), (good.replace('"stage": "pass"', '"stage": "moon"'), "`stage` is 'moon'"),
        (good.replace('"typed": false', '"typed": 3'), "`typed` of the header is '3'"), (good.replace("== ir relay", "== ir prose"), "'prose'"),
        (good.replace('"signature"', '"signed"'), "the header has no `signature`"), (good.replace('{\n "sig', '[\n "sig'), "not JSON: line"),
    ]:  # fmt: skip
        with pytest.raises(CapsuleError, match=re.escape(what)):
            capsule.parse(text)
    for text, what in [
        (good.replace("add(%x, %y)", "add(%x, %z)"), "its IR cannot be read"), (good.replace('"pipeline": "InferType"', '"pipeline": "InferTyp"'), "there is no pass"),
        (good.replace('"config": {}', '"config": {"no.such": 1}'), "its context cannot be made"),
    ]:  # fmt: skip
        with pytest.raises(CapsuleError, match=re.escape(what)):
            capsule.replay(capsule.parse(text))
    text = good.replace('"instruments": []', '"instruments": [{"class": "os:system", "args": ["touch gone"], "kwargs": {}}]')
    with pytest.raises(CapsuleError, match="it is not a class of instruments"):
        capsule.replay(capsule.parse(text))
    (tmp_path / "binary").write_bytes(b"\x7fELF\xff\xfe")
    with pytest.raises(CapsuleError, match="is not a capsule: it is not text"):
        capsule.load(str(tmp_path / "binary"))
    with pytest.raises(CapsuleError, match="is a directory"):
        capsule.load(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        capsule.load(str(tmp_path / "none"))


def test_mutated_files_are_read_or_refused(tmp_path):
    with pytest.raises(tvm.Error), tvm.Capsule(tmp_path / "f.capsule", weights="synthetic"):
        Sequential([relay.transform.InferType()])(tvm.IRModule.from_expr(relay.Function([], relay.nn.dense(
            relay.const(np.ones((3, 200), "float32")), relay.const(np.ones((5, 7), "float32"))))))  # fmt: skip
    good = (tmp_path / "f.capsule").read_text()
    rng, seen = random.Random(5), {"read": 0, "refused": 0}
    pieces = ["", "{", "}", "[", '"', "null", "-1", "1e99", "99999999999999999999", "true", "\\u0000", "== end\n", "== ir json\n", "é", "\x00", "NaN", "[]"]
    for _ in range(400):
        text = good
        for _ in range(rng.randint(1, 4)):
            at, length = rng.randrange(len(text) + 1), rng.choice([0, 1, 1, 3, 20])
            text = text[:at] + rng.choice(pieces) + text[at + length :]
        try:
            capsule.replay(capsule.parse(text))
            seen["read"] += 1
        except CapsuleError as error:
            assert len(str(error)) < 20_000
            seen["refused"] += 1
    assert seen["refused"] > 100 and seen["read"] > 20, seen


def test_command_line_takes_a_failure_home(tmp_path):
    """`--capsule` and `baton replay`."""
    (tmp_path / "bad.relay").write_text(BAD)
    done = _cli("compile", tmp_path / "bad.relay", "-o", tmp_path / "m.so", "--capsule", tmp_path / "f.capsule")
    assert done.returncode == 1 and "do not broadcast" in done.stderr and "`baton replay" in done.stderr
    again = _cli("replay", tmp_path / "f.capsule")
    assert again.returncode == 0 and again.stdout.startswith("reproduced: ") and "`InferType`" in again.stdout
    as_json = json.loads(_cli("replay", tmp_path / "f.capsule", "--threads", 1, "--json").stdout)
    assert as_json["reproduced"] and as_json["signature"]["pass"] == "InferType"
    stopped = _cli("replay", tmp_path / "f.capsule", "--stop", "--ir", "-")
    assert stopped.returncode == 0 and "add(%x, %y)" in stopped.stdout
    text = (tmp_path / "f.capsule").read_text()
    (tmp_path / "g.capsule").write_text(text.replace("%y: Tensor[(3), float32]", "%y: Tensor[(2), float32]"))
    mended = _cli("replay", tmp_path / "g.capsule")
    assert mended.returncode == 1 and mended.stdout == "not reproduced: nothing failed\n"
    (tmp_path / "h.capsule").write_text(text[:300])
    broken = _cli("replay", tmp_path / "h.capsule")
    assert broken.returncode == 1 and "is broken" in broken.stderr and "Traceback" not in broken.stderr
    assert _cli("replay", tmp_path / "f.capsule", "--stop").returncode == 2


def test_command_line_survives_a_crash_of_the_compiler(tmp_path):
    """`--isolate`: a crash is an error, and a capsule that crashes again."""
    (tmp_path / "in.relay").write_text(BAD.replace("(3)", "(2)"))
    passes = "InferType,python.broken_passes.segfaults,FuseOps"
    done = _cli("opt", tmp_path / "in.relay", "--passes", passes, "--isolate", "--capsule", tmp_path / "f.capsule")
    assert done.returncode == 1 and "died (SIGSEGV) in `segfaults`" in done.stderr, done.stderr
    again = _cli("replay", tmp_path / "f.capsule")
    assert again.returncode == 0 and again.stdout == "reproduced: SIGSEGV in `segfaults`\n", again.stderr
    fine = _cli("opt", tmp_path / "in.relay", "--passes", "InferType", "--isolate")
    assert fine.returncode == 0 and "add(%x, %y)" in fine.stdout
    late = _cli("opt", tmp_path / "in.relay", "--passes", "python.broken_passes.hangs", "--isolate", "--isolate-seconds", "4")
    assert late.returncode == 1 and "took more than 4.0 s in `hangs`" in late.stderr


def test_command_line_makes_the_program_small(tmp_path):
    """`baton replay --reduce`."""
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  %0 = nn.relu(nn.dense(%x, %w, units=8));
  %1 = tanh(add(%0, %x));
  exp(nn.relu(multiply(%1, sigmoid(%0))))
}
"""
    (tmp_path / "in.relay").write_text(text)
    for name in ("dislikes_tanh", "dies_of_tanh"):
        done = _cli("opt", tmp_path / "in.relay", "--passes", f"InferType,python.broken_passes.{name}", "--isolate", "--capsule", tmp_path / "f")
        assert done.returncode == 1 and "`baton replay" in done.stderr
        small = _cli("replay", tmp_path / "f", "--reduce", "-")
        assert small.returncode == 0 and "tanh" in small.stdout and "dense" not in small.stdout, small.stderr
    (tmp_path / "bad.relay").write_text(BAD)
    assert _cli("compile", tmp_path / "bad.relay", "--emit", "relay", "--capsule", tmp_path / "g").returncode == 1
    ill_typed = _cli("replay", tmp_path / "g", "--reduce", "-")
    assert ill_typed.returncode == 1 and "--reduce: " in ill_typed.stderr


def test_pipelines_name_passes_of_python_by_their_path():
    sys.path.insert(0, str(HERE))
    try:
        seq = parse_pipeline("InferType,python.broken_passes.raises_zero")
        assert seq.text() == "InferType,python.broken_passes.raises_zero"
        with pytest.raises(ZeroDivisionError):
            seq(_module())
        for text, what in [
            ("python.no_such.x", "no module `no_such`"),
            ("python.broken_passes.nothing", "has no `nothing`"),
            ("python.os.getcwd", "is not a pass"),
            ("python.broken_passes.raises_zero(a=1)", "it takes none"),
            ("python.", "there is no pass"),
            ("python.os", "cannot be imported"),
        ]:
            with pytest.raises(ValueError, match=re.escape(what)):
                parse_pipeline(text)
    finally:
        sys.path.remove(str(HERE))


def test_places_are_no_part_of_a_signature():
    from baton.capsule.signature import normalise

    for a, b in [
        ("model.relay:3:7: error: do not broadcast\n  3 | x\n    | ^", "do not broadcast"),
        ("it is not WellFormed:\n@main: from_string:3:12: %x is bound twice", "it is not WellFormed:\n@main: <capsule>:40:1: %x is bound twice"),
        ("@main: call of tanh at from_string:4 has no type", "@main: call of tanh at <capsule>:31 has no type"),
        ("In /tmp/a.relay:1:1: lost", "lost"), ("at 0x55aa in /a/b/c.py", "at 0x1 in c.py"),
    ]:  # fmt: skip
        assert normalise(a) == normalise(b)
    assert normalise("@main: %x is bound twice") != normalise("@other: %x is bound twice"), "functions' names stay"


def test_what_a_journal_says_is_open():
    from baton.capsule.isolate import open_at_end

    assert open_at_end("") is None and open_at_end("rubbish\n+ 1\n") is None
    assert open_at_end("+ 1 0 0 pass A\n+ 1 1 3 pass B C\n") == ("pass B C", 3)
    assert open_at_end("+ 1 0 0 pass A\n+ 1 1 0 pass B\n- 1 1\n") == ("pass A", 0)
    assert open_at_end("+ 1 0 0 pass A\n- 1 0\n") is None
    # One that threw stands open until something less deep begins.
    assert open_at_end("+ 1 0 0 pass A\n+ 1 1 0 pass B\n+ 1 0 1 pass A\n- 1 0\n") is None
    assert open_at_end("+ 1 0 0 pass A\n+ 2 0 0 pass B\n- 2 0\n") == ("pass A", 0)
