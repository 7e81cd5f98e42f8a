# SPDX-License-Identifier: Apache-2.0
"""Random nests of contexts, passes, instruments and exceptions against a small model of the documented rules."""

import random

import pytest

import baton as tvm
from baton.instrument import pass_instrument
from baton.transform import PassContext, Sequential, module_pass

HOOKS = ("enter", "exit", "should", "before", "after", "failed", "skipped")
PREREQUISITES = {"TestModelBase": (), "TestModelMiddle": ("TestModelBase",)}


class Boom(Exception):
    """What instruments and passes throw, with the name of the thrower."""


# ---- Programs: statements ("with", context, body), ("try", body), ("run", pass), ("override", instruments);
# passes ("leaf", name, level, required, throws, body), ("seq", name, level, passes).


def make_program(rng):
    instruments = {
        i: {"id": i, "observes": rng.random() < 0.3, "says": rng.random() < 0.85,
            "fails": rng.choice(HOOKS) if rng.random() < 0.25 else None}
        for i in range(5)
    }  # fmt: skip

    def chosen():
        return rng.sample(sorted(instruments), rng.choice([0, 0, 1, 1, 2, 3]))

    def some_pass(depth):
        name = rng.choice("ABCDE")
        level = rng.choice([0, 0, 1, 2, 3, 4])
        if depth < 3 and rng.random() < 0.4:
            return ("seq", name, level, [some_pass(depth + 1) for _ in range(rng.randrange(4))])
        body = statements(depth + 1) if depth < 3 and rng.random() < 0.25 else []
        required = rng.sample(sorted(PREREQUISITES), rng.choice([0, 0, 1, 2]))
        return ("leaf", name, level, required, rng.random() < 0.12, body)

    def statement(depth):
        kind = rng.choice(["with", "try", "run", "run", "run", "override"])
        if depth >= 4 or kind == "run":
            return ("run", some_pass(depth))
        if kind == "override":
            return ("override", chosen())
        if kind == "try":
            return ("try", statements(depth + 1))
        context = {"opt_level": rng.randrange(5), "required": rng.sample("ABCDE", rng.randrange(2)),
                   "disabled": rng.sample("ABCDE", rng.randrange(2)), "instruments": chosen(), "inherit": rng.random() < 0.8}  # fmt: skip
        return ("with", context, statements(depth + 1))

    def statements(depth):
        return [statement(depth) for _ in range(rng.randrange(1, 4))]

    return instruments, statements(0)


# ---- The model


class Model:
    def __init__(self, instruments):
        self.spec, self.log = instruments, []
        self.stack = [{"opt_level": 2, "required": [], "disabled": [], "instruments": [], "inherited": []}]

    def call(self, i, hook, name=""):
        self.log.append((i, hook, name))
        if self.spec[i]["fails"] == hook:
            raise Boom(f"{i} {hook}")

    def around(self, ctx):
        return [*(i for i in ctx["inherited"] if i not in ctx["instruments"]), *ctx["instruments"]]

    def enter_instruments(self, ctx):
        entered = []
        try:
            for i in list(ctx["instruments"]):
                self.call(i, "enter")
                entered.append(i)
        except Boom:
            ctx["instruments"] = []
            try:
                for i in entered:
                    self.call(i, "exit")
            except Boom:
                pass  # the first wins
            raise

    def exit_instruments(self, ctx):
        try:
            for i in list(ctx["instruments"]):
                self.call(i, "exit")
        except Boom:
            ctx["instruments"] = []
            raise

    def run_with(self, given, body):
        outer = self.stack[-1]
        seen = self.around(outer) if given["inherit"] else []
        ctx = {**given, "instruments": list(given["instruments"])}
        inherited = [i for i in seen if self.spec[i]["observes"]]
        self.enter_instruments(ctx)
        ctx["inherited"] = inherited
        self.stack.append(ctx)
        try:
            self.run(body)
        except Boom:
            self.stack.pop()
            try:
                self.exit_instruments(ctx)
            except Boom:
                pass
            raise
        self.stack.pop()
        self.exit_instruments(ctx)

    def run(self, body):
        for statement in body:
            kind = statement[0]
            if kind == "with":
                self.run_with(*statement[1:])
            elif kind == "try":
                try:
                    self.run(statement[1])
                except Boom as error:
                    self.log.append(("caught", str(error)))
            elif kind == "override":
                ctx = self.stack[-1]
                self.exit_instruments(ctx)
                ctx["instruments"] = list(statement[1])
                self.enter_instruments(ctx)
            else:
                self.run_pass(statement[1], self.stack[-1])

    def skip(self, ctx, name):
        for i in self.around(ctx):
            self.call(i, "skipped", name)

    def run_pass(self, one, ctx):
        name = one[1]
        if name not in ctx["required"]:
            own = list(ctx["instruments"])
            for i in own:
                self.call(i, "should", name)
            if not all(self.spec[i]["says"] for i in own):
                self.skip(ctx, name)
                return
        for i in self.around(ctx):
            self.call(i, "before", name)
        try:
            self.run_body(one, ctx)
        except Boom:
            for i in self.around(ctx):
                try:
                    self.call(i, "failed", name)
                except Boom:
                    pass
            raise
        for i in self.around(ctx):
            self.call(i, "after", name)

    def run_body(self, one, ctx):
        if one[0] == "leaf":
            self.log.append(("pass", one[1]))
            self.run(one[5])
            if one[4]:
                raise Boom(f"pass {one[1]}")
            return
        for child in one[3]:
            name, level = child[1], child[2]
            if name in ctx["disabled"] or (name not in ctx["required"] and ctx["opt_level"] < level):
                self.skip(ctx, name)
                continue
            self.run_required(child[3] if child[0] == "leaf" else [], ctx)
            self.run_pass(child, ctx)

    def run_required(self, names, ctx):
        for name in names:
            self.run_required(PREREQUISITES[name], ctx)
            self.run_pass(("leaf", name, 4, [], False, []), ctx)


