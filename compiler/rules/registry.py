"""The rules, in the order in which they run, and the one function that runs them.

`run_rules` also infers the colours: the emitter and the language server find them in the facts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qoqi.compiler.diagnostics import Diagnostic, sort
from qoqi.compiler.rules.context import Context, Rule, Whole, context, nodes
from qoqi.compiler.rules.e0218_assigned import check_assigned
from qoqi.compiler.rules.e0305_patterns import check_patterns
from qoqi.compiler.rules.e0323_constants import check_constants
from qoqi.compiler.rules.e0324_step_state import check_step_state
from qoqi.compiler.rules.f0001_places import check_places
from qoqi.compiler.rules.f0002_data import check_data
from qoqi.compiler.rules.f0004_stage_place import check_stage_places
from qoqi.compiler.rules.f0005_carried import check_carried
from qoqi.compiler.rules.f0006_cancelled import check_cancelled
from qoqi.compiler.rules.f0008_become import check_become
from qoqi.compiler.rules.f0009_one_name import check_one_name
from qoqi.compiler.rules.f0011_undo import check_undo
from qoqi.compiler.rules.f0015_clauses import check_clauses
from qoqi.compiler.rules.f0016_endless_wait import check_endless_wait
from qoqi.compiler.rules.f0017_run import check_run
from qoqi.compiler.rules.w0101_loops import check_loops
from qoqi.compiler.rules.w0102_requests import check_requests
from qoqi.compiler.rules.w0103_thrown_away import check_thrown_away
from qoqi.compiler.rules.w0104_live_tasks import check_live_tasks
from qoqi.compiler.rules.w0105_after import check_after
from qoqi.compiler.rules.w0106_unused import (
    check_hidden,
    check_unused_imports,
    check_unused_variables,
)
from qoqi.compiler.rules.w0108_unreachable import check_unreachable
from qoqi.compiler.rules.w0111_direction import check_direction
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import Parsed
from qoqi.compiler.types.call_graph import CallGraph
from qoqi.compiler.types.colours import infer
from qoqi.compiler.types.facts import Checked

RULES: tuple[Rule, ...] = (
    check_patterns,
    check_assigned,
    check_constants,
    check_step_state,
    check_places,
    check_data,
    check_stage_places,
    check_carried,
    check_cancelled,
    check_become,
    check_one_name,
    check_undo,
    check_clauses,
    check_endless_wait,
    check_run,
    check_loops,
    check_requests,
    check_thrown_away,
    check_live_tasks,
    check_after,
    check_unused_variables,
    check_unused_imports,
    check_hidden,
    check_unreachable,
    check_direction,
)


def run_rules(checked: Checked, parsed: Mapping[str, Parsed]) -> list[Diagnostic]:
    """Everything the rules find in a checked package; `parsed` by module name.

    Rules look at the modules that were parsed, and never at the standard library.
    """
    sources = {name: each.file for name, each in parsed.items()}
    ctx = context(checked, sources, infer(checked))
    return sort(diagnostic for rule in RULES for diagnostic in rule(ctx))


def run_rules_of(
    name: str,
    checked: Checked,
    sources: Mapping[str, SourceFile],
    graph: CallGraph,
    known: Whole,
    poll: Callable[[], None],
) -> list[Diagnostic]:
    """What the rules find that begins in one module, wherever it is: a wait in a function of
    another module, reached by a flow of this one. `poll` is called between rules."""
    if name in checked.too_deep:
        return []
    tree = {name: tuple(nodes(checked.modules[name]))}
    ctx = Context(checked, sources, graph, known, tree)
    found: list[Diagnostic] = []
    for rule in RULES:
        poll()
        found += rule(ctx)
    return sort(found)
