# SPDX-License-Identifier: Apache-2.0
"""One executor of a model, as Python sees it, whether shapes are fixed or open, states are kept or several devices take part."""

_SUMS = ("constants", "workspace", "outputs", "plans")
_OF_SESSION = (*_SUMS, "state", "state_copied", "planned", "donated")


class Runner:
    """Runs a model, in one thread at a time; runners of a model share code and weights.

    Attributes: `executor`, the module whose functions run the model; `run`, the function that a call of the model is; `begun`, which says
    whether the latest call was begun, of a model with donated inputs (else None).
    """

    __slots__ = ("begun", "executor", "run")

    def __init__(self, executor, run=None, begun=None):
        self.executor, self.run, self.begun = executor, run, begun

    def function(self, name):
        """Returns a function of the executor, or None where it lacks one of this name."""
        try:
            return self.executor[name]
        except AttributeError:
            return None

    def _list(self, name):
        get = self.function(name)
        return list(map(str, get())) if get else []

    def rows(self, side):
        """Returns (name, shape, dtype, names of extents) of each "input" or "output". A shape has -1 for an open extent; executors on other
        machines may know no names of extents."""
        info = self.executor[f"get_{side}_info"]
        rows = [info(i) for i in range(int(self.executor[f"get_num_{side}s"]()))]
        return [(str(name), tuple(map(int, shape)), str(dtype), [str(e) for e in rest[0]] if rest else []) for name, shape, dtype, *rest in rows]

    def names(self, side):
        """Returns the names of the inputs or outputs, in order."""
        name = self.executor[f"get_{side}_name"]
        return [str(name(i)) for i in range(int(self.executor[f"get_num_{side}s"]()))]

    @property
    def donated(self):
        """The donated inputs, each with the output that takes its memory."""
        flat = self._list("get_donated")
        return dict(zip(flat[::2], flat[1::2], strict=True))

    @property
    def states(self):
        """Names of the states, then the dimension that counts their rows ("" where all keep their size); empty for a model without states."""
        return self._list("get_states")

    def memory(self):
        """Returns bytes and counts by name, as `Executable.memory` and `Session.memory` have them; empty where the executor does not tell."""
        get = self.function("get_memory")
        values = list(map(int, get())) if get else []
        names = _OF_SESSION if len(values) == len(_OF_SESSION) else (*_SUMS, "donated")
        return dict(zip(names, values, strict=False))

    def trim(self):
        """Gives back memory that grew with past calls."""
        give_back = self.function("trim")
        if give_back:
            give_back()


def memory_of(runners):
    """Returns what runners of a model hold together; they share the constants."""
    total = dict.fromkeys(_SUMS, 0)
    for runner in runners:
        for name, number in runner.memory().items():
            total[name] = number if name == "constants" else total.get(name, 0) + number
    return total
