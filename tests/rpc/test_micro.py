# SPDX-License-Identifier: Apache-2.0
"""The server of machines without a system (src/micro), as a program of this machine: what a client of baton.rpc sees of it."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import baton
from baton import relay, rpc
from baton.contrib import cc, graph_executor

HERE = Path(__file__).parent


def network(rng, n=24):
    """A small convolutional network."""

    def weights(*shape):
        return relay.const((rng.normal(size=shape) / 4).astype("float32"))

    x = relay.var("image", shape=(1, 2, 8, 8))
    y = relay.nn.max_pool2d(relay.nn.relu(relay.nn.conv2d(x, weights(4, 2, 3, 3), padding=1)), pool_size=2, strides=2)
    y = relay.nn.dense(relay.nn.batch_flatten(y), weights(n, 64))
    return baton.IRModule.from_expr(relay.Function([x], relay.Tuple([relay.nn.softmax(relay.nn.dense(y, weights(5, n))), relay.tanh(y)])))


@pytest.fixture(scope="module")
def model():
    with baton.transform.PassContext(opt_level=3):
        return relay.build(network(np.random.default_rng(0)), target="llvm")


@pytest.fixture(scope="module")
def program(model, tmp_path_factory):
    """A server with the functions of micro_functions.c and the model."""
    folder = tmp_path_factory.mktemp("micro")
    objects, text = rpc.micro.write_model(model.module if hasattr(model, "module") else model, folder)
    rpc.micro.compile_c([text, HERE / "micro_functions.c", *rpc.micro.sources(), rpc.micro.host_program()], folder / "server.o",
                        options=["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"])  # fmt: skip
    cc.create_executable(folder / "server", [objects, folder / "server.o"], options=["-lm"])
    return folder / "server"


@pytest.fixture
def remote(program):
    with rpc.connect(f"exec:{program}") as session:
        yield session


def call(remote, name, *args):
    return remote.get_function("test." + name)(*args)


@pytest.mark.parametrize("value", [None, 0, -(2**63), 2**63 - 1, True, False, 1.5, float("inf"), "", "text", "ü" * 1000, b"", b"\x00\xff", "y" * 65536, b"y" * 65536],
                         ids=lambda v: repr(v)[:20])  # fmt: skip
def test_values_go_and_come_back(remote, value):
    got = call(remote, "echo", value)
    assert (bytes(got) if isinstance(value, bytes) else got) == value and isinstance(got, bool) == isinstance(value, bool)


def test_dtypes_devices_lists_and_maps(remote):
    got = call(remote, "echo", [1, "two", [3.5, None], {"a": [True], 3: b"x"}])
    assert list(got[2]) == [3.5, None] and got[1] == "two" and list(got[3]["a"]) == [True] and bytes(got[3][3]) == b"x"
    assert str(call(remote, "echo", baton.DataType("float16"))) == "float16"
    assert call(remote, "echo", remote.cpu(0)) == remote.cpu(0)
    deep = 1
    for _ in range(8):
        deep = [deep]
    call(remote, "echo", deep)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "bool", "float64", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (300, 500)])
def test_arrays_there_and_back(remote, shape, dtype):
    x = (np.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).astype(dtype)
    a = baton.nd.array(x, remote.cpu())
    assert a.device == remote.cpu(0) and a.shape == shape
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(call(remote, "echo", a).numpy(), x)
    np.testing.assert_array_equal(call(remote, "echo", x).numpy(), x)
    b = baton.nd.empty(shape, dtype, remote.cpu())
    a.copyto(b)
    np.testing.assert_array_equal(b.numpy(), x)


def test_functions_of_both_sides(remote):
    assert call(remote, "add", 1, 2) == 3
    assert call(remote, "apply", lambda a, b: a * b, 6, 7) == 42
    assert call(remote, "apply", remote.get_function("test.add"), 1, 2) == 3
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert call(remote, "sum", x) == 15 and call(remote, "sum", baton.nd.array(x, remote.cpu()).reshape(6)) == 15
    assert call(remote, "apply", lambda a: float(a.numpy().sum()), x) == 15
    # A call of the client's within a call.
    assert call(remote, "apply", lambda n: call(remote, "add", n, 1), 4) == 5
    with pytest.raises(AttributeError):
        remote.get_function("test.absent")

    def deeper():
        return call(remote, "apply", deeper)

    with pytest.raises(rpc.RPCError, match="too deep"):
        deeper()
    assert call(remote, "add", 1, 2) == 3


def test_errors_and_what_is_not_there(remote):
    with pytest.raises(ValueError, match="no good"):
        call(remote, "fail", "ValueError", "no good")
    with pytest.raises(ZeroDivisionError):
        call(remote, "apply", lambda: 1 // 0)
    with pytest.raises(baton.UnsupportedError, match="no files"):
        remote.upload(b"x" * 100000, "name")
    with pytest.raises(rpc.OutOfMemory):
        baton.nd.empty((1 << 30,), "int8", remote.cpu())
    with pytest.raises(TypeError, match="two ints"):
        call(remote, "add", 1, "two")
    assert call(remote, "add", 1, 2) == 3 and not remote.lost


def test_what_is_released_is_free_again(remote):
    # Each array would be an eighth of the arena; and there are 64 places.
    for i in range(500):
        x = baton.nd.array(np.full((1 << 18,), i, "float32"), remote.cpu())
        assert call(remote, "echo", x).numpy()[-1] == i
    held = []
    with pytest.raises(rpc.OutOfMemory, match="places"):
        for _ in range(100):
            held.append(baton.nd.empty((4,), "float32", remote.cpu()))
    assert len(held) > 50
    held.clear()
    assert call(remote, "add", 1, 2) == 3 and baton.nd.empty((4,), "float32", remote.cpu()).shape == (4,)


def test_a_model(remote, model):
    x = np.random.default_rng(1).normal(size=(1, 2, 8, 8)).astype("float32")
    here = graph_executor.GraphModule(model["default"](baton.cpu()))
    here.run(image=x)
    want = [here.get_output(i).numpy() for i in range(2)]
    library = remote.system_lib()
    there = graph_executor.GraphModule(library["default"](remote.cpu()))
    with pytest.raises(ValueError, match="not been set"):
        there.run()
    there.set_input("image", x)
    there.run()
    first = there.get_output(0)
    for got, wanted in zip((first, there.get_output(1)), want, strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)
    # A result that is kept is not written over.
    there.run(image=-x)
    np.testing.assert_array_equal(first.numpy(), want[0])
    out = baton.nd.empty((1, 5), "float32", remote.cpu())
    there.get_output(0, out)
    np.testing.assert_array_equal(out.numpy(), there.get_output(0).numpy())
    for wrong in (np.zeros((1, 2, 8, 7), "float32"), np.zeros((1, 2, 8, 8), "int32")):
        with pytest.raises((ValueError, TypeError)):
            there.module["set_input"](0, wrong)
    times = there.module.time_evaluator("run", remote.cpu(), number=3, repeat=4)()
    assert len(times.results) == 4 and 0 < times.mean < 0.1


def test_with_minrpc_links_a_program(model, tmp_path):
    path = tmp_path / "program"
    model.export_library(str(path), fcompile=rpc.with_minrpc(cc.create_executable, runtime="micro"))
    with rpc.PopenSession(str(path)) as remote:
        there = graph_executor.GraphModule(remote.system_lib()["default"](remote.cpu()))
        there.run(image=np.ones((1, 2, 8, 8), "float32"))
        assert abs(float(there.get_output(0).numpy().sum()) - 1) < 1e-5
    with pytest.raises(TypeError, match="create_executable"):
        rpc.with_minrpc(None, runtime="micro")


def test_a_model_of_open_shapes_is_refused(tmp_path):
    x = relay.var("x", shape=(relay.Any(), 4))
    model = baton.compile(relay.Function([x], relay.exp(x)))
    with pytest.raises(baton.UnsupportedError, match="fixed shapes"):
        rpc.micro.write_model(model, tmp_path)


def test_fuzzed_frames(tmp_path):
    """100,000 frames, most of them mutated, under AddressSanitizer and UBSan; the sizes of the arena's blocks are malloc's then, and again in one arena."""
    for options in (["-DBATON_MICRO_MALLOC"], []):
        sources = [HERE / "micro_fuzz.c", HERE / "micro_functions.c", *rpc.micro.sources()]
        flags = ["-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", *(f"-I{f}" for f in rpc.micro.include_folders())]
        subprocess.run(["gcc", *flags, *options, *sources, "-o", tmp_path / "fuzz"], check=True)
        for more in ([], ["serial"]):
            run = subprocess.run([tmp_path / "fuzz", "50000", "2026", *more], capture_output=True, text=True, check=False, timeout=300)
            assert run.returncode == 0, run.stdout + run.stderr


CORTEX_M4 = "-std=c11 -Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -ffunction-sections -fdata-sections".split()


def test_sizes_on_a_cortex_m4(tmp_path):
    if not shutil.which("arm-none-eabi-gcc"):
        pytest.skip("no compiler for microcontrollers; mend: apt-get install --no-install-recommends gcc-arm-none-eabi libnewlib-arm-none-eabi")
    code = data = 0
    for source in rpc.micro.sources():
        out = tmp_path / f"{source.stem}.o"
        flags = [f"-I{folder}" for folder in rpc.micro.include_folders()]
        subprocess.run(
            ["arm-none-eabi-gcc", *CORTEX_M4, *flags, "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", "-c", source, "-o", out], check=True
        )
        text, initialised, zeros = subprocess.run(["arm-none-eabi-size", out], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[:3]
        code, data = code + int(text) + int(initialised), data + int(initialised) + int(zeros)
    print(f"code {code} bytes, memory {data} bytes")
    assert code <= 32 << 10
    assert data <= 8 << 10  # 64 places of the session, 8 bytes each, are in its arena


def require_m4():
    for program, package in (("arm-none-eabi-gcc", "gcc-arm-none-eabi libnewlib-arm-none-eabi"), ("qemu-system-arm", "qemu-system-arm")):
        if not shutil.which(program):
            pytest.skip(f"there is no {program}; mend: apt-get install --no-install-recommends {package}")


@pytest.fixture(scope="module")
def cortex_m4(tmp_path_factory):
    """The command of an emulated microcontroller that serves the model, and the size of its program."""
    require_m4()
    folder = tmp_path_factory.mktemp("m4")
    with baton.transform.PassContext(opt_level=3):
        built = relay.build(network(np.random.default_rng(0)), target="llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m4")
    objects, text = rpc.micro.write_model(built, folder)
    sources = [text, HERE / "micro_functions.c", HERE / "micro_m4.c", *rpc.micro.sources()]
    flags = [*CORTEX_M4, *(f"-I{f}" for f in rpc.micro.include_folders()), "-nostartfiles", "--specs=nano.specs", "--specs=nosys.specs"]
    link = [f"-T{HERE / 'micro_m4.ld'}", "-Wl,--gc-sections", "-lm", "-o", folder / "program"]
    subprocess.run(["arm-none-eabi-gcc", *flags, *sources, objects, *link], check=True)
    return f"exec:exec qemu-system-arm -M mps2-an386 -display none -monitor none -serial stdio -semihosting -kernel {folder / 'program'}"


def test_a_cortex_m4(cortex_m4, model):
    """Values, callbacks, a model and its times on an emulated microcontroller; 8 KB of memory besides the arena."""
    with rpc.connect(cortex_m4, connect_timeout=20) as remote:
        assert remote.info["machine"] == "Cortex-M4"
        for value in (None, 2**63 - 1, 1.5, "text", [1, {"a": 2.5}]):
            got = call(remote, "echo", value)
            assert list(got)[1]["a"] == 2.5 if isinstance(value, list) else got == value
        assert call(remote, "apply", lambda a, b: call(remote, "add", a, b), 6, 7) == 13
        x = np.random.default_rng(1).normal(size=(1, 2, 8, 8)).astype("float32")
        here = graph_executor.GraphModule(model["default"](baton.cpu()))
        there = graph_executor.GraphModule(remote.system_lib()["default"](remote.cpu()))
        for m in (here, there):
            m.run(image=x)
        for i in range(2):
            np.testing.assert_allclose(there.get_output(i).numpy(), here.get_output(i).numpy(), rtol=1e-5, atol=1e-6)
        times = there.module.time_evaluator("run", remote.cpu(), number=2, repeat=2)()
        assert len(times.results) == 2 and 1e-5 < times.mean < 10
        deep = 1
        for _ in range(8):
            deep = [deep]
        call(remote, "apply", remote.get_function("test.apply"), remote.get_function("test.echo"), deep)
        with pytest.raises(rpc.OutOfMemory):
            baton.nd.empty((1 << 20,), "int8", remote.cpu())
        stack = remote.get_function("micro.stack")()
        print(f"{times.mean * 1e3:.1f} ms a run, {stack} bytes of stack")
        assert stack <= 7 << 10  # with the 300 bytes of test_sizes_on_a_cortex_m4 and 512 of the session's places less than 8 KB


@contextlib.contextmanager
def line(program, *more):
    """A server at one end of a pseudo-terminal; the path of the other."""
    import tty

    ours, theirs = os.openpty()
    tty.setraw(theirs)
    server = subprocess.Popen([program, "--serial", *more], stdin=ours, stdout=ours)
    try:
        yield os.ttyname(theirs), ours, server
    finally:
        server.terminate()
        server.wait()
        os.close(ours)
        os.close(theirs)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A key file, and the key that the microcontroller has."""
    path = tmp_path_factory.mktemp("key") / "lab.key"
    subprocess.run([sys.executable, "-m", "baton", "rpc-key", "new", "--name", "lab", "-o", path], check=True, capture_output=True)
    return path, rpc.micro.serial_key(path)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_serial_line(program, lab, keyed, model):
    path, key = lab
    with line(program, *([key.hex()] if keyed else [])) as (device, _, server):
        for _ in range(3):  # one session after the other
            with rpc.connect(f"serial:{device}?baud=921600", key_file=path if keyed else None) as remote:
                assert remote.peer.startswith("key " if keyed else "serial ")
                x = np.arange(30000, dtype="int32").reshape(100, 300)
                np.testing.assert_array_equal(call(remote, "echo", baton.nd.array(x, remote.cpu())).numpy(), x)
                for text in (b"\0" * 700, bytes(range(256)) * 9, b"\xff" * 509, b"a" * 254 + b"\0" + b"b" * 508):
                    assert bytes(call(remote, "echo", text)) == text
                assert call(remote, "apply", lambda a: a + 1, 41) == 42
                there = graph_executor.GraphModule(remote.system_lib()["default"](remote.cpu()))
                there.run(image=np.ones((1, 2, 8, 8), "float32"))
                assert abs(float(there.get_output(0).numpy().sum()) - 1) < 1e-5
        assert server.poll() is None


