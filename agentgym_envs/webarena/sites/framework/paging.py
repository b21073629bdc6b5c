"""Lists on several pages."""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_envs.webarena.sites.framework.fields import Fields


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of a list a page shows. `count` is how many there are; pages count from 1."""

    count: int
    size: int
    page: int

    @classmethod
    def of(cls, query: Fields, count: int, size: int) -> Paging:
        """By the field "page" of a query; one that is out of range gives the nearest page."""
        last = max(1, -(-count // size))
        return cls(count, size, min(query.number("page", 1, least=1), last))

    @property
    def last(self) -> int:
        """The number of the last page."""
        return max(1, -(-self.count // self.size))

    @property
    def skipped(self) -> int:
        """How many come before this page: SQL's OFFSET."""
        return (self.page - 1) * self.size

    @property
    def first_shown(self) -> int:
        """The place of the first on this page, counted from 1; 0 if there are none."""
        return min(self.skipped + 1, self.count)

    @property
    def last_shown(self) -> int:
        """The place of the last on this page."""
        return min(self.skipped + self.size, self.count)

    @property
    def pages(self) -> list[int]:
        """The numbers to offer: the first, the last and those near this one; 0 stands for a gap."""
        near = {1, self.last, *range(max(1, self.page - 2), min(self.last, self.page + 2) + 1)}
        found: list[int] = []
        for number in sorted(near):
            if found and number - found[-1] > 1:
                found.append(0)
            found.append(number)
        return found
