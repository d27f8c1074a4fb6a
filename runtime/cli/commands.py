"""Commands out of functions: what the signature of a function says of its command, told to Click.

    @command(app)
    def check(path: Folder = None, as_json: AsJson = False) -> None:
        \"\"\"The help of the command.\"\"\"

A parameter's annotation has its type and, in `Annotated`, an `option` or an `argument`. Its default
says whether it may be left out; a `bool` is a flag; a list takes all arguments that are left. A
command may have more options than its function has parameters: they are given as `**others`.

The signature is read when the command is run or asked for its help, so the forty others cost
nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import click

F = TypeVar("F", bound=Callable[..., None])

INTERRUPTED = 130
SHELLS = ("bash", "zsh", "fish")


class Told(NamedTuple):
    """What a signature cannot say of a parameter. `names` are an option's, with their dashes."""

    help: str
    is_option: bool
    names: tuple[str, ...] = ()
    metavar: str | None = None
    environment: str | None = None
    least: int | None = None


def option(
    *names: str,
    help: str,
    metavar: str | None = None,
    environment: str | None = None,
    least: int | None = None,
) -> Told:
    """Named as its parameter is, unless it has names; `environment` is a variable to take it of."""
    return Told(help, True, names, metavar, environment, least)


def argument(*, help: str, metavar: str | None = None) -> Told:
    return Told(help, False, metavar=metavar)


class Group(click.Group):
    """Commands in the order in which they were told. An interrupt is no traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def command(
    group: click.Group,
    name: str | None = None,
    *,
    others: Callable[[], Mapping[str, Told]] = dict,
    dashes: bool = False,
) -> Callable[[F], F]:
    """Makes a function a command of the group, under its own name unless another is given.

    `others` are the options of `**others`. With `dashes`, what looks like an option and is none is
    an argument.
    """

    def told(function: F) -> F:
        group.add_command(_Command(name or function.__name__, function, others, dashes))
        return function

    return told


class _Command(click.Command):
    def __init__(
        self,
        name: str,
        function: Callable[..., None],
        others: Callable[[], Mapping[str, Told]],
        dashes: bool,
    ) -> None:
        settings = {"ignore_unknown_options": True} if dashes else None
        super().__init__(name, settings, callback=function, help=inspect.getdoc(function))
        self._function = function
        self._others = others
        self._read = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self._read:
            self._read = True
            self.params = _parameters(self._function, self._others)
        return super().get_params(ctx)


def _parameters(
    function: Callable[..., None], others: Callable[[], Mapping[str, Told]]
) -> list[click.Parameter]:
    hints = get_type_hints(function, include_extras=True)
    found: list[click.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            found += [_parameter(other, str, told, None) for other, told in others().items()]
            continue
        hint = hints[name]
        assert get_origin(hint) is Annotated, f"{function.__name__}: {name} is told nothing of"
        kind, told = get_args(hint)
        found.append(_parameter(name, kind, told, parameter.default))
    return found


def _parameter(name: str, kind: Any, told: Told, default: object) -> click.Parameter:
    kinds = {each for each in get_args(kind) if each is not type(None)} or {kind}
    (one,) = kinds
    many = get_origin(one) is list
    settings: dict[str, Any] = {"help": told.help, "metavar": told.metavar}
    settings["type"] = _type(get_args(one)[0] if many else one, told)
    if default is not inspect.Parameter.empty and default is not None:
        settings["default"] = default
    if not told.is_option:
        settings["required"] = default is inspect.Parameter.empty
        if many:
            settings |= {"nargs": -1, "callback": _listed}
        return click.Argument([name], **settings)
    if one is bool:
        settings["is_flag"] = True
    elif "default" in settings:
        settings["show_default"] = True
    if told.environment is not None:
        settings |= {"envvar": told.environment, "show_envvar": True}
    names = told.names or (f"--{name.replace('_', '-')}",)
    return click.Option([*names, name], **settings)


def _type(kind: Any, told: Told) -> Any:
    if kind is Path:
        return click.Path(path_type=Path)
    return kind if told.least is None else click.IntRange(min=told.least)


def _listed(ctx: click.Context, parameter: click.Parameter, given: tuple[Any, ...]) -> list[Any]:
    return list(given)


def completion(program: str) -> click.Option:
    """`--completion SHELL` prints what has the shell complete commands, for its start-up file."""

    def show(ctx: click.Context, parameter: click.Parameter, shell: str | None) -> None:
        if shell is None or ctx.resilient_parsing:
            return
        from click.shell_completion import get_completion_class

        kind = get_completion_class(shell)
        assert kind is not None
        click.echo(kind(ctx.command, {}, program, f"_{program.upper()}_COMPLETE").source())
        ctx.exit()

    return click.Option(
        ["--completion"],
        type=click.Choice(SHELLS),
        expose_value=False,
        is_eager=True,
        callback=show,
        help="Print what completes commands in a shell, for its start-up file.",
    )
