"""Commands made of signatures: types, lists, flags, variables of the environment, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click
import pytest
from click.testing import CliRunner

from qoqi.runtime.cli.commands import Group, Told, argument, command, completion, option
from qoqi.runtime.cli.main import app

group = Group("tool", params=[completion("tool")], no_args_is_help=True)


@command(group, others=lambda: {"size": option("--size", help="Of what.", metavar="SIZE")})
def first(
    place: Annotated[Path, argument(help="Where.")],
    words: Annotated[list[str] | None, argument(metavar="WORD…", help="What is left.")] = None,
    loud: Annotated[bool, option("--loud", "-l", help="Say it.")] = False,
    times: Annotated[int, option(least=1, help="How often.")] = 3,
    url: Annotated[str | None, option("--url", environment="TOOL_URL", help="Whom.")] = None,
    **given: str | None,
) -> None:
    """Says what it was given."""
    print([place, words, loud, times, url, given])


@command(group, "another", dashes=True)
def second(words: Annotated[list[str] | None, argument(help="All.")] = None) -> None:
    """Takes anything."""
    print(words)


@command(group)
def broken_off() -> None:
    """Is interrupted."""
    raise KeyboardInterrupt


def said(*line: str, code: int = 0) -> str:
    result = CliRunner().invoke(group, line, prog_name="tool", env={"TOOL_URL": "from-outside"})
    assert result.exit_code == code, result.output
    return result.output.strip()


def test_values_have_the_types_of_the_parameters() -> None:
    assert (
        said("first", "a/b") == "[PosixPath('a/b'), [], False, 3, 'from-outside', {'size': None}]"
    )
    line = ("first", "p", "x", "y", "-l", "--times", "5", "--url", "u", "--size", "1MiB")
    assert said(*line) == "[PosixPath('p'), ['x', 'y'], True, 5, 'u', {'size': '1MiB'}]"


def test_dashes_are_words_where_a_command_takes_them() -> None:
    assert said("another", "-3", "--what", "x") == "['-3', '--what', 'x']"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["first"], "Missing argument 'PLACE'"),
        (["first", "p", "--times", "0"], "0 is not in the range x>=1"),
        (["first", "p", "--times", "x"], "'x' is not a valid integer"),
        (["first", "p", "--lout"], "No such option '--lout'"),
        (["frist"], "No such command 'frist'"),
        (["first", "p", "--url"], "Option '--url' requires an argument"),
    ],
)
def test_a_wrong_line_ends_with_2_and_says_why(line: list[str], words: str) -> None:
    assert words in said(*line, code=2)


def test_help_names_all_in_the_order_of_the_source() -> None:
    text = said("--help")
    assert text.index("first") < text.index("another") < text.index("broken_off")
    text = said("first", "--help")
    for part in (
        "PLACE",
        "WORD…",
        "Where.",
        "-l, --loud",
        "[default: 3; x>=1]",
        "TOOL_URL",
        "SIZE",
    ):
        assert part in text


def test_an_interrupt_ends_with_130_and_without_a_traceback() -> None:
    assert said("broken_off", code=130) == ""


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    assert f"_TOOL_COMPLETE={shell}_complete" in said("--completion", shell)


def test_commands_and_options_are_completed() -> None:
    env = {"_QOQI_COMPLETE": "zsh_complete", "COMP_WORDS": "qoqi serve --stat", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="qoqi", env=env)
    assert {"--state-note", "--state-limit"} <= set(result.output.split())


def test_a_signature_is_read_when_it_is_asked_for() -> None:
    asked: list[str] = []

    def others() -> dict[str, Told]:
        asked.append("others")
        return {}

    late = Group("late")

    @command(late, others=others)
    def run(**given: str | None) -> None:
        """Does nothing."""

    assert "Does nothing." in CliRunner().invoke(late, ["--help"]).output
    assert asked == []
    assert CliRunner().invoke(late, ["run"]).exit_code == 0
    assert asked == ["others"]


def test_every_command_can_be_made() -> None:
    """A parameter that nothing was told of would be found only by who runs the command."""
    groups: list[click.Command] = [app]
    for one in groups:
        if isinstance(one, Group):
            groups += one.commands.values()
        assert one.get_params(click.Context(one))
    assert len(groups) > 30
