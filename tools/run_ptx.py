# SPDX-License-Identifier: Apache-2.0
"""Runs the PTX of kernels, as LLVM writes it, on NumPy arrays: a lane of the arrays is a thread (ptx_instructions.py has what each does).

    program = Program(text)
    program.launch("k_f_0", (4, 1, 1), (64, 1, 1), [memory.add(x), memory.add(y)], memory)

The threads at the smallest place in the text go on, so that threads that parted meet again. A barrier holds a
thread until all of its block are there. Faults are errors: an address outside of all arrays or not aligned, memory of a block that one
thread writes and another reads or writes with no barrier between them, a barrier that some thread of the block does not reach, an
instruction that is not known here.
"""

import re

import numpy as np
from ptx_instructions import BITS, Fault, Instructions

SHARED, LOCAL = 1 << 52, 1 << 53  # generic addresses of memory of blocks, and of threads
MOST_LANES = 1 << 14


class Memory:
    """A device's memory: arrays of bytes at addresses."""

    def __init__(self):
        self.arrays, self.bases, self.next = [], np.zeros(0, np.int64), 1 << 20

    def add(self, array, address=None):
        """Makes an array the memory at an address, and returns that. Stores change the array."""
        flat = array.reshape(-1).view(np.uint8)
        if address is None:
            address, self.next = self.next, self.next + (flat.size + 511) // 256 * 256
        self.arrays.append((address, flat))
        self.arrays.sort(key=lambda a: a[0])
        self.bases = np.array([a for a, _ in self.arrays], np.int64)
        return address

    def spans(self, addresses, size):
        """(lanes, bytes of the array, offsets) for each array that addresses are in."""
        at = np.searchsorted(self.bases, addresses, "right") - 1
        for i in np.unique(at):
            lanes = at == i
            base, flat = self.arrays[i] if i >= 0 else (0, np.zeros(0, np.uint8))
            offsets = addresses[lanes] - base
            if i < 0 or (offsets + size > flat.size).any():
                bad = int(addresses[lanes][0 if i < 0 else int(np.argmax(offsets + size > flat.size))])
                where = f", {bad - base} bytes into an array of {flat.size}" if i >= 0 else ""
                raise Fault(f"address {bad:#x}{where} is outside of all memory")
            yield lanes, flat, offsets


def gather(flat, offsets, dtype):
    if (offsets % dtype.itemsize).any():
        raise Fault(f"an address that is not aligned to {dtype.itemsize} bytes")
    if flat.size % dtype.itemsize == 0 and flat.ctypes.data % dtype.itemsize == 0:
        return flat.view(dtype)[offsets // dtype.itemsize]
    return np.ascontiguousarray(flat[offsets[:, None] + np.arange(dtype.itemsize)]).view(dtype)[:, 0]


def scatter(flat, offsets, values):
    size = values.dtype.itemsize
    if (offsets % size).any():
        raise Fault(f"an address that is not aligned to {size} bytes")
    flat[offsets[:, None] + np.arange(size)] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, size)


class Instruction:
    def __init__(self, text, line):
        self.text, self.line = text, line
        guard = re.match(r"@(!?)(%\w+)\s+", text)
        self.guard = (guard[2], bool(guard[1])) if guard else None
        if guard:
            text = text[guard.end() :]
        name, _, rest = text.partition(" ") if " " in text else text.partition("\t")
        name, rest = (text.split(None, 1) + [""])[:2]
        self.words = name.split(".")
        self.op = self.words[0]
        self.args = [a.strip() for a in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]]+", rest) if a.strip()]


