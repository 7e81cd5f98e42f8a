# SPDX-License-Identifier: Apache-2.0
"""Sessions over WebSocket (RFC 6455) and TLS 1.3, for networks that let nothing but HTTPS out: "wss://gate.example:9443/TICKET?ca=FILE".

A proxy ends the WebSocket and the TLS around it, by its certificate, and splices what is in the messages as it does for other clients.
That is the TLS of the session, whose key the proxy does not know. Messages are binary. The first one from the proxy is its answer, `OK` or
`ERROR kind text`, as a line.

Framing is that of the package `websockets`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import ssl
from urllib.parse import parse_qsl

from .errors import Denied, ProtocolError, RPCError, SessionLost, Timeout

MESSAGE = 1 << 20  # bytes of a message that are taken; those sent here have at most 64 KiB
OPEN_SECONDS = 5.0
SERVER_OPEN_SECONDS = 2.0
PING_SECONDS = 4.0  # a peer that says nothing is given up after twice as many
CLOSE_SECONDS = 0.4  # that a peer has to end; one that broke the rules and does not is left at the next ping
FAULTS = (1002, 1003, 1007, 1009)  # codes of closing: frames, kinds, text or sizes that are against the rules
URL = re.compile(r"(wss://(?:\[[0-9A-Fa-f:.]+\]|[^/:\[\]@?#\s]+)(?::(\d{1,5}))?(?:/[\w.~-]+)*/([0-9a-f]{32}))(?:\?(.*))?")
PATH = re.compile(r"/([0-9a-f]{32})")

_silent = logging.getLogger("baton.rpc.web")
_silent.disabled = True  # what goes wrong is raised


def library(part: str):
    """A module of `websockets`, which nothing else needs."""
    try:
        return importlib.import_module(f"websockets.{part}")
    except ImportError:
        raise RPCError("sessions over WebSocket need the package websockets (15 or later), which is not there; mend with: pip install websockets") from None


def parse(url: str) -> tuple[str, dict[str, str]]:
    """The address without its options, and these: `ca`, `key`."""
    found = URL.fullmatch(url)
    if found is None or (found[2] and not 0 < int(found[2]) <= 65535):
        raise RPCError(f"`{url}` is not an address of a WebSocket; write wss://HOST:PORT/TICKET, with the port and the ticket that the proxy printed")
    options = dict(parse_qsl(found[4] or "", keep_blank_values=True))
    for name in options:
        if name not in ("ca", "key"):
            raise RPCError(f"`{url}` has an option `{name}`; a WebSocket has ca=FILE, certificates of authorities, and key=FILE, the server's key")
    return found[1], options


def server_context(cert_file: str) -> ssl.SSLContext:
    """TLS 1.3 with a certificate chain and its private key (PEM, one file)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0
    try:
        context.load_cert_chain(cert_file)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror if type(error) is not ssl.SSLError else error.reason
        raise RPCError(f"`{cert_file}`: {why}; the file has the certificate chain and the private key (PEM)") from None
    return context


