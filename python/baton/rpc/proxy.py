# SPDX-License-Identifier: Apache-2.0
"""A proxy for servers that no connection reaches, behind NAT for one: it splices bytes by ticket, and reads none of them.

    gate = baton.rpc.proxy.Proxy("0.0.0.0", 9191, key_file="gate.key")               # where both sides can connect to
    link = baton.rpc.proxy.Link("proxy://gate.example:9191", "127.0.0.1:9090", key_file="gate.key")   # beside the server
    remote = baton.rpc.connect(link.url, key_file="server.key")                      # a client

Clients may come by WebSocket too (`web.py`). TLS goes from client to server; the proxy sees it as bytes and knows no key of theirs. A server proves that it has the proxy's secret,
keeps one connection, and gets a ticket; a client shows the ticket. Before the bytes begin both sides speak in lines of at most 256 bytes:

    BATON-PROXY 1 JOIN              CHALLENGE nonce / PROOF mac nonce name / JOINED ticket mac / then OPEN once, PING, PONG
    BATON-PROXY 1 ACCEPT once       OK, then bytes
    BATON-PROXY 1 CONNECT ticket    OK, then bytes; or ERROR kind text

`name` is a secret that a server makes; its ticket is a hash of it, so that it has the same ticket when it comes back.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import secrets
import socket
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from ..error import UnsupportedError
from .child import Child, tell_ready, until_told
from .errors import Denied, ProtocolError, RPCError, SessionLost, Timeout

HELLO = b"BATON-PROXY 1 "
LINE = 256
HANDSHAKE_SECONDS = 2.0
PAIR_SECONDS = 10.0
PING_SECONDS = 5.0
GREETINGS, LINKS, SPLICES, SPLICES_OF_LINK = 256, 1024, 4096, 64
CHUNK = 64 << 10
TICKET = re.compile(rb"[0-9a-f]{32}")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def secret_of(key_file) -> bytes:
    """The shared secret of a proxy and its servers; without a key file nothing is, which is for one machine alone."""
    if not key_file:
        return b""
    try:
        content = Path(key_file).read_bytes().strip()
    except OSError as error:
        raise RPCError(f"the key file `{key_file}`: {error.strerror}") from None
    if len(content) < 32:
        raise RPCError(f"`{key_file}` is not a key file; `baton rpc-key new --name gate -o gate.key` writes one")
    return hashlib.sha256(b"baton proxy\0" + content).digest()


def _mac(secret: bytes, role: bytes, *nonces: bytes) -> bytes:
    return hmac.new(secret, b" ".join([role, *nonces]), "sha256").hexdigest().encode()


def _ticket(name: bytes) -> bytes:
    return hashlib.sha256(b"ticket " + name).hexdigest()[:32].encode()


def parse(url: str) -> tuple[str, int, str]:
    """(host, port, ticket) of "proxy://host:port/ticket"; the ticket may be missing."""
    found = re.fullmatch(r"proxy://(\[[0-9A-Fa-f:.%\w]+\]|[^/:\[\]@?\s]+):(\d{1,5})(?:/([0-9a-f]{32}))?/?", url)
    if found is None or not 0 < int(found[2]) <= 65535:
        raise RPCError(f"`{url}` is not an address of a proxy; write proxy://HOST:PORT, and behind a / the ticket of a server")
    return found[1].strip("[]"), int(found[2]), found[3] or ""


async def _within(awaitable, seconds: float):
    """`asyncio.wait_for`, which before Python 3.12 loses a cancellation that comes together with the result."""
    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        await asyncio.wait({task})
        if task.cancelled():
            raise asyncio.TimeoutError
    return task.result()


async def _line(reader, seconds: float) -> bytes:
    """One line without its end; ProtocolError where it is longer than a line, SessionLost at the end of the stream."""
    try:
        line = await _within(reader.readuntil(b"\n"), seconds)
    except asyncio.TimeoutError:
        raise Timeout(f"the peer of a proxy said nothing for {seconds:g} s") from None
    except asyncio.IncompleteReadError:
        raise SessionLost("the peer of a proxy ended the connection") from None
    except (asyncio.LimitOverrunError, ValueError):
        raise ProtocolError("a line to a proxy is too long") from None
    except RPCError:
        raise
    except OSError as error:
        raise SessionLost(f"the connection with a proxy: {error.strerror or error}") from None
    if len(line) > LINE:
        raise ProtocolError("a line to a proxy is too long")
    return line[:-1]


def _say(writer, *words: bytes) -> None:
    if not writer.is_closing():
        writer.write(b" ".join(words) + b"\n")


def _keep_alive(writer) -> None:
    sock = writer.get_extra_info("socket")
    with suppress(OSError, AttributeError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 4), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 3)):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


async def _pump(reader, writer) -> None:
    """Bytes one way until the end, which is passed on; the slower side sets the speed."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
    except OSError:
        writer.transport.abort()


