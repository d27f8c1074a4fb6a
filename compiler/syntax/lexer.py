r"""The lexer: from text to tokens and trivia, alone and before the parser.

One regular expression finds the next piece; what depends on neighbours is decided here too, from
the tokens before, a stack of what is open, and a look at the characters that follow:

- **Words.** Reserved words are keywords but after `.`; there too, where one starts a statement on
  the next line, as after a name that is still to be written. A declaration word (`flow`, `stage`) is one
  at the start of an item or statement if what follows fits it; a clause word (`within`) is one in
  the header of a step, channel or flow, after a token that can end a type or an expression.
- **Newlines.** A newline is a token (`NL`) if the last token can end a statement, the next line
  does not start with a token that only continues one, and the innermost bracket is a brace. Before
  `}`, `case` and the end of the file nothing has to be ended.
- **Braces.** `{` after a type name opens a struct literal (`STRUCT_OPEN`); in a header, the block.
- **Text.** `"a \(x) b"` is STRING_START, the tokens of `x`, STRING_END.

The stack holds `(`, `[`, `{`, `"` (an interpolation; `'` in text of one line) and, above a bracket,
the contexts that end by themselves: `D` the header of a step, channel or flow, `S` of a struct,
enum or view, `F` of a function, `I` of an `if`, `while`, `for`, `match`, `P` the pattern of
`if let`, `C` from `case` to its colon, `G` a `given`.

Nothing here raises: text that is no part of the language becomes `skipped` trivia and a diagnostic.
What is nested deeper than `MAX_DEPTH`, or has more than `MAX_WEIGHT` operators on one path from the
root, ends the reading (`complete` is False), so that every tree is shallow enough to walk by
recursion.
"""

from __future__ import annotations

import re
from dataclasses import field

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, error
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import literals
from qoqi.compiler.syntax.patterns import (
    AS_FITS,
    BRACKET_OF,
    CALLED,
    CASE_FITS,
    CLAUSE_NEXT,
    CLOSERS_AT_END,
    CLOSES_ANGLE,
    CONFLICT,
    ENDS_ANYWAY,
    FAILS_FITS,
    FITS,
    FN_FOLLOWS,
    FOREIGN_OPERATORS,
    FOREIGN_SIGNS,
    FOREIGN_WORDS,
    GOES_ON,
    HEADER_OF,
    IGNORED,
    MARKS,
    MASTER,
    NAMED,
    NEVER_INSIDE,
    OPERAND_FOLLOWS,
    OPERAND_NEXT,
    REST_IS_BLANK,
    REST_OF_BLOCK,
    REST_OF_TEXT,
    SPACE_IN_FRONT,
    SPECIAL,
    STARTS_AFTER,
    STATEMENT_FOLLOWS,
    STATEMENT_WORDS,
    THEN_NEXT,
    UNKNOWN_NOTES,
    WEIGHS,
    WORD_FOLLOWS,
)
from qoqi.compiler.syntax.tokens import (
    CAN_END,
    CASE_WORDS,
    CLAUSE_WORDS,
    COLOUR,
    COMMENT,
    DECLARATION_WORDS,
    DOC,
    GIVEN_WORDS,
    LAMBDA,
    MODULE_DOC,
    NAME,
    NL,
    RESERVED,
    SIGN_KINDS,
    SKIPPED,
    SPACE,
    STRING,
    STRING_END,
    STRING_MIDDLE,
    STRING_START,
    STRUCT_OPEN,
    TYPE,
    Token,
    Trivia,
)
from qoqi.vm.dataclass import dataclass

HALF = re.compile("[\ud800-\udfff]").finditer
MAX_CHARACTERS = 4 * 1024 * 1024
MAX_DEPTH = 200
MAX_WEIGHT = 500
MAX_DIAGNOSTICS = 100


@dataclass(frozen=True, slots=True)
class Lexed:
    """`docs` maps the start of a token to the `///` text before it.

    `skipped` are the starts of tokens that text which was skipped stands before, `clean` those of
    tokens at which reading can begin: a statement has ended before them, and nothing is open.
    """

    tokens: list[Token]
    trivia: list[Trivia]
    docs: dict[int, str]
    module_doc: str
    diagnostics: list[Diagnostic]
    skipped: set[int]
    complete: bool
    clean: frozenset[int] = frozenset()


