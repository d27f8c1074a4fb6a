"""Every setting is an option of `serve` and `dev`, read strictly."""

from __future__ import annotations

from dataclasses import fields

import click
import pytest

from qoqi.runtime.cli import settings
from qoqi.runtime.cli.main import app
from qoqi.runtime.model import Settings


def test_every_setting_is_an_option_of_the_commands_that_run_a_daemon() -> None:
    wanted = {settings.option(field.name) for field in fields(Settings)}
    wanted = wanted - {"--recover-at-once"} | {"--recover"}
    for name in ("serve", "dev"):
        command = app.commands[name]
        params = command.get_params(click.Context(command))
        options = {word for option in params for word in option.opts}
        assert wanted <= options, name


def test_without_options_they_are_those_of_the_table() -> None:
    assert settings.read({}, "wait") == Settings()
    assert settings.read({}, "at-once") == Settings(recover_at_once=True)


def test_lengths_counts_and_sizes_are_read() -> None:
    given = {
        "lease": "1m",
        "heartbeat": "20s",
        "wave": "0s",
        "tries": "7",
        "look_limit": "200",
        "state_limit": "2MiB",
        "value_limit": "65536",
    }
    assert settings.read(given, "wait") == Settings(
        lease=60_000,
        heartbeat=20_000,
        alive=60_000,
        wave=0,
        tries=7,
        look_limit=200,
        state_limit=2 << 20,
        value_limit=65_536,
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lease": "soon"}, "--lease: soon is no length of time (30s, 5m, 2d)"),
        ({"lease": "0s"}, "--lease: 0s is no length of time (30s, 5m, 2d)"),
        ({"look": "-1s"}, "--look: -1s is no length of time (30s, 5m, 2d)"),
        ({"lease": "15s"}, "--renew: at most half of --lease, or leases run out"),
        (
            {"alive": "10s"},
            "--alive: longer than --heartbeat, or the daemon looks dead between two",
        ),
        ({"tries": "0"}, "--tries: 0 is no number from 1 up"),
        ({"tries": "1.5"}, "--tries: 1.5 is no number from 1 up"),
        ({"look_limit": "\u0663"}, "--look-limit: \u0663 is no number from 1 up"),
        ({"value_limit": "1MB"}, "--value-limit: 1MB is no size (65536, 64KiB, 1MiB)"),
        ({"state_note": "32MiB"}, "--state-note: at most --state-limit"),
    ],
)
def test_what_is_no_setting_is_refused(
    given: dict[str, str | None], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        settings.read(given, "wait")
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {said}\n"


def test_recovery_has_two_ways(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        settings.read({}, "never")
    assert capsys.readouterr().err == "error: --recover: never is neither wait nor at-once\n"
