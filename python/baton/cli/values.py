# SPDX-License-Identifier: Apache-2.0
"""Input values from the command line, and output values for people, for files and for JSON. The only part that loads
NumPy early.
"""

from __future__ import annotations

import io
import math
import os
import tempfile
import zipfile

import numpy as np

from .errors import Failure, UsageError, file_error
from .shapes import bind, closed, known, settled, suppose

_MAX_BYTES = 1 << 34  # a made-up input larger than this is a slip of the keyboard


def read_array(path: str) -> np.ndarray:
    """A .npy file; pickled objects are refused, for they can run code."""
    try:
        if os.path.isdir(path):
            raise Failure(f"`{path}` is a directory; a .npy file is needed")
        with open(path, "rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise file_error(error, path) from None
    except (ValueError, EOFError, SyntaxError, TypeError, MemoryError) as error:
        why = str(error).splitlines()[0] if str(error) else "cut short"
        raise Failure(f"`{path}` is not a usable .npy file: {why}", "write it with numpy.save") from None


def read_archive(path: str) -> dict[str, np.ndarray]:
    """The arrays of a .npz file by their names."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except OSError as error:
        raise file_error(error, path) from None
    except (ValueError, EOFError, SyntaxError, TypeError, AttributeError, MemoryError, zipfile.BadZipFile) as error:
        why = str(error).splitlines()[0] if str(error) else "cut short"
        raise Failure(f"`{path}` is not a usable .npz file: {why}", "write it with numpy.savez") from None


def _read_input(name: str, path: str) -> np.ndarray:
    """An input's value from a file: a .npy, or the array of its name in a .npz, or the only one."""
    if not path.endswith(".npz"):
        return read_array(path)
    arrays = read_archive(path)
    if name not in arrays and len(arrays) != 1:
        raise Failure(f"`{path}` has no array `{name}`; it has {', '.join(arrays) or 'none'}")
    return arrays[name] if name in arrays else next(iter(arrays.values()))


def _unpacked(infos, given: dict[str, str]) -> dict[str, str]:
    """Returns the values of inputs by their names; an archive that is given by itself is given for each input that it has."""
    out = {name: path for name, path in given.items() if name}
    if "" not in given:
        return out
    held = read_archive(given[""])
    for name in held:
        known(name, infos, f"--input {given['']}")
    return {**dict.fromkeys(held, given[""]), **out}


def _numpy_dtype(name: str) -> np.dtype:
    try:
        return np.dtype(name)
    except TypeError:
        try:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, name))
        except (ImportError, AttributeError, TypeError):
            raise Failure(f"values of dtype {name} cannot be made up here", "python -m pip install ml_dtypes") from None