def lex(file: SourceFile) -> Lexed:
    """Reads a whole text."""
    text = file.text
    if len(text) > MAX_CHARACTERS:
        problem = error(
            "E0108",
            file.path,
            Span(0, 0),
            f"the file has {len(text):,} characters; more than {MAX_CHARACTERS:,} are not read",
            notes=("split it into several modules",),
        )
        rest = [Trivia(SKIPPED, text, 0, len(text))]
        return Lexed([], rest, {}, "", [problem], set(), complete=False)
    return lex_from(file, 0)


def lex_from(file: SourceFile, start: int) -> Lexed:
    """Reads a text from its start, or from a token at which reading can begin."""
    lexer = _Lexer(file)
    if start:
        lexer.prev = NL
    lexer.run(start)
    if not file.text.isascii():
        lexer.look_for_halves(start)
    tokens = lexer.tokens
    return Lexed(
        lexer.tokens,
        lexer.trivia,
        lexer.docs,
        "\n".join(lexer.module_doc),
        lexer.diagnostics,
        lexer.skipped,
        lexer.complete,
        frozenset(tokens[at].start for at in lexer.clean if at < len(tokens)),
    )


@dataclass(slots=True)
class _Lexer:
    """The state of one reading."""

    file: SourceFile
    tokens: list[Token] = field(default_factory=list[Token])
    trivia: list[Trivia] = field(default_factory=list[Trivia])
    docs: dict[int, str] = field(default_factory=dict[int, str])
    doc: list[str] = field(default_factory=list[str])
    module_doc: list[str] = field(default_factory=list[str])
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    skipped: set[int] = field(default_factory=set[int])
    damaged: bool = False
    complete: bool = True
    # What is open; for each bracket the weight outside it and where it stands.
    stack: list[str] = field(default_factory=list[str])
    weights: list[int] = field(default_factory=list[int])
    opened: list[int] = field(default_factory=list[int])
    weight: int = 0
    angles: int = 0
    closes_type: bool = False
    prev: str | None = None
    # How many tokens there were when a newline was last found to end nothing.
    joined: int = -1
    conflict: bool = False
    # Before which tokens, by number, nothing is open.
    clean: list[int] = field(default_factory=list[int])

    def run(self, at: int) -> None:
        end = len(self.file.text)
        if at == 0 and self.file.text.startswith("\ufeff"):
            self.trivia.append(Trivia(SPACE, "\ufeff", 0, 1))
            at = 1
        while at < end and self.complete:
            is_marker = (at == 0 or self.file.text[at - 1] == "\n") and CONFLICT(self.file.text, at)
            at = self.conflict_marker(at) if is_marker else self.scan(at)
        if not self.complete and at < end:
            self.trivia.append(Trivia(SKIPPED, self.file.text[at:], at, end))

    def starts_statement(self, word: str, start: int, end: int) -> bool:
        """Whether a word after `.` starts the next statement: a member's name is missing."""
        text = self.file.text
        return (
            word in STATEMENT_WORDS
            and "\n" in text[self.tokens[-1].end : start]
            and STATEMENT_FOLLOWS(text, end) is not None
        )

    def scan(self, at: int) -> int:
        """Reads until the end, or until what follows is not for the regular expression to find.

        That is so after an interpolation, after a conflict marker, and where reading stops.
        """
        text = self.file.text
        append = self.tokens.append
        stack = self.stack
        for match in MASTER(text, at):
            group = match.lastgroup
            start, end = match.span()
            piece = match.group()
            if group == "space":
                if "\n" in piece:
                    self.newline(piece, start, end)
                    if text[end : end + 1] in MARKS and CONFLICT(text, end):
                        return end
                else:
                    self.trivia.append(Trivia(SPACE, piece, start, end))
                continue
            if group == "name":
                kind = NAME
                if piece in SPECIAL and (
                    self.prev != "." or self.starts_statement(piece, start, end)
                ):
                    kind = self.word(piece, start, end)
                    if not kind:
                        if not self.complete:
                            return start
                        continue
            elif group == "sign":
                kind = SIGN_KINDS.get(piece, piece)
                if piece in WEIGHS:
                    self.weight += 1
                    if self.weight > MAX_WEIGHT:
                        return self.too_deep(start, end)
                    if piece == "<":
                        self.angles += self.opens_type()
                    elif piece == ">":
                        self.closes_type = self.angles > 0
                        self.angles -= self.closes_type
                    elif piece == "=>":
                        self.leave("F")
                    elif piece == "->" and self.prev != ")" and stack and stack[-1] == "(":
                        # Inside parentheses a result belongs to `fn(…)`: these were left open.
                        self.pop()
                    elif piece == ">=" and self.angles:
                        # `List<Int>= e`: the end of a type and an equals sign.
                        self.angles = 0
                        append(Token(">", ">", start, start + 1))
                        kind, piece, start = "=", "=", start + 1
                elif piece in "()[]{}":
                    if piece in BRACKET_OF:
                        if self.close(piece):
                            return self.rest_of_text(start)
                    else:
                        if piece == "{":
                            kind = self.brace()
                        if not self.open(piece, start):
                            return self.too_deep(start, end)
                elif piece == ",":
                    self.weight = self.weights[-1] if self.weights else 0
                    if not self.angles:
                        self.leave("F")
                elif piece == "=":
                    self.angles = 0
                    self.leave("FP")
                elif piece == ":" and stack and stack[-1] == "C":
                    stack.pop()
                    self.weight = self.weights[-1] if self.weights else 0
            elif group == "type":
                kind = TYPE
            elif group == "comment":
                self.comment(piece, start, end)
                continue
            elif group == "string" or group == "block":
                kind = STRING
                if match.end(f"{group}_end") < 0:
                    if match.end(f"{group}_open") < 0:
                        piece, end = self.not_closed(piece, start)
                    else:
                        kind = STRING_START
                        if not self.open("'" if group == "string" else '"', start):
                            return self.too_deep(start, end)
            elif group == "number":
                kind = literals.number_kind(piece)
            elif group == "moment":
                kind = "TIME" if "T" in piece else "DATE"
            elif group == "raw":
                kind = STRING
                if match.end("raw_end") < 0:
                    piece, end = self.not_closed(piece, start)
            else:
                self.foreign(group or "", piece, start, end)
                continue
            if self.doc or self.damaged:
                self.mark(start)
            append(Token(kind, piece, start, end))
            self.prev = kind
            if end != match.end():
                return end
        return len(text)

    # -- words

    def word(self, word: str, start: int, end: int) -> str:
        """The kind of a word that may be a keyword here; empty if it was dealt with."""
        kind = self.keyword(word, start, end)
        if kind in WEIGHS:
            self.weight += 1
            if self.weight > MAX_WEIGHT:
                self.too_deep(start, end)
                return ""
        header = HEADER_OF.get(kind)
        top = self.stack[-1] if self.stack else ""
        if header is not None:
            guard = kind == "if" and top == "C" and self.can_end()
            clause = kind == "for" and top == "D"
            # Only conditions nest without a bracket between them.
            if not guard and not clause and (header == "I" or header != top):
                self.stack.append(header)
        elif kind == "let" and top == "I":
            self.stack.append("P")
        return kind

    def keyword(self, word: str, start: int, end: int) -> str:
        text = self.file.text
        prev = self.prev
        if word in RESERVED:
            if word == "fn" and not WORD_FOLLOWS(text, end):
                return LAMBDA
            return word
        if word == "_":
            return "_"
        if prev in NAMED:
            return NAME
        if word in DECLARATION_WORDS and prev in STARTS_AFTER and FITS[word](text, end):
            return word
        if prev == "native" and word in ("world", "flow"):
            return COLOUR
        if prev == "case":
            return word if word in CASE_WORDS and CASE_FITS(text, end) else NAME
        ends = self.can_end()
        top = self.stack[-1] if self.stack else ""
        if word in CLAUSE_WORDS:
            if top != "D":
                return NAME
            starts = prev == "tries" if word == "forever" else ends or prev == "steps"
            return word if starts else NAME
        if word in GIVEN_WORDS:
            return word if top == "G" and self.given_word(word, end, ends) else NAME
        if word == "as":
            return word if ends and AS_FITS(text, end) else NAME
        return self.foreign_word(word, start, end, ends)

    def given_word(self, word: str, end: int, ends: bool) -> bool:
        text = self.file.text
        if word in ("then", "runs"):
            return ends
        if not ends and self.prev not in ("=>", "then"):
            return False
        if word == "after":
            return OPERAND_FOLLOWS(text, end) is not None
        if word == "fails":
            return FAILS_FITS(text, end) is not None
        return CALLED(text, end) is None

    def foreign_word(self, word: str, start: int, end: int, ends: bool) -> str:
        """A word that other languages have, where it cannot be a name."""
        text = self.file.text
        if word in FOREIGN_OPERATORS:
            if ends and OPERAND_FOLLOWS(text, end):
                self.spelled(start, end, word, FOREIGN_OPERATORS[word])
                return FOREIGN_OPERATORS[word]
        elif word in FOREIGN_WORDS:
            meant = FOREIGN_WORDS[word]
            starts = self.prev in STARTS_AFTER or (
                meant == "match" and self.prev in ("=", "return")
            )
            if starts and WORD_FOLLOWS(text, end):
                self.spelled(start, end, word, meant)
                return meant
        elif not ends and (WORD_FOLLOWS if word == "await" else FN_FOLLOWS)(text, end):
            after = SPACE_IN_FRONT(text, end)
            stop = after.end() if after else end
            self.report(
                "E0115",
                Span(start, end),
                f"there is no `{word}`: a function that waits is called as any other",
                Fix(f"remove `{word}`", (Edit(self.file.path, Span(start, stop), ""),)),
            )
            self.trivia.append(Trivia(SKIPPED, word, start, end))
            return ""
        return NAME

    # -- brackets and contexts

    def can_end(self) -> bool:
        """Whether a statement, an expression or a type can end with the last token."""
        return self.prev in CAN_END or (self.prev == ">" and self.closes_type)

    def opens_type(self) -> bool:
        """Whether a `<` here opens type arguments or parameters."""
        before = [token.kind for token in self.tokens[-3:-1]]
        if self.prev == TYPE:
            return before != [TYPE, "."]  # `Level.Low < x`: a variant has no arguments of types
        return self.prev == NAME and before[-1:] == ["fn"]

    def leave(self, contexts: str) -> None:
        if self.stack and self.stack[-1] in contexts:
            self.stack.pop()

    def leave_all(self) -> None:
        while self.stack and self.stack[-1] in IGNORED:
            self.stack.pop()

    def brace(self) -> str:
        """What a `{` opens."""
        self.angles = 0
        top = self.stack[-1] if self.stack else "{"
        if self.prev == TYPE and top not in "DSFI":
            return STRUCT_OPEN
        if top == "P":
            self.stack.pop()
            top = "I"
        if top in "DSFI":
            self.stack.pop()
        return "{"

    def open(self, bracket: str, start: int) -> bool:
        if len(self.weights) >= MAX_DEPTH or self.weight > MAX_WEIGHT:
            return False
        self.stack.append(bracket)
        self.weights.append(self.weight)
        self.opened.append(start)
        return True

    def pop(self) -> None:
        """Takes one entry off the stack."""
        if self.stack.pop() not in IGNORED:
            self.weight = self.weights.pop() + 1
            self.opened.pop()

    def close(self, bracket: str) -> bool:
        """Closes what a bracket belongs to; True where that is an interpolation.

        A bracket that closes nothing changes nothing: the parser reports it.
        """
        self.leave_all()
        stack = self.stack
        wanted = BRACKET_OF[bracket]
        at = len(stack) - 1
        while at >= 0 and stack[at] != wanted:
            if stack[at] in "'\"":
                if bracket != ")":
                    return False
                break
            if stack[at] == "{" and bracket != "}":
                return False
            at -= 1
        if at < 0:
            return False
        if stack[at] != wanted:
            while len(stack) > at + 1:
                self.pop()
            return True
        while len(stack) > at:
            self.pop()
        return False

    # -- newlines

    def newline(self, space: str, start: int, end: int) -> None:
        """Decides whether the first newline of `space` ends a statement."""
        if "'" in self.stack:
            self.interpolation_not_closed(start)
        at = len(self.tokens)
        if self.joined != at and self.ends_statement(start):
            cut = space.index("\n")
            cut -= cut > 0 and space[cut - 1] == "\r"
            after = space.index("\n") + 1
            if cut:
                self.trivia.append(Trivia(SPACE, space[:cut], start, start + cut))
            self.tokens.append(Token(NL, space[cut:after], start + cut, start + after))
            if after < len(space):
                self.trivia.append(Trivia(SPACE, space[after:], start + after, end))
            self.statement_ended()
            if not (self.stack or self.doc or self.damaged or self.conflict):
                self.clean.append(len(self.tokens))
            return
        self.joined = at
        self.trivia.append(Trivia(SPACE, space, start, end))

    def statement_ended(self) -> None:
        self.leave_all()
        self.weight = self.weights[-1] if self.weights else 0
        self.angles = 0
        self.prev = NL

    def ends_statement(self, at: int) -> bool:
        text = self.file.text
        stack = self.stack
        i = len(stack) - 1
        while i >= 0 and stack[i] in IGNORED:
            i -= 1
        if i >= 0 and stack[i] in "([":
            if NEVER_INSIDE(text, at) or (self.can_end() and self.is_outside(at)):
                while stack and stack[-1] not in "{'\"":
                    self.pop()
                return True
            return False
        if not self.can_end() or (i >= 0 and stack[i] == '"') or GOES_ON(text, at):
            return False
        if ENDS_ANYWAY(text, at):
            self.leave_all()
            self.weight = self.weights[-1] if self.weights else 0
            return False
        top = stack[-1] if stack else ""
        if top == "D" and CLAUSE_NEXT(text, at):
            return False
        if top == "G" and THEN_NEXT(text, at):
            return False
        return not (self.angles and CLOSES_ANGLE(text, at))

    def is_outside(self, at: int) -> bool:
        """Whether the next line, by its indentation, is not inside the innermost bracket.

        Asked only where two operands would stand side by side, which is an error in any case.
        """
        text = self.file.text
        found = OPERAND_NEXT(text, at)
        if found is None:
            return False
        first = found.end() - 1
        column = first - (text.rfind("\n", 0, first) + 1)
        line = text.rfind("\n", 0, self.opened[-1]) + 1
        space = SPACE_IN_FRONT(text, line)
        return space is not None and column <= space.end() - line

    # -- texts

    def rest_of_text(self, start: int) -> int:
        """What follows an interpolation, from its `)`; returns where it ends."""
        text = self.file.text
        block = self.stack[-1] == '"'
        match = (REST_OF_BLOCK if block else REST_OF_TEXT)(text, start + 1)
        end = match.end() if match else start + 1
        kind = STRING_END
        if match and match["open"]:
            kind = STRING_MIDDLE
            self.weight = self.weights[-1]
        else:
            self.pop()
            if not (match and match["end"]):
                _, end = self.not_closed('"""' if block else ")", start)
        if self.damaged:
            self.mark(start)
        self.tokens.append(Token(kind, text[start:end], start, end))
        self.prev = kind
        return end

    def not_closed(self, piece: str, start: int) -> tuple[str, int]:
        """Reports a text that is not closed; returns what is taken for it, and its end.

        Of a line, brackets and commas at its end are not taken: they are rarely meant as text.
        """
        text = self.file.text
        quote = '"#' if piece.startswith("#") else '"""' if piece.startswith('"""') else '"'
        if quote == '"""':
            end = len(text)
            self.report(
                "E0101", Span(start, min(start + 3, end)), 'this text is not closed: add `"""`'
            )
            return text[start:end], end
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        closers = CLOSERS_AT_END(text, start + 1, end)
        if closers:
            end = closers.start()
        self.damaged = True
        self.report(
            "E0101",
            Span(start, end),
            f"this text is not closed on its line: add `{quote}`",
            Fix(f"add `{quote}`", (Edit(self.file.path, Span(end, end), quote),)),
            'text of several lines stands between `"""`',
        )
        return text[start:end], end

    def interpolation_not_closed(self, at: int) -> None:
        """Ends the text of one line whose interpolation a newline has cut."""
        first = self.stack.index("'")
        opened = self.opened[sum(entry not in IGNORED for entry in self.stack[:first])]
        while len(self.stack) > first:
            self.pop()
        self.report(
            "E0101",
            Span(opened, at),
            "this text is not closed on its line",
            note='text of several lines stands between `"""`',
        )
        self.damaged = True
        self.mark(at)
        self.tokens.append(Token(STRING_END, "", at, at))
        self.prev = STRING_END

    # -- trivia

    def comment(self, piece: str, start: int, end: int) -> None:
        carriage = piece.endswith("\r")
        if carriage:
            piece, end = piece[:-1], end - 1
        kind = COMMENT
        if piece.startswith("//!"):
            kind = MODULE_DOC
            if not self.tokens:
                self.module_doc.append(piece[3:].removeprefix(" "))
        elif piece.startswith("///") and not piece.startswith("////"):
            kind = DOC
            self.doc.append(piece[3:].removeprefix(" "))
        self.trivia.append(Trivia(kind, piece, start, end))
        if carriage:
            self.trivia.append(Trivia(SPACE, "\r", end, end + 1))

    def mark(self, start: int) -> None:
        """Notes what stands before the token that starts here."""
        if self.damaged:
            self.skipped.add(start)
            self.damaged = False
        if self.doc:
            self.docs[start] = "\n".join(self.doc)
            self.doc.clear()

    def conflict_marker(self, start: int) -> int:
        """Skips the line of a conflict marker; the first of each conflict is reported."""
        text = self.file.text
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if not self.conflict:
            self.report(
                "E0109",
                Span(start, end),
                "a merge conflict is not resolved",
                note="keep what is meant and delete the lines with the markers",
            )
        self.conflict = text[start] != ">"
        self.damaged = True
        self.trivia.append(Trivia(SKIPPED, text[start:end], start, end))
        return end

    # -- what is no part of the language

    def foreign(self, group: str, piece: str, start: int, end: int) -> None:
        if group == "semicolon":
            self.semicolon(start, end)
        elif group == "quoted":
            inner = piece[1:-1].replace('"', '\\"')
            self.spelled(start, end, piece, f'"{inner}"')
            self.add(STRING, piece, start, end)
        elif piece in FOREIGN_SIGNS:
            meant = FOREIGN_SIGNS[piece]
            self.spelled(start, end, piece, meant)
            self.add(SIGN_KINDS.get(meant, meant), piece, start, end)
        elif piece.startswith("/*"):
            self.report("E0115", Span(start, start + 2), "a comment is written with `//`")
            self.trivia.append(Trivia(SKIPPED, piece, start, end))
        else:
            self.damaged = True
            self.report(
                "E0102",
                Span(start, end),
                f"{_shown(piece)} is not part of the language",
                Fix("remove it", (Edit(self.file.path, Span(start, end), ""),)),
                UNKNOWN_NOTES.get(piece[0], "outside of texts and comments all is ASCII"),
            )
            self.trivia.append(Trivia(SKIPPED, piece, start, end))

    def look_for_halves(self, start: int) -> None:
        """Halves of a character that UTF-16 writes as two: in texts and comments, too."""
        marked = {problem.span.start for problem in self.diagnostics}
        for match in HALF(self.file.text, start):
            if match.start() not in marked:
                message = f"half of a character, {_shown(match.group())}, is not text"
                fix = Fix("remove it", (Edit(self.file.path, Span(*match.span()), ""),))
                self.report("E0102", Span(*match.span()), message, fix)

    def add(self, kind: str, piece: str, start: int, end: int) -> None:
        self.mark(start)
        self.tokens.append(Token(kind, piece, start, end))
        self.prev = kind

    def semicolon(self, start: int, end: int) -> None:
        """Takes `;` for a newline where it stands between two statements."""
        self.leave_all()
        last = REST_IS_BLANK(self.file.text, end) is not None
        path = self.file.path
        fix = (
            Fix("remove `;`", (Edit(path, Span(start, end), ""),))
            if last or not self.can_end()
            else Fix("start a new line", (Edit(path, Span(start, end), "\n"),))
        )
        self.report(
            "E0115", Span(start, end), "there is no `;`: a statement ends with its line", fix
        )
        inside = self.stack[-1] if self.stack else "{"
        if last or not self.can_end() or inside != "{" or ENDS_ANYWAY(self.file.text, end):
            self.trivia.append(Trivia(SKIPPED, ";", start, end))
            return
        self.tokens.append(Token(NL, ";", start, end))
        self.statement_ended()

    def spelled(self, start: int, end: int, written: str, meant: str) -> None:
        self.report(
            "E0115",
            Span(start, end),
            f"`{written}` is written `{meant}` here",
            Fix(f"write `{meant}`", (Edit(self.file.path, Span(start, end), meant),)),
        )

    def too_deep(self, start: int, end: int) -> int:
        """Ends the reading before a token that would make the tree too deep."""
        self.complete = False
        self.diagnostics.append(
            error(
                "E0107",
                self.file.path,
                Span(start, end),
                "this is nested too deeply; the rest of the file is not read",
                notes=(
                    f"at most {MAX_DEPTH} brackets and {MAX_WEIGHT} operators may be open at once:"
                    " name a part with `let` or move it to a function",
                ),
            )
        )
        return start

    def report(
        self, code: str, span: Span, message: str, fix: Fix | None = None, note: str = ""
    ) -> None:
        if len(self.diagnostics) < MAX_DIAGNOSTICS:
            self.diagnostics.append(
                error(
                    code,
                    self.file.path,
                    span,
                    message,
                    notes=(note,) if note else (),
                    fixes=(fix,) if fix else (),
                )
            )


def _shown(piece: str) -> str:
    shown = piece if len(piece) <= 20 else piece[:20] + "…"
    if shown.isprintable():
        return f"`{shown}`"
    return f"the character U+{ord(piece[0]):04X}"
