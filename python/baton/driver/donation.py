# SPDX-License-Identifier: Apache-2.0
"""Arrays that callers give to a model, so that an output may lie in their memory (`donate=` of `baton.compile`). Needs the runtime library alone."""

from __future__ import annotations

from collections.abc import Sequence

from ..runtime import NDArray


class Given:
    """An array on its way to a model; `give` makes it. A call takes it once."""

    __slots__ = ("_array", "_giver")

    def __init__(self, array: NDArray):
        self._array, self._giver = array._move(), array

    def take(self) -> NDArray:
        """The array, which is not here any more."""
        array, self._array = self._array, None
        if array is None:
            raise ValueError("the array was given to a model before")
        return array

    def put_back(self, array: NDArray) -> None:
        """After a call that failed before it ran: the program has its array again."""
        self._giver._take_back(array)


def put_all_back(arrays: Sequence) -> None:
    """Gives programs the arrays again that a call did not get to take."""
    for one in arrays:
        if isinstance(one, Given) and one._array is not None:
            one.put_back(one.take())


def give(array: NDArray) -> Given:
    """Gives an array to the model that is called with it, which may write an output into its memory:

        model = baton.compile(source, donate=("x",))
        x = model(baton.give(x))

    `array` is empty afterwards: using it is a ValueError. Others that refer to its elements (a NumPy view, a DLPack tensor, a reshaped
    array) keeps them; the model writes into other memory then. A call that is refused, for this argument or another one, takes nothing: `array`
    is as it was.
    """
    if not isinstance(array, NDArray):
        raise TypeError(f"a baton.NDArray can be given, not {type(array).__name__}; baton.nd.array(x) makes one")
    return Given(array)


def taken(arrays: Sequence, donated: Sequence[int]) -> tuple[int, list]:
    """(which of the donated inputs are given, a bit each; the arrays themselves)."""
    given, out = 0, list(arrays)
    for bit, at in enumerate(donated[:62]):
        if isinstance(out[at], Given):
            out[at] = out[at].take()
            given |= 1 << bit
    return given, out


def untake(arguments: Sequence, arrays: Sequence) -> None:
    """Undoes `taken`, of a call that was refused. arguments: as the program gave them; arrays: as `taken` gave them back."""
    for argument, array in zip(arguments, arrays, strict=True):
        if isinstance(argument, Given) and argument is not array:
            argument.put_back(array)
    put_all_back(arguments)


def donated_names(names: str | Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
    """The names of `donate=`, checked."""
    names = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    for name in names:
        if name not in inputs:
            raise ValueError(f"donate: the model has no input `{name}`; its inputs are {', '.join(inputs) or 'none'}")
    return names
