# SPDX-License-Identifier: Apache-2.0
"""Sessions, as a client sees them."""

import os
import shutil
import tempfile

from .._core import Device
from .._ffi import get_global_func
from .._ffi.hook import Hook
from ..error import RPCError
from ..error import ValueError as BatonValueError
from ..runtime import module
from .library import function
from .server import program

_TYPES = {"cpu": 1, "cuda": 2, "cl": 4, "vulkan": 7, "metal": 8, "rocm": 10, "ext_dev": 12, "hexagon": 16, "webgpu": 15}


_linked = Hook("rpc.linked")  # (bytes of a library, an object file or an archive of some) -> those of a library


class _Devices:
    """Devices of a session by name: `remote.cpu()`, `remote.cuda(1)`, `remote.device("opencl")`."""

    def device(self, dev_type, dev_id=0):
        """The device of a kind, by name or DLPack number."""
        made = Device(dev_type, dev_id)
        return self._device(made.device_type, made.device_id)


def _named(name, number):
    def make(self, dev_id=0):
        return self._device(number, dev_id)

    make.__name__, make.__doc__ = name, f"The {name} device of the remote with a number."
    return make


for _name, _number in _TYPES.items():
    setattr(_Devices, _name, _named(_name, _number))
_Devices.opencl, _Devices.mtl, _Devices.gpu = _Devices.cl, _Devices.metal, _Devices.cuda


class RemoteCall:
    """A call that is under way on the remote. One that is dropped without `result` is given up."""

    def __init__(self, finish):
        finish.release_gil = True
        self._finish, self._value, self._error = finish, None, None

    def result(self):
        """The result, waited for; raises what the function raised there."""
        finish, self._finish = self._finish, None
        if finish is not None:
            try:
                self._value = finish()
            except BaseException as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._value


class RPCSession(_Devices):
    """A session with a server. Its objects (functions, modules, arrays on its devices) keep it open; `close`, or the end of the
    `with`, ends it at once.

        remote = baton.rpc.connect("127.0.0.1", 9090)
        remote.upload("model.so")
        model = remote.load_module("model.so")["default"](remote.cpu())

    `info`: what the server told of itself.
    """

    def __init__(self, session, process=None):
        self._module, self._process = session, process
        self._call = {
            name: session[name] for name in ("get_function", "load_module", "device", "upload", "upload_file", "download", "remove", "system_lib", "call_later")
        }
        self.info = {str(k): v if isinstance(v, int) else str(v) for k, v in session["info"]().items()}

    def _device(self, dev_type, dev_id):
        return self._call["device"](dev_type, dev_id)

    def get_function(self, name):
        """The remote function of a name, called like a local one. Raises AttributeError if there is none, Denied if the server does
        not give it."""
        found = self._call["get_function"](name)
        if found is None:
            raise AttributeError(f"the remote has no function `{name}`")
        found.release_gil = True
        return found

    def call_async(self, function, *args):
        """Sends a call of a remote function, or of the registered function of a name, and does not wait for it: gives a `RemoteCall`,
        whose `result()` does. Calls run there one after the other; many may be under way."""
        if isinstance(function, str):
            function = self.get_function(function)
        return RemoteCall(self._call["call_later"](function, *args))

    def upload(self, data, target=None):
        """Puts a file (or bytes, with `target`) on the remote, under `target` or its own name. Content that is there is not sent. In an archive
        that `export_library` wrote (`.tar`) the library that it is linked to is sent: a remote has no compiler."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            if not target:
                raise BatonValueError("upload of bytes needs a `target`, the name of the file on the remote")
            self._call["upload"](target, bytes(data))
        else:
            source = os.fsdecode(data)
            os.stat(source)  # says by itself what is wrong
            library = module.linked_archive(source) if source.endswith(".tar") else None
            if library is not None:
                self._call["upload"](target or os.path.basename(source), library)
                return
            self._call["upload_file"](target or os.path.basename(source), source)

    def download(self, path):
        """The bytes of a file on the remote."""
        return bytearray(self._call["download"](path))

    def download_linked_module(self, path):
        """The bytes of a library that was uploaded: of a library itself, of an object file or an archive (`contrib.tar`) of some what they are
        linked to, here, by the compiler that `contrib.cc` finds."""
        return bytearray(_linked(bytes(self.download(path))))

    def remove(self, path):
        """Removes a file of the session."""
        self._call["remove"](path)

    def load_module(self, path):
        """Loads a module that was uploaded; its functions run on the remote."""
        return self._call["load_module"](os.path.basename(os.fsdecode(path)))

    def system_lib(self, symbol_prefix=""):
        """The module of the functions that are part of the server's program."""
        return self._call["system_lib"](symbol_prefix)

    def set_call_timeout(self, seconds):
        """How long a call may take before it raises Timeout."""
        self._module["set_call_timeout"](float(seconds))

    @property
    def lost(self):
        """Whether the session is over."""
        return bool(self._module["lost"]())

    @property
    def peer(self):
        """The server's proof of its identity."""
        return str(self._module["peer"]())

    def close(self):
        """Ends the session: what it had on the remote is gone, and each later use raises SessionLost."""
        self._module["close"]()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(
    url,
    port=None,
    key="",
    session_timeout=0,
    session_constructor_args=None,
    enable_logging=False,
    *,
    key_file=None,
    call_timeout=60,
    connect_timeout=5,
    resume_timeout=30,
):
    """Connects to a server; gives an `RPCSession`.

    url: a host with `port`, or a URL: "tls://host:port", "unix:/path", "ssh://user@host", "exec:COMMAND", and of a server behind a proxy
        "proxy://host:port/ticket", or by WebSocket "wss://host:port/ticket?ca=FILE".
    key: the kind of device that is wanted, as trackers know it; no secret.
    session_constructor_args: ["rpc.Connect", host, port, key]: a session with another server, opened by this one, which must trust its
        client. It is not resumed.
    session_timeout: seconds after which the server ends the session; 0: never.
    key_file: the file of the secret key (`baton rpc-key new`). Without it BATON_RPC_KEY, and for a server of this user on this
        machine the key that it wrote.
    call_timeout, connect_timeout: seconds until Timeout is raised.
    resume_timeout: seconds, at most 30, in which a session over TLS goes on by itself when its connection was lost: nothing that was
        called is called twice. 0: such a loss is a SessionLost at once.
    """
    if call_timeout <= 0 or connect_timeout <= 0:
        raise BatonValueError("a deadline is more than 0 s")
    if port is not None:
        host = str(url)
        url = f"tls://{f'[{host}]' if ':' in host else host}:{int(port)}"
    if key_file is not None:
        url = f"{url}?key={os.fsdecode(key_file)}"
    options = {"key": str(key), "session_timeout": float(session_timeout), "call_timeout": float(call_timeout), "linger": float(resume_timeout)}
    if session_constructor_args:
        if str(url).startswith(("exec:", "ssh:", "serial:")):
            raise BatonValueError(f"session_constructor_args: `{url}` has one session and opens no others; connect to the other server itself")
        options.update(_by_way(*session_constructor_args))
    return RPCSession(function("Connect")(str(url), options, float(connect_timeout), float(call_timeout)))


