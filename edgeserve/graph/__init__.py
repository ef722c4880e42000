"""The engine-graph language: how a family describes its network, once, for every backend.

`Graph` (values.py) is a list of operations (ops.py) over values and named weights, built through
`Builder` (build.py) and the shared layers in blocks.py; passes.py fuses, reference.py interprets.
"""
