"""Mistakes against the rules of flows: one mistake, one message that helps."""

from __future__ import annotations

import pytest

from tests.compiler.newcomers import Row, name, one_message

MISTAKES: list[Row] = [
    (
        "fn f(d: Decision) -> Int {\n«match d» { case Approved(_): return 1 }\n}\n",
        "E0305",
        "this `match` does not cover `Rejected(_, _)`",
        "Add the missing arms",
    ),
    (
        "fn f(xs: List<Int>) -> Int {\n"
        "«match xs.first()» { case Some(1): return 1\n"
        "case None: return 2 }\n"
        "}\n",
        "E0305",
        "this `match` does not cover `Some(_)`",
        "Add the missing arms",
    ),
    (
        "import std.http\n"
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'let r = «http.get("x")»\n'
        "return r.text\n"
        " }\n"
        "}\n",
        "F0001",
        "`http.get` is an effect, and this is the flow `A`",
        "Put it in a step, and call the step.",
    ),
    (
        "import std.http\n"
        'fn fetch() -> String { return «http.get("x")».text }\n'
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "return fetch()\n"
        " }\n"
        "}\n",
        "F0001",
        "`http.get` is an effect, and `fetch` runs in the flow `A`",
        "Put it in a step, and call the step.",
    ),
    (
        "import std.time\n"
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let t = «time.now()»\n"
        'return "\\(t)"\n'
        " }\n"
        "}\n",
        "F0001",
        "`time.now` reads the clock, and this is the flow `A`",
        "Use `flow.now()`",
    ),
    (
        "import std.env\n"
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'return «env.require("X")»\n'
        " }\n"
        "}\n",
        "F0001",
        "`env.require` is an effect, and this is the flow `A`",
        "Put it in a step, and call the step.",
    ),
    (
        "step s(f: «fn(Int) -> Int») {}\n",
        "F0002",
        "the parameter `f` of the step `s` is a `fn(Int) -> Int`, which is not data",
        "Use data: it has a form in JSON, and can be kept and sent.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'let t = task.start(ask, "a")\n'
        "while true {\n"
        "stage s(«t»)\n"
        "let d = decisions.receive()\n"
        'return "\\(d)" }\n'
        " }\n"
        "}\n",
        "F0002",
        "`t` is a `Task<()>`, which is not data, and a stage carries data only",
        "Leave it out, and make it again after the stage.",
    ),
    (
        "step s() { «flow.sleep(1s)» }\n",
        "F0003",
        "`flow.sleep` is a flow operation, and this is the step `s`",
        "Do it in the flow, before or after the step is called; `flow.retry(after: …)`",
    ),
    (
        "step s() { g() }\nfn g() { «flow.sleep(1s)» }\n",
        "F0003",
        "`flow.sleep` is a flow operation, and `g` runs in the step `s`",
        "Do it in the flow, before or after the step is called; `flow.retry(after: …)`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'let xs = [1].sortBy(fn(x) { «ask("a")»\n'
        "return x })\n"
        'return "\\(xs)"\n'
        " }\n"
        "}\n",
        "F0003",
        "`ask` is a step, and `sortBy` takes pure functions only",
        "Do it before, with `task.map` or a loop, and give the results.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "for x in [1] { «stage s»\n"
        "flow.sleep(1s)\n"
        'print("\\(x)") }\n'
        'return "x"\n'
        " }\n"
        "}\n",
        "F0004",
        "the stage `s` stands in a `for`, whose place would be lost",
        "Use a `while` over an index, and let the stage carry the index.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        " fn g() { «stage s»\n"
        " flow.sleep(1s) }\n"
        " run {\n"
        "g()\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "F0004",
        "the stage `s` stands in the function `g`, whose caller would be lost",
        "Move it into `run`, as a statement of its own.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let a = 1\n"
        "while true {\n"
        "stage s\n"
        "let d = decisions.receive()\n"
        'return "\\(d) \\(«a»)" }\n'
        " }\n"
        "}\n",
        "F0005",
        "`a` is used after the stage `s`, which does not carry it",
        "Write `stage s(a)`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'wait match { case let d = decisions.receive(): print("\\(d)")\n'
        "case let w = flow.cancelled(): return w }\n"
        "let e = «decisions.receive()»\n"
        'return "\\(e)"\n'
        " }\n"
        "}\n",
        "F0006",
        "`A` listens for its cancellation, and would not hear it in this wait",
        "Write a `wait match`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        ' migrate gone(a: Int) { print("a") «}»\n'
        " run {\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "F0008",
        "a path through the migration `gone` ends without `become`",
        "Write `become` and a stage of this version on every path.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        " var «decisions»: Int = 1\n"
        " run {\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "F0009",
        "the flow `A` has a channel `decisions` already",
        "Give this field another name.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "flow.undo(«claim»)\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "F0011",
        "`flow.undo` takes a call of a step, to be made later, and `claim` is a value",
        "Name the step and what it is given, as in `flow.undo(release(r))`.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let x = flow.detach(«pay(claim)»)\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "F0011",
        "`flow.detach` takes a start, for an instance that never has a parent",
        "Write the start inside: `flow.detach(Flow.start(…))`.",
    ),
    (
        'step s() { «ask("a")» }\n',
        "F0012",
        "`ask` is a step, and this is the step `s`",
        "Call one after the other from the flow, or share a function.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        " fn g() { wait match { case let w = «flow.cancelled()»: print(w) } }\n"
        " run {\n"
        "let t = task.start(g)\n"
        "let r = t.join()\n"
        'return "\\(r.isOk())"\n'
        " }\n"
        "}\n",
        "F0014",
        "`g` runs in a task of `A`, and a task hears no cancellation",
        "Wait for it in `run`, or in a function that `run` calls.",
    ),
    (
        "step s() -> Settled<Int> «tries 3» { return Known(1) }\n",
        "F0015",
        "the step `s` gives `Settled`, and is not tried again",
        "Remove `tries`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        " var «total»: String\n"
        " run {\n"
        'ask("a")\n'
        "return total\n"
        " }\n"
        "}\n",
        "E0218",
        "the field `total` has no value yet where it is needed",
        'Begin with `""`',
    ),
    (
        "flow «B»() { fn f() {} }\n",
        "F0017",
        "the flow `B` has no `run`",
        "Add `run { … }`: it is what an instance of the flow does.",
    ),
    (
        "flow B() { run { }\n«run» { } }\n",
        "F0017",
        "the flow `B` has a second `run`",
        "Move it into the first, or into a function that the first calls.",
    ),
]


@pytest.mark.parametrize("row", MISTAKES, ids=name)
def test_one_mistake_is_one_message(row: Row) -> None:
    one_message(row)
