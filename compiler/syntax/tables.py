"""The parse tables: made from `grammar/flow.lark` by Lark, shipped as `grammar/flow.tables`.

Building LALR tables and importing Lark cost a fifth of a second, so neither happens when a program
is compiled. `generate` runs Lark and writes the tables as JSON; a test holds the file against the
grammar. `load` turns the file into the two structures that the parser's loop reads:

- a *row* per state maps a terminal's kind to an action (`n >= 0` shifts to state n, `n < 0` reduces
  by rule `~n`) and a nonterminal, written `<name>`, to the state to go to;
- a *rule* says how many values it takes, what it reduces to, and what becomes of the values.

A terminal's kind is the text it always has (`"struct"`, `"("`), or the name that the grammar
declares for it without a leading underscore (`NAME`, `NL`). This module and the test of the tables
are the only places that import Lark; its names used here are not documented as stable, which is why
the dependency is pinned to one minor version.

File format, version 2: `symbols`, the kinds and nonterminals; `rules`, one
`[symbol, size, action, builder, picks]` each; `rows`, one `[shifts, gotos, reductions]` each, where
the first two are flat lists of symbol and state, and the third maps a rule to its lookaheads.
Numbers refer to positions in these lists.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from qoqi.grammar import source
from qoqi.vm.dataclass import dataclass

VERSION = 2
END = "$END"

# What becomes of the values that a rule takes.
RENAME = 0  # One value, which stays where it is.
SELECT = 1  # One of several values: `picks` is its position.
FIRST = 2  # One value starts a list.
MORE = 3  # The last value is added to the list that is the first.
CALL = 4  # The builder makes a node of them.


class Rule(NamedTuple):
    """One reduction. `picks` are the positions of the values passed on, -1 for one left out.

    `picks` is None where all values are passed on as they are.
    """

    size: int
    symbol: str
    action: int
    builder: str
    picks: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    rows: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    start: int


@lru_cache(maxsize=1)
def load() -> Tables:
    """The shipped tables. Read once per process; they never change."""
    data = json.loads(source("flow.tables"))
    if data["version"] != VERSION:
        raise ValueError(f"flow.tables has version {data['version']}, not {VERSION}")
    symbols: list[str] = [sys.intern(symbol) for symbol in data["symbols"]]
    rules = tuple(
        Rule(size, symbols[symbol], action, builder, None if picks is None else tuple(picks))
        for symbol, size, action, builder, picks in data["rules"]
    )
    rows: list[dict[str, int]] = []
    for shifts, gotos, reductions in data["rows"]:
        row: dict[str, int] = {symbols[shifts[i]]: shifts[i + 1] for i in range(0, len(shifts), 2)}
        row.update((symbols[gotos[i]], gotos[i + 1]) for i in range(0, len(gotos), 2))
        for rule, lookaheads in reductions:
            action = ~rule
            row.update((symbols[symbol], action) for symbol in lookaheads)
        rows.append(row)
    return Tables(tuple(rows), rules, data["start"])


def generate() -> str:
    """The text of `flow.tables` for the grammar as it stands; the same on every machine."""
    lark, shift = _lark()
    table = lark.parser.parser._parse_table
    kinds = {terminal.name: _kind(terminal) for terminal in lark.terminals}
    kinds[END] = END

    nonterminal_names = {str(rule.origin.name) for rule in lark.rules}

    def name(symbol: str) -> str:
        if symbol in nonterminal_names:
            return f"<{symbol}>"
        return kinds.get(symbol) or symbol.removeprefix("_")

    # States are numbered as they are reached: Lark's own numbers depend on the order of its sets.
    order: dict[Any, int] = {table.start_states["module"]: 0}
    reached = list(order)
    for state in reached:
        for symbol in sorted(table.states[state]):
            action, argument = table.states[state][symbol]
            if action is shift and argument not in order:
                order[argument] = len(order)
                reached.append(argument)
    symbols = sorted(
        {name(symbol) for row in table.states.values() for symbol in row} | {"<module>"}
    )
    number = {symbol: i for i, symbol in enumerate(symbols)}

    rules: list[list[object]] = []
    rule_number: dict[int, int] = {}
    rows: list[list[object]] = []
    for state in reached:
        shifts: list[int] = []
        gotos: list[int] = []
        reductions: dict[int, list[int]] = {}
        is_end = state == table.end_states["module"]
        for symbol in sorted(table.states[state]):
            action, argument = table.states[state][symbol]
            if symbol == END and is_end:
                continue
            if action is shift:
                target = gotos if symbol in nonterminal_names else shifts
                target += [number[name(symbol)], order[argument]]
            else:
                key = id(argument)
                if key not in rule_number:
                    rule_number[key] = len(rules)
                    rules.append(_rule(argument, number))
                reductions.setdefault(rule_number[key], []).append(number[name(symbol)])
        if is_end:
            shifts += [number[END], order[state]]
        rows.append([shifts, gotos, sorted([rule, at] for rule, at in reductions.items())])
    data = {
        "version": VERSION,
        "start": order[table.start_states["module"]],
        "symbols": symbols,
        "rules": rules,
        "rows": rows,
    }
    lines = ",\n".join(
        f"{json.dumps(key)}: "
        + (
            "[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in value) + "\n]"
            if isinstance(value, list) and key != "symbols"
            else json.dumps(value)
        )
        for key, value in data.items()
    )
    return "{" + lines + "}\n"


def _lark() -> tuple[Any, Any]:
    """The grammar as Lark has read it, and the mark of a shift in its table."""
    # Imported here: nothing but the generator needs Lark.
    from lark import Lark
    from lark.lexer import Lexer
    from lark.parsers.lalr_analysis import Shift

    class NoLexer(Lexer):
        """Tells Lark that tokens come from elsewhere."""

        def __init__(self, _conf: object) -> None:
            pass

        def lex(self, lexer_state: Any, parser_state: Any) -> Any:
            raise NotImplementedError

    return Lark(source("flow.lark"), parser="lalr", lexer=NoLexer, start="module"), Shift


def _kind(terminal: Any) -> str:
    """The kind of a terminal: its text if it always has the same, else its name."""
    pattern = terminal.pattern
    if pattern is not None and pattern.type == "str":
        return str(pattern.value)
    return str(terminal.name).removeprefix("_")


def _rule(rule: Any, number: dict[str, int]) -> list[object]:
    """`[symbol, size, action, builder, picks]` of a rule as Lark expanded it."""
    picks: list[int] = []
    position = 0
    empty = rule.options.empty_indices or (False,) * len(rule.expansion)
    for left_out in empty:
        if left_out:
            picks.append(-1)
            continue
        symbol = rule.expansion[position]
        dropped = symbol.filter_out if symbol.is_term else symbol.name.startswith("_")
        if not dropped:
            picks.append(position)
        position += 1
    size = len(rule.expansion)
    origin = str(rule.origin.name)
    symbol_number = number[f"<{origin}>"]
    builder = str(rule.alias or rule.options.template_source or origin)
    passes = rule.alias is None and (rule.options.expand1 or origin.startswith("_"))
    if passes and len(picks) == 1 and picks[0] >= 0:
        action = RENAME if size == 1 else SELECT
        return [symbol_number, size, action, "", None if size == 1 else picks]
    if origin.startswith("_"):
        return [symbol_number, size, RENAME, "", None]
    if builder == "first":
        return [symbol_number, size, FIRST, "", picks]
    if builder == "more":
        return [symbol_number, size, MORE, "", picks]
    whole = picks == list(range(size))
    return [symbol_number, size, CALL, builder, None if whole else picks]


def main() -> None:
    """Writes `grammar/flow.tables` of this checkout."""
    path = Path(__file__).resolve().parents[2] / "grammar" / "flow.tables"
    path.write_text(generate(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
