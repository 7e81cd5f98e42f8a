# SPDX-License-Identifier: Apache-2.0
"""`connect`, for every kind of address."""

import functools

from . import session


@functools.wraps(session.connect)
def connect(url, port=None, *args, **options):
    if port is None and str(url).startswith(("proxy://", "wss://")):
        from .proxy import connect as connect_through

        return connect_through(str(url), *args, **options)
    return session.connect(url, port, *args, **options)


__all__ = ["connect"]
