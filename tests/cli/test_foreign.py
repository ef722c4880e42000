"""Walks the table of the reference servers' flags: each does what its row says."""

from __future__ import annotations

import argparse

import pytest

from edgeserve.cli import main
from edgeserve.cli.foreign import CONNECT, EDGE, FLAGS, Fate, Flag
from edgeserve.cli.parser import make_parser
from edgeserve.cli.serve import serve_options
from edgeserve.config import ServeOptions

EXAMPLES = {
    "--port": "9000",
    "--tool-call-parser": "hermes",
    "--reasoning-parser": "qwen3",
    "--max-queued-requests": "3",
    "--queue-timeout": "2.5",
    "--log-level": "debug",
    "--engine-cache-max-size-gb": "2",
    "--max-input-len": "100",
    "--max-batch-size": "2",
    "--max-kv-cache-capacity": "512",
    "--context-cache-max-records": "7",
    "--min-request-priority": "-3",
    "--model": "tiny=./folder",
    "--replicas": "1",
    "--kv-cache-size": "1048576",
    "--startup-timeout": "30",
    "--request-timeout": "45",
    "--max-body-bytes": "4096",
    "--host": "127.0.0.2",
}
# What the example of a flag changes in the options; flags with another meaning stand below.
FIELDS = {
    "--served-model-name": "model_name",
    "--model-name": "model_name",
    "--api-key": "api_keys",
    "--engine-cache-max-size-gb": "engine.cache_max_bytes",
    "--queue-timeout": "engine.queue_timeout_s",
    "--request-timeout": "engine.request_timeout_s",
    "--startup-timeout": "startup_timeout_s",
    "--kv-cache-size": "engine.kv_pool_bytes",
    "--model": "engine.checkpoint",
    "--access-log": "access_log",
}


def options(*argv: str) -> ServeOptions:
    return serve_options(make_parser().parse_args(["serve", *argv]))


def written(flag: Flag) -> list[str]:
    return [flag.name, EXAMPLES.get(flag.name, "value")] if flag.takes_value else [flag.name]


def ids(flag: Flag) -> str:
    return f"{flag.source}{flag.name}"


def rows(*fates: Fate) -> list[Flag]:
    return [flag for flag in FLAGS if flag.fate in fates]


@pytest.mark.parametrize("flag", rows(Fate.REFUSED), ids=ids)
def test_a_refused_flag_is_refused_by_name_with_the_reason(
    flag: Flag, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv in (written(flag), [flag.name], ["./folder", *written(flag)]):
        assert main(["serve", *argv]) == 2
        said = capsys.readouterr().err
        assert flag.name in said
        assert flag.note in said


@pytest.mark.parametrize("flag", rows(Fate.NO_OP), ids=ids)
def test_an_accepted_flag_changes_nothing(flag: Flag) -> None:
    assert options(*written(flag)) == options()


@pytest.mark.parametrize("flag", rows(Fate.SAME, Fate.MAPPED), ids=ids)
def test_a_flag_that_works_reaches_the_options(flag: Flag) -> None:
    if flag.name == "--replicas":
        assert options("--replicas", "1") == options()
        return
    field = FIELDS.get(flag.name, flag.name.removeprefix("--").replace("-", "_"))
    changed, default = options(*_argv(flag)), options()
    owner = "engine" if hasattr(default.engine, field.split(".")[-1]) else None
    name = field.split(".")[-1]
    before = getattr(default.engine if owner else default, name)
    after = getattr(changed.engine if owner else changed, name)
    assert after != before


def _argv(flag: Flag) -> list[str]:
    takes_value = flag.name != "--access-log"
    return written(flag) if takes_value else [flag.name]


def test_every_flag_of_both_servers_has_a_row() -> None:
    edge = {flag.name for flag in FLAGS if flag.source == EDGE}
    connect = {flag.name for flag in FLAGS if flag.source == CONNECT}
    assert len(edge) == 41
    assert len(connect) == 17
    assert len(FLAGS) == 58


def test_a_replica_count_above_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--replicas", "2"]) == 2
    assert "--replicas" in capsys.readouterr().err


def test_help_hides_foreign_flags() -> None:
    parser = argparse.ArgumentParser()
    from edgeserve.cli.foreign import add_foreign_flags

    add_foreign_flags(parser)
    assert "--ple-file" not in parser.format_help()
