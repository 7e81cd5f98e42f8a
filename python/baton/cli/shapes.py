# SPDX-License-Identifier: Apache-2.0
"""--shape and --dim: the sizes of a model's inputs. A dimension without a name is called by its place, as `x[0]`."""

from __future__ import annotations

import ast

from .errors import Failure, UsageError
from .terminal import note


def known(name: str, infos, option: str) -> None:
    """Wrong usage where the model has no such input."""
    names = [info.name for info in infos]
    if name not in names:
        raise UsageError(f"{option}: the model has no input `{name}`; its inputs are {', '.join(names) or 'none'}", _near(name, names))


def _near(name: str, names: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean `{near[0]}`?" if near else ""


def settled(infos, shapes: dict, dims: dict[str, int]) -> tuple[list, dict[str, int]]:
    """(the inputs with a name for each open dimension, sizes by these names); says which of the given names there are not."""
    for name in shapes:
        known(name, infos, "--shape")
    infos = [info._replace(shape=tuple(f"{info.name}[{k}]" if dim is None else dim for k, dim in enumerate(info.shape))) for info in infos]
    places = {f"{info.name}[{k}]": (info, dim) for info in infos for k, dim in enumerate(info.shape)}
    sizes: dict[str, int] = {}
    symbols = sorted({dim for _, dim in places.values() if not isinstance(dim, int)})
    for given, size in dims.items():
        info, dim = places.get(given, (None, given))
        if isinstance(dim, int):
            if dim != size:
                raise UsageError(f"--dim: `{given}` is {dim} in the model, not {size}")
            continue
        if info is None and dim not in symbols:
            raise UsageError(f"--dim: the model has no dimension `{given}`; it has {', '.join(symbols) or 'none'}", _near(given, symbols))
        if sizes.setdefault(dim, size) != size:
            raise UsageError(f"--dim: dimension `{dim}` is {sizes[dim]} and {size}")
    return infos, sizes


def bind(info, shape, sizes: dict) -> None:
    """Takes named dimensions' sizes from a shape; two sizes for one name are wrong."""
    if shape is None:
        return
    if len(shape) != len(info.shape):
        raise UsageError(f"input `{info.name}` has {len(info.shape)} dimensions, {tuple(shape)} has {len(shape)}")
    for dim, size in zip(info.shape, shape, strict=True):
        if isinstance(dim, int):
            if dim != size:
                raise UsageError(f"input `{info.name}` has shape {tuple(info.shape)}, not {tuple(shape)}")
        elif sizes.setdefault(dim, size) != size:
            raise UsageError(f"dimension `{dim}` is {sizes[dim]} in one place and {size} in input `{info.name}`")


_FUNCTIONS = {"min": min, "max": max, "floordiv": lambda a, b: a // b}


def evaluate(formula: str, sizes: dict) -> int | None:
    """The value of a dimension such as `past + seq` or `floordiv(n, 2)`; None where a name in it has no size."""

    def of(e):
        match e:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return sizes[name]
            case ast.BinOp(left=a, op=ast.Add(), right=b):
                return of(a) + of(b)
            case ast.BinOp(left=a, op=ast.Sub(), right=b):
                return of(a) - of(b)
            case ast.BinOp(left=a, op=ast.Mult(), right=b):
                return of(a) * of(b)
            case ast.Call(func=ast.Name(id=name), args=[a, b]):
                return _FUNCTIONS[name](of(a), of(b))
        raise KeyError(formula)

    try:
        return of(ast.parse(formula, mode="eval").body)
    except (KeyError, SyntaxError, ZeroDivisionError):
        return None


def _names(dim: str) -> list[str]:
    """The names in a dimension: itself, or those of a formula."""
    if not set(dim) & set("+*() "):
        return [dim]
    try:
        return [e.id for e in ast.walk(ast.parse(dim, mode="eval")) if isinstance(e, ast.Name) and e.id not in _FUNCTIONS]
    except SyntaxError:
        return [dim]


def suppose(infos, shapes: dict, sizes: dict, bounds=(), quiet: bool = False) -> None:
    """Gives a size to each open dimension that nothing says: 1 to an input's first, 224 to an image's sides, 16 to others, within its bounds."""
    limits = {dim.name: dim for dim in bounds}
    added = {}
    for info in infos:
        is_open = [isinstance(dim, str) for dim in info.shape]
        sides = {k for k in range(1, len(is_open) - 1) if len(is_open) == 4 and is_open[k] and is_open[k + 1]}
        for k, dim in enumerate(info.shape):
            for name in _names(dim) if is_open[k] and info.name not in shapes else ():
                if name in sizes:
                    continue
                size = 1 if k == 0 else 224 if {k, k - 1} & sides else 16
                if name in limits:
                    least, most, step = limits[name].min, limits[name].max, limits[name].multiple
                    size = min(-(-max(size, least) // step), most // step) * step
                sizes[name] = added[name] = size
    if added:
        note(f"open dimensions: {', '.join(f'{name}={size}' for name, size in added.items())}; others with --dim {next(iter(added))}=...", quiet)


def _sized(dim, sizes: dict):
    if not isinstance(dim, str):
        return dim
    size = sizes.get(dim)
    size = evaluate(dim, sizes) if size is None else size
    return dim if size is None else size


def closed(info, shapes: dict, sizes: dict) -> tuple[int, ...]:
    """The shape of an input; wrong usage that names the dimensions that are still open."""
    shape = shapes.get(info.name)
    shape = tuple(_sized(dim, sizes) for dim in info.shape) if shape is None else shape
    open_dims = [str(dim) for dim in shape if not isinstance(dim, int)]
    if open_dims:
        ways = " ".join(f"--dim {dim}=1" for dim in dict.fromkeys(open_dims))
        raise UsageError(f"the size of {', '.join(f'`{dim}`' for dim in open_dims)} in input `{info.name}` is not known",
                         f"{ways}, or --shape {info.name}=...")  # fmt: skip
    return shape


def gather_shapes(infos, shapes: dict, dims: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """A shape for each input from --shape and --dim; what they leave open is supposed, and said."""
    infos, sizes = settled(infos, shapes, dims)
    for info in infos:
        bind(info, shapes.get(info.name), sizes)
    suppose(infos, shapes, sizes)
    return {info.name: closed(info, shapes, sizes) for info in infos}


def open_shapes(infos, shapes: dict, dims: dict) -> dict[str, tuple]:
    """A shape for each input: sizes, and for what stays open a `baton.Dim`, or None where the model says all."""
    numbers = {name: size for name, size in dims.items() if isinstance(size, int)}
    infos, sizes = settled(infos, {}, numbers)
    for name, shape in shapes.items():
        known(name, infos, "--shape")
        info = next(info for info in infos if info.name == name)
        if len(shape) != len(info.shape):
            raise UsageError(f"input `{name}` has {len(info.shape)} dimensions, --shape gives {len(shape)}")
        for have, size in zip(info.shape, shape, strict=True):
            if isinstance(have, int) and size is not None and size != have:
                raise UsageError(f"input `{name}` has shape ({', '.join(map(str, info.shape))}), not ({', '.join(map(str, shape))})")
            if not isinstance(have, int) and isinstance(size, int) and sizes.setdefault(have, size) != size:
                raise UsageError(f"dimension `{have}` is {sizes[have]} in one place and {size} in input `{name}`")
    bounds = _bounds(infos, {name: dim for name, dim in dims.items() if not isinstance(dim, int)})
    out = {}
    for info in infos:
        given = shapes.get(info.name, (None,) * len(info.shape))
        out[info.name] = tuple(
            have if isinstance(have, int) else sizes[have] if have in sizes else bounds.get(have) if dim is None else dim
            for have, dim in zip(info.shape, given, strict=True)
        )
    return out


def _bounds(infos, dims: dict) -> dict:
    """Bounds by the name of a dimension, which may be given by its place."""
    places = {f"{info.name}[{k}]": (f"{info.name}_{k}", dim) for info in infos for k, dim in enumerate(info.shape)}
    symbols = sorted({dim for _, dim in places.values() if not isinstance(dim, int)})
    out = {}
    for given, bounds in dims.items():
        own, dim = places.get(given, (given, given))
        if isinstance(dim, int):
            raise UsageError(f"--dim: `{given}` is {dim} in the model, it is not open")
        if dim not in symbols:
            raise UsageError(f"--dim: the model has no dimension `{given}`; it has {', '.join(symbols) or 'none'}", _near(given, symbols))
        out[dim] = bounds._replace(name=dim if dim.isidentifier() else own)
    return out


def given_shapes(infos, shapes: dict, dims: dict[str, int]) -> dict[str, tuple[int, ...]]:
    """A shape for each input of which --shape and --dim say something, with -1 for what stays open."""
    infos, sizes = settled(infos, shapes, dims)
    for info in infos:
        bind(info, shapes.get(info.name), sizes)
    out = {}
    for info in infos:
        shape = tuple(sizes.get(dim, -1) if isinstance(dim, str) else dim for dim in info.shape)
        if any(isinstance(dim, str) and dim in sizes for dim in info.shape):
            out[info.name] = shape
    return out


def read_module(path: str, shapes: dict, dims: dict[str, int], what: str = "Relay text"):
    """The Relay module of a file, with the sizes of --shape and --dim; Relay text on standard input for `-`."""
    from ..driver.compiler import Source
    from . import arguments

    if path == "-" or arguments.kind_of_file(path) == "relay":
        text = arguments.read_text(path)
        if not text.strip():
            raise Failure(f"{'standard input' if path == '-' else f'`{path}`'} is empty; {what} is needed")
        source = Source("relay", text, "<stdin>" if path == "-" else path)
    else:
        source = Source.of(path)
    if source.kind != "onnx":
        return source.read(given_shapes(source.signature(shapes)[0], shapes, dims) if shapes or dims else {})
    infos = source.signature(shapes)[0]
    return source.read_named(infos, given_shapes(infos, shapes, dims))
