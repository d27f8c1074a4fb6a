"""The shipped tables are those of the grammar, and need no Lark to be read."""

from __future__ import annotations

import subprocess
import sys

from qoqi.compiler.syntax.parser import BUILD, NODES
from qoqi.compiler.syntax.tables import CALL, generate, load
from qoqi.grammar import source


def test_the_shipped_tables_are_those_of_the_grammar() -> None:
    # Where this fails: python -m qoqi.compiler.syntax.tables
    assert generate() == source("flow.tables")


def test_every_rule_has_a_builder_and_every_builder_a_rule() -> None:
    named = {rule.builder for rule in load().rules if rule.action == CALL}
    assert named == set(BUILD) | set(NODES)
    assert set(BUILD) & set(NODES) == set()


def test_a_parse_imports_no_lark() -> None:
    program = (
        "import sys\n"
        "from qoqi.compiler.source import SourceFile\n"
        "from qoqi.compiler.syntax.parser import parse\n"
        "parse(SourceFile('a.flow', 'a', 'const a = 1'))\n"
        "print('lark' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
