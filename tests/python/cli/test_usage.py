# SPDX-License-Identifier: Apache-2.0
"""Wrong usage is exit code 2 and says what is right; none of this needs the compiler."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from baton.cli import VERBS, build_parser


@pytest.mark.parametrize(
    "args, words",
    [
        ([], "a verb is needed"),
        (["frob"], "frob"),
        (["run"], "MODEL"),
        (["run", "m.onnx", "--bogus"], "--bogus"),
        (["run", "m.onnx", "--thread", "1"], "--thread"),
        (["run", "m.onnx", "--threads", "0"], "`0`"),
        (["run", "m.onnx", "--threads", "two"], "`two`"),
        (["run", "m.onnx", "-i", "x"], "name=VALUE"),
        (["run", "m.onnx", "--shape", "x=1,a"], "name=1,3,224,224"),
        (["run", "m.onnx", "--dim", "batch"], "batch=8"),
        (["run", "m.onnx", "-i", "x=ones", "-i", "x=zeros"], "twice"),
        (["compile", "m.onnx"], "-o FILE"),
        (["compile", "m.onnx", "--emit", "wasm"], "wasm"),
        (["compile", "m.onnx", "--emit", "lib", "-o", "-"], "-o FILE"),
        (["bench", "m.onnx", "--vs", "nobody"], "onnxruntime"),
        (["opt"], "Relay text"),
        (["opt", "in.relay", "--passes", "FuseOps("], "options are given by name"),
        (["opt", "in.relay", "--passes", "FuseOps(1)"], "by name"),
        (["opt", "in.relay", "--passes", "A.b"], "no pass"),
        (["opt", "in.relay", "--passes", "FuseOps(max_depth=__import__('os'))"], "no value"),
        (["opt", "in.relay", "-O", "5"], "choose from 0, 1, 2, 3, 4"),
        (["opt", "in.relay", "--isolate-seconds", "3"], "add --isolate"),
        (["opt", "in.relay", "--isolate-memory", "3"], "add --isolate"),
        (["opt", "in.relay", "--isolate", "--isolate-seconds", "0"], "`0` is not a number of seconds above 0"),
        (["replay", "f.capsule", "--seconds", "-1"], "`-1` is not a number of seconds above 0"),
        (["sign", "m.so"], "--key --check"),
        (["sign", "m.so", "--key", "a", "--check", "b"], "not allowed with"),
        (["completion"], "shell"),
        (["completion", "tcsh"], "tcsh"),
        (["doctor", "extra"], "extra"),
        (["rpc-key", "new"], "where to?"),
        (["rpc-key", "new", "-o", "in.relay"], "exists already"),
        (["rpc-key", "show"], "which key file?"),
        (["rpc-server", "--key-file", "k", "--listen", "unix:s"], "--key-file belongs to tls://"),
        (["rpc-server", "--idle", "0"], "number of seconds above 0"),
    ],
)
def test_wrong_usage(baton, tmp_path, args, words):
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08")
    (tmp_path / "in.relay").write_text("def @main() { () }\n")
    done = baton(*args, code=2)
    assert words in done.stderr and done.stdout == ""


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples(baton, verb):
    done = baton(verb, "--help")
    assert f"baton {verb}" in done.stdout.split("examples:")[1] and done.stderr == ""


def test_help_of_the_command(baton):
    out = baton("--help").stdout
    assert all(verb in out for verb in VERBS) and "examples:" in out


@pytest.mark.parametrize("verb", ["run", "compile", "bench", "inspect", "opt"])
def test_files_that_are_none(baton, tmp_path, verb):
    more = ["-o", "out.so"] if verb == "compile" else []
    (tmp_path / "empty.onnx").touch()
    assert "no such file" in baton(verb, "none.onnx", *more, code=1).stderr
    assert "is a directory" in baton(verb, tmp_path, *more, code=1).stderr
    if verb != "opt":
        assert "is empty" in baton(verb, "empty.onnx", *more, code=1).stderr
    assert not (tmp_path / "out.so").exists()


def test_output_that_cannot_be_written_is_said_before_the_work(baton, tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08")
    assert "there is no directory" in baton("compile", "m.onnx", "-o", "none/m.so", code=1).stderr
    assert "is a directory" in baton("compile", "m.onnx", "-o", tmp_path, "--emit", "lib", code=1).stderr


def test_foreign_shared_object(baton, tmp_path):
    (tmp_path / "m.so").write_bytes(b"not a shared object")
    assert "not a shared library" in baton("run", "m.so", code=1).stderr


def test_binary_in_place_of_text(baton, tmp_path):
    (tmp_path / "in.relay").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in baton("opt", "in.relay", code=1).stderr


def test_closed_pipe():
    run = subprocess.Popen([sys.executable, "-m", "baton", "completion", "bash"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    error = run.stderr.read()
    run.stderr.close()
    assert run.wait() == 1 and error == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("args", [["completion", "bash"], ["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_full_disk(args, unbuffered):
    # Python's own flush at the end would make it exit code 120 and a message of its own.
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, "-m", "baton", *args]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=env)
        assert done.returncode == 1 and done.stderr == "error: no space left on device\n"
        # Where no message can be shown, the exit code still tells.
        assert subprocess.run(command, stdout=full, stderr=full, env=env).returncode == 1
        assert subprocess.run([*command[:3], "frob"], stdout=full, stderr=full, env=env).returncode == 2


def test_closed_output():
    done = subprocess.run(f"{sys.executable} -m baton completion bash >&-", shell=True, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1) and "Traceback" not in done.stderr


def test_doctor(baton):
    run = subprocess.run([sys.executable, "-m", "baton", "doctor", "--json"], capture_output=True, text=True)
    findings = {finding["what"]: finding for finding in json.loads(run.stdout)}
    assert findings["python"]["state"] == "ok" and findings["numpy"]["text"].startswith(np.__version__)
    for finding in findings.values():
        assert finding["state"] in ("ok", "note", "missing")
        assert finding["state"] != "missing" or finding["mend"], f"no way out: {finding}"
    assert run.returncode == int(any(f["state"] == "missing" for f in findings.values()))
    wrong = subprocess.run(
        [sys.executable, "-m", "baton", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "BATON_NUM_THREADS": "many"},
    )
    assert wrong.returncode == 1 and "unset BATON_NUM_THREADS" in wrong.stdout


def test_completion_is_of_every_option(baton):
    scripts = {shell: baton("completion", shell).stdout for shell in ("bash", "zsh", "fish")}
    verbs = next(a for a in build_parser()._actions if a.dest == "==SUPPRESS==" or hasattr(a, "_choices_actions"))
    for verb, parser in verbs.choices.items():
        for action in parser._actions:
            for option in action.option_strings:
                fish = f"-l {option[2:]} " if option.startswith("--") else f"-s {option[1:]} "
                assert option in scripts["bash"] and option in scripts["zsh"], (verb, option)
                assert fish in scripts["fish"] + " ", (verb, option)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_read_by_the_shell(baton, tmp_path, shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(baton("completion", shell).stdout)
    done = subprocess.run([shell, "-n", tmp_path / "script"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""


def test_bash_completes(baton, tmp_path):
    if not shutil.which("bash"):
        pytest.skip("bash is not installed")
    (tmp_path / "script").write_text(baton("completion", "bash").stdout)
    (tmp_path / "model.onnx").touch()

    def complete(*words):
        code = f'. ./script; COMP_WORDS=({" ".join(words)} ""); COMP_WORDS[{len(words) - 1}]="{words[-1]}"; unset "COMP_WORDS[{len(words)}]"'
        code += f"; COMP_CWORD={len(words) - 1}; _baton; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return subprocess.run(["bash", "-c", code], capture_output=True, text=True, cwd=tmp_path).stdout.split()

    assert complete("baton", "co") == ["compile", "completion"]
    assert complete("baton", "compile", "--emit", "l") == ["llvm", "lib"]
    assert complete("baton", "run", "--thr") == ["--threads"]
    assert complete("baton", "run", "mod") == ["model.onnx"]
    assert complete("baton", "run", "-i", "x=mod") == ["model.onnx"]


def test_help_loads_neither_numpy_nor_compiler():
    code = (
        "import sys; from baton.cli import main; main(['run', '--help']);"
        "print([m for m in ('numpy', 'onnx', 'onnxruntime', 'baton.driver', 'baton.relay') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
