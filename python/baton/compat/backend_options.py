# SPDX-License-Identifier: Apache-2.0
"""Which executor and runtime a program asks for; kept so that programs which say so run. There is one engine."""


class _Choice:
    kinds = ()

    def __init__(self, name, options=None):
        if name not in self.kinds:
            raise ValueError(f"no {type(self).__name__.lower()} is called `{name}`; there are {', '.join(self.kinds)}")
        self.name, self.options = name, dict(options or {})

    def __contains__(self, name):
        return name in self.options

    def __getitem__(self, name):
        return self.options[name]

    def __eq__(self, other):
        return type(self) is type(other) and (self.name, self.options) == (other.name, other.options)

    def __hash__(self):
        return hash((self.name, tuple(sorted(self.options))))

    def __repr__(self):
        return f"{type(self).__name__}({self.name!r}, {self.options!r})"


class Executor(_Choice):
    """An executor by name."""

    kinds = ("aot", "graph", "vm")

    @staticmethod
    def list_executors():
        """The names there are."""
        return list(Executor.kinds)

    @staticmethod
    def list_executor_options(executor):
        """Options of an executor, with their types."""
        return {"link-params": "bool"}


class Runtime(_Choice):
    """A runtime by name."""

    kinds = ("cpp", "crt")

    @staticmethod
    def list_runtimes():
        """The names there are."""
        return list(Runtime.kinds)

    @staticmethod
    def list_runtime_options(runtime):
        """Options of a runtime, with their types."""
        return {"system-lib": "bool"}