async def splice(one, other) -> None:
    """Joins two (reader, writer) until both ways have ended, or one is broken."""
    try:
        await asyncio.gather(_pump(one[0], other[1]), _pump(other[0], one[1]))
    finally:
        for _, writer in (one, other):
            writer.close()


class _Joined:
    """A server that is behind the proxy."""

    def __init__(self, writer):
        self.writer, self.splices = writer, 0


class Gate:
    """The proxy's logic, in an event loop."""

    def __init__(self, secret: bytes, log=None):
        self._secret, self._log = secret, log or (lambda text: None)
        self._joined: dict[bytes, _Joined] = {}
        self._waiting: dict[bytes, tuple[asyncio.Future, _Joined]] = {}  # one-time ticket -> the client that waits
        self._greetings = self._splices = 0
        self._tasks: set = set()

    async def serve(self, sock, stop) -> None:
        server = await asyncio.start_server(self._greet, sock=sock, limit=CHUNK)
        async with server:
            await stop.wait()
            server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _greet(self, reader, writer) -> None:
        task = asyncio.current_task()
        self._tasks.add(task)
        _keep_alive(writer)
        try:
            if self._greetings >= GREETINGS:
                return
            self._greetings += 1
            try:
                hello = await _line(reader, HANDSHAKE_SECONDS)
            finally:
                self._greetings -= 1
            await self._serve_one(hello, reader, writer)
        except RPCError as error:
            self._refuse(writer, error)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    def _refuse(self, writer, error: RPCError) -> None:
        self._log(str(error))
        _say(writer, b"ERROR", type(error).__name__.encode(), str(error).encode()[:180])

    async def serve_web(self, ticket: bytes, stream) -> None:
        """A client that came by WebSocket."""
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            await self._connect(ticket, stream, stream)
        except RPCError as error:
            self._refuse(stream, error)
            with suppress(RPCError):
                await stream.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            if stream.error is not None:
                self._log(str(stream.error))

    async def _serve_one(self, hello: bytes, reader, writer) -> None:
        words = hello.removeprefix(HELLO).split(b" ") if hello.startswith(HELLO) else []
        if words == [b"JOIN"]:
            await self._join(reader, writer)
        elif len(words) == 2 and words[0] == b"CONNECT" and TICKET.fullmatch(words[1]):
            await self._connect(words[1], reader, writer)
        elif len(words) == 2 and words[0] == b"ACCEPT" and TICKET.fullmatch(words[1]):
            await self._accept(words[1], reader, writer)
        else:
            raise ProtocolError("this is a proxy of Baton's, version 1, and what came is none of its lines")

    async def _join(self, reader, writer) -> None:
        nonce = secrets.token_hex(16).encode()
        _say(writer, b"CHALLENGE", nonce)
        proof = (await _line(reader, HANDSHAKE_SECONDS)).split(b" ")
        if len(proof) != 4 or proof[0] != b"PROOF" or not all(TICKET.fullmatch(word) for word in proof[2:]):
            raise ProtocolError("a server that joins a proxy has to prove itself")
        _, mac, own, name = proof
        if not hmac.compare_digest(mac, _mac(self._secret, b"join", nonce, own, name)):
            raise Denied("the key of this proxy is another one")
        ticket = _ticket(name)
        if ticket not in self._joined and len(self._joined) >= LINKS:
            raise RPCError(f"{LINKS} servers are behind this proxy, and no more are taken")
        before, link = self._joined.get(ticket), _Joined(writer)
        self._joined[ticket] = link
        if before is not None:
            before.writer.close()  # half open
        _say(writer, b"JOINED", ticket, _mac(self._secret, b"proxy", own, nonce))
        try:
            await self._watch(reader, writer)
        finally:
            if self._joined.get(ticket) is link:
                del self._joined[ticket]

    async def _watch(self, reader, writer) -> None:
        """Until a server is silent or gone."""
        while True:
            _say(writer, b"PING")
            await writer.drain()
            if await _line(reader, 2 * PING_SECONDS) != b"PONG":
                raise ProtocolError("a server behind a proxy answers PING by PONG")
            with suppress(Timeout):
                await _line(reader, PING_SECONDS)  # sees the end at once
                raise ProtocolError("a server behind a proxy says PONG when it is asked, nothing else")

    async def _connect(self, ticket: bytes, reader, writer) -> None:
        link = self._joined.get(ticket)
        if link is None:
            raise SessionLost("no server with this ticket is behind this proxy now")
        if self._splices >= SPLICES or link.splices >= SPLICES_OF_LINK:
            raise RPCError(f"{link.splices} connections with this server, {self._splices} in all: no more are taken")
        once, found = secrets.token_hex(16).encode(), asyncio.get_running_loop().create_future()
        self._waiting[once] = (found, link)
        self._splices += 1
        link.splices += 1
        try:
            _say(link.writer, b"OPEN", once)
            try:
                other, done = await _within(found, PAIR_SECONDS)
            except asyncio.TimeoutError:
                raise Timeout(f"the server behind this proxy did not answer in {PAIR_SECONDS:g} s") from None
            _say(writer, b"OK")
            _say(other[1], b"OK")
            await writer.drain()
            try:
                await splice((reader, writer), other)
            finally:
                done.set()
        finally:
            self._waiting.pop(once, None)
            self._splices -= 1
            link.splices -= 1

    async def _accept(self, once: bytes, reader, writer) -> None:
        found, _ = self._waiting.pop(once, (None, None))
        if found is None or found.done():
            raise SessionLost("nothing waits for this connection any more")
        done = asyncio.Event()
        found.set_result(((reader, writer), done))
        await done.wait()


