"""A tiny assembler: chunks for tests, written as text.

    function main 1 3          # name, parameters, slots
        LOAD 0
        INT 2
        LT
        JUMP_IF_FALSE end      # a label, or a number
        CONST 0
        RETURN
    end:
        UNIT
        RETURN

Tables are given as keyword arguments of `assemble`; the function `run` is run, if there is one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qoqi.vm.bytecode.chunk import (
    Chunk,
    FieldDef,
    Function,
    Place,
    TypeDef,
    VariantDef,
)
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.program import Program, load

EMPTY = Chunk(
    flow="test.Test",
    types=(),
    variants=(),
    terms=(),
    constants=(),
    functions=(),
    closures=(),
    natives=(),
    operations=(),
    flow_slots=(),
    result=("Tuple",),
    channels=(),
    stages=(),
    steps=(),
    migrations=(),
    views=(),
    run=0,
    fields_init=0,
    listens=False,
)

FIELDS = Function("fields", 0, 0, ((Op.TUPLE, 0), (Op.RETURN, 0)))


def option() -> TypeDef:
    value = FieldDef("value", "value", ("param", 0))
    return TypeDef(
        "Option", 1, None, (VariantDef("Some", "Some", (value,)), VariantDef("None", "None", ()))
    )


def functions(
    source: str, places: dict[str, list[Place]], mutations: dict[str, Any], switches: dict[str, Any]
) -> tuple[Function, ...]:
    found: list[Function] = []
    name, params, slots = "", 0, 0
    lines: list[tuple[str, str]] = []
    labels: dict[str, int] = {}

    def finish() -> None:
        if not name:
            return
        code = []
        for op, operand in lines:
            number = labels[operand] if operand in labels else int(operand or 0)
            code.append((int(Op[op]), number))
        found.append(
            Function(
                name,
                params,
                slots,
                tuple(code),
                tuple(places.get(name, ())),
                tuple(mutations.get(name, ())),
                tuple(switches.get(name, ())),
            )
        )
        lines.clear()
        labels.clear()

    for line in source.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[0] == "function":
            finish()
            name, params, slots = words[1], int(words[2]), int(words[3])
        elif words[0].endswith(":"):
            labels[words[0][:-1]] = len(lines)
        else:
            lines.append((words[0], words[1] if len(words) > 1 else ""))
    finish()
    return tuple(found)


def assemble(
    source: str,
    places: dict[str, list[Place]] | None = None,
    mutations: dict[str, Any] | None = None,
    switches: dict[str, Any] | None = None,
    **tables: Any,
) -> Chunk:
    """A chunk of the functions in the source, and of `fields`, which gives none."""
    code = (*functions(source, places or {}, mutations or {}, switches or {}), FIELDS)
    names = [function.name for function in code]
    tables.setdefault("fields_init", names.index("fields"))
    tables.setdefault("run", names.index("run" if "run" in names else "fields"))
    return replace(EMPTY, functions=code, **tables)


def program(source: str, fuse: bool = True, **tables: Any) -> Program:
    return load(assemble(source, **tables), fuse=fuse)
