"""The nodes of declarations, their clauses and types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qoqi.compiler.diagnostics import Label
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.builder import Builder, ident, idents, listed, plain_text
from qoqi.compiler.syntax.tokens import Token

# -- declarations


def _module(b: Builder, span: Span, items: list[Any] | None) -> ast.Module:
    return ast.Module(span, b.module_doc, listed(items))


def _import(
    b: Builder, span: Span, public: Token | None, path: list[Token], alias: Token | None
) -> ast.ImportDecl:
    name = ident(alias) if alias else None
    return ast.ImportDecl(span, public is not None, idents(path), name, None)


def _import_names(
    b: Builder, span: Span, public: Token | None, path: list[Token], names: list[Token]
) -> ast.ImportDecl:
    return ast.ImportDecl(span, public is not None, idents(path), None, idents(names))


def _const(
    b: Builder, span: Span, public: Token | None, name: Token, type_: Any, value: Any
) -> ast.ConstDecl:
    return ast.ConstDecl(span, b.doc(span), public is not None, ident(name), type_, value)


def _test(b: Builder, span: Span, title: ast.StringLit, body: ast.Block) -> ast.TestDecl:
    plain_text(b, title, "the title of a test")
    return ast.TestDecl(span, title, body)


def _struct(
    b: Builder, span: Span, public: Token | None, name: Token, params: Any, fields: Any
) -> ast.StructDecl:
    kept = tuple(part for part in fields or () if part is not None)
    return ast.StructDecl(span, b.doc(span), public is not None, ident(name), listed(params), kept)


def _struct_field(
    b: Builder,
    span: Span,
    name: Token,
    type_: Any,
    json_name: ast.StringLit | None,
    default: Any,
) -> ast.StructField:
    written = None if json_name is None else plain_text(b, json_name, "a name in JSON")
    return ast.StructField(span, b.doc(span), ident(name), type_, written, default)


def _enum(
    b: Builder, span: Span, public: Token | None, name: Token, params: Any, variants: Any
) -> ast.EnumDecl:
    kept = tuple(part for part in variants or () if part is not None)
    return ast.EnumDecl(span, b.doc(span), public is not None, ident(name), listed(params), kept)


def _variant(
    b: Builder, span: Span, name: Token, params: Any, json_name: ast.StringLit | None
) -> ast.VariantDecl:
    written = None if json_name is None else plain_text(b, json_name, "a name in JSON")
    return ast.VariantDecl(span, b.doc(span), ident(name), params, written)


def _type_param(b: Builder, span: Span, name: Token, bound: Token | None) -> ast.TypeParam:
    return ast.TypeParam(span, ident(name), ident(bound) if bound else None)


def _params(b: Builder, span: Span, params: list[Any] | None) -> tuple[Any, ...]:
    return listed(params)


def _param(
    b: Builder, span: Span, var: Token | None, name: Token, type_: Any, default: Any
) -> ast.ParamDecl:
    return ast.ParamDecl(span, ident(name), var is not None, type_, default)


def _fn(
    b: Builder,
    span: Span,
    public: Token | None,
    _word: Token,
    owner: Token | None,
    name: Token,
    type_params: Any,
    params: Any,
    result: Any,
    body: ast.Block,
) -> ast.FnDecl:
    return ast.FnDecl(
        span,
        b.doc(span),
        public is not None,
        None,
        ident(name),
        listed(type_params),
        params,
        result,
        body,
        ident(owner) if owner is not None else None,
    )


def _native(
    b: Builder,
    span: Span,
    public: Token | None,
    colour: Token | None,
    _word: Token,
    owner: Token | None,
    name: Token,
    type_params: Any,
    params: Any,
    result: Any,
) -> ast.FnDecl:
    return ast.FnDecl(
        span,
        b.doc(span),
        public is not None,
        colour.text if colour else "pure",
        ident(name),
        listed(type_params),
        params,
        result,
        None,
        ident(owner) if owner is not None else None,
    )


def _step(
    b: Builder,
    span: Span,
    public: Token | None,
    extern: Token | None,
    name: Token,
    params: Any,
    result: Any,
    clauses: list[Any] | None,
    body: ast.Block | None,
) -> ast.StepDecl:
    if extern is not None and body is not None:
        b.report(
            "E0120",
            body.span,
            f"an extern step has no body; `{name.text}` has one",
            "a routine of a supervisor does its work: remove the body, or the word `extern`",
            fix=b.edit("remove `extern`", extern.start, extern.end + 1, ""),
            whole=span,
        )
    elif extern is None and body is None:
        start = public.start if public else span.start
        after = 0 if public is None else len("pub ")
        b.report(
            "E0120",
            Span(name.start, name.end),
            f"the step `{name.text}` has no body",
            "add one, or write `extern step` for the routine of a supervisor",
            fix=b.edit("add `extern`", start + after, start + after, "extern "),
            whole=span,
        )
    _once(b, clauses)
    return ast.StepDecl(
        span,
        b.doc(span),
        public is not None,
        extern is not None,
        ident(name),
        params,
        result,
        listed(clauses),
        body,
    )


_CLAUSE_NAMES: dict[type[ast.Node], str] = {
    ast.WithinClause: "within",
    ast.TriesClause: "tries",
    ast.BackoffClause: "backoff",
    ast.UndoClause: "undo",
    ast.OnClause: "on",
    ast.BeatClause: "beat",
}


def _once(b: Builder, clauses: list[Any] | None) -> None:
    """Reports a clause written twice; `limit` may stand with `per` and without."""
    seen: dict[str, ast.Node] = {}
    for clause in clauses or ():
        if isinstance(clause, ast.LimitClause):
            name = "limit" if clause.per is None else "limit … per"
        else:
            name = _CLAUSE_NAMES[type(clause)]
        _report_twice(b, seen, name, clause.span, clause)


def _report_twice(
    b: Builder, seen: dict[str, ast.Node], name: str, span: Span, clause: ast.Node
) -> None:
    if name in seen:
        b.report(
            "E0119",
            span,
            f"the clause `{name}` is written twice",
            labels=(Label(b.path, seen[name].span, "it is written here first"),),
        )
    else:
        seen[name] = clause


def _steps(
    b: Builder, span: Span, clauses: list[Any] | None, steps: list[Any] | None
) -> ast.StepsGroup:
    _once(b, clauses)
    kept = tuple(step for step in steps or () if isinstance(step, ast.StepDecl))
    return ast.StepsGroup(span, listed(clauses), kept)


def _tries(b: Builder, span: Span, count: Any, duration: Any, otherwise: Any) -> ast.TriesClause:
    return ast.TriesClause(span, None if isinstance(count, Token) else count, duration, otherwise)


def _flow(
    b: Builder,
    span: Span,
    public: Token | None,
    name: Token,
    params: Any,
    result: Any,
    keep: Any,
    members: list[Any] | None,
) -> ast.FlowDecl:
    if params is None:
        b.report(
            "E0125",
            Span(name.start, name.end),
            f"the flow `{name.text}` has no parameters in parentheses",
            f"add `()` after `{name.text}`",
            fix=b.edit("add `()`", name.end, name.end, "()"),
        )
    return ast.FlowDecl(
        span,
        b.doc(span),
        public is not None,
        ident(name),
        params or (),
        result,
        keep,
        listed(members),
    )


def _channel(
    b: Builder, span: Span, name: Token, type_: Any, clauses: list[Any] | None
) -> ast.ChannelDecl:
    values: dict[str, Any] = {}
    seen: dict[str, ast.Node] = {}
    for word, value in clauses or ():
        _report_twice(b, seen, word.text, word.span, ident(word))
        values.setdefault(word.text, value)
    return ast.ChannelDecl(
        span,
        b.doc(span),
        ident(name),
        type_,
        values.get("answers"),
        values.get("capacity"),
        "inside" in values,
    )


def _field(b: Builder, span: Span, name: Token, type_: Any, value: Any) -> ast.FieldDecl:
    return ast.FieldDecl(span, b.doc(span), ident(name), type_, value)


def _view(b: Builder, span: Span, name: Token, result: Any, body: ast.Block) -> ast.ViewDecl:
    return ast.ViewDecl(span, b.doc(span), ident(name), result, body)


def _migrate(b: Builder, span: Span, name: Token, params: Any, body: ast.Block) -> ast.MigrateDecl:
    return ast.MigrateDecl(span, b.doc(span), ident(name), params, body)


# -- types


def _option_option(b: Builder, span: Span, inner: Any, sign: Token) -> ast.OptionType:
    b.report(
        "E0122",
        sign.span,
        "an option of an option cannot be told from an option",
        "write one `?`, or an enum of your own",
        fix=b.edit("write one `?`", sign.start, sign.end, "?"),
    )
    return ast.OptionType(span, inner)


def _option(b: Builder, span: Span, inner: Any) -> ast.OptionType:
    if isinstance(inner, ast.OptionType) and inner.span.start == span.start:
        b.report(
            "E0122",
            Span(span.end - 1, span.end),
            "an option of an option cannot be told from an option",
            "write one `?`, or an enum of your own",
            fix=b.edit("remove `?`", span.end - 1, span.end, ""),
        )
        return inner
    return ast.OptionType(span, inner)


def _named(b: Builder, span: Span, name: Token, args: list[Any] | None) -> ast.NamedType:
    return ast.NamedType(span, None, ident(name), listed(args))


def _named_of(
    b: Builder, span: Span, module: Token, name: Token, args: list[Any] | None
) -> ast.NamedType:
    return ast.NamedType(span, ident(module), ident(name), listed(args))


def _error_item(b: Builder, span: Span, _: Any) -> ast.ErrorItem:
    return ast.ErrorItem(span)


def _error_field(b: Builder, span: Span, _: Any) -> Any:
    return None


def _error_stmt(b: Builder, span: Span, _: Any) -> ast.ErrorStmt:
    return ast.ErrorStmt(span)


def _channel_clause(b: Builder, span: Span, word: Any, value: Any) -> Any:
    return (word, value)


def _channel_flag(b: Builder, span: Span, word: Any) -> Any:
    return (word, None)


def _unit_type(b: Builder, span: Span) -> ast.TupleType:
    return ast.TupleType(span, ())


def _tuple_type(b: Builder, span: Span, first: Any, rest: Any) -> ast.TupleType:
    return ast.TupleType(span, (first, *rest))


def _fn_type(b: Builder, span: Span, params: Any, result: Any) -> ast.FnType:
    return ast.FnType(span, listed(params), result)


DECLARATIONS: dict[str, Callable[..., Any]] = {
    "module": _module,
    "error_item": _error_item,
    "error_field": _error_field,
    "error_stmt": _error_stmt,
    # declarations
    "import": _import,
    "import_names": _import_names,
    "const": _const,
    "test": _test,
    "struct": _struct,
    "struct_field": _struct_field,
    "enum": _enum,
    "variant": _variant,
    "type_param": _type_param,
    "params": _params,
    "param": _param,
    "fn": _fn,
    "native": _native,
    "step": _step,
    "steps": _steps,
    "tries": _tries,
    "flow": _flow,
    "channel": _channel,
    "channel_clause": _channel_clause,
    "channel_flag": _channel_flag,
    "field": _field,
    "view": _view,
    "migrate": _migrate,
    # types
    "type_name": _named,
    "type_name_of": _named_of,
    "option": _option,
    "option_option": _option_option,
    "unit_type": _unit_type,
    "tuple_type": _tuple_type,
    "fn_type": _fn_type,
}

# Rules whose values are, in their order, what the node has.
DECLARATION_NODES: dict[str, Callable[..., ast.Node]] = {
    "within": ast.WithinClause,
    "backoff": ast.BackoffClause,
    "undo": ast.UndoClause,
    "on": ast.OnClause,
    "beat": ast.BeatClause,
    "limit": ast.LimitClause,
    "run": ast.RunDecl,
}