def make(kind: str, shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """An array by recipe: zeros, ones, range, random[:seed]. Random integers are 0 and 1, valid as an index and as a
    mask.
    """
    target = _numpy_dtype(dtype)
    if math.prod(shape) * target.itemsize > _MAX_BYTES:
        raise Failure(f"an input of shape {list(shape)} and dtype {dtype} needs {math.prod(shape) * target.itemsize} bytes")
    recipe, _, argument = kind.partition(":")
    if recipe == "random":
        rng = np.random.default_rng(int(argument) if argument else seed)
        if target.kind == "f" or target.name in ("bfloat16",):
            return rng.standard_normal(shape, dtype=np.float32).astype(target)
        return rng.integers(0, 2, shape).astype(target)
    if recipe == "range":
        return np.arange(math.prod(shape)).reshape(shape).astype(target)
    return (np.zeros if recipe == "zeros" else np.ones)(shape, target)


def is_recipe(text: str) -> bool:
    recipe, sep, argument = text.partition(":")
    return text in ("zeros", "ones", "range", "random") or (recipe == "random" and sep and argument.isdecimal())


def _fits(info, array: np.ndarray, path: str) -> None:
    if array.dtype != _numpy_dtype(info.dtype):
        raise Failure(
            f"input `{info.name}` is {info.dtype}, `{path}` holds {array.dtype}",
            f"convert it: numpy.save(file, array.astype('{info.dtype}'))",
        )
    wanted = info.shape
    if len(wanted) != array.ndim or any(isinstance(w, int) and w != got for w, got in zip(wanted, array.shape, strict=True)):
        text = ", ".join(map(str, wanted))
        raise Failure(f"input `{info.name}` has shape ({text}), `{path}` holds {tuple(array.shape)}")


def gather(infos, given: dict[str, str], shapes: dict, dims: dict[str, int], seed: int, bounds=(), quiet: bool = False) -> dict[str, np.ndarray]:
    """An array for each input, from files, recipes, --shape and --dim; open dimensions of which they say nothing are supposed, within `bounds`."""
    given = _unpacked(infos, given)
    for name in given:
        known(name, infos, "--input")
    infos, sizes = settled(infos, shapes, dims)
    arrays = {}
    for info in infos:  # files first: what they say about named dimensions holds for the inputs that are made up
        value = given.get(info.name, "random")
        if is_recipe(value):
            if value == "random" and info.name in given and os.path.exists(value):
                raise UsageError("`random` is both a recipe and a file here", "write ./random for the file")
            shape = shapes.get(info.name)
            bind(info, shape, sizes)
            continue
        array = _read_input(info.name, value)
        _fits(info, array, value)
        if info.name in shapes and shapes[info.name] != array.shape:
            raise UsageError(f"--shape says {shapes[info.name]} for `{info.name}`, `{value}` holds {array.shape}")
        bind(info, array.shape, sizes)
        arrays[info.name] = array
    suppose([info for info in infos if info.name not in arrays], shapes, sizes, bounds, quiet)
    for info in infos:
        if info.name not in arrays:
            shape = closed(info, shapes, sizes)
            arrays[info.name] = make(given.get(info.name, "random"), shape, info.dtype, seed)
    return {info.name: arrays[info.name] for info in infos}


def describe(name: str, array: np.ndarray, values: bool = True) -> str:
    """`name float32[1, 10]  min -0.1 mean 0.0 max 0.2`, and the values, long ones shortened."""
    head = f"{name}  {array.dtype}[{', '.join(map(str, array.shape))}]"
    if array.size and array.dtype.kind in "fiub":
        wide = array.astype(np.float64)
        head += f"  min {wide.min():.6g}  mean {wide.mean():.6g}  max {wide.max():.6g}"
        if array.dtype.kind == "f" and not np.isfinite(wide).all():
            head += f"  not finite: {int((~np.isfinite(wide)).sum())}"
    if not values:
        return head
    text = np.array2string(array, threshold=64, edgeitems=3, precision=6, suppress_small=False, max_line_width=100)
    return head + "\n" + "\n".join("  " + line for line in text.splitlines())


def _plain(value):
    """A number or nested lists of them with NaN and infinities as text, for which JSON has no numbers."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_json(array: np.ndarray) -> dict:
    """Name-less description for --json; values only where they are few."""
    out = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size and array.dtype.kind in "fiub":
        wide = array.astype(np.float64)
        out |= {"min": _plain(float(wide.min())), "mean": _plain(float(wide.mean())), "max": _plain(float(wide.max()))}
    if array.size <= 1024:
        out["values"] = _plain(array.tolist()) if array.dtype.kind in "fiub" else [str(v) for v in array.ravel()]
    return out


def write_file(path: str, data: bytes) -> None:
    """Writes a whole file or none: a temporary one beside it, flushed, then renamed."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        if os.path.isdir(path):
            raise Failure(f"`{path}` is a directory; a file name is needed")
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".baton-", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes it private
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise Failure(f"cannot write `{path}`: {error.strerror or error}", "choose another place with -o or --save, or make room") from None


def save_arrays(path: str, arrays: dict[str, np.ndarray]) -> None:
    """`.npy` for one array, else `.npz` with a member for each."""
    buffer = io.BytesIO()
    if path.endswith(".npy"):
        if len(arrays) != 1:
            raise UsageError(f"a .npy file holds one array, the model has {len(arrays)} outputs", "use a name that ends in .npz")
        np.save(buffer, next(iter(arrays.values())), allow_pickle=False)
    elif path.endswith(".npz"):
        np.savez(buffer, **arrays)
    else:
        raise UsageError(f"--save takes a name that ends in .npy or .npz, not `{path}`")
    write_file(path, buffer.getvalue())
