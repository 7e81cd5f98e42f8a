# SPDX-License-Identifier: Apache-2.0
"""Sessions: runs of a model whose states, as the keys and values of a decoder, stay from call to call. Needs the runtime library alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..runtime.runner import Runner


class Session(Runner):
    """One run of a model with states, as `Executable.session` makes it: a conversation, a stream.

        s = model.session()
        logits = s(prompt)              # all tokens at once
        logits = s([[token]])           # what follows reads what was said
        s.truncate(s.length - 1)        # takes a token back
        s.reset()                       # begins anew

    A state that keeps its size (a cache that TensorScatter writes, the hidden state of a recurrent layer) begins with zeros; what a call makes
    of it is there for the next one. It has no rows to count: `length` is 0 where all states are such.

    A call takes the inputs and gives the outputs other than states. A call that fails leaves the states as they were.
    """

    __slots__ = ("_model",)

    def __init__(self, executor, model):
        super().__init__(executor)
        self._model = model

    def __call__(self, *args, **kwargs):
        return self._model._call(self, args, kwargs)

    def profile(self, *args, rounds: int = 20, **kwargs):
        """As `Executable.profile`, of the call that would come next. The states stay as they are."""
        return self._model._profile(self, self._model._arguments(args, kwargs), rounds)

    @property
    def length(self) -> int:
        """How many rows (tokens, frames) the states hold."""
        return int(self.executor["length"]())

    @property
    def dim(self) -> str:
        """The name of the dimension that `length` is the size of."""
        return self.states[-1]  # empty where all states keep their size

    def truncate(self, length: int) -> None:
        """Forgets all rows but the first `length`."""
        self.executor["truncate"](length)

    def reset(self) -> None:
        """Forgets all rows; the memory stays for those to come."""
        self.executor["reset"]()

    def reserve(self, **dims: int) -> None:
        """As `Executable.reserve`, for this session."""
        self.executor["reserve"](self._model._sizes_of(dims))

    def memory(self) -> dict[str, int]:
        """Bytes: `constants` (weights, shared by all sessions), `workspace`, `outputs`, `state` (rows that are held), `state_copied` (of new
        rows that were copied to their place so far; most are made there). Then how many `plans` of memory are kept, and how often memory was
        `planned`; bytes of the latest outputs that lie in the memory of `donated` inputs.
        """
        return super().memory()

    def trim(self) -> None:
        """Gives back memory that grew with past calls; that of the states where they hold nothing."""
        super().trim()

    def __repr__(self) -> str:
        *names, dim = self.states
        rows = f" {dim}={self.length}" if dim else ""
        return f"<baton.Session{rows} of {', '.join(names[:2])}{', ...' if len(names) > 2 else ''}>"


# Names that decoders give what they keep and what becomes of it.
USUAL = (
    ("past_key_values.*", "present.*"),
    ("past_key_values.*", "present_key_values.*"),
    ("past_key_values_*", "present_key_values_*"),
    ("past_key_*", "present_key_*"),
    ("past_value_*", "present_value_*"),
    ("past_*", "present_*"),
    ("past.*", "present.*"),
    ("past", "present"),
)


def paired(state: bool | Mapping[str, str], inputs: Iterable[str], outputs: Iterable[str]) -> dict[str, str]:
    """States by name, input to output: of a map of names, in which `*` stands for any text, or for True by usual names."""
    inputs, outputs = tuple(inputs), set(outputs)
    rules = USUAL if state is True else tuple(state.items())
    pairs: dict[str, str] = {}
    for source, target in rules:
        head, star, tail = source.partition("*")
        found = False
        for name in inputs:
            if name in pairs or not _matches(name, head, star, tail):
                continue
            output = target.replace("*", name[len(head) : len(name) - len(tail)]) if star else target
            if output in outputs:
                pairs[name], found = output, True
            elif state is not True:
                raise ValueError(f"state: input `{name}` becomes `{output}`, which is not an output of the model")
        if not found and state is not True:
            raise ValueError(f"state: the model has no input `{source}`; its inputs are {', '.join(inputs) or 'none'}")
    if not pairs:
        raise ValueError("state: no input and output have names as past_* and present_*; give them: state={'past': 'present'}")
    return pairs


def _matches(name: str, head: str, star: str, tail: str) -> bool:
    return name == head if not star else len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
