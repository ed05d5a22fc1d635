"""What a backend holds: a graph once it is loaded, a block once it is started."""

from __future__ import annotations

from typing import Generic, TypeVar

GraphT = TypeVar("GraphT")
BlockT = TypeVar("BlockT")


class InTurn(Generic[GraphT, BlockT]):
    """Base of the backends: graph and block, or an error of the program where they are used too early.

    Subclasses set ``_loaded`` in `load` and ``_started`` in `start`.
    """

    def __init__(self) -> None:
        self._loaded: GraphT | None = None
        self._started: BlockT | None = None

    @property
    def _graph(self) -> GraphT:
        """The graph that was loaded."""
        if self._loaded is None:
            raise RuntimeError("load comes first")
        return self._loaded

    @property
    def _block(self) -> BlockT:
        """The block that was started last."""
        if self._started is None:
            raise RuntimeError("start comes first")
        return self._started
