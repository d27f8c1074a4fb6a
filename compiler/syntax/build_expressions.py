"""The nodes of statements, expressions and patterns."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast, literals
from qoqi.compiler.syntax.builder import Builder, ident, idents, listed, plain_text
from qoqi.compiler.syntax.tokens import Token

# Operators that other languages spell differently, as the lexer lets them pass.
_OPERATORS = {"and": "&&", "or": "||", "&": "&&", "===": "==", "!==": "!="}


# -- statements


def _block(b: Builder, span: Span, statements: list[Any] | None) -> ast.Block:
    return ast.Block(span, listed(statements))


def _binding(
    b: Builder, span: Span, word: Token, pattern: Any, type_: Any, value: Any, otherwise: Any
) -> ast.LetStmt:
    return ast.LetStmt(span, word.text == "var", pattern, type_, value, otherwise)


def _binding_alone(b: Builder, span: Span, word: Token, pattern: Any, type_: Any) -> ast.LetStmt:
    name = f"`{pattern.name.name}`" if isinstance(pattern, ast.BindPattern) else "what is bound"
    b.report("E0117", span, f"{name} has no value", "add `= ` and a value")
    end = Span(span.end, span.end)
    return ast.LetStmt(span, word.text == "var", pattern, type_, ast.ErrorExpr(end), None)


def _assign(b: Builder, span: Span, target: Any, sign: Token, value: Any) -> ast.AssignStmt:
    return ast.AssignStmt(span, target, sign.text, value)


def _while(b: Builder, span: Span, condition: Any, body: ast.Block) -> ast.WhileStmt:
    return ast.WhileStmt(span, Span(span.start, condition.span.end), condition, body)


def _for(b: Builder, span: Span, pattern: Any, iterable: Any, body: ast.Block) -> ast.ForStmt:
    return ast.ForStmt(span, Span(span.start, iterable.span.end), pattern, iterable, body)


def _stage(b: Builder, span: Span, name: Token, names: list[Token] | None) -> ast.StageStmt:
    return ast.StageStmt(span, ident(name), idents(names))


def _become(b: Builder, span: Span, name: Token, args: Any) -> ast.BecomeStmt:
    return ast.BecomeStmt(span, ident(name), args or ())


def _given(
    b: Builder, span: Span, target: list[Token], args: Any, answers: list[Any]
) -> ast.GivenStmt:
    return ast.GivenStmt(span, idents(target), args, tuple(answers), False)


def _given_runs(b: Builder, span: Span, target: list[Token], args: Any) -> ast.GivenStmt:
    return ast.GivenStmt(span, idents(target), args, (), True)


def _several(b: Builder, span: Span, values: list[Any] | None) -> tuple[Any, ...]:
    return listed(values)


# -- expressions


def _name(b: Builder, span: Span, token: Token) -> Any:
    return ast.Name(span, token.text) if token.text else ast.ErrorExpr(span)


def _binary(b: Builder, span: Span, left: Any, sign: Token, right: Any) -> ast.BinaryExpr:
    op = _OPERATORS.get(sign.text, sign.text)
    return ast.BinaryExpr(span, op, Span(sign.start, sign.end), left, right)


def _not_in(
    b: Builder, span: Span, left: Any, word: Token, in_: Token, right: Any
) -> ast.BinaryExpr:
    return ast.BinaryExpr(span, "not-in", Span(word.start, in_.end), left, right)


def _range(b: Builder, span: Span, low: Any, sign: Token, high: Any) -> ast.RangeExpr:
    return ast.RangeExpr(span, low, high, sign.text == "..=")


def _unary(b: Builder, span: Span, sign: Token, operand: Any) -> ast.UnaryExpr:
    return ast.UnaryExpr(span, sign.text, operand)


def _member(b: Builder, span: Span, base: Any, name: Token) -> ast.FieldExpr:
    return ast.FieldExpr(span, base, ident(name))


def _tuple_index(b: Builder, span: Span, base: Any, index: Token) -> ast.TupleIndexExpr:
    return ast.TupleIndexExpr(span, base, b.literal(literals.int_value, index, 0))


def _arg(b: Builder, span: Span, value: Any) -> ast.Arg:
    return ast.Arg(span, None, value)


def _named_arg(b: Builder, span: Span, name: Token, value: Any) -> ast.Arg:
    return ast.Arg(span, ident(name), value)


def _struct_literal(b: Builder, span: Span, type_: Any, parts: list[Any] | None) -> Any:
    path = _path_of(type_)
    base: Any = None
    fields: list[ast.FieldInit] = []
    for i, part in enumerate(parts or ()):
        if isinstance(part, ast.FieldInit):
            fields.append(part)
            continue
        sign, value = part
        if i > 0 or sign.text != "..":
            b.report(
                "E0121",
                sign.span,
                "the struct that is copied stands first, after `..`",
                "write `{ ..old, field: value }`",
            )
        base = value if base is None else base
    if path is None:
        b.report("E0123", type_.span, "a struct literal starts with the name of its type")
        return ast.ErrorExpr(span)
    return ast.StructExpr(span, path, base, tuple(fields))


def _path_of(expr: Any) -> tuple[ast.Ident, ...] | None:
    """The names of `a.B` or `B`; None for another expression."""
    names: list[ast.Ident] = []
    while isinstance(expr, ast.FieldExpr):
        names.append(expr.name)
        expr = expr.base
    if not isinstance(expr, ast.Name):
        return None
    names.append(ast.Ident(expr.span, expr.name))
    return tuple(reversed(names))


def _lambda(b: Builder, span: Span, params: Any, result: Any, body: Any) -> ast.LambdaExpr:
    return ast.LambdaExpr(span, params, result, body)


def _if(b: Builder, span: Span, condition: Any, then: ast.Block, otherwise: Any) -> ast.IfExpr:
    return ast.IfExpr(span, condition, then, otherwise)


def _let_condition(b: Builder, span: Span, pattern: Any, value: Any) -> ast.Condition:
    """`let P = a && b && c`: `a` is matched, `b && c` is the guard."""
    conjuncts: list[ast.Expr] = []
    signs: list[Span] = []
    rest: ast.Expr = value
    while isinstance(rest, ast.BinaryExpr) and rest.op == "&&":
        conjuncts.append(rest.right)
        signs.append(rest.op_span)
        rest = rest.left
    if not conjuncts:
        return ast.Condition(span, pattern, value, None)
    guard = conjuncts.pop()
    signs.pop()
    while conjuncts:
        right = conjuncts.pop()
        guard = ast.BinaryExpr(guard.span.join(right.span), "&&", signs.pop(), guard, right)
    return ast.Condition(span, pattern, rest, guard)


def _match(b: Builder, span: Span, subject: Any, arms: Any) -> ast.MatchExpr:
    head = Span(span.start, subject.span.end)
    return ast.MatchExpr(span, head, subject, listed(arms))


def _wait(b: Builder, span: Span, word: Token, match: Token, arms: Any) -> ast.WaitExpr:
    return ast.WaitExpr(span, Span(word.start, match.end), listed(arms))


def _string(b: Builder, span: Span, token: Token) -> ast.StringLit:
    text = b.text([token])[0]
    return ast.StringLit(span, (text,) if text else ())


def _interpolate(b: Builder, span: Span, parts: list[Any], middle: Token, expr: Any) -> list[Any]:
    parts += (middle, expr)
    return parts


def _interpolation(
    b: Builder, span: Span, start: Token, parts: list[Any], end: Token
) -> ast.StringLit:
    tokens = [start, *(part for part in parts if isinstance(part, Token)), end]
    exprs = [part for part in parts if not isinstance(part, Token)]
    texts = b.text(tokens)
    result: list[Any] = []
    for i, text in enumerate(texts):
        if text:
            result.append(text)
        if i < len(exprs):
            result.append(exprs[i])
    return ast.StringLit(span, tuple(result))


# -- patterns


def _bind(b: Builder, span: Span, name: Token) -> Any:
    return ast.BindPattern(span, ident(name)) if name.text else ast.ErrorPattern(span)


def _path(b: Builder, span: Span, *names: Token) -> tuple[ast.Ident, ...]:
    return tuple(map(ident, names))


def _variant_pattern(b: Builder, span: Span, path: Any, args: Any) -> ast.VariantPattern:
    if args is None:
        return ast.VariantPattern(span, path, None, False)
    kept, rest = _without_rest(b, args)
    return ast.VariantPattern(span, path, kept, rest)


def _struct_pattern(b: Builder, span: Span, path: Any, parts: Any) -> ast.StructPattern:
    kept, rest = _without_rest(b, parts or ())
    return ast.StructPattern(span, path, kept, rest)


def _without_rest(b: Builder, parts: Any) -> tuple[tuple[Any, ...], bool]:
    """The parts of a pattern but `..`, and whether it was there."""
    rest = [part for part in parts if isinstance(part, ast.RestPattern)]
    for part in rest:
        if part is not parts[-1]:
            b.report("E0121", part.span, "`..` stands last, for all that is not named")
    return tuple(part for part in parts if not isinstance(part, ast.RestPattern)), bool(rest)


def _rest(b: Builder, span: Span, sign: Token, name: Token | None = None) -> ast.RestPattern:
    if sign.text != "..":
        b.report(
            "E0121",
            sign.span,
            "what is left out is written `..`",
            fix=b.edit("write `..`", sign.start, sign.end, ".."),
        )
    return ast.RestPattern(span, ident(name) if name else None)


def _list_pattern(b: Builder, span: Span, parts: list[Any] | None) -> ast.ListPattern:
    items = listed(parts)
    for extra in [item for item in items if isinstance(item, ast.RestPattern)][1:]:
        b.report("E0121", extra.span, "a list pattern has `..` once")
    return ast.ListPattern(span, items)


def _tuple_pattern(b: Builder, span: Span, first: Any, rest: list[Any]) -> ast.TuplePattern:
    return ast.TuplePattern(span, (first, *rest))


def _pattern_arg(b: Builder, span: Span, pattern: Any) -> ast.PatternArg:
    return ast.PatternArg(span, None, pattern)


def _named_pattern_arg(b: Builder, span: Span, name: Token, pattern: Any) -> ast.PatternArg:
    return ast.PatternArg(span, ident(name), pattern)


def _literal_pattern(b: Builder, span: Span, value: Any) -> ast.LiteralPattern:
    _check_literal(b, value)
    return ast.LiteralPattern(span, value)


def _range_pattern(b: Builder, span: Span, low: Any, sign: Token, high: Any) -> ast.RangePattern:
    _check_literal(b, low)
    _check_literal(b, high)
    return ast.RangePattern(span, low, high, sign.text == "..=")


def _check_literal(b: Builder, value: Any) -> None:
    if isinstance(value, ast.StringLit):
        plain_text(b, value, "a pattern")


def _int(b: Builder, span: Span, token: Token) -> ast.IntLit:
    return ast.IntLit(span, b.literal(literals.int_value, token, 0))


def _decimal(b: Builder, span: Span, token: Token) -> ast.DecimalLit:
    return ast.DecimalLit(span, b.literal(literals.decimal_value, token, Decimal(0)))


def _duration(b: Builder, span: Span, token: Token) -> ast.DurationLit:
    return ast.DurationLit(span, b.literal(literals.duration_millis, token, 0))


def _negative_int(b: Builder, span: Span, _sign: Token, token: Token) -> ast.IntLit:
    return ast.IntLit(span, -b.literal(literals.int_value, token, 0))


def _negative_decimal(b: Builder, span: Span, _sign: Token, token: Token) -> ast.DecimalLit:
    value = b.literal(literals.decimal_value, token, Decimal(0))
    return ast.DecimalLit(span, value.copy_negate())


def _negative_duration(b: Builder, span: Span, _sign: Token, token: Token) -> ast.DurationLit:
    return ast.DurationLit(span, -b.literal(literals.duration_millis, token, 0))


def _answer(b: Builder, span: Span, value: Any) -> ast.GivenAnswer:
    return ast.GivenAnswer(span, "value", None, value)


def _answer_after(b: Builder, span: Span, after: Any, value: Any) -> ast.GivenAnswer:
    return ast.GivenAnswer(span, "value", after, value)


def _fails(b: Builder, span: Span, why: Any) -> ast.GivenAnswer:
    return ast.GivenAnswer(span, "fails", None, why)


def _fails_after(b: Builder, span: Span, after: Any, why: Any) -> ast.GivenAnswer:
    return ast.GivenAnswer(span, "fails", after, why)


def _never(b: Builder, span: Span) -> ast.GivenAnswer:
    return ast.GivenAnswer(span, "never", None, None)


def _struct_short(b: Builder, span: Span, name: Any) -> ast.FieldInit:
    return ast.FieldInit(span, ident(name), None)


def _struct_full(b: Builder, span: Span, name: Any, value: Any) -> ast.FieldInit:
    return ast.FieldInit(span, ident(name), value)


def _struct_base(b: Builder, span: Span, sign: Any, value: Any) -> Any:
    return (sign, value)


def _unit(b: Builder, span: Span) -> ast.TupleExpr:
    return ast.TupleExpr(span, ())


def _tuple(b: Builder, span: Span, first: Any, rest: Any) -> ast.TupleExpr:
    return ast.TupleExpr(span, (first, *rest))


def _list(b: Builder, span: Span, items: Any) -> ast.ListExpr:
    return ast.ListExpr(span, listed(items))


def _empty_map(b: Builder, span: Span) -> ast.MapExpr:
    return ast.MapExpr(span, ())


def _map(b: Builder, span: Span, entries: Any) -> ast.MapExpr:
    return ast.MapExpr(span, tuple(entries))


def _entry(b: Builder, span: Span, key: Any, value: Any) -> Any:
    return (key, value)


def _condition(b: Builder, span: Span, value: Any) -> ast.Condition:
    return ast.Condition(span, None, value, None)


def _receive(b: Builder, span: Span, value: Any) -> ast.ReceiveCase:
    return ast.ReceiveCase(span, None, value)


def _date(b: Builder, span: Span, token: Any) -> ast.DateLit:
    return ast.DateLit(span, b.literal(literals.date_days, token, 0))


def _time(b: Builder, span: Span, token: Any) -> ast.TimeLit:
    return ast.TimeLit(span, b.literal(literals.time_millis, token, 0))


def _true(b: Builder, span: Span) -> ast.BoolLit:
    return ast.BoolLit(span, True)


def _false(b: Builder, span: Span) -> ast.BoolLit:
    return ast.BoolLit(span, False)


def _unit_pattern(b: Builder, span: Span) -> ast.TuplePattern:
    return ast.TuplePattern(span, ())


def _pair(b: Builder, span: Span, first: Any, second: Any) -> Any:
    return [first, second]


def _or_pattern(b: Builder, span: Span, alternatives: Any) -> ast.OrPattern:
    return ast.OrPattern(span, tuple(alternatives))


def _field_short(b: Builder, span: Span, name: Any) -> ast.FieldPattern:
    return ast.FieldPattern(span, ident(name), None)


def _field_full(b: Builder, span: Span, name: Any, pattern: Any) -> ast.FieldPattern:
    return ast.FieldPattern(span, ident(name), pattern)


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    # statements
    "block": _block,
    "body": _block,
    "binding": _binding,
    "binding_alone": _binding_alone,
    "assign": _assign,
    "while": _while,
    "for": _for,
    "stage": _stage,
    "become": _become,
    "given": _given,
    "given_runs": _given_runs,
    "given_args": _several,
    "answer": _answer,
    "answer_after": _answer_after,
    "fails": _fails,
    "fails_after": _fails_after,
    "never": _never,
    # expressions
    "name": _name,
    "lambda": _lambda,
    "lambda_params": _several,
    "binary": _binary,
    "not_in": _not_in,
    "range": _range,
    "unary": _unary,
    "member": _member,
    "tuple_index": _tuple_index,
    "args": _several,
    "arg": _arg,
    "named_arg": _named_arg,
    "struct_literal": _struct_literal,
    "struct_short": _struct_short,
    "struct_full": _struct_full,
    "struct_base": _struct_base,
    "unit": _unit,
    "tuple": _tuple,
    "list": _list,
    "empty_map": _empty_map,
    "map": _map,
    "entry": _entry,
    "if": _if,
    "condition": _condition,
    "let_condition": _let_condition,
    "match": _match,
    "wait": _wait,
    "receive": _receive,
    "int": _int,
    "decimal": _decimal,
    "duration": _duration,
    "date": _date,
    "time": _time,
    "true": _true,
    "false": _false,
    "string": _string,
    "interpolation": _interpolation,
    "interpolate": _interpolate,
    # patterns
    "bind": _bind,
    "path_1": _path,
    "path_2": _path,
    "path_3": _path,
    "variant_pattern": _variant_pattern,
    "struct_pattern": _struct_pattern,
    "unit_pattern": _unit_pattern,
    "tuple_pattern": _tuple_pattern,
    "list_pattern": _list_pattern,
    "literal_pattern": _literal_pattern,
    "range_pattern": _range_pattern,
    "pair": _pair,
    "or_pattern": _or_pattern,
    "pattern_args": _several,
    "pattern_arg": _pattern_arg,
    "named_pattern_arg": _named_pattern_arg,
    "rest": _rest,
    "field_short": _field_short,
    "field_full": _field_full,
    "negative_int": _negative_int,
    "negative_decimal": _negative_decimal,
    "negative_duration": _negative_duration,
}

# Rules whose values are, in their order, what the node has.
EXPRESSION_NODES: dict[str, Callable[..., ast.Node]] = {
    "expr_stmt": ast.ExprStmt,
    "return": ast.ReturnStmt,
    "break": ast.BreakStmt,
    "continue": ast.ContinueStmt,
    "defer": ast.DeferStmt,
    "lambda_param": ast.LambdaParam,
    "call": ast.Call,
    "index": ast.IndexExpr,
    "try": ast.TryExpr,
    "paren": ast.ParenExpr,
    "arm": ast.MatchArm,
    "wait_arm": ast.WaitArm,
    "receive_let": ast.ReceiveCase,
    "after": ast.AfterCase,
    "at": ast.AtCase,
    "when": ast.WhenCase,
    "wild": ast.WildPattern,
}
