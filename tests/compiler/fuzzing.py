"""Makes wrong programs out of right ones, and puts any text through the whole compiler.

`survive` is the claim under test: whatever the text, the compiler ends with diagnostics that stand
in it, and what has no errors becomes bytecode that the machine loads. Everything is drawn from a
`random.Random` that the caller seeds, so that a failure comes back.
"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from qoqi.compiler import api
from qoqi.compiler.codes import CODES
from qoqi.compiler.diagnostics import to_json
from qoqi.compiler.rules import pages
from qoqi.compiler.source import LineIndex
from qoqi.vm.bytecode.codec import decode
from qoqi.vm.program import load

ROOT = Path(__file__).resolve().parents[2]
PATH = "./m.flow"
PIECE = re.compile(r"\"[^\"\n]*\"|\w+|\s+|[^\w\s]")
# Words and signs of the language, and some of none.
VOCABULARY = r"""
    flow step steps fn struct enum const let var if else while for in not match case wait return
    break continue defer true false extern pub import channel view run migrate stage become given
    test within tries forever backoff to on limit per beat undo capacity answers inside keep after
    at when then fails never it self None Some Ok Err Known Unknown Int String Duration List Map
    Json flow.now() .receive() .send(1) task.start(f) task.map(xs,f) flow.cancelled() flow.undo
    1 2.5 30s @2026-11-30 "a" "\(x)" #"a"# [ ] ( ) { } < > , : . .. ..= ? ?? => -> = == + - * / %
    ! && || | & ; @ _ # $ \ ' ` ~ ^ // /// é 漢 🙂
"""
SPACES = [" ", "\n", "\t", "\r\n", "\0", "\ufeff", "\u202e", "\ud800", '"""']
WORDS = [*VOCABULARY.split(), *SPACES]


class OneFile:
    """A package of one module, in memory."""

    def __init__(self, text: str) -> None:
        self.text = text

    def files(self, folder: str, suffix: str) -> list[str]:
        return [PATH]

    def read(self, path: str) -> str:
        return self.text

    def is_file(self, path: str) -> bool:
        return path == PATH

    def is_folder(self, path: str) -> bool:
        return path == "."


def corpus() -> list[str]:
    """Programs to begin with: the examples, the parser's samples and the pages of the codes."""
    files = [*ROOT.glob("examples/*.flow"), *ROOT.glob("tests/syntax/samples/*.flow")]
    texts = [path.read_text("utf-8") for path in sorted(files)]
    for code in pages.codes():
        page = pages.page(code)
        assert page is not None
        texts += [text for text in (page.failing, page.fixed, page.stops) if text is not None]
    return texts


def survive(text: str) -> list[str]:
    """The codes of what is wrong with a text; fails where the compiler does."""
    reader = OneFile(text)
    result = api.check(".", reader)
    index = {PATH: LineIndex(text)}
    for each in result.diagnostics:
        assert each.code in CODES
        assert each.message
        assert "\n" not in each.message
        places = [(each.file, each.span), *((label.file, label.span) for label in each.labels)]
        places += [(edit.file, edit.span) for fix in each.fixes for edit in fix.edits]
        for file, span in places:
            assert 0 <= span.start <= span.end
            assert file.startswith("std/") or (file == PATH and span.end <= len(text))
        if all(label.file == PATH for label in each.labels):
            to_json(each, index)
    if result.ok:
        for flow in api.build(".", reader=reader).flows:
            load(decode(flow.data), flow.debug)
        api.build_tests(result)
    return [each.code for each in result.diagnostics]


def random_text(random: Random) -> str:
    """Words and signs in any order."""
    gap = random.choice(["", " ", "\n"])
    return gap.join(random.choices(WORDS, k=random.randint(1, 80)))


def edited(random: Random, text: str, other: str) -> str:
    """A program after up to four edits of the kinds that people and tools make."""
    pieces = PIECE.findall(text)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(pieces) or 1)
        to = min(len(pieces), at + random.choice([1, 1, 1, 2, 5, 40]))
        match random.randrange(8):
            case 0:
                del pieces[at:to]
            case 1:
                pieces[at:to] = pieces[at:to] * 2
            case 2:
                pieces.insert(at, random.choice(WORDS))
            case 3:
                pieces[at : at + 1] = [random.choice(WORDS)]
            case 4:
                swap = random.randrange(len(pieces) or 1)
                pieces[at:to], pieces[swap : swap + 1] = pieces[swap : swap + 1], pieces[at:to]
            case 5:
                names = [piece for piece in pieces if piece.isidentifier()] or ["x"]
                pieces[at : at + 1] = [random.choice(names)]
            case 6:
                more = PIECE.findall(other)
                start = random.randrange(len(more) or 1)
                pieces[at:at] = more[start : start + random.randint(1, 30)]
            case _:
                del pieces[to + 60 :]
    return "".join(pieces)
