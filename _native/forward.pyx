"""The base class of all doors to a backend's network (see include/edgeserve/forward.h)."""

from libc.stdint cimport int32_t
from libc.stddef cimport size_t


cdef class Forward:
    """A network that can run steps. Made by a backend; held by the core. A subclass sets and
    frees `forward`."""

    @property
    def vocab(self):
        return self.forward.vocab()

    @property
    def page_tokens(self):
        return self.forward.page_tokens()

    @property
    def pages(self):
        return self.forward.pages()

    @property
    def step_tokens(self):
        return self.forward.step_tokens()
