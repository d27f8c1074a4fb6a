"""Statements and blocks.

A statement or block diverges if control does not come past it: `return`, `break`, `continue`,
`become`, an expression of type Never, a `while true` without `break`. A block as a value is worth
its last expression; a function's body is not: it has `return` on every path (E0315).
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.symbols import FlowSlotSymbol, LocalSymbol
from qoqi.compiler.source import Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import DISCARD, MOST_NESTED, MOST_TYPE_PARTS, Body, Reason
from qoqi.compiler.types.members import replacements
from qoqi.compiler.types.model import (
    BOOL,
    ERROR,
    INT,
    NEVER,
    UNIT,
    Con,
    ErrorType,
    NeverType,
    Tup,
    Type,
    Var,
    a_type,
    show,
)
from qoqi.compiler.types.operators import arithmetic
from qoqi.compiler.types.patterns import always_matches, bind, demand_irrefutable
from qoqi.compiler.types.places import demand_place
from qoqi.compiler.types.signatures import TypeReader
from qoqi.compiler.types.testing import check_given
from qoqi.compiler.types.unify import weight

# -- blocks ---------------------------------------------------------------------------------------


def run_block(body: Body, block: ast.Block) -> bool:
    """The statements of a block, values thrown away. Whether it diverges."""
    if body.depth >= MOST_NESTED:
        body.too_deep(block.span, "Make the inner part a function.")
        return False
    body.depth += 1
    body.locals.push()
    diverges = False
    for statement in block.statements:
        diverges = run_statement(body, statement) or diverges
    body.locals.pop()
    body.depth -= 1
    return diverges


def block_value(body: Body, block: ast.Block, want: Type | None) -> tuple[Type, ast.Node]:
    """What a block is worth, and the part of it that says so."""
    if body.depth >= MOST_NESTED:
        body.too_deep(block.span, "Make the inner part a function.")
        return ERROR, block
    body.depth += 1
    body.locals.push()
    type_, node = _value_in_scope(body, block, want)
    body.locals.pop()
    body.depth -= 1
    return type_, node


def _value_in_scope(body: Body, block: ast.Block, want: Type | None) -> tuple[Type, ast.Node]:
    diverges = False
    for statement in block.statements[:-1]:
        diverges = run_statement(body, statement) or diverges
    if not block.statements:
        return UNIT, block
    last = block.statements[-1]
    if isinstance(last, ast.ExprStmt):
        body.statement = last
        type_ = body.infer(last.value, want)
        return (NEVER if diverges else type_), last.value
    if isinstance(last, ast.ErrorStmt):
        return ERROR, last
    diverges = run_statement(body, last) or diverges
    return (NEVER if diverges else UNIT), last


def function_body(body: Body, block: ast.Block, result: Type, reason: Reason | None) -> None:
    """The body of what has a declared result: every path returns, if it is not `()`."""
    diverges = run_block(body, block)
    if not diverges:
        demand_return(body, block, result, reason)


def demand_return(body: Body, block: ast.Block, result: Type, reason: Reason | None) -> None:
    result = body.resolve(result)
    if result == UNIT or isinstance(result, ErrorType):
        return
    if isinstance(result, Var):
        body.u.unify(result, UNIT)
        return
    if any(isinstance(s, ast.ErrorStmt) for s in block.statements[-1:]):
        return
    fixes = []
    last = block.statements[-1] if block.statements else None
    if isinstance(last, ast.ExprStmt):
        found = body.types.get(last.value)
        if found is not None and body.resolve(found) not in (UNIT, ERROR):
            at = last.span.start
            fixes.append(Fix("Return it", (Edit(body.path, Span(at, at), "return "),)))
    end = block.span.end
    body.error(
        "E0315",
        Span(max(end - 1, block.span.start), end),
        f"this path ends without `return`, and {a_type(body.u.shown(result))} is wanted",
        labels=[reason()] if reason is not None else [],
        fixes=fixes,
    )


# -- statements -----------------------------------------------------------------------------------


def run_statement(body: Body, statement: ast.Stmt) -> bool:
    """Checks a statement; whether it diverges."""
    body.statement = statement
    body.reason = None
    match statement:
        case ast.ExprStmt(value=value):
            return _expression(body, value)
        case ast.LetStmt():
            return _let(body, statement)
        case ast.AssignStmt():
            return _assign(body, statement)
        case ast.ReturnStmt():
            _return(body, statement)
            return True
        case ast.WhileStmt():
            return _while(body, statement)
        case ast.ForStmt():
            _for(body, statement)
            return False
        case ast.BreakStmt() | ast.ContinueStmt():
            _leave_loop(body, statement)
            return True
        case ast.DeferStmt(body=block):
            frame = body.frames[-1]
            loops, frame.loops = frame.loops, []
            run_block(body, block)
            frame.loops = loops
            return False
        case ast.StageStmt():
            _stage(body, statement)
            return False
        case ast.BecomeStmt():
            _become(body, statement)
            return True
        case ast.GivenStmt():
            check_given(body, statement)
            return False
        case ast.ErrorStmt():
            return False


def _expression(body: Body, value: ast.Expr) -> bool:
    inner = value
    if isinstance(inner, ast.IfExpr | ast.MatchExpr | ast.WaitExpr):
        found = body.infer(inner, DISCARD)
    else:
        found = body.infer(inner)
    return isinstance(body.resolve(found), NeverType)


def _let(body: Body, statement: ast.LetStmt) -> bool:
    if statement.type is not None:
        want = read_type(body, statement.type)
        why = body.because(statement.type.span, "the type of the variable")
        body.check(statement.value, want, why)
        type_ = want
    else:
        type_ = body.u.settle(body.infer(statement.value))
        if isinstance(type_, NeverType):
            type_ = ERROR
        if weight(type_, MOST_TYPE_PARTS) > MOST_TYPE_PARTS:
            body.error("E0322", statement.value.span, "the type of this value is too large")
            type_ = ERROR
    diverges = isinstance(body.resolve(body.types.get(statement.value, ERROR)), NeverType)
    body.statement = statement
    if statement.otherwise is not None:
        goes_on = not run_block(body, statement.otherwise)
        if goes_on:
            body.error(
                "E0319",
                statement.otherwise.span,
                "this `else` goes on, and the pattern's names would have no values",
                notes=["End it with `return`, `break`, `continue` or `fail(…)`."],
            )
    bind(body, statement.pattern, type_, "var" if statement.mutable else "let")
    for node in _pattern_nodes(statement.pattern):
        local = body.facts.bindings.get(node)
        if local is not None:
            body.local_decls[local] = statement
    if statement.otherwise is None and not always_matches(body, statement.pattern):
        body.error(
            "E0313",
            statement.pattern.span,
            "this pattern may not match, and the value would be lost",
            notes=["Say what happens then: `let P = e else { … }`, or use `match`."],
        )
    return diverges


def _pattern_nodes(pattern: ast.Node) -> list[ast.Node]:
    found = [pattern]
    for child in ast.children(pattern):
        found += _pattern_nodes(child)
    return found


def read_type(body: Body, node: ast.TypeNode) -> Type:
    """A type written inside a body."""
    before = len(body.program.diagnostics)
    reader = TypeReader(body.program, body.scope, body.type_params)
    type_ = reader.read(node)
    body.errors += len(body.program.diagnostics) - before
    for _, place, key, what in reader.demands:
        body.demand(key, "Ordered", place.span, what)
    return type_


def _assign(body: Body, statement: ast.AssignStmt) -> bool:
    target = statement.target
    place = body.infer(target)
    demand_place(body, target, "assigned")
    reason = body.because(target.span, "the place that is assigned")
    if statement.op == "=":
        found = body.check(statement.value, place, reason)
    else:
        found = body.infer(statement.value)
        body.reason = reason
        result = arithmetic(body, statement.op[:-1], place, found, target, statement.value)
        if not isinstance(result, ErrorType) and not body.u.unify(result, place):
            body.error(
                "E0309",
                statement.value.span,
                f"`{statement.op}` would make `{show(body.u.shown(result))}` of a place of type "
                f"`{show(body.u.shown(place))}`",
                labels=[reason()],
            )
        body.reason = None
    return isinstance(body.resolve(found), NeverType)


def _return(body: Body, statement: ast.ReturnStmt) -> None:
    frame = body.frames[-1]
    if statement.value is not None:
        body.check(statement.value, frame.result, frame.reason)
        return
    result = body.resolve(frame.result)
    if isinstance(result, Var):
        body.u.unify(result, UNIT)
    elif result != UNIT and not isinstance(result, ErrorType | NeverType):
        body.error(
            "E0301",
            statement.span,
            f"expected `{show(body.u.shown(result))}`, found a `return` of nothing",
            labels=[frame.reason()] if frame.reason is not None else [],
        )


def condition(body: Body, test: ast.Condition) -> None:
    """What `if` and `while` test; the pattern's names belong to the block at hand."""
    if test.pattern is None:
        body.check(test.value, BOOL)
        return
    type_ = body.infer(test.value)
    bind(body, test.pattern, type_)
    if test.guard is not None:
        body.check(test.guard, BOOL)