class Proxy(Child):
    """A proxy, in a separate process that ends with this one.

    host, port, port_end: the address, and the first port from `port` on that is free. key_file: servers prove that they have this secret;
    beyond this machine it is needed. web_port, web_cert: clients may come by WebSocket too, at this port (0: any), with this certificate
    chain and its private key (PEM, one file); `web_url` is the address, to which a client adds the ticket. The arguments after it are those of Relay's time; a tracker is told of a proxy by its own `proxies`.
    """

    def __init__(self, host="127.0.0.1", port=9191, port_end=9199, key_file=None, silent=True, web_port=None, web_cert=None, **unused):
        later = {"timeout_client", "timeout_server", "tracker_addr", "index_page", "resource_files", "resource_base"}
        unknown = set(unused) - later
        if unknown:
            raise TypeError(f"Proxy has no argument {', '.join(sorted(unknown))}")
        arguments = ["--host", host, "--port", str(port), "--port-end", str(port_end)]
        if key_file:
            arguments += ["--key-file", os.fspath(key_file)]
        if web_port is not None:
            arguments += ["--web-port", str(web_port)]
        if web_cert:
            arguments += ["--web-cert", os.fspath(web_cert)]
        super().__init__("rpc-proxy", arguments, silent)
        self.url, _, self.web_url = self.url.partition(" ")
        self.host, self.port = host, parse(self.url)[1]


def websocket_proxy_server(url, key=""):
    """Of Relay's time: a server that a proxy reaches by WebSocket. Here it is `rpc.Server(host, port, is_proxy=True, key_file=...)`, which
    reaches the proxy by TCP; clients may come by WebSocket."""
    raise UnsupportedError(
        f"websocket_proxy_server: servers reach a proxy by TCP; write rpc.Server(HOST, PORT, is_proxy=True, key={key!r}, key_file=...) for `{url}`"
    )


