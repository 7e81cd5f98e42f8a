#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions of a confined server, by chance: conversations with changed bytes, and hostile code that makes any calls of the system.

$ python tests/rpc/fuzz_confined.py --sessions 100000 --attacks 2000     # a few minutes

After each hundred the server lives, serves a good session, and nothing of the user's has changed. Prints the seed of what failed.
"""

import argparse
import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "python")]
from hostility import KERNELS, LOST, Row, Target  # noqa: E402
from processes import until  # noqa: E402

from baton import rpc  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
CALLS = 300  # of the system in a session


def conversations():
    """What clients said in the recorded conversations, piece by piece."""
    for path in sorted(CORPUS.glob("*.txt")):
        yield [bytes.fromhex(line[2:]) for line in path.read_text().splitlines() if line[0] == ">"]


def changed(pieces, chance):
    """A conversation with bytes flipped, cut, doubled, put in another order."""
    data = bytearray(b"".join(pieces))
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        at = chance.randrange(len(data))
        match chance.randrange(5):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                data[at] ^= 1 << chance.randrange(8)
            case 2:
                del data[at : at + chance.randrange(1, 64)]
            case 3:
                data[at:at] = data[at : at + chance.randrange(1, 64)]
            case _:
                data[at : at + 4] = chance.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 20)).to_bytes(4, "little")
        if not data:
            return b"x"
    return bytes(data)


def converse(path, data):
    """Says all of it, and hears the answers to it; the session ends with the connection."""
    with socket.socket(socket.AF_UNIX) as raw:
        raw.settimeout(0.2)
        raw.connect(path)
        with contextlib.suppress(OSError):
            raw.sendall(data)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1 << 16):
                pass


def works(url):
    with rpc.connect(url) as remote:
        remote.upload(b"x" * 1000, "x")
        return bytes(remote.download("x")) == b"x" * 1000


def converse_often(target, sessions, seed):
    """Changed conversations with the target's server; gives the seed of the first hundred after which something is amiss, or -1."""
    recorded = list(conversations())
    with target.world() as world:
        path = target.url.removeprefix("unix:")
        for number in range(seed, seed + sessions):
            chance = random.Random(number)
            converse(path, changed(chance.choice(recorded), chance))
            if number % 100 == 99 and not (works(target.url) and world.intact()):
                return number
        return -1 if works(target.url) and world.intact() else seed + sessions


def attack_often(target, attacks, seed):
    """The same of sessions whose code makes calls of the system by chance."""
    path = "{secret}" if target.kernel.version else "{own}/mine"  # the filter alone lets files be removed
    for number in range(seed, seed + attacks):
        with target.world() as world:
            pid = world.attacker.pid
            with contextlib.suppress(rpc.RPCError):  # a call may wait for ever: the session ends with its client
                row = Row("random calls", text=path, more=random.Random(number).choice(("{victim}", "{server}")), number=number, other=CALLS)
                assert world.attack(row) in ("done", LOST)
            world.attacker.close()
            if not world.intact():
                return number
        if number % 100 == 99 and not (works(target.url) and until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), 60)):
            return number
    return -1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--attacks", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failed = False
    for kernel in (KERNELS[0], KERNELS[-1]):
        with tempfile.TemporaryDirectory() as folder, Target(Path(folder), kernel=kernel, client={"call_timeout": 1}, stderr=subprocess.DEVNULL) as target:
            for what, many, run in (("conversations", args.sessions // 2, converse_often), ("sessions that make calls", args.attacks // 2, attack_often)):
                begin = time.monotonic()
                at = run(target, many, args.seed)
                print(f"{kernel.name}: {many} {what} in {time.monotonic() - begin:.0f} s: {'nothing amiss' if at < 0 else f'amiss at seed {at}'}", flush=True)
                failed = failed or at >= 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
