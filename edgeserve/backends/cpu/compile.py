"""An engine graph becomes a flat program for the native loop.

Each value lives in up to three forms: f32, and what linear layers read, int8 blocks or bf16. The
operation that makes a value writes the forms that are wanted, so that quantising costs no pass of
its own. Rotary embeddings fold into the instruction that writes keys and values to pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from edgeserve.backends.cpu.arena import BLOCK, Arena, Order
from edgeserve.backends.cpu.formats import FORMS, Form, PackedFormat, activation_form
from edgeserve.backends.cpu.program import (
    LOGITS,
    NONE,
    Cache,
    Code,
    Instruction,
    Matrix,
    Program,
    RopeTable,
    Vector,
)
from edgeserve.backends.cpu.uses import Uses, parts_of
from edgeserve.errors import GraphError
from edgeserve.graph import ops
from edgeserve.graph.values import Graph, Node, Value

UNARY = {"silu": 0, "gelu": 1, "gelu_tanh": 2, "relu": 3, "relu2": 4, "scale": 5, "soft_cap": 6}
BINARY = {"add": 0, "multiply": 1}


@dataclass(frozen=True, slots=True)
class Placed:
    """A packed tensor: where it lies in the file, and how."""

    offset: int
    format: PackedFormat
    shape: tuple[int, ...]


def compile_graph(
    graph: Graph, tensors: Mapping[str, Placed], *, activations: str, kv_f32: bool
) -> Program:
    """The program of a graph whose weights lie at `tensors`. The graph may be fused or not."""
    return _Compiler(graph, tensors, activations=activations, kv_f32=kv_f32).program()


class _Compiler:
    def __init__(
        self, graph: Graph, tensors: Mapping[str, Placed], *, activations: str, kv_f32: bool
    ) -> None:
        self._graph = graph
        self._tensors = tensors
        self._activations = activations
        self._kv_f32 = kv_f32
        self._arena = Arena()
        self._order = Order()
        self._instructions: list[Instruction] = []
        self._matrices: dict[str, int] = {}
        self._vectors: dict[str, int] = {}
        self._ropes: dict[ops.Rope, tuple[int, int]] = {}  # table, buffer of angles
        self._buffers: dict[tuple[int, Form], int] = {}  # of live values
        self._uses = Uses(graph, self._form)

    def program(self) -> Program:
        lower = self._lowerings()
        for index, node in enumerate(self._graph.nodes):
            try:
                handler = lower[type(node.op)]
            except KeyError:
                raise GraphError(
                    f"the cpu backend cannot run the operation {type(node.op).__name__}"
                ) from None
            handler(node)
            self._release(index)
        tensors = self._tensors
        return Program(
            matrices=tuple(_matrix(name, tensors[name]) for name in self._matrices),
            vectors=tuple(_vector(tensors[name]) for name in self._vectors),
            ropes=tuple(_table(rope) for rope in self._ropes),
            buffers=tuple(self._arena.buffers),
            arena_row_bytes=self._arena.row_bytes,
            layers=tuple(Cache(kv.kv_heads, kv.head_dim) for kv in self._graph.kv),
            kv_f32=self._kv_f32,
            vocab=self._graph.logits.width,
            instructions=tuple(self._instructions),
        )

    # Weights and buffers -------------------------------------------------------------------------

    def _form(self, part: ops.Linear) -> Form:
        return activation_form(self._tensors[part.weight].format, self._activations)

    def _matrix(self, name: str) -> int:
        return self._matrices.setdefault(name, len(self._matrices))

    def _vector(self, name: str | None) -> int:
        return NONE if name is None else self._vectors.setdefault(name, len(self._vectors))

    def _read(self, value: Value, form: Form = "f32") -> int:
        return self._buffers[value.id, form]

    def _write(self, value: Value, form: Form = "f32") -> int:
        """The buffer of a value that is about to be made."""
        if value.id in self._uses.direct and form == "f32":
            self._buffers[value.id, form] = LOGITS
        if (value.id, form) not in self._buffers:
            self._buffers[value.id, form] = self._arena.take(form, value.width)
        return self._buffers[value.id, form]

    def _forms(self, value: Value, *, always_f32: bool = False) -> tuple[int, ...]:
        """The buffers of a value in all forms that are wanted, NONE for others."""
        wanted = set(self._uses.wanted.get(value.id, ()))
        if always_f32 or value.id in self._uses.direct or not wanted:
            wanted.add("f32")
        return tuple(self._write(value, form) if form in wanted else NONE for form in FORMS)

    def _release(self, index: int) -> None:
        for value_id in self._uses.dead.get(index, ()):
            for form in FORMS:
                buffer = self._buffers.pop((value_id, form), NONE)
                if buffer >= 0 and self._owns(value_id):
                    self._arena.give(buffer)

    def _owns(self, value_id: int) -> bool:
        return value_id not in self._uses.folded  # else the buffer is its input's

    def _emit(
        self,
        code: Code,
        rows: Value,
        args: Sequence[int],
        numbers: Sequence[float] = (),
        *,
        reads: Sequence[object] = (),
        writes: Sequence[int] = (),
        state: str | None = None,
    ) -> None:
        """`reads` and `writes` are buffers, `state` a layer's pages that are written."""
        read = [self._arena.place(item) if isinstance(item, int) else item for item in reads]
        write: list[object] = [self._arena.place(item) for item in writes if item != NONE]
        wait = self._order.must_wait(read, [*write, state] if state else write)
        self._instructions.append(
            Instruction(code, wait, rows.rows == "outputs", tuple(args), tuple(numbers))
        )

    # Operations ----------------------------------------------------------------------------------

    def _lowerings(self) -> dict[type, Callable[[Node], None]]:
        return {
            ops.Embed: self._embed,
            ops.Linear: self._linear,
            ops.FusedLinear: self._linear,
            ops.RmsNorm: self._norm,
            ops.LayerNorm: self._norm,
            ops.ResidualNorm: self._norm,
            ops.Rope: self._rope,
            ops.Attention: self._attention,
            ops.Activation: self._unary,
            ops.Scale: self._unary,
            ops.SoftCap: self._unary,
            ops.GatedActivation: self._gated,
            ops.Add: self._binary,
            ops.Multiply: self._binary,
            ops.SelectRows: self._select,
        }

    def _embed(self, node: Node) -> None:
        op, out = node.op, node.outputs[0]
        assert isinstance(op, ops.Embed)
        forms = self._forms(out)
        args = (self._matrix(op.weight), out.width, *forms)
        self._emit(Code.EMBED, out, args, (op.scale,), writes=forms)

    def _linear(self, node: Node) -> None:
        """One instruction per form of the input, then the other forms of the results."""
        assert isinstance(node.op, ops.Linear | ops.FusedLinear)
        x = node.inputs[0]
        for form in FORMS:
            args, writes = [FORMS.index(form), NONE], []
            for part, out in zip(parts_of(node.op), node.outputs, strict=True):
                if self._form(part) == form:
                    writes.append(self._write(out))
                    args += (self._matrix(part.weight), self._vector(part.bias), writes[-1])
            if writes:
                args[1] = self._read(x, form)
                self._emit(Code.MATMUL, node.outputs[0], args, reads=args[1:2], writes=writes)
        for out in node.outputs:
            self._convert(out)

    def _convert(self, value: Value) -> None:
        """Make the wanted forms of a value that exists in f32."""
        forms = (NONE, *self._forms(value, always_f32=True)[1:])
        if any(buffer != NONE for buffer in forms):
            x = self._read(value)
            self._emit(Code.CONVERT, value, (x, value.width, *forms), reads=(x,), writes=forms)

    def _norm(self, node: Node) -> None:
        op, x, out = node.op, node.inputs[-1], node.outputs[-1]
        residual, total = NONE, NONE
        if isinstance(op, ops.ResidualNorm):
            residual, total = self._read(node.inputs[0]), self._write(node.outputs[0])
            op = op.norm
        forms, source = self._forms(out), self._read(x)
        assert isinstance(op, ops.RmsNorm | ops.LayerNorm)
        if isinstance(op, ops.LayerNorm):
            bias, group, numbers = self._vector(op.bias), out.width, (op.eps, 0.0)
        else:
            bias, group, numbers = NONE, op.group or out.width, (op.eps, op.offset)
        args = (
            *(int(isinstance(op, ops.LayerNorm)), source, residual, total),
            *(self._vector(op.weight), bias, out.width, group, *forms),
        )
        reads = (source, residual) if residual != NONE else (source,)
        self._emit(Code.NORM, out, args, numbers, reads=reads, writes=(total, *forms))
        if total != NONE:
            self._convert(node.outputs[0])

    def _angles(self, rope: ops.Rope, rows: Value) -> tuple[int, int]:
        """Table and buffer of a rope's angles in this step, which live as long as the step."""
        if rope not in self._ropes:
            out = self._arena.take("f32", rope.rotary_dim)
            self._ropes[rope] = (len(self._ropes), out)
            self._emit(Code.ANGLES, rows, self._ropes[rope], writes=(out,))
        return self._ropes[rope]

    def _rope(self, node: Node) -> None:
        op, x, out = node.op, node.inputs[0], node.outputs[0]
        assert isinstance(op, ops.Rope)
        if out.id in self._uses.folded:  # done by KEEP, in the same buffer
            self._buffers[out.id, "f32"] = self._read(x)
            return
        table, angles = self._angles(op, out)
        source, target = self._read(x), self._write(out)
        args = (source, target, table, angles, x.width // op.head_dim, op.head_dim)
        self._emit(Code.ROPE, out, args, reads=(source, angles), writes=(target,))
        self._convert(out)

    def _attention(self, node: Node) -> None:
        op, out = node.op, node.outputs[0]
        assert isinstance(op, ops.Attention)
        if op.head_dim % 2:
            raise GraphError(f"the cpu backend needs an even head size, not {op.head_dim}")
        q, k, v = (self._read(value) for value in node.inputs)
        rope, angles, writes = NONE, NONE, []
        if node.inputs[0].id in self._uses.folded:
            maker = self._uses.makers[node.inputs[0].id].op
            assert isinstance(maker, ops.Rope)
            rope, angles = self._angles(maker, out)
            writes = [q, k]
        pages = f"pages of {op.layer}"
        reads = [q, k, v] + ([angles] if angles != NONE else [])
        keep = (q, k, v, rope, angles, op.layer, op.heads)
        self._emit(Code.KEEP, out, keep, reads=reads, writes=writes, state=pages)

        shared = op.heads // op.kv_heads * op.head_dim
        whole = shared % BLOCK == 0  # heads of one page read end at a block's end
        forms = self._forms(out, always_f32=True)
        if not whole:
            forms = (forms[0], NONE, NONE)
        sinks = self._vector(op.sinks)
        args = (q, op.layer, op.heads, op.window or 0, sinks, int(whole), *forms)
        numbers = (op.scale, op.soft_cap or 0.0)
        self._emit(Code.ATTEND, out, args, numbers, reads=(q, pages), writes=forms)
        if not whole:
            self._convert(out)

    def _unary(self, node: Node) -> None:
        op, x, out = node.op, node.inputs[0], node.outputs[0]
        if isinstance(op, ops.Scale):
            kind, number = "scale", op.factor
        elif isinstance(op, ops.SoftCap):
            kind, number = "soft_cap", op.cap
        else:
            assert isinstance(op, ops.Activation)
            kind, number = op.kind, 0.0
        source, forms = self._read(x), self._forms(out)
        args = (UNARY[kind], source, out.width, *forms)
        self._emit(Code.UNARY, out, args, (number,), reads=(source,), writes=forms)

    def _gated(self, node: Node) -> None:
        op, out = node.op, node.outputs[0]
        assert isinstance(op, ops.GatedActivation)
        gate, up = (self._read(value) for value in node.inputs)
        forms = self._forms(out)
        args = (UNARY[op.kind], gate, up, out.width, *forms)
        self._emit(Code.GATED, out, args, reads=(gate, up), writes=forms)

    def _binary(self, node: Node) -> None:
        out = node.outputs[0]
        a, b = (self._read(value) for value in node.inputs)
        kind = BINARY["add" if isinstance(node.op, ops.Add) else "multiply"]
        forms = self._forms(out)
        args = (kind, a, b, out.width, *forms)
        self._emit(Code.BINARY, out, args, reads=(a, b), writes=forms)

    def _select(self, node: Node) -> None:
        x, out = node.inputs[0], node.outputs[0]
        source, forms = self._read(x), self._forms(out)
        args = (source, out.width, *forms)
        self._emit(Code.SELECT, out, args, reads=(source,), writes=forms)


def _matrix(name: str, placed: Placed) -> Matrix:
    if len(placed.shape) != 2:
        raise GraphError(f"weight '{name}' is used as a matrix, its shape is {list(placed.shape)}")
    return Matrix(placed.offset, placed.format, placed.shape[0], placed.shape[1])


def _vector(placed: Placed) -> Vector:
    return Vector(placed.offset, placed.shape[0])


def _table(rope: ops.Rope) -> RopeTable:
    return RopeTable(rope.frequencies, rope.attention_factor, rope.layout == "interleaved")