def test_a_serial_line_after_a_client_that_broke_off(program):
    with line(program) as (device, ours, server):
        end = os.open(device, os.O_RDWR | os.O_NOCTTY)
        for left in (b"\x05garbage", b"\0" * 9, b"\xff" * 3000, b"\0\x03ab\0\x01"):
            os.write(end, left)
        with rpc.connect(f"serial:{device}") as remote:
            assert call(remote, "add", 1, 2) == 3
            os.write(end, b"\x07half of")  # within a session: this one ends, the next one starts
            with pytest.raises(rpc.RPCError):
                remote.set_call_timeout(1)
                call(remote, "add", 1, 2)
        with rpc.connect(f"serial:{device}") as remote:
            assert call(remote, "add", 1, 2) == 3
        os.close(end)


@pytest.mark.parametrize("server_has, client_has, error", [(True, False, "has a key"), (False, True, "has a key"), ("other", True, "same key")])
def test_who_has_no_key_gets_no_session(program, lab, server_has, client_has, error):
    path, key = lab
    key = bytes(32) if server_has == "other" else key
    with line(program, *([key.hex()] if server_has else [])) as (device, _, _server):
        with pytest.raises(rpc.Denied, match=error):
            rpc.connect(f"serial:{device}", key_file=path if client_has else None, connect_timeout=2)


