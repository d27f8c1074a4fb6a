"""What the language allows: each text checks without a diagnostic."""

from __future__ import annotations

import pytest

from tests.compiler.types_check import problems

RIGHT = {
    "an Int literal as Decimal and Float": """
fn f(d: Decimal, x: Float) -> Decimal { return if x > 1 { d + 1 } else { 2 } }
""",
    "a decimal literal as Float": "fn f(x: Float) -> Float { return x * 0.5 }",
    "Decimal and Int mix": "fn f(d: Decimal, n: Int) -> Decimal { return d * n + n / d }",
    "a list literal as Set": 'fn f(s: Set<String>) -> Bool { return s == ["a", "b"] }',
    "literals take the other side's type": """
fn f(d: Decimal) -> Bool { return 0 < d && d in [1, 2.5] && d in 1..10 && min(0, d) == 0 }
""",
    "later arguments of one type parameter": "fn f(d: Decimal) -> Decimal { return max(0, d) }",
    "fold with a literal to begin with": """
fn f(xs: List<Decimal>) -> Decimal { return xs.fold(0, fn(sum, x) => sum + x) }
""",
    "sum of each number": """
fn f(a: List<Int>, b: List<Decimal>, c: List<Float>) -> (Int, Decimal, Float) {
    return (a.sum(), b.sum(), c.sum())
}
""",
    "Json literals of any data": """
struct S { n: Int }
fn f(s: S, j: Json, t: Time) -> Json {
    let body: Json = ["s": s, "j": j, "list": [1, "a", [t]], "none": None]
    return body
}
""",
    "times and durations": """
fn f(t: Time, u: Time, d: Duration, a: Date, b: Date) -> Bool {
    let x: Duration = t - u + d * 2 - d / 3 + d * 1.5
    let y: Decimal = d / x
    let z: Int = a - b
    return t + x > u - d && y > 1 && z > 0 && -d < x
}
""",
    "bare variants where an enum is wanted": """
enum E { A, B(n: Int) }
fn g(e: E = A) -> E { return e }
fn f(e: E) -> Bool {
    let es: List<E> = [A, B(1)]
    let m: Map<String, E> = ["a": A]
    return g(B(2)) == A || A == e || e in [A, B(3)] || A in es || m["a"] == B(1)
}
""",
    "a variant of the enum wanted before a type of its name": """
enum Ended { Done, Cancelled }
fn f(n: Int) -> Ended { return if n > 1 { Cancelled } else { Done } }
""",
    "prelude variants anywhere": """
fn f(n: Int) -> Int {
    let a = Some(n)
    return match a {
        case Some(x): x
        case None: 0
    }
}
""",
    "variants and functions as values": """
enum E { A(n: Int) }
fn twice(n: Int) -> Int { return n * 2 }
fn f(xs: List<Int>) -> List<E> { return xs.map(twice).map(E.A) }
fn g(xs: List<Int>) -> List<E> { return xs.map(A) }
""",
    "methods by the head of self": """
struct A { n: Int }
struct B { n: Int }
fn size(self: A) -> Int { return self.n }
fn size(self: B) -> Int { return self.n * 2 }
fn size(self: List<A>) -> Int { return self.map(fn(a) => a.size()).sum() }
fn f(a: A, b: B) -> Int { return a.size() + b.size() + [a].size() + size(b) }
""",
    "a method of every type": """
fn twice<T>(self: T) -> (T, T) { return (self, self) }
fn f(n: Int) -> (Int, Int) { return n.twice() }
""",
    "a field that holds a function": """
struct Rule { test: fn(Int) -> Bool }
fn f(r: Rule) -> Bool { return r.test(3) }
""",
    "a field and a method of one name": """
struct A { n: Int }
fn n(self: A) -> String { return "x" }
fn f(a: A) -> String { return "\\(a.n) \\(a.n())" }
""",
    "functions of a type": """
fn f(s: String) -> Int { return Int.parse(s) ?? 0 }
fn g(t: Time) -> Weekday { return Date.of(t, zone: "UTC").weekday() }
""",
    "decode by what is wanted": """
struct S { n: Int }
fn f(j: Json) -> Result<S, String> {
    let s: S = j.decode()
    let t = S.decode(j)
    if s != t { return j.tryDecode() }
    return Ok(S { n: j.tryDecode()? })
}
""",
    "`?` on results and options": """
fn f(a: Result<Int, String>) -> Result<Int, String> { return Ok(a? + 1) }
fn g(a: Int?) -> Int? { return Some(a? + 1) }
fn h(xs: List<Int?>) -> List<Int?> { return xs.map(fn(x) { return Some(x? + 1) }) }
""",
    "struct literals": """
struct P { x: Int, y: Int = 0, name: String? }
fn f(x: Int) -> P {
    let p = P { x }
    return P { ..p, y: 2, name: Some("a") }
}
""",
    "generics": """
struct Pair<A, B> { first: A, second: B }
enum Tree<T> { Leaf, Node(left: Tree<T>, item: T, right: Tree<T>) }
fn swap<A, B>(p: Pair<A, B>) -> Pair<B, A> { return Pair { first: p.second, second: p.first } }
fn insert<T: Ordered>(self: Tree<T>, new: T) -> Tree<T> {
    return match self {
        case Leaf: Node(Leaf, new, Leaf)
        case Node(left, item, right) if new < item: Node(left.insert(new), item, right)
        case Node(left, item, right): Node(left, item, right.insert(new))
    }
}
fn f() -> Tree<Int> {
    let p = swap(Pair { first: 1, second: "a" })
    let t: Tree<Int> = Leaf
    return t.insert(p.second)
}
""",
    "sums of a type parameter": """
fn total<T: Number>(xs: List<T>, zero: T) -> T {
    var sum = zero
    for x in xs { sum += x }
    return sum
}
fn f(xs: List<Decimal>) -> Decimal { return total(xs, 0) }
""",
    "places": """
struct N { job: String?, bad: Bool = false }
fn f(names: List<String>) -> Map<String, N> {
    var nodes: Map<String, N> = [:]
    for name in names { nodes[name] = N {} }
    nodes["a"].bad = true
    var list = [1, 2]
    list[0] += 1
    list.append(3)
    var pair = (1, "a")
    pair.0 = 2
    return nodes
}
""",
    "var self": """
struct Stack { items: List<Int> = [] }
fn push(var self: Stack, item: Int) { self.items.append(item) }
fn f() -> Int {
    var s = Stack {}
    s.push(1)
    return s.items.len()
}
""",
    "patterns": """
enum E { A(x: Int, y: Int), B }
fn f(e: E, p: (Int, List<Int>), s: Cancelled) -> Int {
    let Cancelled { reason } = s
    let (n, list) = p
    let r = match list {
        case []: 0
        case [one]: one
        case [first, ..rest]: first + rest.len()
    }
    let q = match e {
        case A(x: 1, ..): 1
        case A(y: z): z
        case B: reason.len()
    }
    return match n {
        case -1 | 0: r
        case 1..10: q
        case _: n
    }
}
""",
    "while let, if let with a guard, let else": """
fn f(xs: List<Int>) -> Int {
    var left = xs
    while let Some(x) = left.first() {
        if let Some(y) = left.last() && y > x { return y }
        left = left.drop(1)
    }
    let [a, b] = xs else { return 0 }
    return a + b
}
""",
    "Never fits everywhere": """
fn f(n: Int) -> Int {
    let x = if n > 1 { n } else { fail("small") }
    let y: String = match n {
        case 1: "a"
        case _: return x
    }
    while true { print(y) }
}
""",
    "loops over everything": """
fn f(m: Map<String, Int>, s: Set<Int>, n: Int) -> Int {
    var sum = 0
    for (key, value) in m { sum += key.len() + value }
    for x in s { sum += x }
    for i in 0..n { sum += i }
    for i in 0..=n { sum += i }
    return sum
}
""",
    "closures": """
fn apply(f: fn(Int) -> Int, n: Int) -> Int { return f(n) }
fn f(n: Int) -> Int {
    let add = fn(x: Int) -> Int { return x + n }
    let pairs = [(1, "a")].map(fn((number, _)) => number)
    return apply(add, 1) + apply(fn(x) => x * n, 2) + pairs.len()
}
""",
    "a local hides a function, a module and a parameter": """
import std.text
fn f(text: String) -> Int {
    let f = text.len()
    return f
}
""",
    "constants in any order": """
const b = a + 1h
const a = 2h
fn f() -> Duration { return b }
""",
    "waits": """
extern step ask(n: Int) -> String on "q"
flow Child(n: Int) -> String { channel c: Int answers Bool
    channel d: Int
    run { return ask(n) } }
flow F(n: Int) -> Int {
    channel c: Int
    channel r: Int answers String

    run {
        let child = Child.start("c", n)
        let late: Time? = None
        let t = task.start(ask, 1)
        wait match {
            case let x = c.receive(): return x
            case let q = r.receive(): q.answer("\\(q.value)")
            case after 1d: print("late")
            case at late if n > 1: print("never")
            case let end = child.wait():
                let Ok(text) = end else { return 0 }
                return text.len()
            case let all = task.all([child]): print("\\(all.map(fn(xs) => xs.len()).ok() ?? 0)")
            case let (i, one) = task.first([child]): print("\\(i) \\(one)")
            case let ends = task.settle([child]): print("\\(ends.len())")
            case let told = t.join(): print("\\(told.isOk())")
            case when n > 2: print("now")
            case let why = flow.cancelled(): flow.giveUp(why)
        }
        let sent = child.d.send(1, key: "k")
        let asked = child.c.ask(1)
        if sent == Ok(Delivered) && asked == Ok(true) { child.cancel("x") }
        let polled = c.poll()
        return polled ?? 1
    }
}
""",
    "steps with clauses": """
enum E { Bad }
const limit = 1m
step charge(id: String, n: Int) -> Settled<Result<String?, E>>
    within limit undo refund(it.len(), id) {
    if n > 1 { flow.retry(after: 3s) }
    return Known(Ok(Some(flow.key())))
}
extern step refund(n: Int, id: String) on "bank"
steps tries 3 else Err(Bad) backoff 1s to 1m on "x@\\(host)" limit 3 per 1h {
    extern step one(host: String) -> Result<Int, E> beat 30s
    extern step two(host: String, n: Int) -> Result<String, E>
}
""",
    "a flow's members": """
struct View { n: Int, at: Time }
flow F(n: Int, limit: Duration = 1d) -> Int keep 1d {
    var total = n * 2
    var at = flow.now()
    var names: List<String> = []

    view state -> View { return View { n: total, at } }

    run {
        stage begun
        var i = 0
        while i < n {
            stage next(i)
            i += add(1)
            total += i
        }
        return state().n
    }

    fn add(by: Int) -> Int {
        names.append("\\(by)")
        return by + names.len()
    }

    migrate next(i: Int) { become next(i: i + 1, total: 3) }
}
""",
    "what stops for a person is what is wanted": """
flow F(n: Int) -> Decimal {
    run {
        let more: Decimal = flow.stop("how much?")
        flow.stop("look")
        return if n > 1 { more } else { flow.stop("and now?") }
    }
}
""",
    "undos and starts without parent": """
extern step free(n: Int) on "q"
flow Lock(n: Int) -> Int { channel c: Instance<Job>
    run { return n } }
flow Job(n: Int) -> Int {
    run {
        flow.undo(free(n))
        let lock = flow.detach(Lock.start("lock", n))
        flow.finally(lock.c.send(flow.self()))
        let found = Lock.find("other")
        if let Some(other) = found { other.cancel("no") }
        return flow.random(0..n)
    }
}
""",
    "a test's handle as an instance": """
flow Lock(n: Int) -> Int { channel c: Instance<Job>
    run { return n } }
flow Job(n: Int) -> Int { run { return n } }
test "one" {
    let lock = Lock.start("lock", 1)
    let job = Job.start("job", 1)
    lock.c.send(job)
    print(job.result())
}
""",
    "tests": """
import std.http
import std.env
enum E { Yes, No }
step ask(n: Int, s: String) -> E { return if env.get("X").isSome() { Yes } else { No } }
extern step tell(n: Int) on "q"
step fetch(url: String) -> Int { return http.post(url, json: (1, "a")).status }
flow F(n: Int) -> E {
    channel c: Int
    channel q: Int answers String
    view v -> Int { return n }
    run { return ask(n, "x") }
}
given ask(_) => Yes
given tell(n) after 5m => () then ()
fn begun() -> Handle<F> { return F.start("a", 1) }
test "one" {
    given ask(1, s: "x") => Yes then No then after 1m => Yes
    given ask(2) fails "no" then Yes
    given tell(_) never
    given http.post(url) => http.Response { status: url.len() }
    let it = F.start("a", 1)
    let other = F.find("a")
    let old = F.at("a", stage: "s", ["n": 1])
    clock.advance(1d)
    clock.set(@2026-11-30T08:00Z)
    it.c.send(1)
    assert(it.c.send(1, key: "k") == Ok(Already))
    assert(it.q.ask(1) == Ok("a"), "answered")
    assert(it.result() == Ok(Yes) && it.v == 1 && begun().v == 1)
    assert(it.status() == "waiting" && it.stage() == "s" && it.stage() == None)
    assert(it.stoppedBy() == Some("why") && it.waits() == [] && it.undos().isEmpty())
    assert(it.steps() == steps() && steps() == ["ask"])
    assert(calls(ask) == [(1, "x")] && calls(tell) == [1])
    assert(times(tell) == [clock.now()])
    let asked = attempts().filter(fn(a) => a.step == "ask" && a.attempt == 1)
    assert(asked.map(fn(a) => a.at).len() == 1)
    it.cancel("x")
    it.pause()
    it.resume()
    it.answer(E.Yes)
    it.end()
    other.end()
    old.end()
    given ask runs
}
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_programs_are_right(name: str) -> None:
    assert problems(RIGHT[name]) == []


def test_modules_see_one_another() -> None:
    others = {
        "prices": "pub struct Price { cents: Int }\n"
        "fn total(self: List<Price>) -> Int { return self.map(fn(p) => p.cents).sum() }\n"
        "const free = Price { cents: 0 }\nfn of(cents: Int) -> Price { return Price { cents } }\n"
        'extern step ask(n: Int) -> Price on "q"\nenum Kind { Net, Gross }\n',
    }
    text = """
import prices
import prices.{Price, Kind, of}
import prices as p

fn f(kind: prices.Kind) -> Int {
    let list = [prices.free, of(1), p.of(2), prices.Price { cents: 3 }, Price { cents: 4 }]
    let known = kind == Net || kind == Kind.Gross || kind == prices.Kind.Net
    return if known { list.total() } else { 0 }
}
given prices.ask(_) => Price { cents: 1 }
test "one" { assert(calls(prices.ask) == []) }
"""
    assert problems(text, others) == []


def test_methods_of_other_modules_are_functions_too() -> None:
    others = {
        "things": "pub struct A { n: Int }\npub struct B { n: Int }\n"
        'fn tell(self: A) -> String { return "a" }\n'
        'fn tell(self: B) -> String { return "b" }\n'
        "fn count(self: A) -> Int { return self.n }\n",
    }
    text = """
import things
import things.{A, B, tell, count}

fn f(list: List<A>, others: List<B>) -> List<String> {
    let numbers: List<Int> = list.map(count)
    let said = [tell(list[0]), tell(others[numbers[0]]), things.tell(others[0])]
    return list.map(tell).concat(others.map(tell)).concat(others.map(things.tell)).concat(said)
}
"""
    assert problems(text, others) == []


def test_types_may_be_cyclic_between_modules() -> None:
    others = {"b": "import m\npub struct B { a: m.A? }\nfn g(a: m.A) -> Int { return m.f(a) }\n"}
    assert (
        problems("import b\nstruct A { b: b.B? }\nfn f(a: A) -> Int { return b.g(a) }\n", others)
        == []
    )