def listen(host: str, port: int, port_end: int):
    """A socket at the first port from `port` to `port_end` that is free."""
    last = None
    for one in range(port, max(port + 1, port_end)) if port else [0]:
        try:
            return socket.create_server((host, one), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
        except OSError as error:
            if error.errno != 98:
                raise RPCError(f"`{host}`: {error.strerror or error}") from None
            last = error
    raise RPCError(f"no port from {port} to {max(port + 1, port_end) - 1} is free") from last


def _listen_web(host: str, port: int | None, cert_file: str | None):
    """A socket for WebSockets and its TLS; None where no port is asked for."""
    if (port is None) != (not cert_file):
        raise RPCError("--web-port N and --web-cert FILE go together: clients know a proxy by its certificate")
    if port is None:
        return None
    from . import web

    context = web.server_context(os.fspath(cert_file))
    web.library("asyncio.server")
    return listen(host, port, port + 1), context


def serve(host, port, port_end, key_file=None, ready_fd=-1, lifeline_fd=-1, ready=None, log=None, web_port=None, web_cert=None) -> None:
    """Runs a proxy in this process until SIGTERM or Ctrl-C, or until the other end of `lifeline_fd` is closed."""
    if not key_file and host not in LOOPBACK:
        raise Denied(f"a proxy at {host} needs --key-file, so that not everyone puts servers behind it; `baton rpc-key new` writes one")
    secret = secret_of(key_file)
    found = _listen_web(host, web_port, web_cert)
    with ExitStack() as stack:
        sock = stack.enter_context(listen(host, port, port_end))
        name = f"[{host}]" if ":" in host else host
        urls = [f"proxy://{name}:{sock.getsockname()[1]}"]
        if found is not None:
            stack.enter_context(found[0])
            urls.append(f"wss://{name}:{found[0].getsockname()[1]}")

        async def run():
            loop, stop = asyncio.get_running_loop(), asyncio.Event()
            until_told(lambda: loop.call_soon_threadsafe(stop.set), lifeline_fd)
            if ready is not None:
                ready(" and ".join(urls))
            tell_ready(ready_fd, " ".join(urls))
            gate = Gate(secret, log)
            serving = [gate.serve(sock, stop)]
            if found is not None:
                from . import web

                serving.append(web.serve(*found, gate.serve_web, stop))
            await asyncio.gather(*serving)

        asyncio.run(run())


class _Loop:
    """An event loop in a thread, for the ends of a proxy."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="baton proxy", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(asyncio.sleep(0.01))  # closes what they left
        self._loop.close()

    def do(self, coroutine, seconds: float):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    def close(self) -> None:
        if not self._loop.is_closed():
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(5)


async def _answered(reader) -> None:
    """Waits until a proxy has said OK; raises what it says instead."""
    answer = await _line(reader, PAIR_SECONDS + HANDSHAKE_SECONDS)
    if answer != b"OK":
        raise _error(answer)


async def _dial_web(url: str):
    from . import web

    stream = await web.dial(url)
    try:
        await _answered(stream)
    except BaseException:
        stream.close()
        raise
    return stream, stream


async def _dial(url: str, *words: bytes):
    """A connection with a proxy that has said OK; raises what the proxy says instead."""
    host, port, _ = parse(url)
    try:
        reader, writer = await _within(asyncio.open_connection(host, port, limit=CHUNK), HANDSHAKE_SECONDS)
    except (OSError, asyncio.TimeoutError) as error:
        raise SessionLost(f"connecting to `{url}`: {getattr(error, 'strerror', None) or error or 'no answer'}") from None
    _keep_alive(writer)
    try:
        _say(writer, HELLO + words[0], *words[1:])
        if words[0] != b"JOIN":
            await _answered(reader)
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _error(line: bytes) -> RPCError:
    from .tracker.errors import of_kind

    head, _, rest = line.decode(errors="replace").partition(" ")
    if head != "ERROR":
        return ProtocolError("what answers is not a proxy of Baton's")
    kind, _, text = rest.partition(" ")
    return of_kind(kind, text)


class Link:
    """Puts a server of this machine (or beside it) behind a proxy until `close`. `url` is what clients connect to."""

    def __init__(self, proxy: str, server: str, key_file=None, timeout: float = 10.0):
        host, _, port = server.removeprefix("tls://").rpartition(":")
        if not host or not port.isdecimal():
            raise RPCError(f"`{server}` is not an address of a server; write HOST:PORT")
        parse(proxy)
        self._proxy, self._server, self._secret = proxy.rstrip("/"), (host.strip("[]"), int(port)), secret_of(key_file)
        self._name = secrets.token_hex(16).encode()
        self.ticket = _ticket(self._name).decode()
        self.url = f"{self._proxy}/{self.ticket}"
        self._ended = threading.Event()
        self._opened: set = set()
        self._loop = _Loop()
        try:
            link = self._loop.do(self._join(), timeout)
            self._loop.do(self._start(link), timeout)
        except BaseException:
            self._loop.close()
            raise

    async def _start(self, link) -> None:
        self._task = asyncio.ensure_future(self._run(link))

    async def _join(self):
        reader, writer = await _dial(self._proxy, b"JOIN")
        try:
            challenge = (await _line(reader, HANDSHAKE_SECONDS)).split(b" ")
            if len(challenge) != 2 or challenge[0] != b"CHALLENGE" or not TICKET.fullmatch(challenge[1]):
                raise _error(b" ".join(challenge))
            own = secrets.token_hex(16).encode()
            _say(writer, b"PROOF", _mac(self._secret, b"join", challenge[1], own, self._name), own, self._name)
            joined = await _line(reader, HANDSHAKE_SECONDS)
            if not hmac.compare_digest(joined, b" ".join([b"JOINED", self.ticket.encode(), _mac(self._secret, b"proxy", own, challenge[1])])):
                raise _error(joined) if joined.startswith(b"ERROR") else Denied("this proxy does not have the key")
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _run(self, link) -> None:
        pause = 0.1
        while True:
            try:
                if link is None:
                    link = await self._join()
                pause = 0.1
                await self._follow(*link)
            except (RPCError, OSError):
                pass
            finally:
                if link is not None:
                    link[1].close()
            link = None
            await asyncio.sleep(pause)
            pause = min(2 * pause, 3.0)

    async def _follow(self, reader, writer) -> None:
        while True:
            words = (await _line(reader, 3 * PING_SECONDS)).split(b" ")
            if words == [b"PING"]:
                _say(writer, b"PONG")
                await writer.drain()
            elif len(words) == 2 and words[0] == b"OPEN" and TICKET.fullmatch(words[1]):
                task = asyncio.ensure_future(self._open(words[1]))
                self._opened.add(task)  # asyncio itself keeps no task alive
                task.add_done_callback(self._over)
            else:
                raise ProtocolError("a proxy says OPEN and PING, nothing else")

    def _over(self, task) -> None:
        self._opened.discard(task)
        if not task.cancelled():
            task.exception()  # a server that is not there: the client sees the end of its connection

    async def _open(self, once: bytes) -> None:
        near = await _within(asyncio.open_connection(*self._server, limit=CHUNK), HANDSHAKE_SECONDS)
        try:
            far = await _dial(self._proxy, b"ACCEPT", once)
        except BaseException:
            near[1].close()
            raise
        await splice(near, far)

    def wait(self) -> None:
        """Until `close`, or Ctrl-C."""
        while not self._ended.wait(1.0):
            pass

    def close(self) -> None:
        self._ended.set()
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Forward:
    """A port of this machine that leads through a proxy to a server: `port`, on 127.0.0.1."""

    def __init__(self, url: str):
        self._url, self._ticket, self._stream = url, None, None
        if url.startswith("wss://"):
            from . import web

            web.library("asyncio.client")
            web.client_context(web.parse(url)[1].get("ca"))  # an error of the address is not one of the connection
        else:
            self._ticket = parse(url)[2].encode()
            if not self._ticket:
                raise RPCError(f"`{url}` lacks the ticket of a server")
        self._error: Exception | None = None
        self._carried: set = set()
        self._loop = _Loop()
        self.port = self._loop.do(self._listen(), 10)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0, limit=CHUNK)
        return self._server.sockets[0].getsockname()[1]

    @property
    def error(self) -> Exception | None:
        """The fault of the last connection that failed."""
        return self._error or (self._stream and self._stream.error)

    async def _carry(self, reader, writer) -> None:
        task = asyncio.current_task()
        self._carried.add(task)  # asyncio itself keeps no task alive
        try:
            if self._ticket is None:
                far = await _dial_web(self._url)
                self._stream = far[0]
            else:
                far = await _dial(self._url, b"CONNECT", self._ticket)
            await splice((reader, writer), far)
        except RPCError as error:
            self._error = error
        except asyncio.CancelledError:
            pass  # `close`
        finally:
            self._carried.discard(task)
            writer.close()

    def close(self) -> None:
        self._loop.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(url: str, key: str = "", session_timeout: float = 0, **options):
    """A session with a server behind a proxy: "proxy://host:port/ticket", "wss://host:port/ticket?ca=FILE". `options` are those of
    `baton.rpc.connect`; the server's key has to be said (`key_file`, or BATON_RPC_KEY), for the proxy knows none."""
    from .session import connect as connect_session

    way = Forward(url)
    if url.startswith("wss://"):
        from . import web

        options["key_file"] = options.get("key_file") or web.parse(url)[1].get("key")
    try:
        session = connect_session("127.0.0.1", way.port, key, session_timeout, **options)
    except RPCError as error:
        way.close()
        raise (way.error or error) from error
    except BaseException:
        way.close()
        raise
    close = session.close

    def both():
        try:
            close()
        finally:
            way.close()

    session.close, session.way = both, way
    return session


__all__ = ["Forward", "Gate", "Link", "Proxy", "connect", "parse", "serve"]