def _while(body: Body, statement: ast.WhileStmt) -> bool:
    frame = body.frames[-1]
    body.locals.push()
    condition(body, statement.condition)
    frame.loops.append(False)
    run_block(body, statement.body)
    left = frame.loops.pop()
    body.locals.pop()
    test = statement.condition
    forever = test.pattern is None and isinstance(test.value, ast.BoolLit) and test.value.value
    return forever and not left


def _for(body: Body, statement: ast.ForStmt) -> None:
    type_ = body.resolve(body.infer(statement.iterable))
    item = _item_of(body, statement.iterable, type_)
    body.locals.push()
    bind(body, statement.pattern, item, "loop")
    for node in _pattern_nodes(statement.pattern):
        local = body.facts.bindings.get(node)
        if local is not None:
            body.local_decls[local] = statement
    demand_irrefutable(
        body,
        statement.pattern,
        "the round would be lost",
        "Bind a name, and use `match` or `if let` inside.",
    )
    frame = body.frames[-1]
    frame.loops.append(False)
    run_block(body, statement.body)
    frame.loops.pop()
    body.locals.pop()


def _item_of(body: Body, node: ast.Expr, type_: Type) -> Type:
    match type_:
        case Con("List" | "Set", (item,)):
            return item
        case Con("Map", (key, value)):
            return Tup((key, value))
        case Con("Range", (item,)):
            if body.u.unify(item, INT):
                return INT
            shown = show(body.u.shown(item))
            body.error(
                "E0318", node.span, f"only ranges of `Int` can be iterated, not of `{shown}`"
            )
            return item
        case ErrorType() | NeverType():
            return ERROR
        case _:
            pass
    notes = ["Lists, sets, maps and ranges of `Int` can be iterated."]
    fixes = []
    end = Span(node.span.end, node.span.end)
    if type_ == Con("String"):
        fixes.append(Fix("Go through its characters", (Edit(body.path, end, ".chars()"),)))
    elif type_ == INT:
        edit = Edit(body.path, Span(node.span.start, node.span.start), "0..")
        fixes.append(Fix("Count up to it", (edit,)))
    elif isinstance(type_, Con) and type_.name == "Option":
        notes.append("For an option, use `if let Some(x) = …`.")
    body.error(
        "E0318",
        node.span,
        f"`{show(body.u.shown(type_))}` cannot be iterated",
        notes=notes,
        fixes=fixes,
    )
    return ERROR


