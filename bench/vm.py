"""Instructions per second of the interpreter: a loop, calls, appends, structs, text.

    PYTHONPATH=.links python bench/vm.py

Counts the instructions of the bytecode, not the fused ones that run: a figure says how fast a
program goes. Best of three.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from qoqi.vm.bytecode.chunk import FieldDef, Place, TypeDef
from qoqi.vm.interpreter import call
from qoqi.vm.program import Program
from tests.vm.assembler import program

LOOP = """
function loop 1 3            # var sum = 0; for i in 0..n { if i % … } as a while
    INT 0
    STORE 1
    INT 0
    STORE 2
top:
    LOAD 1
    LOAD 0
    LT
    JUMP_IF_FALSE end
    LOAD 2
    LOAD 1
    ADD
    STORE 2
    LOAD 1
    INT 1
    ADD
    STORE 1
    JUMP top
end:
    LOAD 2
    RETURN
"""

FOR = """
function walk 1 4            # for i in 0..n { sum += i }
    INT 0
    STORE 3
    INT 0
    LOAD 0
    RANGE
    ITERABLE
    STORE 1
    INT 0
    STORE 2
top:
    NEXT 1
    JUMP_IF_FALSE end
    STORE 3
    LOAD 3
    POP
    JUMP top
end:
    LOAD 3
    RETURN
"""

CALLS = """
function fib 1 1
    LOAD 0
    INT 2
    LT
    JUMP_IF_FALSE more
    LOAD 0
    RETURN
more:
    LOAD 0
    INT 1
    SUB
    CALL 0
    LOAD 0
    INT 2
    SUB
    CALL 0
    ADD
    RETURN
"""

APPENDS = """
function fill 1 3
    LIST 0
    STORE 1
    INT 0
    STORE 2
top:
    LOAD 2
    LOAD 0
    LT
    JUMP_IF_FALSE end
    LOAD 2
    MUTATE 0
    POP
    LOAD 2
    INT 1
    ADD
    STORE 2
    JUMP top
end:
    LOAD 1
    NATIVE 0
    RETURN
"""

FIELDS_OF_STRUCTS = """
function structs 1 3
    INT 0
    INT 0
    STRUCT 0
    STORE 1
    INT 0
    STORE 2
top:
    LOAD 2
    LOAD 0
    LT
    JUMP_IF_FALSE end
    LOAD 1
    GET_FIELD 0
    LOAD 2
    ADD
    PUT_PLACE 0
    LOAD 2
    INT 1
    ADD
    STORE 2
    JUMP top
end:
    LOAD 1
    GET_FIELD 0
    RETURN
"""


def measure(name: str, loaded: Program, size: int, instructions: int) -> None:
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        call(loaded, 0, [size])
        best = min(best, time.perf_counter() - begin)
    print(f"{name:<10} {instructions / best / 1e6:6.1f} M instructions/s   {best * 1e3:7.1f} ms")


def calls_of_fib(n: int) -> int:
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b + 1
    return a


def main() -> None:
    pair = TypeDef("Pair", 0, (FieldDef("a", "a", "Int"), FieldDef("b", "b", "Int")), None)
    n = 300_000
    measure("loop", program(LOOP), n, 13 * n)
    measure("for", program(FOR), n, 6 * n)
    fib = 22
    measure("calls", program(CALLS), fib, calls_of_fib(fib) * 11)
    filled = program(
        APPENDS,
        places={"fill": [Place(False, 1)]},
        mutations={"fill": [("List.append", 1, 0)]},
        natives=(("List.len", 1),),
    )
    measure("appends", filled, n, 12 * n)
    structs = program(
        FIELDS_OF_STRUCTS, places={"structs": [Place(False, 1, (("field", 0),))]}, types=(pair,)
    )
    measure("structs", structs, n, 14 * n)


if __name__ == "__main__":
    main()
