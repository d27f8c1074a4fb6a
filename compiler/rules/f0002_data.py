"""F0002: what crosses the edge of an instance, or is kept at a stage, is data.

Types of steps, flows, views and channels, of fields, and of the variables a stage names.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, error
from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    FlowSlotSymbol,
    LocalSymbol,
    ViewSymbol,
)
from qoqi.compiler.rules.context import Context, run_of, steps_of
from qoqi.compiler.rules.data_types import DataTypes, variable_types
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, FnSignature
from qoqi.compiler.types.model import Fn, Type, show


def check_data(ctx: Context) -> Iterator[Diagnostic]:
    data = ctx.data
    signatures: dict[ast.Node, FnSignature] = {
        step.decl: ctx.checked.signatures[step] for step in ctx.steps()
    }
    flows = {flow for flow, _ in ctx.flows()}
    signatures |= {flow.decl: ctx.checked.signatures[flow] for flow in flows}
    declared: dict[ast.Node, Type] = {
        symbol.decl: type_
        for symbol, type_ in ctx.checked.declared.items()
        if isinstance(symbol, FlowSlotSymbol | ChannelSymbol | ViewSymbol) and symbol.flow in flows
    }
    answers = {
        symbol.decl: type_ for symbol, type_ in ctx.checked.answers.items() if symbol.flow in flows
    }
    for name, module, _ in ctx.modules():
        for step, _ in steps_of(module.items):
            yield from _signature(ctx, data, name, step, signatures.get(step), "step")
    for flow, facts in ctx.flows():
        decl = flow.decl
        yield from _signature(ctx, data, flow.module, decl, signatures.get(decl), "flow")
        for step, _ in steps_of(decl.members):
            yield from _signature(ctx, data, flow.module, step, signatures.get(step), "step")
        for member in decl.members:
            match member:
                case ast.ViewDecl(name=name_, result=node):
                    what = f"what the view `{name_.name}` gives"
                    yield from _type(ctx, data, flow.module, declared.get(member), node, what)
                case ast.ChannelDecl(name=name_, type=node, answers=answer):
                    what = f"what the channel `{name_.name}` takes"
                    yield from _type(ctx, data, flow.module, declared.get(member), node, what)
                    if answer is not None:
                        what = f"what the channel `{name_.name}` answers"
                        yield from _type(ctx, data, flow.module, answers.get(member), answer, what)
                case ast.FieldDecl(name=name_, type=written):
                    what = f"the field `{name_.name}`"
                    place = written or name_
                    yield from _type(ctx, data, flow.module, declared.get(member), place, what)
                case _:
                    continue
        yield from _stages(ctx, data, flow.module, decl, facts)


def _signature(
    ctx: Context,
    data: DataTypes,
    module: str,
    decl: ast.StepDecl | ast.FlowDecl,
    signature: FnSignature | None,
    kind: str,
) -> Iterator[Diagnostic]:
    if signature is None:
        return
    owner = f"the {kind} `{decl.name.name}`"
    for param, (_, type_, _) in zip(decl.params, signature.params, strict=False):
        what = f"the parameter `{param.name.name}` of {owner}"
        yield from _type(ctx, data, module, type_, param.type, what)
    if decl.result is not None:
        yield from _type(ctx, data, module, signature.result, decl.result, f"what {owner} gives")


def _type(
    ctx: Context, data: DataTypes, module: str, type_: Type | None, node: ast.Node, what: str
) -> Iterator[Diagnostic]:
    if type_ is None or data.has(type_):
        return
    message = f"{what} is a `{show(type_)}`, which is not data"
    notes = ["Use data: it has a form in JSON, and can be kept and sent."]
    yield error("F0002", ctx.path(module), node.span, message, notes=notes)


def _stages(
    ctx: Context, data: DataTypes, module: str, decl: ast.FlowDecl, facts: Facts
) -> Iterator[Diagnostic]:
    run = run_of(decl)
    if run is None:
        return
    tree = ctx.run_nodes(run)
    stages = [node for node in tree if isinstance(node, ast.StageStmt)]
    types = variable_types(facts, tree) if stages else {}
    for stage in stages:
        for ident in stage.variables:
            symbol = facts.uses.get(ident)
            type_ = types.get(symbol) if isinstance(symbol, LocalSymbol) else None
            if type_ is None or data.has(type_):
                continue
            message = (
                f"`{ident.name}` is a `{show(type_)}`, which is not data, "
                "and a stage carries data only"
            )
            notes = ["Leave it out, and make it again after the stage."]
            if isinstance(type_, Fn):
                notes = ["Make it a function of the flow, which needs no variable."]
            yield error("F0002", ctx.path(module), ident.span, message, notes=notes)