def _leave_loop(body: Body, statement: ast.BreakStmt | ast.ContinueStmt) -> None:
    frame = body.frames[-1]
    if frame.loops:
        if isinstance(statement, ast.BreakStmt):
            frame.loops[-1] = True
        return
    word = "break" if isinstance(statement, ast.BreakStmt) else "continue"
    body.error(
        "E0219",
        statement.span,
        f"`{word}` stands in no loop",
        notes=[
            "A closure and a `defer` begin anew: the loop around them cannot be left from there."
        ],
    )


# -- stages ---------------------------------------------------------------------------------------


def _stage(body: Body, statement: ast.StageStmt) -> None:
    variables: dict[str, LocalSymbol] = {}
    for ident in statement.variables:
        if not ident.name:
            continue
        symbol = body.look_up(ident.name)
        if isinstance(symbol, LocalSymbol):
            body.use(ident, symbol)
            body.capture(symbol)
            variables.setdefault(ident.name, symbol)
        elif isinstance(symbol, FlowSlotSymbol):
            what = "parameter" if symbol.parameter else "field"
            body.use(ident, symbol)
            body.error(
                "E0217",
                ident.span,
                f"`{ident.name}` is a {what}, and every stage carries those",
                labels=[Label(body.path, symbol.decl.name.span, f"the {what}")],
                fixes=[Fix("Leave it out", (_without(body, statement, ident),))],
            )
        else:
            near = nearest(ident.name, body.locals.names())
            body.error(
                "E0201",
                ident.span,
                f"there is no variable `{ident.name}` here",
                notes=["A stage names variables of `run`."],
                fixes=replacements(body, ident, near),
            )
    if statement.name.name:
        body.stages.append((statement.name.name, variables))


def _without(body: Body, statement: ast.StageStmt, ident: ast.Ident) -> Edit:
    """Removes a name from a stage, and the parentheses with the last one."""
    names = statement.variables
    index = names.index(ident)
    if len(names) == 1:
        return Edit(body.path, Span(statement.name.span.end, statement.span.end), "")
    if index + 1 < len(names):
        return Edit(body.path, Span(ident.span.start, names[index + 1].span.start), "")
    return Edit(body.path, Span(names[index - 1].span.end, ident.span.end), "")


def _become(body: Body, statement: ast.BecomeStmt) -> None:
    """The values a migration gives: of the stage's variables, and of fields and parameters."""
    flow = body.flow
    types: dict[str, Type] = {}
    known_stage = False
    if flow is not None:
        for slot in flow.slots:
            types[slot.name] = body.program.declared.get(slot, ERROR)
        stage = body.program.stages.get((flow.symbol, statement.stage.name))
        known_stage = stage is not None
        types.update(stage or {})
    for arg in statement.args:
        if arg.name is None:
            body.infer(arg.value)
            body.error(
                "E0307", arg.span, "what a stage is given is named: `become billing(plan: …)`"
            )
            continue
        want = types.get(arg.name.name)
        if want is not None:
            body.check(arg.value, want)
            continue
        body.infer(arg.value)
        if known_stage and arg.name.name:
            body.error(
                "E0307",
                arg.name.span,
                f"the stage `{statement.stage.name}` has no variable `{arg.name.name}`",
                fixes=replacements(body, arg.name, nearest(arg.name.name, types)),
            )
