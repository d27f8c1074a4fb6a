"""Expressions, statements and patterns: what they are worth when the machine runs them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import display
from qoqi.vm.values import Struct, Variant

Value = Callable[..., object]


def plain(value: object) -> object:
    """Structs as lists of fields, variants as (name, payload…), deep."""
    match value:
        case Struct(fields=fields):
            return [plain(field) for field in fields]
        case Variant():
            return (value.name, *(plain(part) for part in value.payload))
        case list():
            return [plain(item) for item in value]
        case tuple():
            return tuple(plain(item) for item in value)
        case _:
            return value


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 % 3", -1),
        ("7 % -3", 1),
        ("-(3 - 5)", 2),
        ("2_000_000 * 3_000_000", 6_000_000_000_000),
        ("[10, 20, 30][1]", 20),
        ('["a": 1, "b": 2]["b"]', 2),
        ("(1, (2, 3)).1.0", 2),
        ("if 1 < 2 { 10 } else { 20 }", 10),
        ("if 1 > 2 { 10 } else if 2 > 3 { 20 } else { 30 }", 30),
        ("[1, 2].len() + [1, 2, 3].len()", 5),
    ],
)
def test_int_expressions(value: Value, expression: str, wanted: int) -> None:
    assert value(f"return {expression}") == wanted


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("true && !false", True),
        ("false || 1 == 2", False),
        ("1 == 2 && 1 / 0 == 0", False),
        ("1 == 1 || 1 / 0 == 0", True),
        ("!(1 < 2 && 2 < 1)", True),
        ("3 in 1..3", False),
        ("3 in 1..=3", True),
        ("4 not in [1, 2, 3]", True),
        ('"k" in ["k": 1]', True),
        ("1.50 == 1.5", True),
        ("1d < 25h", True),
        ("@2026-11-30 < @2026-12-01", True),
        ("(1, 2) == (1, 2)", True),
        ("[1] != [1]", False),
    ],
)
def test_bool_expressions(value: Value, expression: str, wanted: bool) -> None:
    assert value(f"return {expression}", "Bool") is wanted


def test_a_decimal_keeps_the_scale_that_was_written(value: Value) -> None:
    assert display(value("return 10.00 * 2", "Decimal")) == "20.00"
    assert value("return -0.50", "Decimal") == Decimal("-0.50")


def test_an_int_literal_takes_the_type_that_is_wanted(value: Value) -> None:
    assert isinstance(value("let x: Decimal = 3\nreturn x", "Decimal"), Decimal)
    assert isinstance(value("let x: Float = 3\nreturn x", "Float"), float)
    assert isinstance(value("let x: Float = -2.5\nreturn x", "Float"), float)


def test_text_is_put_together(value: Value) -> None:
    body = 'let who = "Eva"\nreturn "\\(who) has \\(1 + 1) of \\("\\(who)s \\(2.50)")."'
    assert value(body, "String") == "Eva has 2 of Evas 2.50."
    assert value('return ""', "String") == ""


def test_an_if_without_a_value_is_unit(value: Value) -> None:
    assert value("var n = 1\nif n == 2 { n = 5 }\nif n == 1 { n = 7 }\nreturn n") == 7


def test_if_let_with_a_guard(value: Value) -> None:
    body = """
        let some: Int? = Some(5)
        let none: Int? = None
        var n = 0
        if let Some(x) = some && x > 3 { n += x }
        if let Some(x) = some && x > 9 { n += 100 } else { n += 10 }
        if let Some(x) = none { n += x } else { n += 20 }
        return n
    """
    assert value(body) == 35


def test_let_else_leaves_or_binds(value: Value) -> None:
    more = """
        fn half(n: Int) -> Int? { return if n % 2 == 0 { Some(n / 2) } else { None } }
        fn quarter(n: Int) -> Int {
            let Some(h) = half(n) else { return -1 }
            let Some(q) = half(h) else { return -2 }
            return q
        }
    """
    assert value("return (quarter(12), quarter(7), quarter(6))", "(Int, Int, Int)", more) == (
        3,
        -1,
        -2,
    )


@pytest.mark.parametrize(
    ("subject", "wanted"),
    [
        ("Circle(r: 3)", "circle 3"),
        ("Circle(r: 0)", "point"),
        ("Rect(2, 2)", "square 2"),
        ("Rect(2, 5)", "rect 2 5"),
        ("Empty", "empty"),
    ],
)
def test_match_of_variants(value: Value, subject: str, wanted: str) -> None:
    more = """
        enum Shape { Circle(r: Int), Rect(w: Int, h: Int), Empty }
        fn name(s: Shape) -> String {
            return match s {
                case Circle(r: 0): "point"
                case Circle(r): "circle \\(r)"
                case Rect(w, h) if w == h: "square \\(w)"
                case Rect(w: a, h: b): "rect \\(a) \\(b)"
                case Empty: "empty"
            }
        }
    """
    assert value(f"return name(Shape.{subject})", "String", more) == wanted


@pytest.mark.parametrize(
    ("number", "wanted"), [(-3, 1), (0, 2), (1, 3), (5, 3), (6, 4), (7, 4), (8, 0)]
)
def test_match_of_literals_and_ranges(value: Value, number: int, wanted: int) -> None:
    body = f"""
        let n = {number}
        return match n {{
            case -3: 1
            case 0: 2
            case 1..=5: 3
            case 6..8: 4
            case _: 0
        }}
    """
    assert value(body) == wanted


def test_alternatives_bind_the_same_names(value: Value) -> None:
    more = """
        enum E { A(x: Int, y: Int), B(y: Int, x: Int), C(x: Int) }
        fn less(e: E) -> Int {
            match e {
                case A(x, y) | B(y, x): return x - y
                case C(x): return x
            }
        }
        fn within(p: (E, Int)) -> Int {
            match p {
                case (A(n, _) | C(n), 1): return n
                case (_, k): return k
            }
        }
    """
    body = """
        return [less(E.A(9, 1)), less(E.B(9, 1)), less(E.C(4)),
                within((E.C(7), 1)), within((E.B(7, 8), 1)), within((E.A(6, 5), 1))]
    """
    assert value(body, "List<Int>", more) == [8, -8, 4, 7, 1, 6]


def test_list_patterns(value: Value) -> None:
    more = """
        fn f(xs: List<Int>) -> List<Int> {
            match xs {
                case []: return [0]
                case [x]: return [1, x]
                case [7, ..rest]: return rest
                case [.., 9]: return [9, 9]
                case [first, ..middle, last]: return [last, first].concat(middle)
            }
        }
    """
    body = "return [f([]), f([5]), f([7, 8, 1]), f([1, 2, 9]), f([1, 2, 3, 4]), f([7, 9])]"
    assert value(body, "List<List<Int>>", more) == [
        [0],
        [1, 5],
        [8, 1],
        [9, 9],
        [4, 1, 2, 3],
        [9],
    ]


def test_struct_patterns(value: Value) -> None:
    more = """
        struct P { x: Int, y: Int, tag: String = "t" }
        fn f(p: P) -> Int {
            match p {
                case P { x: 1, .. }: return 100
                case P { x, y: 2, .. }: return x
                case P { x, y, tag }: return x * 10 + y + tag.len()
            }
        }
    """
    body = "return (f(P { x: 1, y: 9 }), f(P { x: 5, y: 2 }), f(P { x: 5, y: 3 }))"
    assert value(body, "(Int, Int, Int)", more) == (100, 5, 54)


def test_loops_with_break_and_continue(value: Value) -> None:
    body = """
        var total = 0
        for i in 0..10 {
            if i % 2 == 0 { continue }
            if i > 7 { break }
            var k = 0
            while true {
                k += 1
                if k > i { break }
                total += 1
            }
        }
        return total
    """
    assert value(body) == 1 + 3 + 5 + 7


def test_for_over_lists_maps_and_pairs(value: Value) -> None:
    body = """
        var s = ""
        for (k, v) in ["a": 1, "b": 2] { s = "\\(s)\\(k)\\(v)" }
        for (i, x) in ["x", "y"].enumerate() { s = "\\(s)\\(i)\\(x)" }
        for n in 1..=3 { s = "\\(s)\\(n)" }
        return s
    """
    assert value(body, "String") == "a1b20x1y123"


def test_changing_a_list_while_it_is_walked_changes_the_variable_only(value: Value) -> None:
    body = """
        var xs = [1, 2, 3]
        for x in xs { xs.append(x * 10) }
        return xs
    """
    assert value(body, "List<Int>") == [1, 2, 3, 10, 20, 30]


def test_while_let_takes_until_there_is_nothing(value: Value) -> None:
    body = """
        var xs = [3, 4]
        var sum = 0
        while let Some(x) = xs.first() {
            sum = sum * 10 + x
            xs = xs.drop(1)
        }
        return sum
    """
    assert value(body) == 34


def test_leaving_a_loop_from_inside_an_expression(value: Value) -> None:
    more = "fn add(a: Int, b: Int, c: Int) -> Int { return a + b + c }"
    body = """
        var n = 0
        while true {
            n += 1
            let x = add(1, if n == 2 { continue } else { 2 }, if n > 4 { break } else { n })
            n = x
        }
        return n
    """
    # 1 -> 4 (1 + 2 + 1); 5: break
    assert value(body, "Int", more) == 5


def test_deferred_statements_run_last_first_on_every_way_out(value: Value) -> None:
    members = """
        var log: List<Int> = []
        fn note(n: Int) { log.append(n) }
        fn early(n: Int) -> Int {
            defer { note(1) }
            if n == 0 { return 10 }
            defer { note(2) }
            for i in 0..3 {
                defer { note(3) }
                if i == 1 { break }
                note(4)
            }
            return 20
        }
        fn tried(r: Result<Int, Int>) -> Result<Int, Int> {
            defer { note(5) }
            let x = r?
            note(6)
            return Ok(x)
        }
    """
    body = """
        log = []
        let a = early(0)
        note(a)
        let b = early(1)
        note(b)
        let _ = tried(Err(0))
        let _ = tried(Ok(1))
        return log
    """
    assert value(body, "List<Int>", members=members) == [1, 10, 4, 3, 3, 2, 1, 20, 5, 6, 5]


def test_places_deep_in_a_value(value: Value) -> None:
    more = """
        struct Job { name: String, tags: List<String> = [] }
        struct Node { job: Job, pair: (Int, Int) = (0, 0) }
    """
    body = """
        var nodes = [Node { job: Job { name: "a" } }, Node { job: Job { name: "b" } }]
        let before = nodes
        nodes[1].job.name = "c"
        nodes[0].job.tags.append("x")
        nodes[0].pair.1 += 7
        var m: Map<String, List<Int>> = [:]
        m["k"] = [1]
        m["k"].append(2)
        m["k"][0] *= 5
        let then = "\\(before[1].job.name) \\(before[0].job.tags)"
        return "\\(nodes[0].job.tags) \\(nodes[1].job.name) \\(nodes[0].pair.1) \\(m["k"]) \\(then)"
    """
    assert value(body, "String", more) == '["x"] c 7 [5,2] b []'


def test_the_right_side_of_a_compound_assignment_comes_first(value: Value) -> None:
    members = """
        var n = 1
        fn ten() -> Int {
            n = 100
            return 10
        }
    """
    assert value("n -= ten()\nreturn n", members=members) == 90


def test_indexes_of_a_place_come_before_the_right_side(value: Value) -> None:
    members = """
        var i = 0
        fn next() -> Int {
            i += 1
            return i
        }
    """
    body = "var xs = [0, 0, 0, 0]\nxs[next()] = next() * 10\nxs[next()] += next()\nreturn xs"
    assert value(body, "List<Int>", members=members) == [0, 20, 0, 4]


def test_methods_that_change_their_receiver(value: Value) -> None:
    more = """
        struct Stack { items: List<Int> = [], pushed: Int = 0 }
        fn push(var self: Stack, n: Int) -> Int {
            self.items.append(n)
            self.pushed += 1
            return self.pushed
        }
        fn pushTwice(var self: Stack, n: Int) {
            self.push(n)
            self.push(n + self.pushed)
        }
    """
    body = """
        var s = Stack {}
        var all = ["k": s]
        let old = s
        s.pushTwice(1)
        let count = s.push(s.items.len())
        all["k"].push(9)
        return "\\(s.items) \\(count) \\(old.items) \\(all["k"].items)"
    """
    assert value(body, "String", more) == "[1,2,2] 3 [] [9]"


def test_arguments_of_a_changing_method_come_before_its_receiver_is_read(value: Value) -> None:
    more = """
        struct Bag { items: List<Int> = [] }
        fn put(var self: Bag, a: Int, b: Int) { self.items.append(a - b) }
        fn take(var self: Bag) -> Int {
            self.items.append(100)
            return self.items.len()
        }
    """
    body = """
        var bag = Bag {}
        bag.put(b: bag.take(), a: bag.take() * 10)
        return bag.items
    """
    assert value(body, "List<Int>", more) == [100, 100, 19]


def test_closures_capture_by_value(value: Value) -> None:
    body = """
        var n = 10
        let add = fn(x: Int) => x + n
        n = 1000
        let twice = fn(f: fn(Int) -> Int, x: Int) -> Int { return f(f(x)) }
        let nested = fn(a: Int) => [1, 2].map(fn(b) => a * b + n).sum()
        return [add(1), twice(add, 1), nested(3)]
    """
    assert value(body, "List<Int>") == [11, 21, 2009]


def test_closures_take_patterns(value: Value) -> None:
    assert value("return [(1, 2), (3, 4)].map(fn((a, b)) => a * b)", "List<Int>") == [2, 12]


def test_functions_and_variants_are_values(value: Value) -> None:
    more = """
        enum E { A(n: Int), B }
        fn double(n: Int) -> Int { return n * 2 }
        fn apply(f: fn(Int) -> Int, n: Int) -> Int { return f(n) }
    """
    assert value("return [1, 2].map(double).map(E.A)", "List<E>", more) is not None
    assert value("return apply(double, 21)", "Int", more) == 42
    got = value("return [1, 2].map(E.A)", "List<E>", more)
    assert plain(got) == [("A", 1), ("A", 2)]


def test_arguments_are_evaluated_as_written(value: Value) -> None:
    members = """
        var log: List<Int> = []
        fn note(n: Int) -> Int {
            log.append(n)
            return n
        }
        fn less(a: Int, b: Int, c: Int = 100) -> Int { return a - b - c }
    """
    body = "let x = less(c: note(1), b: note(2), a: note(30))\nreturn (x, log)"
    assert value(body, "(Int, List<Int>)", members=members) == (27, [1, 2, 30])
    assert value("return less(5, b: 3)", members=members) == -98


def test_struct_literals(value: Value) -> None:
    more = """
        const start = 2 + 3
        struct S { a: Int, b: Int = start * 2, c: List<Int> = [] }
    """
    body = """
        let a = 1
        let s = S { a }
        let t = S { ..s, c: [7], a: s.a + 1 }
        return (s, t)
    """
    assert plain(value(body, "(S, S)", more)) == ([1, 10, []], [2, 10, [7]])


def test_options(value: Value) -> None:
    more = """
        fn f(x: Int?) -> Int? {
            let y = x?
            return Some(y + 1)
        }
    """
    body = """
        let none: Int? = None
        return [none ?? 1, f(Some(5)) ?? 0, f(None) ?? -1, f(f(Some(1))) ?? 0]
    """
    assert value(body, "List<Int>", more) == [1, 6, -1, 3]


def test_constants_of_constants(value: Value) -> None:
    more = "const a = 3\nconst b = [a, a * 2]\nconst pause = 1h * 2"
    assert value("return b[1] + a", "Int", more) == 9
    assert display(value("return pause", "Duration", more)) == "2h"


def test_a_list_is_a_set_and_json_where_wanted(value: Value) -> None:
    body = """
        let s: Set<Int> = [1, 2, 1]
        let n = 3
        let j: Json = ["a": 1, "b": [true, "x", n], "c": s.len(), "d": ["e": None]]
        return "\\(s.len()) \\(j)"
    """
    assert value(body, "String") == '2 {"a":1,"b":[true,"x",3],"c":2,"d":{"e":null}}'


def test_json_is_decoded_into_what_is_wanted(value: Value) -> None:
    more = """
        struct Line { sku: String, quantity: Int = 1, note: String? as "x-note" }
        fn read<T: Data>(j: Json) -> T { return j.decode() }
        fn outer<T: Data>(j: Json) -> List<T> { return [read(j)] }
    """
    body = """
        let j: Json = ["sku": "a", "x-note": "n"]
        let line: Line = j.decode()
        let again: List<Line> = outer(j)
        let n: Int = read(7.toJson())
        return (line, again[0] == line, n)
    """
    assert plain(value(body, "(Line, Bool, Int)", more)) == (["a", 1, ("Some", "n")], True, 7)


def test_recursion_and_deep_calls(value: Value) -> None:
    more = "fn fib(n: Int) -> Int { return if n < 2 { n } else { fib(n - 1) + fib(n - 2) } }"
    assert value("return fib(15)", "Int", more) == 610


def test_failures_say_where(value: Value) -> None:
    more = 'fn f(n: Int) -> Int {\n    if n > 2 { fail("too \\(n)") }\n    return n\n}'
    with pytest.raises(FlowError) as failed:
        value("return f(3)", "Int", more)
    assert failed.value.message == "too 3"
    trace = failed.value.failure.trace  # type: ignore[attr-defined]
    assert [(line.function, line.file, line.line) for line in trace] == [
        ("f", "main.flow", 2),
        ("run", "main.flow", 8),
    ]


def test_assertions(value: Value) -> None:
    assert value('assert(1 < 2, "no")\nreturn 1') == 1
    with pytest.raises(FlowError, match="one is 1"):
        value('let one = 1\nassert(one > 2, "one is \\(one)")\nreturn 1')


def test_types_of_another_module(value: Value, compiled: Callable[..., object]) -> None:
    shop = """
        pub struct Price { cents: Int = base }
        const base = 250
        pub fn of(n: Int) -> Price { return Price { cents: n * 100 } }
        pub fn total(self: List<Price>) -> Int { return self.map(fn(p) => p.cents).sum() }
    """
    text = """
        import shop
        flow Main() -> Int {
            run { return [shop.of(2), shop.Price {}].total() }
        }
    """
    got = compiled(text, shop=shop)
    assert got.value() == 450  # type: ignore[attr-defined]
