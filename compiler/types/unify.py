"""Types not known yet, and how they become known.

A `Var` stands for one type to be found out. Literals have variables of their own kind: an Int
literal may become Int, Decimal or Float, a decimal literal Decimal or Float; left alone they become
Int and Decimal. `unify` makes two types equal by binding variables; what it bound stays bound, also
where it fails in the end, which only costs the wording of a later message.

Never and Error fit every type. A variable that met Error becomes Error, so that a mistake is
reported once; one that met Never stays open, and is Never if nothing else comes.
"""

from __future__ import annotations

from qoqi.compiler.source import Span
from qoqi.compiler.types.model import (
    DECIMAL,
    ERROR,
    FLOAT,
    INT,
    NEVER,
    Con,
    ErrorType,
    Fn,
    NeverType,
    Tup,
    Type,
    Var,
)
from qoqi.vm.dataclass import dataclass

INT_LITERAL = "int"
DECIMAL_LITERAL = "decimal"

_MAY_BE = {INT_LITERAL: (INT, DECIMAL, FLOAT), DECIMAL_LITERAL: (DECIMAL, FLOAT)}
_DEFAULT = {INT_LITERAL: INT, DECIMAL_LITERAL: DECIMAL}


@dataclass(frozen=True, slots=True)
class Origin:
    """Why a variable was made: where, and what it is the type of (for E0311)."""

    span: Span
    what: str