class Kernel:
    def __init__(self, name, params, body):
        self.name, self.params = name, params  # (name, type) of each parameter
        self.code, self.labels, self.registers, self.shared, self.local = [], {}, {}, {}, {}
        for line in body:
            line = line.split("//")[0].strip().rstrip(";")
            if not line or line.startswith((".loc ", ".loc\t", ".file", ".pragma", "{", "}")):
                continue
            label = re.match(r"(\$?\w+):$", line)
            if label:
                self.labels[label[1]] = len(self.code)
            elif line.startswith(".reg"):
                kind, names = re.match(r"\.reg\s+\.(\w+)\s+(.*)", line).groups()
                for n in names.split(","):
                    many = re.match(r"(%\w+)<(\d+)>", n.strip())
                    for r in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [n.strip()]:
                        self.registers[r] = kind
            elif line.startswith((".shared", ".local")):
                self.declare(line)
            else:
                self.code.append(Instruction(line, len(self.code)))

    def declare(self, line):
        space, align, unit, name, count = re.match(r"\.(shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?", line).groups()
        table = getattr(self, space)
        at = max([o + n for o, n in table.values()], default=0)
        align = int(align or 8)
        table[name] = ((at + align - 1) // align * align, int(count or 1) * (int(unit[1:]) // 8))


class Program:
    """The kernels of a text."""

    def __init__(self, text):
        self.kernels, self.shared = {}, []
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        for line in re.findall(r"^\s*(?:\.extern\s+|\.visible\s+)?(\.shared[^;]*);", re.split(r"\.entry", text)[0], flags=re.M):
            self.shared.append(line)
        for name, params, body in re.findall(r"\.entry\s+(\w+)\s*\((.*?)\)(.*?\{.*?^\})", text, flags=re.S | re.M):
            found = [(n, t) for t, n in re.findall(r"\.param\s+\.(\w+)[^,)]*?\b(\w+)\s*(?:,|$)", params.strip(), flags=re.M)]
            inside = body[body.index("{") + 1 :].rstrip()[:-1]
            kernel = Kernel(name, found, [s for part in inside.split("\n") for s in statements(part)])
            self.kernels[name] = kernel
        for between in re.findall(r"^(?:\.shared|\t\.shared)[^;]*;", text, flags=re.M):
            for k in self.kernels.values():
                name = re.search(r"([\w$]+)\[", between)
                if name and name[1] not in k.shared:
                    k.declare(between.strip().rstrip(";"))

    def launch(self, name, grid, block, args, memory):
        """Runs a kernel. Arguments are addresses and integers."""
        kernel = self.kernels[name]
        threads = int(np.prod(block))
        blocks = int(np.prod(grid))
        if threads > 1024 or threads < 1:
            raise Fault(f"kernel `{name}`: blocks of {threads} threads; a device takes 1 to 1024")
        if len(args) != len(kernel.params):
            raise Fault(f"kernel `{name}` takes {len(kernel.params)} arguments, got {len(args)}")
        at_once = max(1, MOST_LANES // threads)
        for first in range(0, blocks, at_once):
            with np.errstate(all="ignore"):
                Run(kernel, grid, block, args, memory, np.arange(first, min(first + at_once, blocks))).run()


def statements(line):
    line = line.split("//")[0].strip()
    if line.endswith(":"):
        return [line]
    return [s.strip() for s in line.split(";") if s.strip()]


class Run(Instructions):
    """Blocks of a launch that run together."""

    def __init__(self, kernel, grid, block, args, memory, blocks):
        self.kernel, self.memory = kernel, memory
        threads = int(np.prod(block))
        self.lanes = n = len(blocks) * threads
        thread, of_block = np.tile(np.arange(threads), len(blocks)), np.repeat(blocks, threads)
        self.block = np.repeat(np.arange(len(blocks)), threads)
        self.lane = np.arange(n)
        self.special = {}
        for word, i, extents in (("tid", thread, block), ("ctaid", of_block, grid)):
            for axis, v in zip("xyz", (i % extents[0], i // extents[0] % extents[1], i // extents[0] // extents[1]), strict=True):
                self.special[f"%{word}.{axis}"] = v.astype(np.uint32)
        for word, extents in (("ntid", block), ("nctaid", grid)):
            for axis, v in zip("xyz", extents, strict=True):
                self.special[f"%{word}.{axis}"] = np.full(n, v, np.uint32)
        self.special["%laneid"] = (thread % 32).astype(np.uint32)
        self.args = {name: v for (name, _), v in zip(kernel.params, args, strict=True)}
        self.regs = {r: np.zeros(n, bool if t == "pred" else BITS[int(t[1:])]) for r, t in kernel.registers.items()}
        size = max([o + s for o, s in kernel.shared.values()], default=0)
        self.shared_size = (size + 15) // 16 * 16
        self.shared = np.full(self.shared_size * len(blocks), 0xFF, np.uint8)  # nothing is in it before it is written
        self.writer = np.full(self.shared.size, -1, np.int64)
        self.reader = np.full(self.shared.size, -1, np.int64)
        size = max([o + s for o, s in kernel.local.values()], default=0)
        self.local_size = (size + 15) // 16 * 16
        self.local = np.full(self.local_size * n, 0xFF, np.uint8)
        self.code = [self.compile(i) for i in kernel.code]

    # ---- Threads

    def run(self):
        code, end = self.code, len(self.code)
        pcs = np.zeros(self.lanes, np.int64)
        waiting = np.zeros(self.lanes, bool)
        while True:
            can = (pcs < end) & ~waiting
            if not can.any():
                if not waiting.any():
                    return
                self.release(pcs, waiting)
                continue
            pc = int(pcs[can].min())
            mask = can & (pcs == pc)
            others = pcs[can & ~mask]
            stop = int(others.min()) if others.size else end
            whole = bool(mask.all())
            while pc < stop:
                kind, step = code[pc]
                if kind == "plain":
                    try:
                        step(mask, whole)
                    except Fault as e:
                        raise self.fault(pc, e) from None
                    pc += 1
                    continue
                if kind == "barrier":
                    waiting |= mask
                    pcs[mask] = pc + 1
                    break
                taken, target = step(mask)
                pcs[mask] = pc + 1
                pcs[taken] = target
                break
            else:
                pcs[mask] = pc

    def release(self, pcs, waiting):
        end = len(self.code)
        for b in np.unique(self.block[waiting]):
            lanes = self.block == b
            if not waiting[lanes].all() or np.unique(pcs[lanes]).size > 1 or (pcs[lanes] > end).any():
                at = int(pcs[lanes & waiting][0]) - 1
                raise self.fault(at, f"{int(waiting[lanes].sum())} of {int(lanes.sum())} threads of a block wait at a barrier that the others do not reach")
            waiting[lanes] = False
            span = slice(b * self.shared_size, (b + 1) * self.shared_size)
            self.writer[span] = self.reader[span] = -1

    def fault(self, pc, why):
        return Fault(f"kernel `{self.kernel.name}`, `{self.kernel.code[pc].text}`: {why}")

    # ---- Operands

    def source(self, text, dtype):
        """A function that gives an operand's lanes, or a scalar."""
        dtype = np.dtype(dtype)
        if text in self.regs:
            reg = self.regs[text]
            if reg.dtype == bool:
                return lambda: reg
            if reg.dtype.itemsize == dtype.itemsize:
                view = reg.view(dtype)
                return lambda: view
            if dtype.kind == "f":
                raise Fault(f"`{text}` has not the width of {dtype}")
            return lambda: reg.astype(BITS[dtype.itemsize * 8]).view(dtype)
        if text in self.special:
            v = self.special[text].astype(dtype)
            return lambda: v
        number = self.literal(text, dtype)
        return lambda: number

    def literal(self, text, dtype):
        if re.match(r"0[fF][0-9A-Fa-f]{8}$", text):
            return np.array([int(text[2:], 16)], np.uint32).view(np.float32).astype(dtype if dtype.kind == "f" else np.float32).view(dtype)[0]
        if re.match(r"0[dD][0-9A-Fa-f]{16}$", text):
            return np.array([int(text[2:], 16)], np.uint64).view(np.float64).view(dtype)[0]
        if text in self.kernel.shared:
            return dtype.type(SHARED + self.kernel.shared[text][0])
        if text in self.kernel.local:
            return dtype.type(LOCAL + self.kernel.local[text][0])
        if re.match(r"-?(0x[0-9A-Fa-f]+|\d+)U?$", text):
            value = int(text.rstrip("U"), 0)
            if dtype.kind == "b":
                return np.bool_(value)
            bits = dtype.itemsize * 8
            if dtype.kind == "f":
                return np.array([value & ((1 << bits) - 1)], BITS[bits]).view(dtype)[0]
            return np.array([value & ((1 << bits) - 1)], BITS[bits]).view(dtype)[0]
        raise Fault(f"operand `{text}` is not known")

    def sink(self, text):
        """A function (mask, whole, values) that writes a register."""
        if text == "_":
            return lambda mask, whole, v: None
        reg = self.regs[text]

        def write(mask, whole, v):
            v = np.asarray(v)
            if reg.dtype != bool:
                if v.dtype.itemsize != reg.dtype.itemsize:
                    v = v.astype({"i": np.int64, "u": np.uint64}[v.dtype.kind]).astype(reg.dtype) if v.dtype.kind in "iu" else v
                if v.dtype != reg.dtype:
                    v = v.view(reg.dtype)
            if whole:
                reg[...] = v
            else:
                np.copyto(reg, v, where=mask)

        return write

    # ---- Memory

    def address(self, text):
        base, _, offset = text[1:-1].partition("+")
        base, offset = base.strip(), int(offset or 0)
        if base in self.kernel.shared or base in self.kernel.local:
            table, space = (self.kernel.shared, SHARED) if base in self.kernel.shared else (self.kernel.local, LOCAL)
            fixed = np.full(self.lanes, space + table[base][0] + offset, np.int64)
            return lambda: fixed
        reg = self.regs[base]
        return lambda: reg.astype(np.int64) + offset if reg.dtype.itemsize < 8 else reg.view(np.int64) + offset

    def spaces(self, addresses, size):
        """(lanes, bytes, offsets, whether it is of blocks) of each kind of memory."""
        shared, local = (addresses >= SHARED) & (addresses < LOCAL), addresses >= LOCAL
        return shared, local

    def read(self, space, addresses, lanes, dtype):
        out = np.zeros(addresses.size, dtype)
        shared, local = self.spaces(addresses, dtype.itemsize)
        if space == "shared" and not shared.all() or space == "local" and not local.all() or space == "global" and (shared | local).any():
            raise Fault(f"an address that is not of {space} memory")
        if shared.any():
            offsets = self.in_block(addresses[shared], lanes[shared], dtype.itemsize)
            out[shared] = gather(self.shared, offsets, dtype)
            for i in range(dtype.itemsize):
                by = self.writer[offsets + i]
                if ((by >= 0) & (by != lanes[shared])).any():
                    raise Fault("a thread reads memory of its block that another has written, with no barrier between them")
                seen = self.reader[offsets + i]
                self.reader[offsets + i] = np.where((seen >= 0) & (seen != lanes[shared]), self.lanes, lanes[shared])
                # Several threads that read one place in this step: each is a reader.
                many = self.reader[offsets + i] != lanes[shared]
                self.reader[(offsets + i)[many]] = self.lanes
        if local.any():
            out[local] = gather(self.local, self.in_thread(addresses[local], lanes[local], dtype.itemsize), dtype)
        rest = ~(shared | local)
        if rest.any():
            where = np.flatnonzero(rest)
            for part, flat, offsets in self.memory.spans(addresses[rest], dtype.itemsize):
                out[where[part]] = gather(flat, offsets, dtype)
        return out

    def write(self, space, addresses, lanes, values):
        size = values.dtype.itemsize
        shared, local = self.spaces(addresses, size)
        if space == "shared" and not shared.all() or space == "local" and not local.all() or space == "global" and (shared | local).any():
            raise Fault(f"an address that is not of {space} memory")
        if shared.any():
            offsets = self.in_block(addresses[shared], lanes[shared], size)
            if np.unique(offsets).size < offsets.size:
                raise Fault("two threads write one place of their block's memory")
            for i in range(size):
                for table in (self.writer, self.reader):
                    by = table[offsets + i]
                    if ((by >= 0) & (by != lanes[shared])).any():
                        raise Fault("a thread writes memory of its block that another has used, with no barrier between them")
                self.writer[offsets + i] = lanes[shared]
            scatter(self.shared, offsets, values[shared])
        if local.any():
            scatter(self.local, self.in_thread(addresses[local], lanes[local], size), values[local])
        rest = ~(shared | local)
        if rest.any():
            where = np.flatnonzero(rest)
            for part, flat, offsets in self.memory.spans(addresses[rest], size):
                scatter(flat, offsets, values[where[part]])

    def in_block(self, addresses, lanes, size):
        offsets = addresses - SHARED
        if (offsets + size > self.shared_size).any():
            raise Fault("an address behind the memory of the block")
        return offsets + self.block[lanes] * self.shared_size

    def in_thread(self, addresses, lanes, size):
        offsets = addresses - LOCAL
        if (offsets + size > self.local_size).any():
            raise Fault("an address behind the memory of the thread")
        return offsets + lanes * self.local_size

    # ---- Instructions

    def compile(self, i):
        try:
            return self.guarded(i)
        except (KeyError, IndexError, AttributeError, ValueError, Fault) as e:
            raise Fault(f"kernel `{self.kernel.name}`, `{i.text}`: not understood ({type(e).__name__}: {e})") from e

    def guarded(self, i):
        if i.op in ("ret", "exit"):
            end = len(self.kernel.code)
            guard = self.regs[i.guard[0]] if i.guard else None
            return "jump", lambda mask: (mask if guard is None else mask & (guard ^ i.guard[1]), end)
        if i.op == "bra":
            target = self.kernel.labels[i.args[0]]
            if not i.guard:
                return "jump", lambda mask: (mask, target)
            guard, inverse = self.regs[i.guard[0]], i.guard[1]
            return "jump", lambda mask: (mask & (guard ^ inverse), target)
        if i.op in ("bar", "barrier"):
            return ("plain", lambda mask, whole: None) if "warp" in i.words else ("barrier", None)
        step = getattr(self, f"op_{i.op}")(i)
        if not i.guard:
            return "plain", step
        guard, inverse = self.regs[i.guard[0]], i.guard[1]
        return "plain", lambda mask, whole: step(mask & (guard ^ inverse), False)