# ---- The real thing


class Real:
    def __init__(self, instruments):
        self.log = log = []
        self.module = tvm.IRModule()

        @pass_instrument
        class Watch:
            def __init__(self, spec):
                self.spec, self.observes = spec, spec["observes"]

            def say(self, hook, name=""):
                log.append((self.spec["id"], hook, str(name)))
                if self.spec["fails"] == hook:
                    raise Boom(f"{self.spec['id']} {hook}")

            def enter_pass_ctx(self):
                self.say("enter")

            def exit_pass_ctx(self):
                self.say("exit")

            def should_run(self, mod, info):
                self.say("should", info.name)
                return self.spec["says"]

            def run_before_pass(self, mod, info):
                self.say("before", info.name)

            def run_after_pass(self, mod, info):
                self.say("after", info.name)

            def on_pass_failed(self, mod, info, error):
                self.say("failed", info.name)

            def on_pass_skipped(self, mod, info, reason):
                self.say("skipped", info.name)

        self.instruments = {i: Watch(spec) for i, spec in instruments.items()}
        for name, required in PREREQUISITES.items():
            one = self.make(("leaf", name, 4, list(required), False, []))
            tvm.register_func("relay._transform." + name, lambda one=one: one, override=True)

    def make(self, one):
        if one[0] == "seq":
            return Sequential([self.make(p) for p in one[3]], opt_level=one[2], name=one[1])

        def body(mod, ctx):
            self.log.append(("pass", one[1]))
            self.run(one[5])
            if one[4]:
                raise Boom(f"pass {one[1]}")
            return mod

        return module_pass(body, opt_level=one[2], name=one[1], required=one[3])

    def run(self, body):
        for statement in body:
            kind = statement[0]
            if kind == "with":
                given = statement[1]
                with PassContext(given["opt_level"], given["required"], given["disabled"],
                                 [self.instruments[i] for i in given["instruments"]], inherit_instruments=given["inherit"]):  # fmt: skip
                    self.run(statement[2])
            elif kind == "try":
                try:
                    self.run(statement[1])
                except Boom as error:
                    self.log.append(("caught", str(error)))
            elif kind == "override":
                PassContext.current().override_instruments([self.instruments[i] for i in statement[1]])
            else:
                self.make(statement[1])(self.module)


def outcome(runner, body):
    try:
        runner.run(body)
    except Boom as error:
        return str(error)
    return "done"


@pytest.mark.parametrize("seed", range(0, 2000, 100))
def test_the_manager_does_what_the_model_says(seed):
    base = PassContext.current()
    events = 0
    for s in range(seed, seed + 100):
        instruments, body = make_program(random.Random(s))
        model, real = Model(instruments), Real(instruments)
        want, got = outcome(model, body), outcome(real, body)
        assert (got, real.log) == (want, model.log), f"seed {s}: {instruments} {body}"
        assert PassContext.current().same_as(base), f"seed {s}: the context stack is not what it was"
        names = [next(i for i, one in real.instruments.items() if one.same_as(here)) for here in base.instruments]
        assert names == model.stack[0]["instruments"], f"seed {s}"
        base.instruments and _clear(base)
        events += len(real.log)
    assert events > 100, "programs that do nothing show nothing"


def _clear(context):
    try:
        context.override_instruments([])
    except Boom:
        pass
