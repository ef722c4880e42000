from __future__ import annotations

from pathlib import Path

import pytest

from edgeserve.cli.environment import Environment
from edgeserve.cli.parser import make_parser
from edgeserve.cli.serve import serve_options
from edgeserve.config import DEFAULT_MODEL, EngineOptions, ServeOptions
from edgeserve.errors import BadConfig


def options(*argv: str, **environment: str) -> ServeOptions:
    values = {f"EDGESERVE_{name}": value for name, value in environment.items()}
    return serve_options(make_parser().parse_args(["serve", *argv]), Environment(values))


def test_without_flags_the_defaults_of_config_hold() -> None:
    chosen = options()
    cache = Path("~/.cache/edgeserve").expanduser()
    assert chosen == ServeOptions(engine=EngineOptions(checkpoint=DEFAULT_MODEL, cache_dir=cache))


def test_a_flag_wins_over_the_environment_and_that_over_the_default(tmp_path: Path) -> None:
    environment = {"THREADS": "3", "CACHE": str(tmp_path / "a"), "ISA": "scalar", "OFFLINE": "1"}
    chosen = options(**environment).engine
    assert (chosen.threads, chosen.isa, chosen.offline) == (3, "scalar", True)
    assert chosen.cache_dir == tmp_path / "a"
    flags = ("--threads", "1", "--isa", "avx2", "--cache-dir", str(tmp_path / "b"))
    chosen = options(*flags, **environment).engine
    assert (chosen.threads, chosen.isa, chosen.cache_dir) == (1, "avx2", tmp_path / "b")


def test_an_empty_variable_counts_as_unset() -> None:
    assert options(THREADS="", API_KEY="", OFFLINE="", ISA="") == options()


def test_a_variable_that_is_not_a_number_is_named() -> None:
    with pytest.raises(BadConfig, match="EDGESERVE_THREADS"):
        options(THREADS="many")


def test_keys_come_from_flags_or_else_from_the_environment() -> None:
    assert options(API_KEY="a, b").api_keys == ("a", "b")
    assert options("--api-key", "c", "--api-key", "d", API_KEY="a").api_keys == ("c", "d")


def test_the_first_name_is_served_and_more_are_aliases() -> None:
    chosen = options("--model-name", "a", "--served-model-name", "b", "./folder")
    assert (chosen.model_name, chosen.aliases) == ("a", ("b",))
    assert chosen.engine.checkpoint == "./folder"


def test_name_and_checkpoint_may_come_together() -> None:
    chosen = options("--model", "tiny=./a=b")
    assert (chosen.model_name, chosen.engine.checkpoint) == ("tiny", "./a=b")


@pytest.mark.parametrize("argv", [("--model", "tiny"), ("--model", "a=b", "./folder")])
def test_a_model_given_wrongly_is_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(BadConfig, match="NAME=CHECKPOINT"):
        options(*argv)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::"])
def test_another_address_needs_a_key_or_a_word(host: str) -> None:
    with pytest.raises(BadConfig, match=r"--api-key KEY.*--allow-unauthenticated"):
        options("--host", host)
    assert options("--host", host, "--api-key", "k").host == host
    assert options("--host", host, "--allow-unauthenticated").host == host


def test_the_pool_is_given_in_pages_or_bytes() -> None:
    assert options("--kv-pool-size", "4096").engine.kv_pool_pages == 4096
    assert options("--kv-pool-size", "2GiB").engine.kv_pool_bytes == 2 * 1024**3
    assert options("--kv-cache-size", "4096").engine.kv_pool_bytes == 4096


def test_a_prompt_limit_must_leave_room_for_an_answer() -> None:
    with pytest.raises(BadConfig, match="--max-input-len 512"):
        options("--max-input-len", "512", "--max-kv-cache-capacity", "512")


def test_the_chat_template_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "chat.jinja"
    file.write_text("{{ messages }}")
    assert options("--chat-template", str(file)).engine.chat_template == "{{ messages }}"
    with pytest.raises(BadConfig, match="No such file"):
        options("--chat-template", str(tmp_path / "other"))


def test_sampling_flags_become_server_defaults() -> None:
    sampler = options("--temperature", "0", "--top-k", "40").sampler
    assert (sampler.temperature, sampler.top_k, sampler.top_p) == (0.0, 40, None)


def test_a_request_timeout_of_zero_is_off() -> None:
    assert options("--request-timeout", "0").engine.request_timeout_s is None
    assert options("--request-timeout", "9").engine.request_timeout_s == 9


def test_an_unknown_parser_is_refused_before_anything_starts() -> None:
    for flag in ("--tool-call-parser", "--reasoning-parser"):
        with pytest.raises(BadConfig, match=f"{flag} 'nonsense' is unknown; use one of auto"):
            options(flag, "nonsense")
    for name in ("auto", "generic", "hermes", "qwen3_xml", "nemotron", "openai"):
        assert options("--tool-call-parser", name).tool_call_parser == name
    for name in ("auto", "none", "qwen3", "deepseek_r1", "nemotron"):
        assert options("--reasoning-parser", name).reasoning_parser == name
