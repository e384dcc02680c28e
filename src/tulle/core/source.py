"""What a source of random bits is. The sources themselves live in :mod:`tulle.noise`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar


class Source(ABC):
    """A supply of independent fair bits.

    A release keeps its guarantee only when it was drawn from a source that is :attr:`secure`,
    that is, unpredictable to every adversary. Only the operating system's source is. A source
    that anyone can replay (seeded, or a tape for tests) voids the guarantee, and the release
    says so.
    """

    secure: ClassVar[bool] = False
    """Said by the class; one object cannot say otherwise."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let no class take over that it is secure: one that derives from such gives other bits."""
        super().__init_subclass__(**options)
        if "secure" not in cls.__dict__:
            cls.secure = False

    @abstractmethod
    def read(self, count: int) -> bytes:
        """Return ``count`` fresh random bytes."""
