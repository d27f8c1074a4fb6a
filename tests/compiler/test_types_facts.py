"""What the checker hands on: types, plans, coercions, captures, listening flows."""

from __future__ import annotations

from typing import TypeVar

import pytest

from qoqi.compiler.names.symbols import LocalSymbol, StepSymbol, VariantSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import (
    BuiltinTarget,
    CallPlan,
    Default,
    Facts,
    FnTarget,
    Given,
    StructPlan,
    VariantMatch,
)
from qoqi.compiler.types.model import (
    DECIMAL,
    FLOAT,
    INT,
    JSON,
    STRING,
    UNIT,
    Con,
    ErrorType,
    FlowRef,
    Fn,
    Tup,
    Type,
    Var,
    list_of,
    option_of,
    result_of,
    set_of,
)
from tests.compiler.test_types_accepted import RIGHT
from tests.compiler.types_check import analyse

NodeT = TypeVar("NodeT", bound=ast.Node)


def facts_of(text: str) -> tuple[ast.Module, Facts]:
    checked, found = analyse(text)
    assert found == []
    return checked.modules["m"], checked.facts["m"]


def all_of(root: ast.Node, kind: type[NodeT]) -> list[NodeT]:
    found = [root] if isinstance(root, kind) else []
    for child in ast.children(root):
        found += all_of(child, kind)
    return found


def plan_of(text: str, name: str) -> CallPlan:
    """The plan of the call of that name."""
    module, facts = facts_of(text)
    for call in all_of(module, ast.Call):
        fn = call.fn
        shown = fn.name.name if isinstance(fn, ast.FieldExpr) else getattr(fn, "name", "")
        if shown == name:
            return facts.calls[call]
    raise AssertionError(name)


def type_of_let(text: str, name: str) -> Type:
    """The type of the variable of that name."""
    _, facts = facts_of(text)
    for node, symbol in facts.bindings.items():
        if symbol.name == name:
            return facts.types[node]
    raise AssertionError(name)


def _parts(type_: Type) -> list[Type]:
    match type_:
        case Con(args=args):
            below = list(args)
        case Tup(items=items):
            below = list(items)
        case Fn(params=params, result=result):
            below = [*params, result]
        case _:
            below = []
    return [type_, *(part for each in below for part in _parts(each))]


@pytest.mark.parametrize("name", RIGHT)
def test_every_fact_of_a_right_program_is_final(name: str) -> None:
    checked, _ = analyse(RIGHT[name])
    module, facts = checked.modules["m"], checked.facts["m"]
    for type_ in facts.types.values():
        assert not any(isinstance(part, ErrorType | Var) for part in _parts(type_))
    for plan in facts.calls.values():
        if isinstance(plan.target, FnTarget):
            assert not any(isinstance(t, ErrorType | Var) for t in plan.target.type_args)
    for call in all_of(module, ast.Call):
        assert call in facts.calls
    for literal in all_of(module, ast.StructExpr):
        assert literal in facts.structs


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("1", INT),
        ("1.5", DECIMAL),
        ("[1, 2.5]", list_of(DECIMAL)),
        ("1.5 * 2", DECIMAL),
        ('("a", 1)', Tup((STRING, INT))),
        ("Some(1)", option_of(INT)),
        ("d * 2", DECIMAL),
        ("x + 1", FLOAT),
        ("fn(n: Int) => n + 1", Fn((INT,), INT)),
        ("[1].map(fn(n) => (n, d))", list_of(Tup((INT, DECIMAL)))),
        ('["b", "a"].toSet()', set_of(STRING)),
        ('["a"].groupBy(fn(s) => s.len())', Con("Map", (INT, list_of(STRING)))),
        ("[1].zip([d])", list_of(Tup((INT, DECIMAL)))),
        ('Int.parse("1")', option_of(INT)),
        ("if x > 1 { None } else { Some(d) }", option_of(DECIMAL)),
        ("0..3", Con("Range", (INT,))),
        ("if x > 1 { 1 } else { d }", DECIMAL),
        ("()", UNIT),
    ],
)
def test_what_a_variable_is(value: str, type_: Type) -> None:
    text = f"fn f(d: Decimal, x: Float) {{\n let v = {value}\n}}"
    assert type_of_let(text, "v") == type_


