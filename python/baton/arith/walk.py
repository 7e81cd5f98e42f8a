# SPDX-License-Identifier: Apache-2.0
"""How passes over integer expressions go through them: each part once, however often it is shared, and to any depth."""


def parts_first(e, parts_of, known=()):
    """The different parts of an expression, each behind its own parts, and last the expression; not those whose handles are among `known`.

    e: an expression.
    parts_of: function of an expression to the list of its parts.
    known: handles, or a mapping by handle, that may grow meanwhile.
    """
    seen, work = set(), [(e, None)]
    while work:
        this, rest = work.pop()
        if rest is None:
            if this.handle in seen or this.handle in known:
                continue
            rest = iter(parts_of(this))
        for part in rest:
            if part.handle not in seen and part.handle not in known:
                work += [(this, rest), (part, None)]
                break
        else:
            seen.add(this.handle)
            yield this


__all__ = ["parts_first"]
