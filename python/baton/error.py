# SPDX-License-Identifier: Apache-2.0
"""The errors that Baton raises. Each is a `baton.Error`; where Python has a class for the fault, it is that too."""

import builtins

from . import _core


class BatonError(builtins.RuntimeError):
    """Base of all errors that Baton raises.

    kind: the word that C++ has for it, as "CompileError". trace: where it passed, for errors that are Baton's own fault.
    payload: what the raiser added for programs to read, or None.
    """

    __slots__ = ()  # the layout of Python's own errors, which also_error counts on
    kind = "Error"
    trace = ""
    payload = None


Error = TVMError = BatonError


def register_error(name=None, cls=None):
    """Lets errors of C++ of one kind arrive as a class: `@register_error` (the class's name is the kind) or
    `@register_error("Kind")`."""
    if isinstance(name, type):
        name, cls = name.__name__, name

    def register(cls):
        kind = name or cls.__name__
        _core.register_error(kind, cls)
        if "kind" not in vars(cls) and issubclass(cls, BatonError):
            cls.kind = kind
        return cls

    return register(cls) if cls is not None else register


@register_error
class CompileError(BatonError):
    """The program that was given is wrong: a model, a Relay text, a pass's input."""


@register_error
class ParseError(CompileError, SyntaxError):
    """A text that does not follow the grammar."""

    __init__ = SyntaxError.__init__  # RuntimeError, which is nearer, has another


@register_error
class TypeInferenceError(CompileError, builtins.TypeError):
    """A program whose types do not fit."""


DiagnosticError = CompileError


@register_error
class ShapeError(CompileError, builtins.ValueError):
    """Shapes that do not fit."""


@register_error
class PassError(CompileError):
    """A pass failed. `reproducer` is the path of a file that replays it, or None."""

    reproducer = None


@register_error
class CodegenError(CompileError):
    """No code could be made."""


@register_error
class RuntimeError(BatonError, builtins.RuntimeError):  # noqa: A001 - the name that C++ has
    """The call is wrong, or the machine: shapes, devices, files."""


@register_error
class DeviceError(RuntimeError):
    """A device is missing or failed."""


@register_error
class RPCError(RuntimeError, ConnectionError):
    """A remote session failed."""


@register_error
class InternalError(BatonError, builtins.RuntimeError):
    """Baton's own mistake; please report it with its `trace`."""


class OpError(BatonError):
    """Base of what is raised about operators that are not there, or not in this form."""


@register_error
class UnsupportedError(OpError, NotImplementedError):
    """Something that is not there was asked for. `ops` names the operators, where it is about operators."""

    @property
    def ops(self):
        names = self.payload
        if names is None or isinstance(names, str):
            return []
        try:
            return list(names)
        except builtins.TypeError:
            return []


OpNotImplemented = register_error("OpNotImplemented", UnsupportedError)


@register_error
class OpNotSupported(UnsupportedError):
    """An operator that the importer knows, in a form that it does not take."""


@register_error
class OpAttributeRequired(OpError, builtins.AttributeError):
    """An attribute of an operator that is not given."""


@register_error
class OpAttributeInvalid(OpError, builtins.AttributeError):
    """An attribute of an operator with a value that cannot be."""


@register_error
class OpAttributeUnImplemented(UnsupportedError):
    """An attribute of an operator that the importer does not take."""


def _both(name, builtin, doc):
    def __str__(self):
        # KeyError quotes its argument and OSError looks for a number; ours say the message.
        return builtins.str(self.args[0]) if len(self.args) == 1 else builtin.__str__(self)

    own = {"__doc__": doc, "__module__": __name__, "__str__": __str__, "__init__": builtin.__init__, "__new__": builtin.__new__}
    cls = type(name, (BatonError, builtin), own)
    return register_error(name, cls)


TypeError = _both("TypeError", builtins.TypeError, "A value of the wrong kind.")  # noqa: A001
ValueError = _both("ValueError", builtins.ValueError, "A value of the right kind that cannot be.")  # noqa: A001
KeyError = _both("KeyError", builtins.KeyError, "A name that is not there.")  # noqa: A001
IndexError = _both("IndexError", builtins.IndexError, "A place outside.")  # noqa: A001
AttributeError = _both("AttributeError", builtins.AttributeError, "A field or attribute that is not there.")  # noqa: A001
MemoryError = _both("MemoryError", builtins.MemoryError, "No memory was left.")  # noqa: A001
OSError = _both("OSError", builtins.OSError, "A file or the system failed.")  # noqa: A001
FileNotFoundError = _both("FileNotFoundError", builtins.FileNotFoundError, "A file that is not there.")  # noqa: A001
TimeoutError = _both("TimeoutError", builtins.TimeoutError, "An operation that takes longer than it may.")  # noqa: A001
OverflowError = _both("OverflowError", builtins.OverflowError, "A number that does not fit.")  # noqa: A001
register_error("Error", BatonError)
_also = {}


def also_error(cls):
    """The class that an exception of `cls` gets which a program's function raised within C++: `cls` and `Error` both.

    It has the name of `cls`, and pickles as `cls`."""
    if cls not in _also:
        bases = (BatonError,) if issubclass(BatonError, cls) else (cls, BatonError)
        made = type(cls.__name__, bases, {"__slots__": (), "__doc__": cls.__doc__, "__module__": cls.__module__, "kind": cls.__name__})

        def __reduce__(self):
            how = super(made, self).__reduce__()
            return (cls, *how[1:]) if isinstance(how, tuple) and how[0] is made else how

        made.__qualname__, made.__reduce__ = cls.__qualname__, __reduce__
        _also[cls] = made
    return _also[cls]


_core.set_also_error(also_error)


def own_class(error):
    """The class that an exception was raised with, also where it can be caught as `Error` since it crossed C++."""
    cls = type(error)
    return cls.__mro__[1] if _also.get(cls.__mro__[1]) is cls else cls


def did_you_mean(name, known):
    """ "; did you mean `x`?" with the nearest of the names that there are, or "" where none is near. A dict's value is shown."""
    import difflib

    known = known if isinstance(known, dict) else {n: n for n in known}
    near = difflib.get_close_matches(name, known, 1, 0.7)
    return f"; did you mean `{known[near[0]]}`?" if near else ""


__all__ = [
    "BatonError",
    "CodegenError",
    "CompileError",
    "DeviceError",
    "DiagnosticError",
    "Error",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OpNotSupported",
    "ParseError",
    "PassError",
    "RPCError",
    "RuntimeError",
    "ShapeError",
    "TVMError",
    "TypeInferenceError",
    "UnsupportedError",
    "register_error",
]
