# SPDX-License-Identifier: Apache-2.0
"""Bytes of the protocol, written by hand: what no client of ours would send."""

import struct


def frame(kind, payload=b"", length=None, number=0):
    """A frame of a call's number; `length` in place of the true one."""
    return struct.pack("<IBBHQQ", len(payload) if length is None else length, kind, 0, 0, number, 0) + payload


def text(value):
    return struct.pack("<BI", 7, len(value)) + value.encode()


def hello(major=1, minor=0, **options):
    """The payload of a greeting."""
    body = b"".join(text(name) + text(value) for name, value in options.items())
    return b"BATONRPC" + struct.pack("<HH", major, minor) + struct.pack("<BI", 17, len(options)) + body
