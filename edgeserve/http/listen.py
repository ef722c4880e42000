"""The listening socket: bound before anything else, so that a port in use is told at once."""

from __future__ import annotations

import errno
import socket

from edgeserve.errors import BadConfig, StartError


def bind(host: str, port: int) -> socket.socket:
    """A bound socket. Raises `StartError` with one sentence when that cannot be."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise BadConfig(f"--host {host} is not an address of this machine") from None
    # `localhost` has addresses of both families, and clients expect the older one.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise StartError(_refused(host, port, error)) from None
    sock.setblocking(False)
    return sock


def _refused(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; stop what listens there, or choose another --port"
    if error.errno == errno.EACCES:
        return f"port {port} needs more rights than this user has; choose a --port above 1023"
    return f"cannot listen on {host} port {port}: {error.strerror}"