def client_context(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.3 to a proxy whose certificate one of the authorities signed: those of the file, else those of the system."""
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise RPCError(f"`{ca_file}`: {error.strerror or error}; the file has the certificates of authorities (PEM)") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


def _typed(error) -> RPCError:
    """The error for the end of a WebSocket; `error` is a ConnectionClosed."""
    sent, received = error.sent, error.rcvd
    if sent is not None and not error.rcvd_then_sent:
        if sent.code == 1011:
            return Timeout(f"the other end of a WebSocket said nothing for {2 * PING_SECONDS:g} s")
        if sent.code in FAULTS:
            return ProtocolError(f"what came is not a WebSocket message of a session: {sent.reason or sent.code}")
    if received is not None and received.code in FAULTS:
        return ProtocolError(f"the other end of a WebSocket refused what it got: {received.reason or received.code}")
    return SessionLost("a WebSocket was cut")


class Stream:
    """A WebSocket as reader and writer of `proxy.splice`. It knows no half: the end of one direction ends both."""

    def __init__(self, socket):
        exceptions = library("exceptions")
        self._closed, self._closed_well = exceptions.ConnectionClosed, exceptions.ConnectionClosedOK
        self._socket, self._have, self._waiting, self._closing = socket, b"", [], None
        self.transport, self.error = socket.transport, None

    async def read(self, size: int) -> bytes:
        while not self._have:
            try:
                message = await self._socket.recv()
            except self._closed_well:
                return b""
            except self._closed as error:
                self.error = self.error or _typed(error)
                raise self.error from None
            if isinstance(message, str):
                self.error = ProtocolError("a session over WebSocket has binary messages, and this is text")
                self.close(1003, "binary messages only")
                raise self.error
            self._have = message
        data, self._have = self._have[:size], self._have[size:]
        return data

    async def readuntil(self, end: bytes) -> bytes:
        """A message that is a line."""
        line = await self.read(MESSAGE)
        if not line:
            raise asyncio.IncompleteReadError(line, None)
        if line.find(end) != len(line) - 1:
            raise ProtocolError("what answers is not a proxy of Baton's")
        return line

    def write(self, data: bytes) -> None:
        self._waiting.append(data)

    async def drain(self) -> None:
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            try:
                await self._socket.send(data)
            except self._closed as error:
                raise _typed(error) from None

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.close()

    def is_closing(self) -> bool:
        return self._closing is not None

    def close(self, code: int = 1000, reason: str = "") -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._socket.close(code, reason))


def _options(open_seconds: float) -> dict:
    return {
        "compression": None, "max_size": MESSAGE, "open_timeout": open_seconds, "ping_interval": PING_SECONDS, "ping_timeout": PING_SECONDS,
        "close_timeout": CLOSE_SECONDS, "logger": _silent,
    }  # fmt: skip


async def serve(sock, context: ssl.SSLContext, client, stop) -> None:
    """Awaits `client(ticket, stream)` for each WebSocket that is opened with a ticket, until `stop`."""

    def check(socket, request):
        if PATH.fullmatch(request.path) is None:
            return socket.respond(404, "this is a proxy of Baton's; the path of a session is a / and the ticket of its server\n")
        return None

    async def handle(socket):
        await client(PATH.fullmatch(socket.request.path)[1].encode(), Stream(socket))

    serving = library("asyncio.server").serve(
        handle, sock=sock, ssl=context, process_request=check, server_header=None, **_options(SERVER_OPEN_SECONDS)
    )  # fmt: skip
    async with serving:
        await stop.wait()


async def dial(url: str) -> Stream:
    """A WebSocket with a proxy, which has not answered yet."""
    address, options = parse(url)
    connect, context = library("asyncio.client").connect, client_context(options.get("ca"))
    exceptions = library("exceptions")
    try:
        socket = await connect(address, ssl=context, user_agent_header=None, **_options(OPEN_SECONDS))
    except ssl.SSLCertVerificationError as error:
        raise Denied(f"connecting to `{address}`: the certificate of the proxy: {error.verify_message}; ?ca=FILE names its authority") from None
    except ssl.SSLError as error:
        raise ProtocolError(f"connecting to `{address}`: TLS 1.3: {error.reason or error}") from None
    except (TimeoutError, asyncio.TimeoutError):
        raise Timeout(f"connecting to `{address}`: no answer in {OPEN_SECONDS:g} s") from None
    except OSError as error:
        raise SessionLost(f"connecting to `{address}`: {error.strerror or error}") from None
    except exceptions.InvalidStatus as error:
        raise ProtocolError(f"connecting to `{address}`: status {error.response.status_code} instead of a WebSocket") from None
    except (exceptions.WebSocketException, ValueError) as error:
        if isinstance(error.__cause__, EOFError):
            raise SessionLost(f"connecting to `{address}`: the connection ended") from None
        raise ProtocolError(f"connecting to `{address}`: {error}") from None
    return Stream(socket)


__all__ = ["Stream", "client_context", "dial", "parse", "serve", "server_context"]
