# SPDX-License-Identifier: Apache-2.0
"""Tokens that narrow what a key may do, keys that end, and modules that must be signed."""

import subprocess
import sys
import time

import numpy as np
import pytest
from faulty_wire import FaultyWire

import baton
from baton import rpc
from baton.rpc.library import function


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    function("KeyNew")("lab", str(folder / "lab.key"), "trusted", [])
    function("KeyNew")("few", str(folder / "few.key"), "session", ["test.rpc.*"])
    return folder


@pytest.fixture(scope="module")
def server(keys):
    with rpc.Server("127.0.0.1", 0, key_file=keys) as made:
        yield made


@pytest.fixture
def open_with(server, keys, tmp_path):
    """Connects with a token of a key, narrowed in as many steps as there are lists."""

    def connect(key, *steps, **options):
        path = str(keys / f"{key}.key")
        for number, caveats in enumerate(steps):
            out = str(tmp_path / f"{number}.token")
            function("KeyNarrow")(path, out, list(caveats))
            path = out
        return rpc.connect("127.0.0.1", server.port, key_file=path, **options)

    return connect


def denied(remote, name):
    with pytest.raises(rpc.Denied):
        remote.get_function(name)
    return True


def test_a_token_may_do_what_its_caveats_leave(open_with):
    with open_with("lab", ["allow=test.rpc.add,test.rpc.e*"]) as remote:
        assert remote.info["policy"] == "session" and remote.get_function("test.rpc.add")(1, 2) == 3
        assert remote.get_function("test.rpc.echo")("x") == "x"
        assert denied(remote, "test.rpc.fail") and denied(remote, "runtime.ListGlobalFuncNames")
    with open_with("few", ["policy=session"]) as remote:
        assert remote.get_function("test.rpc.add")(1, 2) == 3 and denied(remote, "runtime.DeviceExists")


@pytest.mark.parametrize(
    "key, steps, left",
    [
        ("few", [["allow=*"]], []),
        ("few", [["allow=test.rpc.add,runtime.*"]], ["test.rpc.add"]),
        ("few", [["policy=trusted"]], ["test.rpc.add", "test.rpc.echo"]),
        ("lab", [["allow=test.rpc.add"], ["allow=test.rpc.add,test.rpc.echo"]], ["test.rpc.add"]),
        ("lab", [["allow=test.rpc.add"], ["policy=trusted"]], ["test.rpc.add"]),
        ("lab", [["allow=test.rpc.add"], ["allow=test.rpc.echo"]], []),
    ],
)
def test_no_caveat_gives_anything(open_with, key, steps, left):
    with open_with(key, *steps) as remote:
        for name in ("test.rpc.add", "test.rpc.echo", "runtime.ListGlobalFuncNames"):
            assert bool(remote.get_function(name)) if name in left else denied(remote, name)


def test_limits_of_a_token(open_with):
    with open_with("lab", ["memory=1000000", "disk=1000", "load=none", "devices=cpu"], ["memory=5000000", "load=any", "devices=cpu,cuda"]) as remote:
        baton.nd.empty((10,), "uint8", remote.cpu())
        with pytest.raises(rpc.OutOfMemory):
            baton.nd.empty((2_000_000,), "uint8", remote.cpu())
        with pytest.raises(rpc.OutOfMemory):
            remote.upload(b"x" * 1001, "f")
        remote.upload(b"x" * 999, "f.so")
        with pytest.raises(rpc.Denied, match="loads no modules"):
            remote.load_module("f.so")
        with pytest.raises(rpc.Denied, match="cuda"):
            baton.nd.empty((1,), "uint8", remote.cuda())


def test_a_token_of_one_device(open_with):
    with open_with("lab", ["devices=cpu:1"]) as remote, pytest.raises(rpc.Denied, match="cpu"):
        baton.nd.empty((1,), "uint8", remote.cpu(0))


def test_a_token_ends(open_with):
    with pytest.raises(rpc.Denied):
        open_with("lab", [f"expires={int(time.time()) - 1}"])
    remote = open_with("lab", [f"expires={int(time.time()) + 2}"], resume_timeout=0)
    call = remote.get_function("test.rpc.add")
    assert call(1, 1) == 2
    with pytest.raises(rpc.SessionLost):
        for _ in range(60):
            call(1, 1)
            time.sleep(0.1)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace(";allow=test.rpc.add", ""),  # a caveat taken away
        lambda t: t.replace("test.rpc.add", "test.rpc.all"),
        lambda t: t.replace("expires=9", "expires=8"),
        lambda t: t[:-10] + ("0" if t[-10] != "0" else "1") + t[-9:],  # another MAC
        lambda t: t.replace("id: ", "id: 0123456789abcdef;"),
        lambda t: t.replace(";allow", ";colour=red;allow"),
        lambda t: t.replace("key: ", "key: 00"),  # longer
        lambda t: t[:-11] + "\n",  # shorter
    ],
)
def test_a_token_that_was_changed_is_none(server, keys, tmp_path, change):
    path = tmp_path / "t"
    function("KeyNarrow")(str(keys / "lab.key"), str(path), ["expires=9999999999", "allow=test.rpc.add"])
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    with pytest.raises(rpc.RPCError) as info:
        rpc.connect("127.0.0.1", server.port, key_file=path).get_function("test.rpc.add")
    assert isinstance(info.value, (rpc.Denied, rpc.SessionLost))


