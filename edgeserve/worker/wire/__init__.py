"""The wire between a front and a worker: framed msgpack over a unix socket.

Nothing here knows an engine, so fronts may import it.
"""
