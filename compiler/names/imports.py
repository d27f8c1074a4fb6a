"""Follows imports: which module a path names, and which names it brings.

A path is looked for in the importing module's package first, then among all modules: those of other
packages begin with their package's name, the standard library's with `std`. Inside a package every
declaration can be imported, from another package only `pub` ones (E0205).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error
from qoqi.compiler.names.resolver import declaration_ident
from qoqi.compiler.names.scope import ModuleScope, is_public
from qoqi.compiler.names.symbols import FnSymbol, ModuleSymbol, Symbol
from qoqi.compiler.source import Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast


def follow(
    scope: ModuleScope,
    modules: Mapping[str, ModuleScope],
    uses: dict[ast.Node, Symbol],
) -> list[Diagnostic]:
    """Fills in `scope.imports`, `exports` and `imported`; notes in `uses` what each name means."""
    found: list[Diagnostic] = []
    for item in scope.tree.items:
        if isinstance(item, ast.ImportDecl) and all(part.name for part in item.path):
            _follow_one(scope, item, modules, uses, found)
    return found


def locate(
    path: Iterable[str], package: str, modules: Mapping[str, ModuleScope]
) -> ModuleScope | None:
    """The module a dotted path names, seen from a package."""
    dotted = ".".join(path)
    if package and f"{package}.{dotted}" in modules:
        return modules[f"{package}.{dotted}"]
    return modules.get(dotted)


def module_symbol(scope: ModuleScope) -> ModuleSymbol:
    return ModuleSymbol(scope.name, scope.path)


def import_edit(scope: ModuleScope, line: str) -> Edit:
    """Adds an import: after the last one, else at the first declaration."""
    items = scope.tree.items
    imports = [item for item in items if isinstance(item, ast.ImportDecl)]
    if imports:
        at = imports[-1].span.end
        return Edit(scope.path, Span(at, at), f"\n{line}")
    at = _line_start(scope.text, items[0].span.start) if items else len(scope.text)
    while at > 0 and _doc_before(scope.text, at):
        at = _line_start(scope.text, at - 1)
    return Edit(scope.path, Span(at, at), f"{line}\n\n")


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _doc_before(text: str, at: int) -> bool:
    """Whether the line before belongs to the declaration: its documentation or a comment."""
    line = text[_line_start(text, at - 1) : at].strip()
    return line.startswith("//") and not line.startswith("//!")


def _follow_one(
    scope: ModuleScope,
    item: ast.ImportDecl,
    modules: Mapping[str, ModuleScope],
    uses: dict[ast.Node, Symbol],
    found: list[Diagnostic],
) -> None:
    target = locate((part.name for part in item.path), scope.package, modules)
    span = item.path[0].span.join(item.path[-1].span)
    if target is None:
        names = item.names if item.names is not None else (item.alias or item.path[-1],)
        scope.broken.update(ident.name for ident in names)
        found.append(_no_module(scope, item, span, modules))
        return
    symbol = module_symbol(target)
    uses[item.path[-1]] = symbol
    if target.name not in scope.imported:
        scope.imported.append(target.name)
    if item.names is None:
        name = item.alias or item.path[-1]
        _bind(scope, name, symbol, item.public, found)
        return
    for ident in item.names:
        member = target.public(ident.name)
        if member is None:
            methods = target.method_names.get(ident.name)
            if methods:
                _bind_methods(scope, target, ident, methods, found)
                uses[ident] = methods[0]
                continue
            scope.broken.update([ident.name, *nearest(ident.name, target.public_names())])
            found.append(_no_member(scope, target, ident))
            continue
        uses[ident] = member
        if scope.package != target.package and not is_public(member):
            found.append(private(scope.path, ident, member, target))
        _bind(scope, ident, member, item.public, found)


def _bind_methods(
    scope: ModuleScope,
    target: ModuleScope,
    ident: ast.Ident,
    methods: list[FnSymbol],
    found: list[Diagnostic],
) -> None:
    """A method called on its receiver needs no import by name; here it becomes a function."""
    same = scope.package == target.package
    visible = [method for method in methods if same or is_public(method)]
    if not visible:
        found.append(private(scope.path, ident, methods[0], target))
    known = scope.import_methods.setdefault(ident.name, [])
    known.extend(method for method in visible or methods if method not in known)


def private(path: str, ident: ast.Ident, symbol: Symbol, target: ModuleScope) -> Diagnostic:
    place = declaration_ident(symbol)
    labels = []
    if place is not None:
        labels.append(Label(target.path, place.span, "it is declared here, without `pub`"))
    return error(
        "E0205",
        path,
        ident.span,
        f"`{ident.name}` is not public in `{target.name}`",
        labels=labels,
        notes=["A declaration of another package can be used if `pub` stands before it."],
    )


def _bind(
    scope: ModuleScope,
    ident: ast.Ident,
    symbol: Symbol,
    public: bool,
    found: list[Diagnostic],
) -> None:
    name = ident.name
    if public:
        scope.exports[name] = symbol
    own = scope.names.get(name)
    if own is not None:
        place = declaration_ident(own)
        labels = [Label(scope.path, place.span, "it is declared here")] if place else []
        found.append(
            error(
                "E0206",
                scope.path,
                ident.span,
                f"this module declares `{name}` itself",
                labels=labels,
                notes=["Import it under another name: `import a.b as c`."],
            )
        )
        return
    first = scope.imports.get(name)
    if first is not None and not _same(first, symbol):
        found.append(
            error(
                "E0206",
                scope.path,
                ident.span,
                f"`{name}` is imported twice, from different modules",
                labels=[Label(scope.path, scope.import_spans[name].span, "the first is here")],
                notes=["Import one of them under another name: `import a.b as c`."],
            )
        )
        return
    scope.imports[name] = symbol
    scope.import_spans.setdefault(name, ident)


def _same(a: Symbol, b: Symbol) -> bool:
    if isinstance(a, ModuleSymbol) and isinstance(b, ModuleSymbol):
        return a.name == b.name
    return a is b


def _no_module(
    scope: ModuleScope, item: ast.ImportDecl, span: Span, modules: Mapping[str, ModuleScope]
) -> Diagnostic:
    dotted = ".".join(part.name for part in item.path)
    parent = locate((part.name for part in item.path[:-1]), scope.package, modules)
    last = item.path[-1]
    if parent is not None and item.names is None and parent.public(last.name) is not None:
        braces = Edit(scope.path, last.span, f"{{{last.name}}}")
        return error(
            "E0203",
            scope.path,
            span,
            f"`{dotted}` is no module: `{last.name}` is declared in `{parent.name}`",
            fixes=[Fix(f"Import `{last.name}` from `{parent.name}`", (braces,))],
        )
    known = [_seen_from(name, scope.package) for name in modules]
    near = nearest(dotted, known) or nearest(dotted, [n for n in known if n.endswith(f".{dotted}")])
    if not near:
        near = sorted(n for n in known if n.rsplit(".", 1)[-1] == last.name)[:3]
    notes = ["A module is named by its path: `billing/invoice.flow` is `billing.invoice`."]
    if item.names is None and item.alias is None:
        scope.broken.update(name.rsplit(".", 1)[-1] for name in near)
    return error(
        "E0203",
        scope.path,
        span,
        f"there is no module `{dotted}`",
        notes=notes,
        fixes=[Fix(f"Import `{name}`", (Edit(scope.path, span, name),)) for name in near],
    )


def _seen_from(module: str, package: str) -> str:
    return module.removeprefix(f"{package}.") if package else module


def _no_member(scope: ModuleScope, target: ModuleScope, ident: ast.Ident) -> Diagnostic:
    near = nearest(ident.name, target.public_names())
    return error(
        "E0204",
        scope.path,
        ident.span,
        f"`{target.name}` declares no `{ident.name}`",
        fixes=[Fix(f"Change to `{name}`", (Edit(scope.path, ident.span, name),)) for name in near],
    )
