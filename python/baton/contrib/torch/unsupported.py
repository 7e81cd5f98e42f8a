# SPDX-License-Identifier: Apache-2.0
"""One message about everything of a program that has no rule: names, places, and a script that shows each."""

from __future__ import annotations

import torch

from ...error import UnsupportedError
from .places import place_of


class Missing:
    """A node without a rule."""

    def __init__(self, node, name: str, reason: str):
        self.node, self.name, self.reason = node, name, reason

    @property
    def place(self) -> str:
        """File and line, and the module, as far as known."""
        line, path = place_of(self.node)
        return ", ".join(filter(None, [line, f"in {path}" if path else ""]))

    def script(self) -> str:
        """Lines of Python that show it alone; empty for what is no operator."""
        node = self.node
        if not hasattr(node.target, "_schema"):
            return ""

        def text(arg):
            if isinstance(arg, torch.fx.Node):
                fake = arg.meta.get("val")
                if isinstance(fake, torch.Tensor):
                    sizes = [int(s) if isinstance(s, int) else s.node.hint or 2 for s in fake.shape]
                    return f"torch.zeros({sizes}, dtype={fake.dtype})"
                return repr(fake)
            if isinstance(arg, (list, tuple)):
                return "[" + ", ".join(map(text, arg)) + "]"
            if isinstance(arg, torch.device):
                return f"torch.{arg!r}"
            return str(arg) if isinstance(arg, (torch.dtype, torch.layout, torch.memory_format)) else repr(arg)

        args = [text(a) for a in node.args] + [f"{k}={text(v)}" for k, v in node.kwargs.items()]
        call = f"torch.ops.{node.target}({', '.join(args)})"
        return "\n".join(
            [
                "import torch, baton",
                "class Shown(torch.nn.Module):",
                "    def forward(self):",
                f"        return {call}",
                "baton.compile(torch.export.export(Shown(), ()))",
            ]
        )


def error_of(missing: list[Missing]) -> UnsupportedError:
    """The error about these nodes: a line for each kind, with how often and where first."""
    kinds: dict[tuple[str, str], list[Missing]] = {}
    for m in missing:
        kinds.setdefault((m.name, m.reason), []).append(m)
    lines = [f"{len(kinds)} kind{'s' if len(kinds) > 1 else ''} of operators that Baton does not support:"]
    for (name, reason), found in kinds.items():
        where = f" at {found[0].place}" if found[0].place else ""
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        lines.append(f"  {name}{where}{more}: {reason}")
    shown = [s for s in (found[0].script() for found in kinds.values()) if s]
    if shown:
        lines.append("This shows the first alone:")
        lines += ["    " + line for line in shown[0].splitlines()]
    error = UnsupportedError("\n".join(lines))
    error.missing = [(m.name, m.place, m.reason) for m in missing]
    error.scripts = {name: found[0].script() for (name, _), found in kinds.items()}
    return error
