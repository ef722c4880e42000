"""From token ids to certain text, and the pieces' way to their reader (text.h, ring.h)."""

cimport cython
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t
from libcpp cimport bool as cbool
from libcpp.memory cimport make_shared, shared_ptr
from libcpp.string cimport string
from libcpp.vector cimport vector

from edgeserve._native.sampler cimport TokenLogprob, to_logprob


cdef str to_text(const string& text):
    return PyUnicode_DecodeUTF8(text.data(), text.size(), b"strict")


cdef tuple to_marks(const vector[Mark]& marks):
    if marks.empty():
        return ()
    cdef size_t i
    return tuple([(marks[i].offset, marks[i].token) for i in range(marks.size())])


cdef tuple to_logprobs(const vector[TokenLogprob]& logprobs):
    cdef size_t i
    return tuple([to_logprob(logprobs[i]) for i in range(logprobs.size())])


cdef tuple to_tuple(const Piece& piece):
    if piece.is_prompt:
        return (piece.sequence, to_logprobs(piece.logprobs))
    stop = None
    if piece.has_stop:
        stop = to_text(piece.stop)
    elif piece.stop_token >= 0:
        stop = piece.stop_token
    return (
        piece.sequence,
        to_text(piece.text),
        tuple(piece.tokens),
        () if piece.logprobs.empty() else to_logprobs(piece.logprobs),
        to_marks(piece.marks),
        piece.finish,
        stop,
        piece.phase,
    )


cdef TextSettings text_settings(stop, cbool include_stop, cbool skip_special_tokens) except *:
    cdef TextSettings settings
    cdef vector[string] strings
    for item in stop:
        if not isinstance(item, bytes):
            raise TypeError("stop strings are bytes of UTF-8")
        item.decode()  # raises a ValueError unless it is UTF-8
        strings.push_back(item)
    settings.stops = <shared_ptr[const CStops]>make_shared[CStops](strings)
    settings.include_stop = include_stop
    settings.skip_special_tokens = skip_special_tokens
    return settings


cdef class Vocabulary:
    def __init__(self, pieces, special_ids=()):
        if self.vocabulary.size():
            raise RuntimeError("a vocabulary is made once")
        cdef bytes piece
        for piece in pieces:
            if piece is None:
                raise TypeError("pieces are bytes")
            self.vocabulary.add(piece, len(piece))
        for id in special_ids:
            if id < 0:
                raise IndexError("a special id is not negative")
            self.vocabulary.set_special(id)

    @property
    def size(self):
        return self.vocabulary.size()

    def piece(self, int32_t id):
        cdef string_view piece = self.vocabulary.piece(id)
        return piece.data()[:piece.size()] if piece.size() else b""

    def is_special(self, int32_t id):
        return self.vocabulary.is_special(id)


cdef object stop_string(CTextStream* stream, const Gain& gain):
    return to_text(stream.stops().string_at(gain.stop)) if gain.stop >= 0 else None


@cython.no_gc  # in no cycle
cdef class TextStream:
    def __cinit__(
        self,
        Vocabulary vocabulary not None,
        *,
        stop=(),
        cbool include_stop=False,
        cbool skip_special_tokens=True,
    ):
        self.vocabulary = vocabulary  # keeps it alive
        self.stream = new CTextStream(
            vocabulary.vocabulary, text_settings(stop, include_stop, skip_special_tokens)
        )

    def __dealloc__(self):
        del self.stream

    def feed(self, int32_t token, *, cbool armed=True):
        cdef Gain gain
        self.stream.feed(token, armed, gain)
        return (to_text(gain.text), to_marks(gain.marks), stop_string(self.stream, gain))

    def finish(self):
        cdef Gain gain
        self.stream.cut(True, gain)
        return (to_text(gain.text), stop_string(self.stream, gain))


cdef class Ring:
    def fileno(self):
        return self.ring.fileno()

    def drain(self):
        cdef vector[Piece] pieces = self.ring.drain()
        cdef size_t i
        return [to_tuple(pieces[i]) for i in range(pieces.size())]

    def close(self):
        self.ring.close()
