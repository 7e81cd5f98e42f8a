# SPDX-License-Identifier: Apache-2.0
"""Signatures of compiled models: Ed25519, by the package `cryptography`.

The signed text is the SHA-256 digest that closes the file, and with it code, constants and manifest. A signature is a line of text in
a file beside the model: `model.so.sig`.
"""

from __future__ import annotations

import base64
import binascii
import os

from ..error import RuntimeError as BatonRuntimeError
from ..error import UnsupportedError

# Words before the digest, so that a signature for something else is none for a model.
_ABOUT = b"baton compiled model, SHA-256: "
_FORMAT = "baton-signature-1"
_MAGIC, _DIGEST = b"BATONART", 32


def _keys():
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise UnsupportedError("signatures need the package cryptography, which is not installed; mend with: pip install cryptography") from None
    return serialization, ed25519


def _bytes_of(key) -> bytes:
    if isinstance(key, bytes):
        return key
    with open(key, "rb") as f:
        return f.read()


def _private(key):
    """A private key from a PEM file, PEM text as bytes, 32 raw bytes, or a key object."""
    serialization, ed25519 = _keys()
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    data = _bytes_of(key)
    try:
        made = ed25519.Ed25519PrivateKey.from_private_bytes(data) if len(data) == 32 else serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError) as error:
        raise BatonRuntimeError(f"no private key can be read: {error}") from None
    if not isinstance(made, ed25519.Ed25519PrivateKey):
        raise BatonRuntimeError("the private key is none of Ed25519; make one with: openssl genpkey -algorithm ed25519 -out key.pem")
    return made


def _public(key):
    """A public key, from the same kinds of things."""
    serialization, ed25519 = _keys()
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    data = _bytes_of(key)
    try:
        made = ed25519.Ed25519PublicKey.from_public_bytes(data) if len(data) == 32 else serialization.load_pem_public_key(data)
    except (ValueError, TypeError) as error:
        raise BatonRuntimeError(f"no public key can be read: {error}") from None
    if not isinstance(made, ed25519.Ed25519PublicKey):
        raise BatonRuntimeError("the public key is none of Ed25519; get it with: openssl pkey -in key.pem -pubout -out key.pub")
    return made


def digest_of(path: str | os.PathLike) -> bytes:
    """The digest that a compiled model carries. Loading checks that it is that of the file."""
    with open(path, "rb") as f:
        size = f.seek(0, os.SEEK_END)
        f.seek(max(0, size - _DIGEST - len(_MAGIC)))
        end = f.read()
    if len(end) != _DIGEST + len(_MAGIC) or not end.endswith(_MAGIC):
        raise BatonRuntimeError(f"`{os.fsdecode(path)}` is not a compiled model")
    return end[:_DIGEST]


def signature_path(path: str | os.PathLike) -> str:
    """Returns the default path of a model's signature."""
    return os.fsdecode(path) + ".sig"


def sign(path: str | os.PathLike, private_key, signature: str | os.PathLike | None = None) -> str:
    """Signs a compiled model and writes the signature beside it. Returns the path that it was written to.

    private_key: the path of a PEM file, PEM as bytes, 32 raw bytes, or a key of `cryptography`."""
    made = _private(private_key).sign(_ABOUT + digest_of(path))
    out = signature_path(path) if signature is None else os.fsdecode(signature)
    with open(out, "w", encoding="ascii") as f:
        f.write(f"{_FORMAT} {base64.b64encode(made).decode('ascii')}\n")
    return out


def verify(path: str | os.PathLike, public_key, signature: str | os.PathLike | None = None) -> str:
    """Raises an error unless the model was signed with the key that belongs to `public_key`. Returns its digest as hexadecimal digits."""
    key, digest = _public(public_key), digest_of(path)
    where = signature_path(path) if signature is None else os.fsdecode(signature)
    try:
        with open(where, encoding="ascii") as f:
            words = f.read(1024).split()
    except FileNotFoundError:
        raise BatonRuntimeError(f"`{os.fsdecode(path)}` is not signed: there is no `{where}`") from None
    except UnicodeDecodeError:
        words = []
    try:
        given = base64.b64decode(words[1], validate=True) if len(words) == 2 and words[0] == _FORMAT else b""
    except binascii.Error:
        given = b""
    if len(given) != 64:
        raise BatonRuntimeError(f"`{where}` is not a signature that this version reads ({_FORMAT})")
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(given, _ABOUT + digest)
    except InvalidSignature:
        raise BatonRuntimeError(
            f"the signature `{where}` is none of `{os.fsdecode(path)}` with this key: the model or its signature was changed, or another key made it"
        ) from None
    return digest.hex()


__all__ = ["digest_of", "sign", "signature_path", "verify"]
