"""Flows: state, steps, waits, stages, tasks, migrations, and what the chunk says of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qoqi.compiler import api
from qoqi.vm.bytecode.chunk import FOREVER, NO_FUNCTION, Chunk
from qoqi.vm.bytecode.codec import encode, version_hash
from qoqi.vm.bytecode.opcodes import Op, WaitKind
from qoqi.vm.effects import Operation, PassStage, StepCall, Wait
from qoqi.vm.interpreter import call
from qoqi.vm.values import UNSET, Closure, Duration, InstanceValue, TermValue, Time, UndoValue

Compile = Callable[..., Any]

APPROVAL = """
struct Claim { id: String, cents: Int, memo: String = "none" }
enum Outcome { Paid(receipt: String), Expired }

const patience = 2d

step ask(claim: Claim) within 10s { print("asked \\(claim.id)") }

step pay(id: String, cents: Int) -> Settled<String>
    within 30s * 2 backoff 1s to 1m undo refund(it, cents) {
    return Known("r-\\(id)-\\(flow.key())")
}

steps within 5s tries 7 on "bank@\\(id)" limit 3 limit 100 per 1m {
    extern step refund(id: String, cents: Int) -> Result<(), String> within 20s
    extern step probe(id: String) -> Int? tries forever for 1h else Some(id.len())
}

