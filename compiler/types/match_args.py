"""Arguments against parameters: positional ones first, then by name.

A parameter without default after one with a default can only be named. What does not match is
reported (E0307) and inferred all the same, so that its names are resolved.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.source import Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.facts import ArgSource, Given
from qoqi.compiler.types.members import replacements
from qoqi.compiler.types.mismatch import sample
from qoqi.compiler.types.model import ERROR, Fn, Type, show


def infer_args(body: Body, call: ast.Call) -> None:
    """Arguments of a call that means nothing: inferred for their names.

    What is given to a closure there has no type, and that follows from the call.
    """
    for arg in call.args:
        if arg.value in body.types:
            continue
        want = None
        if isinstance(arg.value, ast.LambdaExpr):
            want = Fn((ERROR,) * len(arg.value.params), ERROR)
        body.infer(arg.value, want)


def match_args(
    body: Body,
    call: ast.Call,
    params: Sequence[tuple[str, Type, bool]],
    shown: str,
    declared: Label | None,
) -> list[ArgSource | None]:
    """One source per parameter; None where the default is taken or the argument is missing."""
    sources: list[ArgSource | None] = [None] * len(params)
    places = {name: index for index, (name, _, _) in enumerate(params)}
    labels = [declared] if declared is not None else []
    extra: list[ast.Arg] = []
    position = 0
    named: ast.Arg | None = None
    misplaced: list[ast.Arg] = []
    for arg in call.args:
        if arg.name is None:
            if named is not None:
                misplaced.append(arg)
                continue
            if position >= len(params):
                extra.append(arg)
                continue
            index = position
            position += 1
        else:
            named = arg
            found = places.get(arg.name.name)
            if found is None:
                near = nearest(arg.name.name, places)
                if near and sources[places[near[0]]] is None:
                    # One mistake: what was misspelled is not missing as well.
                    sources[places[near[0]]] = Given(arg.value)
                else:
                    body.infer(arg.value)
                if arg.name.name:
                    body.error(
                        "E0307",
                        arg.name.span,
                        f"{shown} has no parameter `{arg.name.name}`",
                        labels=labels,
                        fixes=replacements(body, arg.name, near),
                    )
                continue
            index = found
        if sources[index] is not None:
            body.infer(arg.value)
            body.error(
                "E0307",
                arg.span,
                f"the argument `{params[index][0]}` of {shown} is given twice",
                labels=labels,
            )
            continue
        sources[index] = Given(arg.value)
    if misplaced and named is not None:
        free = [index for index, source in enumerate(sources) if source is None]
        meant = _places(misplaced, free, params)
        for arg, place in zip(misplaced, meant, strict=True):
            if place is None:
                body.infer(arg.value)
            else:
                sources[place] = Given(arg.value)
        names = [params[place][0] if place is not None else None for place in meant]
        _misplaced(body, misplaced, call, names)
    if extra:
        _too_many(body, call, extra, params, shown, labels)
    missing = [
        (name, type_)
        for source, (name, type_, default) in zip(sources, params, strict=True)
        if source is None and not default
    ]
    if missing:
        _missing(body, call, missing, shown, labels)
    return sources


def _places(
    misplaced: list[ast.Arg], free: list[int], params: Sequence[tuple[str, Type, bool]]
) -> list[int | None]:
    """The parameters that arguments without a name are for: of the same name, else the next."""
    left = list(free)
    found: list[int | None] = []
    for arg in misplaced:
        meant = arg.value.name if isinstance(arg.value, ast.Name) else None
        index = next((each for each in left if params[each][0] == meant), None)
        index = left[0] if index is None and left else index
        if index is not None:
            left.remove(index)
        found.append(index)
    return found


def _misplaced(
    body: Body, misplaced: list[ast.Arg], call: ast.Call, names: list[str | None]
) -> None:
    """Reported once, at the first; `names` are those of the parameters meant."""
    named = next(each for each in call.args if each.name is not None)
    texts = [
        (arg.span, f"{name}: {body.text(arg.span)}")
        for arg, name in zip(misplaced, names, strict=True)
        if name is not None
    ]
    fixes = []
    if texts and len(texts) == len(misplaced):
        edits = tuple(Edit(body.path, span, text) for span, text in texts)
        fixes.append(Fix(f"Write `{', '.join(text for _, text in texts)}`", edits))
    body.error(
        "E0307",
        misplaced[0].span,
        "a positional argument follows a named one",
        labels=[Label(body.path, named.span, "the named argument")],
        notes=["Put positional arguments first, or name this one too."],
        fixes=fixes,
    )


def _too_many(
    body: Body,
    call: ast.Call,
    extra: list[ast.Arg],
    params: Sequence[tuple[str, Type, bool]],
    shown: str,
    labels: list[Label],
) -> None:
    for arg in extra:
        body.infer(arg.value)
    takes = f"{len(params)} argument{'s' * (len(params) != 1)}" if params else "no arguments"
    first = call.args.index(extra[0])
    start = call.args[first - 1].span.end if first else extra[0].span.start
    edit = Edit(body.path, Span(start, extra[-1].span.end), "")
    body.error(
        "E0307",
        extra[0].span.join(extra[-1].span),
        f"{shown} takes {takes}, found {len(call.args)}",
        labels=labels,
        fixes=[Fix("Leave out what is too much", (edit,))],
    )


def _missing(
    body: Body,
    call: ast.Call,
    missing: list[tuple[str, Type]],
    shown: str,
    labels: list[Label],
) -> None:
    parts = [f"`{name}: {show(body.u.shown(type_))}`" for name, type_ in missing]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    verb = "is" if len(parts) == 1 else "are"
    at = call.span.end - 1
    before = body.text(Span(call.fn.span.end, at)).rstrip()
    comma = "" if before.endswith(("(", ",")) else ","
    comma = f"{comma} " if call.args and not before.endswith("(") else ""
    added = ", ".join(f"{name}: {sample(body.u.shown(type_))}" for name, type_ in missing)
    fixes = []
    if body.text(Span(at, at + 1)) == ")":
        fixes.append(Fix(f"Give {listed}", (Edit(body.path, Span(at, at), f"{comma}{added}"),)))
    body.error(
        "E0307",
        call.span,
        f"{listed} of {shown} {verb} missing",
        labels=labels,
        fixes=fixes,
    )


def missing_arguments(
    body: Body, call: ast.Call, params: Sequence[tuple[str, Type, bool]], found: int
) -> None:
    """Another number of arguments than a function value takes."""
    types = ", ".join(show(body.u.shown(type_)) for _, type_, _ in params)
    body.error(
        "E0307",
        call.span,
        f"this function takes {len(params)} argument{'s' * (len(params) != 1)} ({types}), "
        f"found {found}",
    )