def test_a_literal_has_the_type_it_is_used_at() -> None:
    module, facts = facts_of("fn f(d: Decimal, x: Float) -> Bool { return d > 1 && x < 2.5 }")
    found = [facts.types[lit] for lit in all_of(module, ast.IntLit)]
    found += [facts.types[lit] for lit in all_of(module, ast.DecimalLit)]
    assert found == [DECIMAL, FLOAT]


def test_a_literal_left_out_has_the_type_of_its_call() -> None:
    text = "fn f(xs: List<Decimal>) -> Decimal { return xs.sum() }"
    module, facts = facts_of(text)
    plan = facts.calls[all_of(module, ast.Call)[0]]
    assert isinstance(plan.target, FnTarget)
    assert plan.target.type_args == (DECIMAL,)
    _, zero = plan.args
    assert isinstance(zero, Given)
    assert facts.types[zero.value] == DECIMAL


def test_arguments_are_in_the_order_of_the_parameters() -> None:
    text = """
fn g(a: Int, b: String = "x", c: Bool = true) -> Int { return a }
fn f() -> Int { return g(c: false, a: 1) }
"""
    plan = plan_of(text, "g")
    a, b, c = plan.args
    assert isinstance(a, Given) and isinstance(a.value, ast.IntLit)
    assert isinstance(b, Default) and b.module == "m"
    assert isinstance(c, Given) and isinstance(c.value, ast.BoolLit)


def test_the_receiver_is_the_first_argument() -> None:
    plan = plan_of("fn f(s: String) -> String { return s.padLeft(3) }", "padLeft")
    receiver, width, fill = plan.args
    assert isinstance(receiver, Given) and isinstance(receiver.value, ast.Name)
    assert isinstance(width, Given)
    assert isinstance(fill, Default) and fill.module == "std.prelude"


def test_fields_of_a_struct_literal() -> None:
    text = """
struct S { a: Int, b: Int = 2, c: Int?, d: Int }
fn f(d: Int) -> S { return S { d, a: 1 } }
fn g(s: S) -> S { return S { ..s, d: 3 } }
"""
    module, facts = facts_of(text)
    first, second = (facts.structs[e] for e in all_of(module, ast.StructExpr))
    assert isinstance(first, StructPlan)
    a, b, c, d = first.fields
    assert isinstance(a, Given) and isinstance(b, Default)
    assert isinstance(c, Given) and facts.types[c.value] == option_of(INT)
    assert isinstance(d, Given) and isinstance(facts.uses[d.value], LocalSymbol)
    assert [source is None for source in second.fields] == [True, True, True, False]


def test_what_is_coerced() -> None:
    text = """
fn f(n: Int, j: Json) -> Json {
    let s: Set<Int> = [1]
    return ["n": n, "j": j, "l": [s.len()]]
}
"""
    module, facts = facts_of(text)
    names = {node.name: facts.coerce.get(node) for node in all_of(module, ast.Name)}
    assert names["n"] == "json"
    assert names["j"] is None
    outer = all_of(module, ast.MapExpr)[0]
    assert (facts.coerce[outer], facts.types[outer]) == ("json", JSON)
    kinds = sorted(facts.coerce[e] for e in all_of(module, ast.ListExpr))
    assert kinds == ["json", "set"]


def test_a_handle_is_taken_as_the_instance_it_is() -> None:
    text = """
flow Lock(n: Int) -> Int {
    channel c: Instance<Lock>
    run { return n }
}
test "t" {
    let it = Lock.start("a", 1)
    it.c.send(it)
}
"""
    module, facts = facts_of(text)
    sent = all_of(module, ast.Name)[-1]
    assert facts.types[sent] == Con("test.Handle", (FlowRef("m.Lock"),))
    assert facts.coerce[sent] == "instance"


def test_variant_patterns_by_field() -> None:
    text = """
enum E { A(x: Int, y: Int), B }
fn f(e: E) -> Int { return match e { case A(y: z, ..): z
    case B: 0 } }
"""
    module, facts = facts_of(text)
    first, second = (facts.matches[p] for p in all_of(module, ast.VariantPattern))
    assert isinstance(first, VariantMatch) and first.symbol.name == "A"
    assert [part is None for part in first.fields] == [True, False]
    assert isinstance(second, VariantMatch) and second.fields == ()


def test_alternatives_share_their_variables() -> None:
    text = """
enum E { A(x: Int), B(y: Int) }
fn f(e: E) -> Int { return match e { case A(n) | B(n): n } }
"""
    module, facts = facts_of(text)
    bound = {facts.bindings[p] for p in all_of(module, ast.BindPattern)}
    used = {facts.uses[n] for n in all_of(module, ast.Name) if n.name == "n"}
    assert len(bound) == 1 and bound == used