@pytest.mark.parametrize("caveat", ["colour=red", "expires=soon", "load=some", "a b=c", "expires=-1", "", "memory=", "policy=root", "allow=x;y"])
def test_what_is_no_caveat(keys, tmp_path, caveat):
    with pytest.raises((rpc.Denied, ValueError), match="no caveat"):
        function("KeyNarrow")(str(keys / "lab.key"), str(tmp_path / "t"), [caveat])
    assert not (tmp_path / "t").exists()


def test_a_token_is_no_key_of_a_server(keys, tmp_path):
    function("KeyNarrow")(str(keys / "lab.key"), str(tmp_path / "t"), ["policy=session"])
    with pytest.raises(rpc.Denied, match="server needs the key"):
        rpc.Server("127.0.0.1", 0, key_file=tmp_path / "t")


def test_keys_come_end_and_are_revoked_while_the_server_runs(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    ids = {}
    for name in ("one", "two"):
        ids[name] = str(function("KeyNew")(name, str(folder / f"{name}.key"), "trusted", []))
    function("KeyNew")("old", str(folder / "old.key"), "trusted", [], [f"expires={int(time.time()) - 1}"])

    def works(name):
        try:
            with rpc.connect("127.0.0.1", server.port, key_file=where / f"{name}.key") as remote:
                return remote.get_function("test.rpc.add")(1, 1) == 2
        except rpc.RPCError:
            return False

    where = tmp_path / "copies"
    with rpc.Server("127.0.0.1", 0, key_file=folder) as server:
        function("KeyNew")("new", str(folder / "new.key"), "trusted", [])
        subprocess.run(["cp", "-pr", folder, where], check=True)
        assert [works(name) for name in ("one", "two", "new", "old")] == [True, True, True, False]
        (folder / "revoked").write_text(ids["one"] + "\n")
        (folder / "new.key").unlink()
        assert [works(name) for name in ("one", "two", "new")] == [False, True, False]


def test_a_token_resumes_its_session_and_no_other_does(keys, server, tmp_path):
    paths = [str(tmp_path / name) for name in ("a", "b")]
    function("KeyNarrow")(str(keys / "lab.key"), paths[0], ["wall=100"])
    with FaultyWire(server.port) as wire, rpc.connect("127.0.0.1", wire.port, key_file=paths[0]) as remote:
        add = remote.get_function("test.rpc.add")
        wire.cut()
        assert add(1, 1) == 2


def test_the_command(keys, tmp_path):
    token = tmp_path / "job.token"
    command = [
        sys.executable,
        "-m",
        "baton",
        "rpc-key",
        "narrow",
        str(keys / "lab.key"),
        "-o",
        str(token),
        "--expires",
        "1h",
        "--load",
        "signed",
        "--memory",
        "64",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "token" in done.stdout and token.stat().st_mode & 0o777 == 0o600
    text = token.read_text()
    assert "load=signed" in text and f"memory={64 << 20}" in text and "expires=" in text
    for arguments in (
        ["narrow"],
        ["narrow", str(keys / "lab.key"), "-o", str(tmp_path / "x")],
        ["narrow", str(keys / "lab.key"), "-o", str(tmp_path / "x"), "--expires", "soon"],
    ):
        done = subprocess.run([sys.executable, "-m", "baton", "rpc-key", *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and "rpc-key" in done.stderr


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """A model, its signature, and public keys."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    from baton import relay
    from baton.driver.signature import sign

    folder = tmp_path_factory.mktemp("signed")
    x = relay.var("x", shape=(2,))
    for name in ("m", "other"):
        body = relay.add(x, x) if name == "m" else relay.multiply(x, x)
        baton.relay.build(baton.IRModule.from_expr(relay.Function([x], body)), target="llvm").export_library(str(folder / f"{name}.so"))
    mine, foreign = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()
    for name, key in (("mine", mine), ("foreign", foreign)):
        pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(pem)
    sign(folder / "m.so", mine)
    sign(folder / "m.so", foreign, folder / "foreign.sig")
    return folder


def test_signed_modules_alone_are_loaded(signed, tmp_path):
    from baton.contrib import graph_executor

    with rpc.Server(url=f"unix:{tmp_path}/s", load="signed", signers=signed / "mine.pub") as server, rpc.connect(server.url) as remote:

        def load(model, signature=None):
            remote.upload(model, "m.so")
            if signature is None:
                try:
                    remote.remove("m.so.sig")
                except FileNotFoundError:
                    pass
            else:
                remote.upload(signature, "m.so.sig")
            return remote.load_module("m.so")

        good = (signed / "m.so").read_bytes()
        signature = (signed / "m.so.sig").read_bytes()
        model = graph_executor.GraphModule(load(good, signature)["default"](remote.cpu()))
        model.run(x=np.array([1, 2], "float32"))
        np.testing.assert_array_equal(model.get_output(0).numpy(), [2, 4])
        changed = bytearray(good)
        changed[len(good) // 2] ^= 1
        wrong = signature[:30] + (b"A" if signature[30:31] != b"A" else b"B") + signature[31:]
        for data, sig in [
            (good, None), (good, (signed / "foreign.sig").read_bytes()), (good, wrong), (good, b""), (good, signature[:40]),
            ((signed / "other.so").read_bytes(), signature), (b"\x7fELF" + bytes(200), signature), (b"BATONART", signature),
        ]:  # fmt: skip
            with pytest.raises(rpc.Denied, match="not signed"):
                load(data, sig)
        # The digest is signed, and the file is not that of the digest: it is not loaded.
        with pytest.raises(RuntimeError):
            load(bytes(changed), signature)


def test_signers_that_are_none(signed, tmp_path):
    with pytest.raises(ValueError, match="signers"), rpc.Server(url=f"unix:{tmp_path}/s", load="signed") as server:
        rpc.connect(server.url)