class Unifier:
    """The variables of one body."""

    __slots__ = ("_bound", "_kinds", "_never", "_next", "origins")

    def __init__(self) -> None:
        self._bound: dict[int, Type] = {}
        self._kinds: dict[int, str] = {}
        self._never: set[int] = set()
        self._next = 0
        self.origins: dict[int, Origin] = {}

    def fresh(self, span: Span | None = None, what: str = "") -> Var:
        var = Var(self._next)
        self._next += 1
        if span is not None:
            self.origins[var.id] = Origin(span, what)
        return var

    def literal(self, kind: str) -> Var:
        var = self.fresh()
        self._kinds[var.id] = kind
        return var

    def kind(self, type_: Type) -> str | None:
        """Whether a resolved type is that of a literal not used at a type yet."""
        return self._kinds.get(type_.id) if isinstance(type_, Var) else None

    def resolve(self, type_: Type) -> Type:
        """Follows bound variables at the top."""
        while isinstance(type_, Var):
            bound = self._bound.get(type_.id)
            if bound is None:
                return type_
            type_ = bound
        return type_

    def never(self, type_: Type) -> None:
        """Notes that what does not come back stood where this type was wanted."""
        type_ = self.resolve(type_)
        if isinstance(type_, Var):
            self._never.add(type_.id)

    def unify(self, a: Type, b: Type) -> bool:
        a, b = self.resolve(a), self.resolve(b)
        if a is b or a == b:
            return True
        if isinstance(a, Var):
            return self._bind(a, b)
        if isinstance(b, Var):
            return self._bind(b, a)
        match a, b:
            case (ErrorType() | NeverType(), _) | (_, ErrorType() | NeverType()):
                return True
            case Con(), Con():
                if a.name != b.name or len(a.args) != len(b.args):
                    return False
                return all(self.unify(x, y) for x, y in zip(a.args, b.args, strict=True))
            case Tup(), Tup():
                if len(a.items) != len(b.items):
                    return False
                return all(self.unify(x, y) for x, y in zip(a.items, b.items, strict=True))
            case Fn(), Fn():
                if len(a.params) != len(b.params):
                    return False
                if not all(self.unify(x, y) for x, y in zip(a.params, b.params, strict=True)):
                    return False
                return self.unify(a.result, b.result)
            case _:
                pass
        return False

    def _bind(self, var: Var, type_: Type) -> bool:
        kind = self._kinds.get(var.id)
        if isinstance(type_, Var):
            other = self._kinds.get(type_.id)
            if kind is None or (kind == INT_LITERAL and other is not None):
                self._bound[var.id] = type_
                if var.id in self._never:
                    self._never.add(type_.id)
            else:
                self._bound[type_.id] = var
            return True
        if isinstance(type_, NeverType):
            self._never.add(var.id)
            return True
        if isinstance(type_, ErrorType) and kind is not None:
            return True
        if kind is not None and type_ not in _MAY_BE[kind]:
            return False
        if self._occurs(var, type_):
            return False
        self._bound[var.id] = type_
        return True

    def _occurs(self, var: Var, type_: Type) -> bool:
        type_ = self.resolve(type_)
        match type_:
            case Var():
                return type_ == var
            case Con(args=args):
                return any(self._occurs(var, arg) for arg in args)
            case Tup(items=items):
                return any(self._occurs(var, item) for item in items)
            case Fn(params=params, result=result):
                return any(self._occurs(var, p) for p in params) or self._occurs(var, result)
            case _:
                pass
        return False

    def settle(self, type_: Type) -> Type:
        """The type with literals at their own types, other variables left open."""
        type_ = self.resolve(type_)
        match type_:
            case Var():
                kind = self._kinds.get(type_.id)
                if kind is None:
                    return type_
                self._bound[type_.id] = _DEFAULT[kind]
                return _DEFAULT[kind]
            case Con(args=args) if args:
                return Con(type_.name, tuple(self.settle(arg) for arg in args))
            case Tup(items=items) if items:
                return Tup(tuple(self.settle(item) for item in items))
            case Fn():
                return Fn(tuple(self.settle(p) for p in type_.params), self.settle(type_.result))
            case _:
                pass
        return type_

    def zonk(self, type_: Type) -> Type:
        """The final type. What nothing decided is Error, or Never where only that was seen."""
        type_ = self.resolve(type_)
        match type_:
            case Con():
                if not type_.args:
                    return type_
                args = tuple([self.zonk(arg) for arg in type_.args])
                return type_ if args == type_.args else Con(type_.name, args)
            case Var():
                kind = self._kinds.get(type_.id)
                if kind is not None:
                    return _DEFAULT[kind]
                return NEVER if type_.id in self._never else ERROR
            case Tup():
                if not type_.items:
                    return type_
                return Tup(tuple([self.zonk(item) for item in type_.items]))
            case Fn():
                return Fn(tuple([self.zonk(p) for p in type_.params]), self.zonk(type_.result))
            case _:
                pass
        return type_

    def shown(self, type_: Type) -> Type:
        """As known now, for a message: literals at their own types, unknown parts as variables."""
        type_ = self.resolve(type_)
        match type_:
            case Var():
                kind = self._kinds.get(type_.id)
                return type_ if kind is None else _DEFAULT[kind]
            case Con(args=args) if args:
                return Con(type_.name, tuple(self.shown(arg) for arg in args))
            case Tup(items=items) if items:
                return Tup(tuple(self.shown(item) for item in items))
            case Fn():
                return Fn(tuple(self.shown(p) for p in type_.params), self.shown(type_.result))
            case _:
                pass
        return type_

    def undecided(self) -> list[Origin]:
        """Where the variables stand that nothing decided: each once, where it came up first."""
        places: dict[int, Origin] = {}
        for number, origin in self.origins.items():
            end = self.resolve(Var(number))
            if isinstance(end, Var) and end.id not in self._kinds and end.id not in self._never:
                places.setdefault(end.id, origin)
        return list({origin.span: origin for origin in places.values()}.values())


def substitute(type_: Type, mapping: dict[Type, Type]) -> Type:
    """Replaces type parameters."""
    if not mapping:
        return type_
    match type_:
        case Con():
            if not type_.args:
                return type_
            return Con(type_.name, tuple([substitute(arg, mapping) for arg in type_.args]))
        case Tup():
            return Tup(tuple([substitute(item, mapping) for item in type_.items]))
        case Fn():
            params = tuple([substitute(param, mapping) for param in type_.params])
            return Fn(params, substitute(type_.result, mapping))
        case _:
            pass
    return mapping.get(type_, type_)


def weight(type_: Type, most: int) -> int:
    """How many parts a type has, counted no further than `most`."""
    stack, count = [type_], 0
    while stack and count <= most:
        part = stack.pop()
        count += 1
        match part:
            case Con(args=args):
                stack.extend(args)
            case Tup(items=items):
                stack.extend(items)
            case Fn(params=params, result=result):
                stack.extend(params)
                stack.append(result)
            case _:
                pass
    return count
