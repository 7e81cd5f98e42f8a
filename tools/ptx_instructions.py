# SPDX-License-Identifier: Apache-2.0
"""Does the instructions of PTX that LLVM writes, on NumPy arrays of registers, of which a lane is a thread's (run_ptx.py)."""

import numpy as np


class Fault(Exception):
    """A program that a device would not run right; the text names the kernel and the instruction."""


BITS = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def dtype_of(t):
    """ "s32" as NumPy has it."""
    kind, bits = t[0], int(t[1:])
    return np.dtype({"s": f"int{bits}", "u": f"uint{bits}", "b": f"uint{bits}", "f": f"float{bits}"}[kind])


class Instructions:
    """`op_NAME(instruction)` gives a function (mask, whole) that does it for the lanes of a mask; `whole`: for all."""

    def simple(self, i, f, t=None, out=None):
        """Operands of one type, a result."""
        t = np.dtype(dtype_of(t or i.words[-1])) if (t or i.words[-1]) != "pred" else np.dtype(bool)
        args, write = [self.source(a, t) for a in i.args[1:]], self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, np.asarray(f(*[a() for a in args])).astype(out or t, copy=False))

    def op_mov(self, i):
        t = i.words[-1]
        if i.args[0].startswith("{"):  # a word into halves
            parts = [self.sink(p.strip()) for p in i.args[0][1:-1].split(",")]
            bits = int(t[1:])
            small = BITS[bits // len(parts)]
            whole_word = self.source(i.args[1], BITS[bits])

            def split(mask, whole):
                v = np.broadcast_to(whole_word(), self.lanes)
                for k, p in enumerate(parts):
                    p(mask, whole, (v >> BITS[bits](k * bits // len(parts))).astype(small))

            return split
        if i.args[1].startswith("{"):
            bits = int(t[1:])
            texts = [p.strip() for p in i.args[1][1:-1].split(",")]
            parts, write = [self.source(p, BITS[bits // len(texts)]) for p in texts], self.sink(i.args[0])

            def join(mask, whole):
                v = np.zeros(self.lanes, BITS[bits])
                for k, p in enumerate(parts):
                    v |= np.broadcast_to(p(), self.lanes).astype(BITS[bits]) << BITS[bits](k * bits // len(parts))
                write(mask, whole, v)

            return join
        if t == "pred":
            return self.simple(i, lambda a: a, "pred")
        return self.simple(i, lambda a: a)

    def op_add(self, i):
        return self.simple(i, lambda a, b: a + b)

    def op_sub(self, i):
        return self.simple(i, lambda a, b: a - b)

    def wide_product(self, i):
        """The product of integers in twice the bits."""
        t = dtype_of(i.words[-1])
        wide = np.dtype(f"{'int' if t.kind == 'i' else 'uint'}{min(t.itemsize * 16, 64)}")
        return t, wide

    def op_mul(self, i):
        t, wide = dtype_of(i.words[-1]), None
        if t.kind == "f" or "lo" in i.words:
            return self.simple(i, lambda a, b: a * b)
        t, wide = self.wide_product(i)
        if "wide" in i.words:
            return self.simple(i, lambda a, b: np.asarray(a).astype(wide) * np.asarray(b).astype(wide), out=wide)
        if t.itemsize < 8:
            return self.simple(i, lambda a, b: ((np.asarray(a).astype(wide) * np.asarray(b).astype(wide)) >> wide.type(t.itemsize * 8)).astype(t))
        return self.simple(i, lambda a, b: high64(np.broadcast_to(a, self.lanes), np.broadcast_to(b, self.lanes), t))

    def op_mad(self, i):
        t, wide = self.wide_product(i)
        if "lo" in i.words:
            return self.simple(i, lambda a, b, c: a * b + c)
        a, b, c, write = self.source(i.args[1], t), self.source(i.args[2], t), self.source(i.args[3], wide), self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, np.asarray(a()).astype(wide) * np.asarray(b()).astype(wide) + c())

    def op_fma(self, i):
        t = dtype_of(i.words[-1])
        return self.simple(i, lambda a, b, c: fused(*np.broadcast_arrays(a, b, c, np.zeros(self.lanes, t))[:3], t))

    def op_div(self, i):
        t = dtype_of(i.words[-1])
        if t.kind == "f":
            return self.simple(i, lambda a, b: a / b)
        return self.simple(i, lambda a, b: quotient(a, b, self.lanes)[0])

    def op_rem(self, i):
        return self.simple(i, lambda a, b: quotient(a, b, self.lanes)[1])

    def op_neg(self, i):
        return self.simple(i, lambda a: flipped(a) if a.dtype.kind == "f" else -a)

    def op_abs(self, i):
        return self.simple(i, np.abs)

    def op_min(self, i):
        return self.simple(i, np.fmin if i.words[-1][0] == "f" and "NaN" not in i.words else np.minimum)

    def op_max(self, i):
        return self.simple(i, np.fmax if i.words[-1][0] == "f" and "NaN" not in i.words else np.maximum)

    def op_sqrt(self, i):
        return self.simple(i, np.sqrt)

    def op_rcp(self, i):
        return self.simple(i, lambda a: np.asarray(1, a.dtype) / a)

    def op_and(self, i):
        return self.simple(i, lambda a, b: a & b)

    def op_or(self, i):
        return self.simple(i, lambda a, b: a | b)

    def op_xor(self, i):
        return self.simple(i, lambda a, b: a ^ b)

    def op_not(self, i):
        return self.simple(i, lambda a: ~a)

    def op_popc(self, i):
        bits = dtype_of(i.words[-1]).itemsize * 8
        return self.simple(i, lambda a: sum(((a >> a.dtype.type(k)) & a.dtype.type(1)).astype(np.uint32) for k in range(bits)), out=np.uint32)

    def op_clz(self, i):
        bits = dtype_of(i.words[-1]).itemsize * 8

        def zeros(a):
            n = np.full(np.shape(a), bits, np.uint32)
            for k in range(bits):
                n = np.where((a >> a.dtype.type(k)) & a.dtype.type(1), np.uint32(bits - 1 - k), n)
            return n

        return self.simple(i, zeros, out=np.uint32)

    def op_brev(self, i):
        bits = dtype_of(i.words[-1]).itemsize * 8

        def reverse(a):
            v = np.zeros_like(a)
            for k in range(bits):
                v |= ((a >> a.dtype.type(k)) & a.dtype.type(1)) << a.dtype.type(bits - 1 - k)
            return v

        return self.simple(i, reverse)

    def shift(self, i, f):
        t = dtype_of(i.words[-1])
        a, n, write = self.source(i.args[1], t), self.source(i.args[2], np.uint32), self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, f(np.broadcast_to(a(), self.lanes), np.broadcast_to(n(), self.lanes), t))

    def op_shl(self, i):
        return self.shift(i, lambda a, n, t: np.where(n >= t.itemsize * 8, t.type(0), a << (n % (t.itemsize * 8)).astype(t)))

    def op_shr(self, i):
        def right(a, n, t):
            bits = t.itemsize * 8
            return np.where(
                n >= bits, np.where(a < 0, t.type(-1 if t.kind == "i" else 0), t.type(0)) if t.kind == "i" else t.type(0), a >> (n % bits).astype(t)
            )

        return self.shift(i, right)

    def op_shf(self, i):
        low, high, n, write = *[self.source(a, np.uint32) for a in i.args[1:]], self.sink(i.args[0])

        def funnel(mask, whole):
            by = np.broadcast_to(n(), self.lanes).astype(np.uint64)
            by = by & np.uint64(31) if "wrap" in i.words else np.minimum(by, np.uint64(32))
            pair = np.broadcast_to(low(), self.lanes).astype(np.uint64) | np.broadcast_to(high(), self.lanes).astype(np.uint64) << np.uint64(32)
            write(mask, whole, ((pair << by) >> np.uint64(32) if "l" in i.words else pair >> by).astype(np.uint32))

        return funnel

    def op_bfe(self, i):
        t = dtype_of(i.words[-1])
        a, at, count, write = self.source(i.args[1], t), self.source(i.args[2], np.uint32), self.source(i.args[3], np.uint32), self.sink(i.args[0])

        def extract(mask, whole):
            v, p, n = np.broadcast_arrays(a(), np.asarray(at()) & 255, np.asarray(count()) & 255, self.lane)[:3]
            bits = t.itemsize * 8
            if t.kind == "u" or not (n > 0).any():
                out = np.where(p >= bits, t.type(0), v >> np.minimum(p, bits - 1).astype(t))
                ones = np.where(n >= bits, ~t.type(0), (t.type(1) << np.minimum(n, bits - 1).astype(t)) - t.type(1))
                return write(mask, whole, out & ones)
            up = np.clip(bits - p.astype(np.int64) - n.astype(np.int64), 0, bits - 1)
            return write(mask, whole, np.where(n == 0, t.type(0), (v << up.astype(t)) >> np.clip(bits - n.astype(np.int64), 0, bits - 1).astype(t)))

        return extract

    def op_bfi(self, i):
        t = dtype_of(i.words[-1])
        (a, b), (at, count), write = [self.source(x, t) for x in i.args[1:3]], [self.source(x, np.uint32) for x in i.args[3:]], self.sink(i.args[0])

        def insert(mask, whole):
            bits = t.itemsize * 8
            p, n = int(np.asarray(at()).flat[0]), int(np.asarray(count()).flat[0])
            ones = t.type((((1 << n) - 1) << p) & ((1 << bits) - 1))
            write(mask, whole, (b() & ~ones) | ((a() << t.type(p)) & ones))

        return insert

    def op_prmt(self, i):
        a, b, c, write = *[self.source(x, np.uint32) for x in i.args[1:]], self.sink(i.args[0])

        def permute(mask, whole):
            low, high, how = np.broadcast_arrays(a(), b(), c(), self.lane)[:3]
            both = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
            out = np.zeros(self.lanes, np.uint32)
            for k in range(4):
                pick = (how >> np.uint32(4 * k)) & np.uint32(15)
                byte = (both >> ((pick & np.uint32(7)).astype(np.uint64) * np.uint64(8))) & np.uint64(255)
                byte = np.where(pick & np.uint32(8), np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0)), byte)
                out |= byte.astype(np.uint32) << np.uint32(8 * k)
            write(mask, whole, out)

        return permute

    def op_selp(self, i):
        t = dtype_of(i.words[-1])
        a, b, c, write = self.source(i.args[1], t), self.source(i.args[2], t), self.source(i.args[3], bool), self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, np.where(c(), a(), b()).astype(t, copy=False))

    def op_setp(self, i):
        t, how = dtype_of(i.words[-1]), i.words[1]
        a, b, write = self.source(i.args[1], t), self.source(i.args[2], t), self.sink(i.args[0])
        compare = comparison(how, t)
        joined = next((w for w in i.words[2:] if w in ("and", "or", "xor")), None)
        other = self.source(i.args[3], bool) if joined else None

        def step(mask, whole):
            v = compare(a(), b())
            if joined:
                v = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[joined](v, other())
            write(mask, whole, np.broadcast_to(v, self.lanes))

        return step

    def op_cvt(self, i):
        to, of = dtype_of(i.words[-2]), dtype_of(i.words[-1])
        how = [w for w in i.words[1:-2] if w in ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")]
        convert = conversion(to, of, how[0] if how else None, "sat" in i.words)
        a, write = self.source(i.args[1], of), self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, convert(np.broadcast_to(a(), self.lanes)))

    def op_cvta(self, i):
        return self.simple(i, lambda a: a, "u64")

    def op_copysign(self, i):
        return self.simple(i, lambda a, b: np.copysign(b, a))

    def op_testp(self, i):
        f = {"finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda a: ~np.isnan(a)}[i.words[1]]
        a, write = self.source(i.args[1], dtype_of(i.words[-1])), self.sink(i.args[0])
        return lambda mask, whole: write(mask, whole, f(a()))

    def op_ex2(self, i):
        return self.simple(i, np.exp2)

    def op_ld(self, i):
        t, space = dtype_of(i.words[-1]), i.words[1] if i.words[1] in ("param", "global", "shared", "local") else "generic"
        if space == "param":
            name, _, offset = i.args[1][1:-1].partition("+")
            value, write = np.array([self.args[name.strip()]]).astype(np.int64).view(np.uint64), self.sink(i.args[0])
            fixed = value.view(np.uint8)[int(offset or 0) : int(offset or 0) + t.itemsize].view(t)[0]
            return lambda mask, whole: write(mask, whole, fixed)
        parts = [self.sink(p.strip()) for p in i.args[0].strip("{}").split(",")]
        at = self.address(i.args[1])

        def load(mask, whole):
            lanes = np.flatnonzero(mask)
            if not lanes.size:
                return
            addresses = at()[lanes]
            for k, write in enumerate(parts):
                v = np.zeros(self.lanes, t)
                v[lanes] = self.read(space, addresses + k * t.itemsize, lanes, t)
                write(mask, False, v)

        return load

    def op_st(self, i):
        t, space = dtype_of(i.words[-1]), i.words[1] if i.words[1] in ("global", "shared", "local") else "generic"
        parts = [self.source(p.strip(), t) for p in i.args[1].strip("{}").split(",")]
        at = self.address(i.args[0])

        def store(mask, whole):
            lanes = np.flatnonzero(mask)
            if not lanes.size:
                return
            addresses = at()[lanes]
            for k, value in enumerate(parts):
                self.write(space, addresses + k * t.itemsize, lanes, np.broadcast_to(value(), self.lanes).astype(t, copy=False)[lanes])

        return store


def flipped(a):
    """The number of the other sign, of NaN too."""
    bits = BITS[a.dtype.itemsize * 8]
    return (np.asarray(a).view(bits) ^ bits(1 << (a.dtype.itemsize * 8 - 1))).view(a.dtype)


def high64(a, b, t):
    """The upper half of a product of 128 bits."""
    mask = (1 << 64) - 1
    return np.array([(((int(x) * int(y)) >> 64) & mask) for x, y in zip(a, b, strict=True)], np.uint64).view(t)


def quotient(a, b, lanes):
    """Division that rounds to zero, and its remainder; of nothing where the divisor is 0."""
    a, b = (np.broadcast_to(x, lanes) for x in (a, b))
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        q = a // safe
    else:
        wraps = (safe == -1) & (a == np.iinfo(a.dtype).min)
        safe = np.where(wraps, b.dtype.type(1), safe)
        q = a // safe
        q = q + ((a - q * safe != 0) & ((a < 0) != (safe < 0))).astype(a.dtype)
        q = np.where(wraps, a, q)
        safe = np.where(wraps, b.dtype.type(-1), safe)
    q = np.where(zero, ~a.dtype.type(0), q)
    return q, np.where(zero, a, a - q * safe)


def fused(a, b, c, t):
    """a * b + c, rounded once."""
    if t.itemsize < 8:  # the product is exact in float64; rounding to odd keeps what the sum loses
        p, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
        s = p + c
        v = s - p
        error = (p - (s - v)) + (c - v)
        bits = s.view(np.int64).copy()
        odd = np.isfinite(s) & (error != 0) & ((bits & 1) == 0)
        away = (error > 0) == (s > 0)
        bits = np.where(odd & (s != 0), np.where(away, bits + 1, bits - 1), bits)
        return bits.view(np.float64).astype(t)
    # Products as the sum of two numbers (Dekker), then sums with their errors.
    split = lambda x: (lambda y: (y - (y - x), x - (y - (y - x))))(x * 134217729.0)  # noqa: E731
    p = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    e = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    s = p + c
    v = s - p
    rest = ((p - (s - v)) + (c - v)) + e
    out = s + rest
    return np.where(np.isfinite(out) & np.isfinite(e), out, s)


def comparison(how, t):
    plain = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
        "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
    }  # fmt: skip
    if t.kind != "f":
        return plain[how]
    nan = lambda a, b: np.isnan(a) | np.isnan(b)  # noqa: E731
    if how == "num":
        return lambda a, b: ~nan(a, b)
    if how == "nan":
        return nan
    if how.endswith("u") and how[:-1] in plain:
        return lambda a, b: plain[how[:-1]](a, b) | nan(a, b)
    return lambda a, b: plain[how](a, b) & ~nan(a, b)


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def conversion(to, of, how, sat):
    if of.kind == "f" and to.kind == "f":
        if how in ROUND:
            return lambda a: ROUND[how](a).astype(to)
        return lambda a: a.astype(to)
    if of.kind == "f":
        low, high = np.iinfo(to).min, np.iinfo(to).max

        def integers(a):
            v = ROUND[how or "rzi"](a.astype(np.float64))
            inside = np.isfinite(v) & (v > float(low)) & (v < float(high))
            out = np.where(inside, v, 0).astype(to)
            out = np.where(v >= float(high), high, out).astype(to)
            out = np.where(v <= float(low), low, out).astype(to)
            return np.where(np.isnan(v), to.type(0), out)

        return integers
    if to.kind == "f":
        return lambda a: a.astype(to)
    if sat:
        low, high = np.iinfo(to).min, np.iinfo(to).max
        return lambda a: np.clip(a.astype(object), low, high).astype(to)
    return lambda a: a.astype(to)
