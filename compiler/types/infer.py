"""The rules of inference: one per kind of expression."""

from __future__ import annotations

from collections.abc import Mapping

from qoqi.compiler.names.scope import FlowScope, ModuleScope
from qoqi.compiler.names.symbols import Symbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.bounds import check_bound
from qoqi.compiler.types.calls import infer_call
from qoqi.compiler.types.context import Body, ExprRule, Frame, Program, Reason, Rules
from qoqi.compiler.types.control import infer_if, infer_lambda, infer_match, infer_wait
from qoqi.compiler.types.literals import (
    infer_bool,
    infer_date,
    infer_decimal,
    infer_duration,
    infer_int,
    infer_list,
    infer_map,
    infer_paren,
    infer_range,
    infer_string,
    infer_struct,
    infer_time,
    infer_tuple,
)
from qoqi.compiler.types.members import infer_field, infer_name, infer_tuple_index
from qoqi.compiler.types.mismatch import report_mismatch
from qoqi.compiler.types.model import ERROR, Param, Type
from qoqi.compiler.types.operators import (
    infer_binary,
    infer_index,
    infer_try,
    infer_unary,
)


def infer_error(body: Body, expr: ast.ErrorExpr, want: Type | None) -> Type:
    return ERROR


EXPRESSIONS: Mapping[type, ExprRule] = {
    ast.IntLit: infer_int,
    ast.DecimalLit: infer_decimal,
    ast.DurationLit: infer_duration,
    ast.DateLit: infer_date,
    ast.TimeLit: infer_time,
    ast.BoolLit: infer_bool,
    ast.StringLit: infer_string,
    ast.Name: infer_name,
    ast.ListExpr: infer_list,
    ast.MapExpr: infer_map,
    ast.TupleExpr: infer_tuple,
    ast.ParenExpr: infer_paren,
    ast.StructExpr: infer_struct,
    ast.Call: infer_call,
    ast.FieldExpr: infer_field,
    ast.TupleIndexExpr: infer_tuple_index,
    ast.IndexExpr: infer_index,
    ast.TryExpr: infer_try,
    ast.UnaryExpr: infer_unary,
    ast.BinaryExpr: infer_binary,
    ast.RangeExpr: infer_range,
    ast.LambdaExpr: infer_lambda,
    ast.IfExpr: infer_if,
    ast.MatchExpr: infer_match,
    ast.WaitExpr: infer_wait,
    ast.ErrorExpr: infer_error,
}

RULES = Rules(EXPRESSIONS, report_mismatch, check_bound)


def new_body(
    program: Program,
    scope: ModuleScope,
    *,
    flow: FlowScope | None = None,
    result: Type = ERROR,
    reason: Reason | None = None,
    type_params: Mapping[str, Param] | None = None,
    tools: bool = True,
    testing: bool = False,
    owner: Symbol | None = None,
) -> Body:
    """A body to be checked: `result` is what its `return` gives."""
    body = Body(
        program,
        scope,
        program.facts[scope.name],
        program.rules or RULES,
        flow,
        type_params or {},
        tools,
        testing,
        owner,
    )
    body.frames.append(Frame(result, reason))
    return body