flow Main(claim: Claim, rounds: Int = 3) -> Outcome keep 1w {
    channel decisions: Bool capacity 2 * 4
    channel questions: String answers Int inside

    var seen: List<Bool> = []
    var most = rounds * 2
    var late: Int

    view count -> Int { return seen.len() }

    run {
        late = 0
        ask(claim)
        var round = 0
        let deadline = flow.now() + patience
        while round < most {
            round += 1
            stage asking(round, deadline)
            wait match {
                case let yes = decisions.receive() if round < 3:
                    seen.append(yes)
                    if yes { return settle(round) }
                case at deadline: return Expired
                case when late > round: return Expired
            }
        }
        return Expired
    }

    fn settle(round: Int) -> Outcome {
        return match pay(cents: claim.cents + round, id: claim.id) {
            case Known(receipt): Paid(receipt)
            case Unknown: Expired
        }
    }
}
"""


@pytest.fixture(scope="module")
def approval(compiled: Compile) -> Any:
    return compiled(APPROVAL)


def test_the_state_of_a_flow(approval: Any) -> None:
    chunk: Chunk = approval.chunk
    assert chunk.flow == "main.Main"
    assert [(s.name, s.parameter, s.default != NO_FUNCTION) for s in chunk.flow_slots] == [
        ("claim", True, False),
        ("rounds", True, True),
        ("seen", False, True),
        ("most", False, True),
        ("late", False, False),
    ]
    assert chunk.keep == 7 * 86_400_000
    assert approval.function(chunk.flow_slots[1].default) == 3
    fields = call(approval.program, chunk.fields_init, (), approval.slots(None, 5))
    assert fields == ([], 10, UNSET)


def test_channels_views_and_types(approval: Any) -> None:
    chunk: Chunk = approval.chunk
    assert [(c.name, c.type, c.capacity, c.inside, c.answers) for c in chunk.channels] == [
        ("decisions", "Bool", 8, False, None),
        ("questions", "String", 16, True, "Int"),
    ]
    assert [(view.name, view.result) for view in chunk.views] == [("count", "Int")]
    types = {type_.name: type_ for type_ in chunk.types}
    assert {"main.Claim", "main.Outcome", "Result", "Settled"} <= set(types)
    claim = types["main.Claim"]
    assert claim.fields is not None
    assert [(f.name, f.type, f.default != NO_FUNCTION) for f in claim.fields] == [
        ("id", "String", False),
        ("cents", "Int", False),
        ("memo", "String", True),
    ]
    assert "main.Unused" not in types


def test_the_clauses_of_a_step(approval: Any) -> None:
    ask, pay = approval.step("ask"), approval.step("pay")
    assert (ask.within, ask.tries, ask.settled, ask.undo) == (10_000, 0, False, -1)
    assert ask.result == ("Tuple",)
    assert (pay.within, pay.backoff, pay.backoff_most, pay.settled) == (60_000, 1_000, 60_000, True)
    assert [one.name for one in pay.params] == ["id", "cents"]
    undo = approval.chunk.steps[pay.undo]
    assert undo.name == "refund"
    assert approval.function(pay.undo_args, "r1", "c1", 40) == ("r1", 40)


def test_a_group_gives_its_clauses_where_a_step_has_none_of_its_own(approval: Any) -> None:
    refund = approval.step("refund")
    assert refund.body == NO_FUNCTION
    assert (refund.within, refund.tries) == (20_000, 7)
    assert refund.limits == ((3, 0), (100, 60_000))
    assert approval.function(refund.queue, "x", 1) == "bank@x"


def test_tries_without_end_with_an_answer_at_last(compiled: Compile) -> None:
    text = APPROVAL.replace("ask(claim)\n", "ask(claim)\nlet _ = probe(claim.id)\n")
    got = compiled(text)
    probe = got.step("probe")
    assert (probe.within, probe.tries, probe.tries_for) == (5_000, FOREVER, 3_600_000)
    assert got.function(probe.otherwise, "abcd").payload == (4,)
    assert got.function(probe.queue, "y") == "bank@y"


def test_a_name_bound_in_a_clause_hides_the_parameter_only_there(compiled: Compile) -> None:
    text = """
    extern step find(id: Int, at: Int?) -> Int
        tries 2 else (match at { case Some(id): id * 10
                       case None: 0 }) + id
    flow Main() -> Int { run { return find(1, None) } }
    """
    got = compiled(text)
    some = got.program.types.some(5)
    assert got.function(got.step("find").otherwise, 7, some) == 57


def test_a_flow_from_start_to_end(approval: Any, running: Any) -> None:
    claim = approval.program.types.struct("Claim", "c1", 50, "m")
    task = running(approval, claim, 3, [], 6)
    effect = task.next()
    assert isinstance(effect, StepCall)
    assert approval.chunk.steps[effect.step].name == "ask"
    assert effect.args == (claim,)
    assert task.next(()) == Operation("flow.now", ())
    stage = task.next(Time(1_000))
    assert stage == PassStage(0)
    definition = approval.chunk.stages[0]
    assert [(name, type_) for name, _, type_ in definition.variables] == [
        ("round", "Int"),
        ("deadline", "Time"),
    ]
    frame = task.task.frames[-1]
    assert (frame.pc, frame.stack) == (definition.entry, [])
    assert [frame.slots[slot] for _, slot, _ in definition.variables] == [
        1,
        Time(1_000 + 2 * 86_400_000),
    ]

    wait = task.next()
    assert isinstance(wait, Wait)
    assert [(case.number, case.kind) for case in wait.cases] == [
        (0, WaitKind.RECEIVE),
        (1, WaitKind.AT),
        (2, WaitKind.WHEN),
    ]
    assert wait.cases[0].operands == (0,)
    condition = wait.cases[2].operands[0]
    assert isinstance(condition, Closure)
    assert condition.captured == (1,)

    assert isinstance(task.next(False, 0), PassStage)
    assert isinstance(task.next(), Wait)
    assert isinstance(task.next(False, 0), PassStage)
    wait = task.next()
    assert isinstance(wait, Wait)
    assert [case.number for case in wait.cases] == [1, 2]  # the first case is off by now
    assert task.machine.flow_slots[2] == [False, False]
    outcome = task.end(Time(0), 1)
    assert outcome.name == "Expired"


def test_run_is_entered_again_at_a_stage_with_its_variables_alone(
    approval: Any, running: Any
) -> None:
    claim = approval.program.types.struct("Claim", "c1", 50, "m")
    task = running(approval, claim, 3, [], 6, 0)
    definition = approval.chunk.stages[0]
    frame = task.task.frames[-1]
    frame.pc = definition.entry
    slots: list[object] = [UNSET] * len(frame.slots)
    for (_, slot, _), value in zip(definition.variables, (2, Time(9)), strict=True):
        slots[slot] = value
    frame.slots = slots
    assert isinstance(task.next(), Wait)
    paid = task.next(True, 0)
    assert isinstance(paid, StepCall)
    assert paid.args == ("c1", 52)  # named arguments, in the order of the parameters
    outcome = task.end(approval.program.types.known("r"))
    assert (outcome.name, outcome.payload) == ("Paid", ("r",))


def test_a_body_asks_for_its_key(approval: Any, running: Any) -> None:
    body = Closure(approval.step("pay").body, ("c7", 1))
    task = running(approval, callee=body)
    assert task.next() == Operation("step.key", ())
    assert task.end("k").payload == ("r-c7-k",)


def test_bare_waits(compiled: Compile, running: Any) -> None:
    text = """
    flow Other(n: Int) -> Int { run { return n } }
    flow Main() -> Int {
        channel a: Int
        channel b: Int
        run {
            let x = b.receive()
            a.send(x + 1)
            flow.sleep(2s)
            let other = Other.start("o-\\(x)", x)
            match other.wait() {
                case Ok(n): return n
                case Err(Cancelled { reason }): return reason.len()
            }
        }
    }
    """
    task = running(compiled(text))
    kinds = []
    effect = task.next()
    kinds.append((effect.cases[0].kind, effect.cases[0].operands))
    effect = task.next(5, 0)
    kinds.append((effect.cases[0].kind, effect.cases[0].operands))
    effect = task.next((), 0)
    kinds.append((effect.cases[0].kind, effect.cases[0].operands))
    assert kinds == [
        (WaitKind.RECEIVE, (1,)),
        (WaitKind.SEND, (0, 6)),
        (WaitKind.AFTER, (Duration(2_000),)),
    ]
    started = task.next((), 0)
    assert started == Operation("instance.start", ("main.Other", "o-5", (5,)))
    instance = InstanceValue("main.Other", "o-5", "x")
    effect = task.next(instance)
    assert (effect.cases[0].kind, effect.cases[0].operands) == (WaitKind.FLOW, (instance,))
    types = task.compiled.program.types
    assert task.end(types.err(types.struct("Cancelled", "late")), 0) == 4


def test_what_is_said_of_instances(compiled: Compile, running: Any) -> None:
    text = """
    step undo1(n: Int) { }
    flow Other(a: Int, b: Int = 7) {
        channel box: Int
        channel asks: Int answers String
        run { }
    }
    flow Main() -> Int {
        run {
            let me = flow.detach(Other.start(b: 2, a: 1, name: "x"))
            let _ = me.box.send(3)
            let _ = me.box.send(4, key: "k")
            let answer = me.asks.ask(5)
            flow.undo(undo1(6))
            flow.finally(me.box.send(8))
            let found = Other.find("y")
            let more: Int = flow.stop("why?")
            return more + (if found.isSome() { 1 } else { 0 })
        }
    }
    """
    got = compiled(text.replace('Other.start(b: 2, a: 1, name: "x")', 'Other.start("x", 1)'))
    task = running(got)
    types = got.program.types
    me = InstanceValue("main.Other", "x", "b")
    assert task.next() == Operation("instance.detach", ("main.Other", "x", (1, 7)))
    assert task.next(me) == Operation("instance.send", (me, "box", 3))
    assert task.next(types.ok(())) == Operation("instance.send", (me, "box", 4, "k"))
    assert task.next(types.ok(())) == Operation("instance.ask", (me, "asks", 5))
    wait = task.next("asking")
    assert (wait.cases[0].kind, wait.cases[0].operands) == (WaitKind.ANSWER, ("asking",))
    effect = task.next(types.ok("fine"), 0)
    assert effect == Operation("undo.step", (got.step_index("undo1"), (6,)))
    undo = UndoValue("undo1", (6,))
    assert task.next(undo) == Operation("flow.undo", (undo,))
    assert task.next(()) == Operation("undo.send", (me, "box", 8))
    assert task.next(undo) == Operation("flow.finally", (undo,))
    assert task.next(()) == Operation("instance.find", ("main.Other", "y"))
    effect = task.next(types.none())
    assert (effect.name, effect.args[0]) == ("flow.stop", "why?")
    assert isinstance(effect.args[1], TermValue)
    assert effect.args[1].term == "Int"
    assert task.end(41) == 41


def test_tasks_are_named_after_what_they_run(compiled: Compile, running: Any) -> None:
    text = """
    extern step charge(n: Int) -> Int
    extern step record(n: Int)
    flow Main() -> Int {
        run {
            let a = task.start(work, 1)
            let b = task.start(fn() => charge(2))
            let c = task.map([1, 2], charge, limit: 3)
            let d = task.map([1], fn(n) { record(charge(n)) })
            return c.sum()
        }
        fn work(n: Int) -> Int {
            let t = task.start(fn() { flow.sleep(1s) })
            let _ = t.join()
            return charge(n)
        }
    }
    """
    got = compiled(text)
    names = {function.name for function in got.chunk.functions}
    task = running(got)

    def started(effect: Operation) -> tuple[str, object]:
        closure = effect.args[0] if effect.name == "task.start" else effect.args[1]
        assert isinstance(closure, Closure)
        return got.chunk.functions[closure.function].name, effect.args

    name, args = started(task.next())
    assert (name, args[1]) == ("work", (1,))  # type: ignore[index]
    name, _ = started(task.next("t1"))
    assert name == "charge"
    name, args = started(task.next("t2"))
    assert (name, args[0], args[2]) == ("charge", [1, 2], 3)  # type: ignore[index]
    name, args = started(task.next([4, 5]))
    assert (name, args[2]) == ("run", -1)  # type: ignore[index]
    assert task.end([()]) == 9
    assert "work" in names


def test_a_migration_gives_a_stage_and_what_changes(compiled: Compile) -> None:
    text = """
    enum Plan { Basic, Big(seats: Int) }
    flow Main(customer: String) {
        run {
            var plan = Plan.Basic
            while true {
                stage billing(plan)
                flow.sleep(30d)
                plan = Plan.Big(1)
            }
        }
        migrate trial(day: Int, customer: String) {
            if day > 14 { become billing(plan: Plan.Big(seats: day)) }
            become billing(plan: Plan.Basic)
        }
    }
    """
    got = compiled(text)
    (migration,) = got.chunk.migrations
    assert (migration.stage, [one.name for one in migration.params]) == (
        "trial",
        ["day", "customer"],
    )
    name, given = got.function(migration.function, 20, "eva")
    assert name == "billing"
    assert (given["plan"].name, given["plan"].payload) == ("Big", (20,))
    name, given = got.function(migration.function, 3, "eva")
    assert given["plan"].name == "Basic"


def test_code_that_cannot_run_is_not_there(compiled: Compile) -> None:
    text = """
    flow Main() -> Int {
        run {
            while true {
                if flow.id() == "x" { return 1 } else { return 2 }
            }
        }
    }
    """
    code = compiled(text).chunk.functions[0].code
    assert [Op(op) for op, _ in code] == [
        Op.OPERATION,
        Op.CONST,
        Op.EQ,
        Op.JUMP_IF_FALSE,
        Op.INT,
        Op.RETURN,
        Op.INT,
        Op.RETURN,
    ]


def test_what_no_flow_reaches_is_not_in_its_chunk(compiled: Compile) -> None:
    text = """
    struct Unused { n: Int }
    fn unused() -> Unused { return Unused { n: 1 } }
    extern step never(n: Int)
    flow Main() { run { } }
    """
    chunk = compiled(text).chunk
    assert [function.name for function in chunk.functions] == ["run", "fields"]
    assert (chunk.types, chunk.steps, chunk.natives) == ((), (), ())


@pytest.mark.parametrize(
    ("declared", "marked"),
    [
        ("extern step s() within f()", "f()"),
        ("extern step s() tries g() backoff 1s to f()", "g() f()"),
        ("extern step s() tries 3 for f() beat 1s + f()", "f() 1s + f()"),
        ("steps limit g() limit 3 per f() { extern step s() }", "g() f()"),
        ("const d = f()\nextern step s() within d", "d"),
        (
            "flow N() keep f() { channel c: Int capacity g()\nrun { let _ = c.receive() } }",
            "f() g()",
        ),
    ],
)
def test_a_clause_that_is_not_known_is_reported(files: Any, declared: str, marked: str) -> None:
    more = "fn f() -> Duration { return 1s }\nfn g() -> Int { return 1 }\n"
    text = f"{more}{declared}\nflow M() {{ run {{ }} }}\n"
    result = api.build(".", reader=files({"main.flow": text}))
    found = [each for each in result.diagnostics if each.code == "E0323"]
    assert " ".join(text[each.span.start : each.span.end] for each in found) == marked
    assert result.flows == ()
    assert not api.check(".", reader=files({"main.flow": text})).ok


def test_clauses_may_be_computed_from_constants(compiled: Compile) -> None:
    text = """
    const day = 24h
    const tries = 2 * (5 - 2)
    extern step s(id: Int) within day / 2 - 1h tries tries backoff day - 23h
    flow Main() { run { s(1) } }
    """
    step = compiled(text).step("s")
    assert (step.within, step.tries, step.backoff) == (11 * 3_600_000, 6, 3_600_000)


def test_comments_lines_and_paths_make_no_other_version(compiled: Compile) -> None:
    other = APPROVAL.replace("\n", "\n\n").replace("    run {", "// hello\n    run {")
    before, after = compiled(APPROVAL), compiled(other)
    assert version_hash(encoded(before)) == version_hash(encoded(after))
    assert before.debug != after.debug


def encoded(compiled: Any) -> bytes:
    return encode(compiled.chunk)


def test_two_processes_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "main.flow").write_text(APPROVAL)
    script = (
        "import sys; from qoqi.compiler import api;"
        "print([f.hash for f in api.build(sys.argv[1]).flows])"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(hashes) == 1
    assert len(hashes.pop()) > 60