def test_what_closures_capture_in_order() -> None:
    text = """
fn f(a: Int, b: Int, c: Int) -> List<Int> {
    return [1].flatMap(fn(x) => [2].map(fn(y) => y + b + x + a))
}
"""
    module, facts = facts_of(text)
    outer, inner = all_of(module, ast.LambdaExpr)
    assert [s.name for s in facts.captures[outer]] == ["b", "a"]
    assert [s.name for s in facts.captures[inner]] == ["b", "x", "a"]


def test_the_undo_of_a_step() -> None:
    text = """
extern step free(id: String) on "q"
extern step take(n: Int) -> Settled<Result<String?, Int>> undo free(it) on "q"
"""
    module, facts = facts_of(text)
    (clause,) = all_of(module, ast.UndoClause)
    name = next(n for n in all_of(clause, ast.Name) if n.name == "it")
    assert facts.uses[name] is facts.undo_it[clause]
    assert facts.types[name] == STRING


def test_clauses_of_a_group_mean_each_step_s_own_parameters() -> None:
    text = """
steps on "x@\\(host)" {
    extern step one(host: String)
    extern step two(n: Int, host: Int)
}
"""
    checked, found = analyse(text)
    assert found == []
    steps = [s for s in checked.signatures if isinstance(s, StepSymbol)]
    types = []
    for step in sorted(steps, key=lambda s: s.name):
        (name,) = all_of(step.group[0], ast.Name)
        types.append(checked.facts["m"].types[name])
    assert types == [STRING, INT]


@pytest.mark.parametrize(
    ("call", "name", "type_"),
    [
        ("let s: Decimal = j.decode()", "data.decode", DECIMAL),
        ("let s = Claim.decode(j)", "data.decode", Con("m.Claim")),
        ("let s: Result<Int, String> = j.tryDecode()", "data.tryDecode", INT),
        ('let s: Int = flow.stop("how many?")', "flow.stop", INT),
        ('flow.stop("look")', "flow.stop", UNIT),
    ],
)
def test_builtins_that_need_a_type(call: str, name: str, type_: Type) -> None:
    text = f"struct Claim {{ n: Int }}\nfn f(j: Json) {{ {call} }}"
    module, facts = facts_of(text)
    targets = [facts.calls[c].target for c in all_of(module, ast.Call)]
    assert BuiltinTarget(name, type=type_) in targets


def test_functions_given_as_values() -> None:
    text = "enum E { A(n: Int) }\nfn g(n: Int) -> Int { return n }\n" + (
        "fn f(xs: List<Int>) -> List<E> { return xs.map(g).map(E.A) }"
    )
    _, facts = facts_of(text)
    shown = sorted(type(target).__name__ for target in facts.values.values())
    assert shown == ["FnTarget", "VariantTarget"]
    assert any(isinstance(s, VariantSymbol) for s in facts.uses.values())


def test_flows_that_listen() -> None:
    text = """
fn hear(n: Int) -> Int { return n }
flow A(n: Int) -> Int {
    run { return listen() }
    fn listen() -> Int { return wait match { case let why = flow.cancelled(): why.len() } }
}
flow B(n: Int) -> Int { run { return hear(n) } }
"""
    checked, found = analyse(text)
    assert found == []
    assert checked.listens == {"m.A"}
    assert [flow.name for flow in checked.flows] == ["A", "B"]


def test_bodies_of_the_library_have_facts_when_they_are_needed() -> None:
    checked, _ = analyse("fn f(xs: List<Int?>) -> List<Int> { return xs.filterMap(fn(x) => x) }")
    library = checked.facts["std.prelude"]
    decl = next(
        item
        for item in checked.modules["std.prelude"].items
        if isinstance(item, ast.FnDecl) and item.name.name == "filterMap"
    )
    assert decl.body is not None
    for call in all_of(decl.body, ast.Call):
        assert call in library.calls


def test_results_are_the_same_each_time() -> None:
    text = "fn f(n: Int) -> Result<Int, String> { return n.foo() + m }"
    first = [(d.code, d.span, d.message) for d in analyse(text)[1]]
    assert [(d.code, d.span, d.message) for d in analyse(text)[1]] == first
    assert len(first) == 2
    assert result_of(INT, STRING) == Con("Result", (INT, STRING))
