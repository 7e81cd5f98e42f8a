# SPDX-License-Identifier: Apache-2.0
"""Authenticated connections that carry messages: what trackers and proxies are made of.

    listener = wire.listen("tls://127.0.0.1:0")            # or "unix:/path", "tls://0.0.0.0:9190?key=lab.key"
    connection = wire.connect(listener.url, deadline=5)
    connection.send(b"hello")
    listener.accept(deadline=5).recv(deadline=5)            # b"hello"

On loopback without a key the server writes a fresh one that programs of the same user find.
"""

from .library import function

LIMIT = 1 << 20  # bytes of a message


class Connection:
    """A connection to a peer that has proved itself. Threads may send and receive at the same time."""

    def __init__(self, module):
        self._module = module
        self._send, self._recv, self._close = module["send"], module["recv"], module["close"]
        self.peer, self.key_id = str(module["peer"]()), str(module["key_id"]())

    def send(self, message, deadline=60):
        """Sends bytes, at most `LIMIT`. `deadline` in seconds; after a Timeout the connection is of no use."""
        self._send(bytes(message), float(deadline))

    def recv(self, deadline=60):
        """The next message; None when the peer has closed. A Timeout loses nothing: call again."""
        got = self._recv(float(deadline))
        return None if got is None else bytes(got)

    def readable(self):
        """Whether `recv` would have something to read at once."""
        return bool(self._module["readable"]())

    def fileno(self):
        """The descriptor, for `select`. Bytes may be waiting within TLS: ask `readable` first."""
        return int(self._module["fileno"]())

    def close(self):
        """Ends the connection; a thread that waits in it wakes."""
        self._close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Listener:
    """A socket that peers connect to."""

    def __init__(self, module):
        self._module = module
        self._accept = module["accept"]
        self.url, self.port = str(module["url"]()), int(module["port"]())

    def accept_unknown(self, deadline=60):
        """The descriptor of a connection whose peer has proved nothing yet; None when none came. `authenticate` takes it, in another
        thread where a slow peer must not keep others waiting."""
        found = int(self._accept(float(deadline)))
        return None if found < 0 else found

    def authenticate(self, descriptor):
        """The connection, once its peer has proved itself: within 2 s, else it raises and the descriptor is closed."""
        return Connection(function("WireAuthenticate")(self._module, descriptor))

    def accept(self, deadline=60):
        """The next connection whose peer proved itself; None when none came in time. Raises Denied for one that did not."""
        found = self.accept_unknown(deadline)
        return None if found is None else self.authenticate(found)

    def fileno(self):
        """The descriptor, for `select`."""
        return int(self._module["fileno"]())

    def close(self):
        """Ends listening; `accept` raises SessionLost then."""
        self._module["close"]()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(url, deadline=60):
    """Connects to a listener: "unix:/path", "tls://host:port" ("?key=FILE" behind it names the key)."""
    return Connection(function("WireConnect")(str(url), float(deadline)))


def listen(url):
    """Listens: "unix:/path", "tls://host:port" (port 0: any free one). Beyond this machine it needs "?key=FILE"."""
    return Listener(function("WireListen")(str(url)))