@pytest.mark.parametrize("keyed", [False, True])
def test_changed_bytes_on_a_serial_line_end_the_session(program, lab, keyed):
    """A wire in between changes one byte of what the client, or the server, sends; replays what it saw; nothing is answered that was not asked."""
    import threading
    import tty

    path, key = lab
    for at in range(0, 400, 80):
        for direction in (0, 1):
            with line(program, *([key.hex()] if keyed else [])) as (device, _, _server):
                far = os.open(device, os.O_RDWR | os.O_NOCTTY)
                near, theirs = os.openpty()
                tty.setraw(theirs)
                seen = [0, 0]

                def carry(source, to, which, at=at, direction=direction, seen=seen):
                    with contextlib.suppress(OSError):
                        while data := bytearray(os.read(source, 512)):
                            if which == direction and seen[which] <= at < seen[which] + len(data):
                                data[at - seen[which]] ^= 0x10
                            seen[which] += len(data)
                            os.write(to, data)

                threads = [threading.Thread(target=carry, args=a, daemon=True) for a in ((near, far, 0), (far, near, 1))]
                for t in threads:
                    t.start()
                try:
                    with rpc.connect(f"serial:{os.ttyname(theirs)}", key_file=path if keyed else None, connect_timeout=3, call_timeout=1) as remote:
                        assert call(remote, "echo", "x" * 200) == "x" * 200
                        assert call(remote, "add", 1, 2) == 3
                except rpc.RPCError:
                    pass  # what was changed was noticed
                finally:
                    os.close(theirs)
                    os.close(near)
                    os.close(far)


def test_serial_addresses():
    for wrong in ("serial:", "serial:tty", "serial:/dev/null", "serial:/dev/absent", "serial:/dev/null?baud=1", "serial:/dev/null?speed=9600"):
        with pytest.raises((ValueError, rpc.RPCError)):
            rpc.connect(wrong, connect_timeout=1)
    for speed in ("", "-9600", "0", "99999999999999", "9600x"):
        with pytest.raises(ValueError, match="baud=N"):
            rpc.connect(f"serial:/dev/null?baud={speed}", connect_timeout=1)
