"""Which functions must know at run time what their type parameters stand for.

Almost none: values carry what they are. The exceptions decode JSON, or ask a person, for a type
that mentions a parameter (`fn load<T: Data>(j: Json) -> T { return j.decode() }`), or use such a
function. Those are emitted once per set of type arguments; all others once.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.emit.terms import parameters_in
from qoqi.compiler.names.symbols import FnSymbol, LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import BuiltinTarget, Facts, FnTarget, Target


def needs_types(tables: Tables, symbol: FnSymbol) -> bool:
    """Whether the function, or one it hands its own parameters to, uses a type at run time."""
    seen = {symbol}
    reached = [symbol]
    while reached:
        current = reached.pop()
        facts = tables.checked.facts[current.module]
        for target in _targets(facts, current.decl):
            match target:
                case BuiltinTarget(type=type_) if type_ is not None and parameters_in(type_):
                    return True
                case FnTarget(symbol=callee, type_args=type_args):
                    if callee not in seen and any(map(parameters_in, type_args)):
                        seen.add(callee)
                        reached.append(callee)
                case _:
                    pass
    return False


def _targets(facts: Facts, decl: ast.FnDecl) -> Iterator[Target]:
    if decl.body is None:
        return
    for node in nodes(decl.body):
        if isinstance(node, ast.Call) and node in facts.calls:
            yield facts.calls[node].target
        elif node in facts.values:
            yield facts.values[node]


def nodes(root: ast.Node) -> Iterator[ast.Node]:
    """A node and all below it, in the order of the source."""
    yield root
    for child in ast.children(root):
        yield from nodes(child)


def free_locals(facts: Facts, root: ast.Expr) -> tuple[LocalSymbol, ...]:
    """The locals an expression takes from around it, in the order of their first use."""
    bound: set[LocalSymbol] = set()
    used: dict[LocalSymbol, None] = {}
    for node in nodes(root):
        if node in facts.bindings:
            bound.add(facts.bindings[node])
        symbol = facts.uses.get(node)
        if isinstance(symbol, LocalSymbol):
            used[symbol] = None
    return tuple(symbol for symbol in used if symbol not in bound)
