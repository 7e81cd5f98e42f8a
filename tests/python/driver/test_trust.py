# SPDX-License-Identifier: Apache-2.0
"""What a compiled model is believed: files that are written over while they run, forged manifests, signatures."""

import hashlib
import json
import os
import random
import re
import struct
import subprocess
import sys

import numpy as np
import pytest

import baton
from baton import relay
from baton.driver import signature

MAGIC = b"BATONART"


def model(path, factor, constants=0):
    """y = x * factor, with so many more bytes of weights."""
    x = relay.var("x", shape=(4,))
    y = x * relay.const(np.full(4, factor, "float32"))
    if constants:
        weights = np.random.default_rng(0).standard_normal((constants // 16, 4)).astype("float32")
        y = y + relay.sum(relay.nn.dense(relay.expand_dims(x, 0), relay.const(weights))) * relay.const(0.0)
    baton.compile(baton.IRModule.from_expr(relay.Function([x], y))).save(path)
    return path


X = np.arange(4, dtype="float32")


@pytest.fixture
def artifact(tmp_path):
    return model(tmp_path / "m.so", 2.0)


# ---- Written over
@pytest.mark.parametrize("how", ["another model", "zeros", "nothing", "cut"])
def test_writing_over_a_loaded_file_changes_nothing_that_runs(tmp_path, artifact, how):
    """In a process of its own, which would die."""
    other = model(tmp_path / "other.so", 5.0, constants=1 << 16).read_bytes()
    size = artifact.stat().st_size
    (tmp_path / "new").write_bytes({"another model": other, "zeros": bytes(2 * size), "nothing": b"", "cut": artifact.read_bytes()[:4096]}[how])
    code = """
import baton, numpy as np, sys
x = np.arange(4, dtype="float32")
m = baton.load("m.so")
print(m(x).numpy().tolist())
with open("m.so", "r+b") as f:
    new = open("new", "rb").read()
    f.truncate(len(new))
    f.write(new)
print(m(x).numpy().tolist())
again = m.module.get_source("json")
m.save("copy.so")
print(baton.load("copy.so")(x).numpy().tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["[0.0, 2.0, 4.0, 6.0]"] * 3, (done.returncode, done.stderr)


@pytest.mark.slow
def test_code_of_a_large_model_is_copied(tmp_path):
    path = model(tmp_path / "m.so", 2.0, constants=70 << 20)
    assert path.stat().st_size > 64 << 20
    code = """
import baton, numpy as np
m = baton.load("m.so")
with open("m.so", "r+b") as f:
    f.seek(-80, 2)
    code = int.from_bytes(f.read(8), "little")  # where the constants begin
    f.seek(0)
    f.write(bytes(code))
try:
    m(np.arange(4, dtype="float32"))
except baton.Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "`m.so` was written to since it was loaded" in done.stdout, (done.returncode, done.stderr)


def test_a_model_under_an_old_name_is_the_new_one(tmp_path, artifact):
    old = baton.load(artifact)
    model(artifact, 3.0)
    new = baton.load(artifact)
    assert (old(X).numpy() == 2 * X).all()
    assert (new(X).numpy() == 3 * X).all()


def test_descriptors_are_given_back(artifact):
    baton.load(artifact)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        baton.load(artifact)(X)
    import gc

    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1


# ---- Forged
def parts(data):
    """(offset of the manifest, its text) of an artifact."""
    at, size = struct.unpack_from("<2Q", data, len(data) - 64)
    return at, data[at : at + size]


def forged(data, text):
    """The file with another manifest, and a digest that fits."""
    at, _ = parts(data)
    trailer = data[-80:-64] + struct.pack("<2Q", at, len(text)) + data[-48:-40]
    body = data[:at] + text + trailer
    return body + hashlib.sha256(body).digest() + MAGIC


def changed(**new):
    return lambda manifest: json.dumps({**manifest, **new}).encode()


@pytest.mark.parametrize(
    "change",
    [changed(arena_bytes=1 << 20), changed(inputs=[{"name": "x", "shape": [4096], "dtype": "float32"}]), changed(entry="other"), changed()],
    ids=["arena", "shape", "entry", "spaces"],
)
def test_a_manifest_that_the_code_does_not_know_is_refused(tmp_path, artifact, change):
    data = artifact.read_bytes()
    text = parts(data)[1]
    assert forged(data, text) == data, "the forger forges"
    (tmp_path / "forged.so").write_bytes(forged(data, change(json.loads(text))))
    with pytest.raises(baton.error.RuntimeError, match=r"cannot load `.*forged\.so`: its manifest is not the one that its code was compiled with"):
        baton.load(tmp_path / "forged.so")


def believed(code, text):
    """The code with the digest of another manifest in it."""
    known = hashlib.sha256(parts(code)[1]).digest()
    assert code.count(known) == 1
    return code.replace(known, hashlib.sha256(text).digest())


def mutants(text, count, of_steps=False):
    """The manifest with a number changed, still JSON: one that a call goes by, or one of `steps`, which profiles tell."""
    chance = random.Random(31)
    steps = re.search(r'"steps":"(\\.|[^"\\])*"', text.decode()).span()
    places = [m.span() for m in re.finditer(r"-?\d+", text.decode()) if (steps[0] <= m.start() < steps[1]) == of_steps]
    for _ in range(count):
        begin, end = chance.choice(places)
        new = chance.choice((0, 1, -1, 63, 1 << 16, 1 << 31, 1 << 62, int(text[begin:end]) + 1, chance.randrange(1 << 20)))
        if str(new).encode() != text[begin:end]:
            yield text[:begin] + str(new).encode() + text[end:]


@pytest.mark.parametrize("source", ["static", "open", "a program"])
def test_numbers_of_a_manifest_that_is_forged_with_every_digest(tmp_path, source):
    """In a process of its own, which a number that is believed would end. Numbers that the entry does not go by may differ."""
    x = {"static": "Tensor[(4, 8), float32]", "open": "Tensor[(n, 8), float32]", "a program": "Tensor[(n, 8), float32]"}[source]
    body = "if (greater(sum(%x), 0f)) { nn.softmax(%x) } else { exp(%x) }" if source == "a program" else "nn.softmax(exp(%x))"
    baton.compile(f'#[version = "0.0.5"]\ndef @main(%x: {x}) {{ {body} }}').save(tmp_path / "m.so")
    data = (tmp_path / "m.so").read_bytes()
    for i, text in enumerate(mutants(parts(data)[1], 60)):
        (tmp_path / f"{i}.so").write_bytes(forged(believed(data, text), text))
    code = """
import baton, glob, numpy as np
refused = 0
for path in sorted(glob.glob("[0-9]*.so")):
    try:
        baton.load(path)(np.ones((4, 8), "float32"))
    except (baton.Error, ValueError, TypeError):
        refused += 1
print(refused)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout) > 40, (done.returncode, done.stderr[-500:])


def test_formulas_of_work_that_are_forged(tmp_path):
    """A profile of them tells other numbers or none, and the call is right."""
    baton.compile('#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 8), float32]) { nn.softmax(exp(%x)) }').save(tmp_path / "m.so")
    data = (tmp_path / "m.so").read_bytes()
    for i, text in enumerate(mutants(parts(data)[1], 60, of_steps=True)):
        (tmp_path / f"{i}.so").write_bytes(forged(believed(data, text), text))
    code = """
import baton, glob, numpy as np
told, x = 0, np.ones((4, 8), "float32")
for path in sorted(glob.glob("[0-9]*.so")):
    try:
        model = baton.load(path)
        assert np.allclose(model(x).numpy(), 1 / 8)
        str(model.profile(x))
        told += 1
    except (baton.Error, ValueError):
        pass
print(told)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and int(done.stdout) > 20, (done.returncode, done.stdout, done.stderr[-500:])


# ---- Signed
@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric import ed25519

    folder = tmp_path_factory.mktemp("keys")
    for name in ("key", "other"):
        made = ed25519.Ed25519PrivateKey.generate()
        form = serialization.PrivateFormat.PKCS8
        (folder / f"{name}.pem").write_bytes(made.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
        public = made.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(public)
    return folder


def test_a_signed_model_loads(artifact, keys):
    where = signature.sign(artifact, keys / "key.pem")
    assert where == f"{artifact}.sig"
    for key in (keys / "key.pub", (keys / "key.pub").read_bytes()):
        assert (baton.load(artifact, public_key=key)(X).numpy() == 2 * X).all()
    elsewhere = artifact.parent / "elsewhere"
    os.rename(where, elsewhere)
    assert (baton.load(artifact, public_key=keys / "key.pub", signature=elsewhere)(X).numpy() == 2 * X).all()


def test_what_is_not_signed_does_not_load(tmp_path, artifact, keys):
    public = keys / "key.pub"
    with pytest.raises(baton.error.RuntimeError, match=r"is not signed: there is no `.*m\.so\.sig`"):
        baton.load(artifact, public_key=public)
    signature.sign(artifact, keys / "other.pem")
    with pytest.raises(baton.error.RuntimeError, match="is none of .* with this key"):
        baton.load(artifact, public_key=public)
    signature.sign(artifact, keys / "key.pem")
    (tmp_path / "n.so").write_bytes(model(tmp_path / "m3.so", 3.0).read_bytes())
    with pytest.raises(baton.error.RuntimeError, match="is none of"):
        baton.load(tmp_path / "n.so", public_key=public, signature=signature.signature_path(artifact))
    for bad in (b"", b"baton-signature-1 AAAA\n", b"\xff\xfe", b"baton-signature-2 " + b"A" * 86 + b"==\n"):
        (tmp_path / "m.so.sig").write_bytes(bad)
        with pytest.raises(baton.error.RuntimeError, match="is not a signature that this version reads"):
            baton.load(artifact, public_key=public)
    with pytest.raises(TypeError, match="public_key, which is missing"):
        baton.load(artifact, signature="s")


def test_a_digest_cannot_be_kept_for_other_contents(artifact, keys):
    """The signature is of the digest that the file names; that the file has it is checked as it is loaded."""
    signature.sign(artifact, keys / "key.pem")
    data = bytearray(artifact.read_bytes())
    data[len(data) // 2] ^= 1
    artifact.write_bytes(data)
    with pytest.raises(baton.error.RuntimeError, match="digest does not match its contents"):
        baton.load(artifact, public_key=keys / "key.pub")
    fresh = model(artifact.parent / "fresh.so", 7.0)
    with pytest.raises(baton.error.RuntimeError, match="another file than the one whose signature was checked"):
        baton.get_global_func("runtime.LoadArtifactOf")(str(fresh), "0" * 64)


def test_keys_that_are_none(artifact, keys):
    with pytest.raises(baton.error.RuntimeError, match="no public key can be read"):
        signature.verify(artifact, keys / "key.pem")
    with pytest.raises(baton.error.RuntimeError, match="no private key can be read"):
        signature.sign(artifact, keys / "key.pub")


def test_without_the_package(artifact, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(baton.error.UnsupportedError, match="signatures need the package cryptography, .* pip install cryptography"):
        baton.load(artifact, public_key="key.pub")


def test_the_verb(tmp_path, artifact, keys):
    def run(*args, code=0):
        done = subprocess.run([sys.executable, "-m", "baton", "sign", *map(str, args)], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert done.stdout == ""
        return done.stderr

    assert run("m.so", "--key", keys / "key.pem") == "wrote m.so.sig\n"
    assert "m.so: signed with the key of" in run("m.so", "--check", keys / "key.pub")
    assert "with this key" in run("m.so", "--check", keys / "other.pub", code=1)
    assert "nokey.pem" in run("m.so", "--key", "nokey.pem", code=1)
    (tmp_path / "text.so").write_text("text")
    assert "is not a compiled model" in run("text.so", "--key", keys / "key.pem", code=1)
