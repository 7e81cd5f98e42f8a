# SPDX-License-Identifier: Apache-2.0
"""Servers: a process that accepts connections, and one for each session."""

import contextlib
import importlib
import os
import signal
import sys

from .._ffi.hook import Hook
from ..error import UnsupportedError
from ..error import ValueError as BatonValueError
from .library import function, path
from .lifeline import close_lifeline, open_lifeline

_register = Hook("rpc.register_server")  # (address of a tracker, server, address that it tells clients)
_door = Hook("rpc.door")  # () -> the file that says which lease of a tracker is current
_join = Hook("rpc.join_proxy")  # (URL of a proxy, address of the server, key of the proxy)


WARM = 2  # processes that wait for a client; a fork of Python's takes time


class Server:
    """A server for the functions that are registered in this process when it starts, and for modules that clients upload.

        server = baton.rpc.Server()                 # 127.0.0.1, a free port from 9090 on
        remote = baton.rpc.connect("127.0.0.1", server.port)

    It runs in a separate process, each session in another: a crash, or a client that goes away, disturbs no other. On loopback
    programs of the same user alone may connect, and each registered function is theirs (`policy="trusted"`). Beyond this machine
    it needs `key_file`, and clients get what they upload and the functions in `allow`.

    host, port, port_end: the address, and the first port from `port` on that is free. key: the kind of device that it tells a tracker.
    url: in place of host and port, as "unix:/path". allow: names of registered functions; `*` at the end stands for any that begin so.
    policy: "trusted" or "session", for all clients. max_sessions: at once. silent: no line a session on standard error.
    key_file may be a folder of keys, whose file `revoked` has the ids of those that are good no more; both are read again for each client.
    load: which modules of clients are loaded: "any", "signed" (by a key of the PEM file `signers`, with `baton sign`), "none".
    tracker_addr: (host, port) or URL of a tracker to register with; sessions need a current lease of it then. is_proxy: `host` and `port`
    are those of a proxy, behind which the server is; `key_file` is what clients prove, `proxy_key_file` (default: the same) what the
    proxy asks for. no_fork, use_popen, reuse_addr, timeout, custom_addr: of Relay's time; they change nothing.
    """

    def __init__(
        self,
        host="127.0.0.1",
        port=9090,
        port_end=9199,
        is_proxy=False,
        tracker_addr=None,
        key="",
        load_library=None,
        custom_addr=None,
        silent=True,
        no_fork=False,
        server_init_callback=None,
        reuse_addr=True,
        timeout=None,
        use_popen=None,
        *,
        url=None,
        key_file=None,
        policy=None,
        allow=(),
        max_sessions=256,
        proxy_key_file=None,
        load="any",
        signers=None,
    ):
        if is_proxy and not key_file:
            raise BatonValueError("a server behind a proxy needs `key_file`: its clients are on other machines")
        if load_library:
            from .. import _core

            for name in load_library.split(":") if isinstance(load_library, str) else load_library:
                _core.load_library(os.fsdecode(name))
        self.key, self._process, self.ticket, self._link = key, None, "", None
        self.door = _door() if tracker_addr is not None else None
        self._module = self._listen("127.0.0.1", 0, 0, None, key_file) if is_proxy else self._listen(host, port, port_end, url, key_file)
        self.url, self.port, self.host = str(self._module["url"]()), int(self._module["port"]()), host
        options = {"allow": list(allow), "max_sessions": int(max_sessions), "quiet": bool(silent), "policy": policy or ""}
        if load not in ("any", "signed", "none"):
            raise BatonValueError(f'load is "any", "signed" or "none", not `{load}`')
        if load == "signed" and signers is None:
            raise BatonValueError("modules are to be signed, but by which keys? `signers` is a file of public keys")
        options["load"], options["warm"] = load, WARM
        if signers is not None:
            options["signers"] = os.fsdecode(signers)
        if self.door is not None:
            options["door"] = self.door.descriptor
        self._start(options, server_init_callback)
        if is_proxy:
            name = f"[{host}]" if ":" in host else host
            self._link = _join(f"proxy://{name}:{port}", f"127.0.0.1:{self.port}", proxy_key_file or key_file)
            self.url, self.ticket = self._link.url, self._link.ticket
        if tracker_addr is not None:
            self._tracker = _register(tracker_addr, self, custom_addr)

    @staticmethod
    def _listen(host, port, port_end, url, key_file):
        if url is not None:
            return function("ServerListen")(str(url))
        name = f"[{host}]" if ":" in host else host
        option = f"?key={os.fsdecode(key_file)}" if key_file else ""
        ports = range(port, max(port + 1, port_end)) if port else [0]
        for one in ports:
            try:
                return function("ServerListen")(f"tls://{name}:{one}{option}")
            except OSError as error:
                if "in use" not in str(error) or one == ports[-1]:
                    raise
        raise BatonValueError(f"no port from {port} to {port_end}")

    def _start(self, options, prepare):
        alive, self._lifeline = open_lifeline()  # its end is what ends the server
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            os.close(alive)
            self._process, self._owner = pid, os.getpid()
            self._module["abandon"]()
            return
        code = 1
        try:
            os.setsid()
            importlib.import_module(".testing", __package__)
            if prepare:
                prepare()
            self._module["serve"]({**options, "lifeline": alive, "fork": _fork})
            code = 0
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run on in this process
            os.write(2, f"baton-rpc: the server failed: {error}\n".encode())
        finally:
            os._exit(code)

    @property
    def pid(self):
        """Number of the server's process, or None when it was ended."""
        return self._process

    def served(self):
        """How many sessions there were."""
        return int(self._module["begun"]())

    def active(self):
        """How many sessions there are."""
        return int(self._module["active"]())

    def end_sessions(self):
        """Has the server end all sessions; it goes on. Does not wait for them."""
        self._module["evict"]()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGCHLD)  # it wakes

    def terminate(self):
        """Ends the server and its sessions."""
        if getattr(self, "_process", None) is None or self._owner != os.getpid():
            return
        for one in (self._link, getattr(self, "_tracker", None)):
            if one is not None:
                one.close()
        close_lifeline(self._lifeline)
        try:
            os.waitpid(self._process, 0)
        except ChildProcessError:
            pass
        self._process = None
        if self.door is not None:
            self.door.close()
        self._forget()

    def _forget(self):
        # The socket's file and the loopback key outlive the process that made them only here.
        remove = self.url.removeprefix("unix:") if self.url.startswith("unix:") else None
        if remove is None:
            found = os.path.join(str(function("RuntimeDir")()), f"{self.port}.key")
            remove = found if os.path.exists(found) else None
        if remove:
            try:
                os.remove(remove)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.terminate()

    def __del__(self):
        try:
            self.terminate()
        except Exception:  # noqa: BLE001 - the interpreter may be on its way out
            pass


def _fork():
    signal.set_wakeup_fd(-1)
    return os.fork()


def program():
    """Path of the server's program, which needs no Python. Raises UnsupportedError where this build does not have it."""
    found = path("baton-rpc-server")
    if not os.path.exists(found):
        raise UnsupportedError(f"{found} is not there: portable wheels are without it; `python -m baton.exec.rpc_server` serves, too")
    return found
