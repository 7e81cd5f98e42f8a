# SPDX-License-Identifier: Apache-2.0
"""The process behind `baton.contrib.popen_pool.PopenWorker`: calls what it is sent, and sends back what that gives."""

import os
import pickle
import struct
import sys


def receive(stream):
    """An object of a stream; EOFError at its end."""
    head = stream.read(8)
    if len(head) < 8:
        raise EOFError
    data = stream.read(struct.unpack("<q", head)[0])
    return pickle.loads(data)


def send(stream, value):
    """Writes an object to a stream."""
    data = pickle.dumps(value)
    stream.write(struct.pack("<q", len(data)) + data)
    stream.flush()


def main():
    """Serves until the other end is closed."""
    with os.fdopen(int(sys.argv[1]), "rb") as reader, os.fdopen(int(sys.argv[2]), "wb") as writer:
        send(writer, (True, None))
        while True:
            try:
                fn, args, kwargs = receive(reader)
            except EOFError:
                return
            try:
                reply = (True, fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - any exception is sent to the caller
                reply = (False, error)
            try:
                send(writer, reply)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                send(writer, (False, TypeError(f"what the function gave cannot be sent back: {error}")))


if __name__ == "__main__":
    main()
