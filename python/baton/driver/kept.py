# SPDX-License-Identifier: Apache-2.0
"""Programs that change their buffers and arguments, as those of `torch.export` do: compiled code takes a buffer as an input and gives its new
value as an output, and this keeps the buffers between calls and writes into arguments. Needs the runtime library alone."""

from __future__ import annotations

import base64
import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, MutableMapping, Sequence

from ..runtime import NDArray
from ..runtime.ndarray import array, cpu, empty, from_dlpack


def kept_form(name: str, dtype: str, shape: Sequence[int], data: bytes) -> str:
    """Returns the entry of `input_forms` for an input that is a buffer with these initial elements."""
    said = {"kind": "kept", "name": name, "dtype": dtype, "shape": list(shape)}
    return json.dumps(said | ({"data": base64.b64encode(zlib.compress(data)).decode()} if any(memoryview(data)) else {}))


def written_form(index: int) -> str:
    """Returns the entry of `output_forms` for an output that is written to input `index`."""
    return json.dumps({"kind": "written", "input": index})


def _initial(said: dict) -> NDArray:
    import numpy as np

    made = empty(said["shape"], said["dtype"])
    if made.size:
        data = zlib.decompress(base64.b64decode(said["data"])) if "data" in said else bytes(made.nbytes)
        view = np.asarray(made)
        view[...] = np.frombuffer(data, view.dtype).reshape(view.shape)
    return made


class Buffers(MutableMapping):
    """The buffers that a model changes, by name. Reading gives a copy; what is set is copied and must have the buffer's dtype and shape.

    model.buffers["norm.running_mean"]
    model.buffers["keys"] = keys
    model.buffers.reset()       # as the program was saved
    """

    def __init__(self, said: Sequence[dict]):
        self.lock = threading.Lock()
        self._initial = {row["name"]: _initial(row) for row in said}
        self.values = list(self._initial.values())
        self._places = {name: i for i, name in enumerate(self._initial)}

    def _place(self, name) -> int:
        if name not in self._places:
            raise KeyError(f"the model has no buffer `{name}`; it changes {', '.join(sorted(self._places)) or 'none'}")
        return self._places[name]

    def __getitem__(self, name: str) -> NDArray:
        return _copy(self.values[self._place(name)])

    def __setitem__(self, name: str, value) -> None:
        place = self._place(name)
        old, new = self.values[place], _copy(value)
        if (new.dtype, tuple(new.shape)) != (old.dtype, tuple(old.shape)):
            raise ValueError(f"buffer `{name}` is {_type(old)}, {_type(new)} was given")
        with self.lock:
            self.values[place] = new

    def __delitem__(self, name) -> None:
        raise TypeError("buffers of a model cannot be deleted")

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def reset(self) -> None:
        """All buffers as the program had them when it was compiled."""
        with self.lock:
            self.values = list(self._initial.values())

    def __repr__(self) -> str:
        return f"<baton.Buffers {', '.join(f'{name} {_type(value)}' for name, value in zip(self, self.values, strict=True))}>"


def _type(value: NDArray) -> str:
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def _copy(value) -> NDArray:
    made = from_dlpack(value) if hasattr(value, "__dlpack__") else array(value)
    return made.copyto(cpu())


class Kept:
    """The inputs and outputs of an executor that calls of the model do not show. `buffers`: what is kept."""

    def __init__(self, inputs: list[dict | None], outputs: list[dict | None]):
        self.hidden = [i for i, form in enumerate(inputs) if form]
        self.buffers = Buffers([inputs[i] for i in self.hidden])
        self._count = len(inputs)
        self._shown = [k for k, form in enumerate(outputs) if not form]
        written = {k: form["input"] for k, form in enumerate(outputs) if form}
        self._new = {self.hidden.index(i): k for k, i in written.items() if i in self.hidden}  # buffer -> its output
        seen = [i for i in range(self._count) if i not in self.hidden]
        self._written = {seen.index(i): k for k, i in written.items() if i not in self.hidden}  # argument -> its output

    @staticmethod
    def of(forms: str) -> Kept | None:
        """Reads the forms of a model; returns None where they name neither buffers nor written arguments."""
        if '\\"kept\\"' not in forms and '\\"written\\"' not in forms:
            return None
        inputs, outputs = ([json.loads(form) if form else None for form in json.loads(forms)[key]] for key in ("inputs", "outputs"))
        return Kept(inputs, outputs)

    def seen(self, infos, side: str) -> tuple:
        """The inputs, or outputs, that calls show."""
        return tuple(info for i, info in enumerate(infos) if (i not in self.hidden if side == "input" else i in self._shown))

    def fill(self, arguments: Sequence, values: Sequence | None = None) -> list:
        """The arguments of a call with what is kept (or with `values` of it) between them, as an executor takes them."""
        rest, kept = iter(arguments), iter(self.buffers.values if values is None else values)
        return [next(kept) if i in self.hidden else next(rest) for i in range(self._count)]

    def shown(self, results: Sequence):
        """The results of a call: one as it is, several as a tuple, None where there are none."""
        found = [results[k] for k in self._shown]
        return found[0] if len(found) == 1 else tuple(found) or None

    def around(self, run: Callable, names: Sequence[str]) -> Callable:
        """The function that runs an executor, for calls of the model: it changes buffers and arguments. names: of the arguments."""

        def call(*arguments):
            writers = [(_writer(arguments[i], names[i]), k) for i, k in self._written.items()]
            with self.buffers.lock:
                out = run(*self.fill(arguments))
                results = [out] if isinstance(out, NDArray) else list(out)
                others = {arguments[i].data_ptr() for i in range(len(arguments)) if callable(getattr(arguments[i], "data_ptr", None))}
                values = list(self.buffers.values)
                for place, k in self._new.items():
                    values[place] = _own(results, k, others)
                for write, k in writers:
                    write(results[k])
                self.buffers.values = values
            return self.shown(results)

        return call


def _own(results, k: int, others: set) -> NDArray:
    """Result `k` in memory that no argument and no other result has."""
    at = results[k].data_ptr
    shared = at in others or any(r.data_ptr == at for i, r in enumerate(results) if i != k)
    return _copy(results[k]) if shared else results[k]


def _writer(value, name: str) -> Callable:
    """A function that writes an array into an argument. Raises TypeError and ValueError for one that cannot be written into."""
    if isinstance(value, NDArray):
        writable, write = not value.read_only, value.copyfrom
    elif type(value).__module__.partition(".")[0] == "numpy":
        import numpy as np

        flags = getattr(value, "flags", None)
        writable = isinstance(value, np.ndarray) and flags is not None and flags.writeable
        write = lambda result: np.copyto(value, np.asarray(result))  # noqa: E731
    elif hasattr(value, "copy_") and "torch" in sys.modules:
        torch = sys.modules["torch"]
        writable, write = True, lambda result: value.detach().copy_(torch.from_dlpack(result))
    else:
        raise TypeError(f"the program writes into input `{name}`: give a tensor of PyTorch, a NumPy array or an NDArray, not {type(value).__name__}")
    if not writable:
        raise ValueError(f"the program writes into input `{name}`, and the array that was given is read-only")
    return write
