"""What a newcomer does after the installation: start the server, ask it with curl, stop it.

Runs in the source folder with the installed command, twice: the second start has everything in
the cache and must be ready within two seconds.
"""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator

FIRST_START_S, SECOND_START_S = 300.0, 2.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(port: int, limit_s: float) -> Iterator[float]:
    """A server that is ready; yields the seconds it took. Its stop must be clean."""
    started = time.monotonic()
    server = subprocess.Popen(["edgeserve", "serve", "--port", str(port)])
    try:
        while not ready(port):
            if server.poll() is not None:
                raise SystemExit(f"edgeserve serve ended with {server.returncode}")
            if time.monotonic() - started > limit_s:
                raise SystemExit(f"edgeserve serve was not ready after {limit_s} s")
            time.sleep(0.01)
        yield time.monotonic() - started
        server.send_signal(signal.SIGTERM)
        if code := server.wait(30):
            raise SystemExit(f"edgeserve serve ended with {code} after SIGTERM")
    finally:
        server.kill()
        server.wait()


def ready(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/health/ready"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def ask(port: int) -> str:
    body = {"messages": [{"role": "user", "content": "What is the capital of Japan?"}]}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    command = ["curl", "-sS", "--fail-with-body", url, "-H", "Content-Type: application/json"]
    done = subprocess.run(
        [*command, "-d", json.dumps(body | {"temperature": 0, "max_tokens": 64})],
        check=True,
        capture_output=True,
        text=True,
    )
    text: str = json.loads(done.stdout)["choices"][0]["message"]["content"]
    return text


def main() -> None:
    port = free_port()
    with serving(port, FIRST_START_S) as seconds:
        print(f"start: first, with download and packing, {seconds:.1f} s")
        text = ask(port)
        print(f"answer: {text}")
        if "Tokyo" not in text:
            raise SystemExit("the model does not know the capital of Japan")
    with serving(port, 60) as seconds:
        print(f"start: second {seconds:.2f} s")
        if seconds > SECOND_START_S:
            raise SystemExit(f"the second start took longer than {SECOND_START_S} s")


main()