def _by_way(constructor, host=None, port=None, key="", *_):
    """Options of a session that the server opens with another one, as programs of Relay's time ask for it."""
    if constructor == "rpc.LocalSession":
        return {}
    if constructor != "rpc.Connect":
        raise RPCError(
            f"session_constructor_args: there are rpc.Connect (host, port, key) and rpc.LocalSession, not {constructor}; upload a compiled model "
            "and load it: each session of a server is its own process"
        )
    return {"through": str(host) if port is None else f"tls://{f'[{host}]' if ':' in str(host) else host}:{int(port)}", "key": str(key), "linger": 0.0}


class LocalSession(_Devices):
    """A session within this process, with the methods of a remote one: for trying a program without a server."""

    def __init__(self):
        self._folder = tempfile.mkdtemp(prefix="baton-local-")
        self.info = {"policy": "trusted"}

    def _device(self, dev_type, dev_id):
        return Device(dev_type, dev_id)

    def _path(self, name):
        name = os.fsdecode(name)
        if not name or name.startswith(".") or "/" in name:
            raise BatonValueError(f"`{name}` is not a name of a file")
        return os.path.join(self._folder, name)

    def get_function(self, name):
        """The registered function of a name. Raises AttributeError if there is none."""
        found = get_global_func(name, allow_missing=True)
        if found is None:
            raise AttributeError(f"there is no function `{name}`")
        return found

    def upload(self, data, target=None):
        """Copies a file (or bytes, with `target`) to the session's folder."""
        if isinstance(data, (bytes, bytearray, memoryview)):
            if not target:
                raise BatonValueError("upload of bytes needs a `target`, the name of the file")
            with open(self._path(target), "wb") as out:
                out.write(data)
        else:
            shutil.copyfile(data, self._path(target or os.path.basename(os.fsdecode(data))))

    def download(self, path):
        """The bytes of a file of the session."""
        with open(self._path(path), "rb") as file:
            return bytearray(file.read())

    download_linked_module = RPCSession.download_linked_module

    def remove(self, path):
        """Removes a file of the session."""
        os.remove(self._path(path))

    def load_module(self, path):
        """Loads a module that was uploaded."""
        return module.load_module(self._path(os.path.basename(os.fsdecode(path))))

    def system_lib(self, symbol_prefix=""):
        """The module of the functions that are linked into the program."""
        return module.system_lib(symbol_prefix)

    def close(self):
        """Removes the session's files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()


class PopenSession(RPCSession):
    """A session with its own process, which ends with it: a crash of compiled code is a SessionLost here.

    binary: a compiled model (`export_library`), which `system_lib` gives then; or a program that speaks the protocol on its standard
    input and output; or the bytes of either.
    """

    def __init__(self, binary, *, call_timeout=60):
        import shlex

        self._folder = None
        if isinstance(binary, (bytes, bytearray)):
            self._folder = tempfile.mkdtemp(prefix="baton-popen-")
            name = os.path.join(self._folder, "program")
            with open(name, "wb") as out:
                out.write(binary)
            os.chmod(name, 0o700)
            binary = name
        file = os.path.abspath(os.fsdecode(binary))
        command = shlex.quote(file)
        if _is_model(file):
            command = f"{shlex.quote(program())} --stdio --policy session --module {command}"
        try:
            made = function("Connect")(f"exec:exec {command}", {"call_timeout": float(call_timeout)}, 5.0, float(call_timeout))
            super().__init__(made)
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)


def _is_model(file):
    with open(file, "rb") as data:
        if data.read(4) != b"\x7fELF":
            return False
        data.seek(16)
        return data.read(2) == b"\x03\x00" and _ends_as_model(data)


def _ends_as_model(data):
    data.seek(-8, os.SEEK_END)
    return data.read(8) == b"BATONART"


def with_minrpc(compile_func, server="posix_popen_server", runtime="libtvm"):
    """A `fcompile` for `export_library`, as programs name it for a `PopenSession`.

    A compiled model needs no server linked into it: the session starts `baton-rpc-server` for it, so this is `compile_func` itself,
    which may be None. With runtime="micro" the file is its own program, the model with the server of microcontrollers, linked by
    `compile_func` (`baton.contrib.cc.create_executable`).
    """
    if runtime != "micro":
        return compile_func
    from .micro import Linked

    return Linked(compile_func)
