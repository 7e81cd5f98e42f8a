# SPDX-License-Identifier: Apache-2.0
"""Messages of the tracker: JSON objects of at most 64 KiB, each field checked before the state sees it."""

from __future__ import annotations

import json
import re

from .errors import ProtocolError

LIMIT = 64 << 10  # bytes of a message from a peer
MOST_LEASES = 256  # in one `renew`
KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,63}")
TOKEN = re.compile(r"[0-9a-f]{32,64}")
SOCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
LARGEST = 1 << 53  # integers that every JSON reader keeps


def _text(form: re.Pattern, what: str):
    def check(value):
        return isinstance(value, str) and form.fullmatch(value) is not None

    return check, what


def _integer(low: int, high: int):
    def check(value):
        return type(value) is int and low <= value <= high

    return check, f"an integer from {low} to {high}"


def _seconds():
    def check(value):
        return type(value) in (int, float) and 0 <= value <= 1e9

    return check, "seconds from 0 to 1e9"


def _tokens():
    def check(value):
        return isinstance(value, list) and len(value) <= MOST_LEASES and all(isinstance(v, str) and TOKEN.fullmatch(v) for v in value)

    return check, f"a list of at most {MOST_LEASES} lease tokens"


_KEY = _text(KEY, "1 to 64 characters of A-Z a-z 0-9 . _ + / -, a letter or digit first")
_TOKEN = _text(TOKEN, "32 to 64 hexadecimal digits")
_ID = _integer(0, LARGEST)
_EPOCH = _integer(0, LARGEST)
# Type -> field -> (check, what it has to be, whether it is required).
SCHEMA = {
    "register": {
        "key": (*_KEY, True),
        "port": (*_integer(1, 65535), False),
        "socket": (*_text(SOCKET, "the name of a file, without a folder"), False),
        "proxy": (*_TOKEN, False),
        "resume": (*_TOKEN, False),
        "epoch": (*_EPOCH, False),
    },
    "ready": {"epoch": (*_EPOCH, True), "answer": (*_TOKEN, True)},
    "ended": {"epoch": (*_EPOCH, True)},
    "request": {"id": (*_ID, True), "key": (*_KEY, True), "priority": (*_integer(-1000, 1000), False), "seconds": (*_seconds(), False)},
    "cancel": {"id": (*_ID, True)},
    "renew": {"id": (*_ID, True), "leases": (*_tokens(), True)},
    "release": {"lease": (*_TOKEN, True)},
    "summary": {"id": (*_ID, True), "offset": (*_integer(0, LARGEST), False)},
}


def _unique(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is there twice")
    return found


def _no_constant(name):
    raise ValueError(f"{name} is not a number of JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
_encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def parse(raw: bytes) -> dict:
    """The message in `raw`; a `ProtocolError` says what is wrong with it. Fields that no version knows yet are ignored."""
    if len(raw) > LIMIT:
        raise ProtocolError(f"a message of {len(raw)} bytes: at most {LIMIT} are taken")
    try:
        message = _decoder.decode(raw.decode())
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is not JSON: {str(error)[:80]}") from None
    if not isinstance(message, dict):
        raise ProtocolError(f"a message is an object, not {type(message).__name__}")
    kind = message.get("type")
    schema = SCHEMA.get(kind) if isinstance(kind, str) else None
    if schema is None:
        raise ProtocolError(f"a message of type {str(kind)[:40]!r}: known are {', '.join(SCHEMA)}")
    for name, (check, what, required) in schema.items():
        if name in message:
            if not check(message[name]):
                raise ProtocolError(f"`{name}` of `{kind}` is {what}, not {repr(message[name])[:40]}")
        elif required:
            raise ProtocolError(f"`{kind}` lacks `{name}`: {what}")
    return message


def pack(message: dict) -> bytes:
    """A message as bytes."""
    return _encoder.encode(message).encode()


def id_of(raw: bytes) -> int | None:
    """The `id` of a message that was refused, so that the refusal names it; None where it cannot be read."""
    try:
        found = _decoder.decode(raw.decode()).get("id") if len(raw) <= LIMIT else None
    except (ValueError, RecursionError, AttributeError):
        return None
    return found if type(found) is int and 0 <= found <= LARGEST else None


__all__ = ["KEY", "LIMIT", "MOST_LEASES", "TOKEN", "id_of", "pack", "parse"]
