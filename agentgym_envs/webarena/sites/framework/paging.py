"""Pagination of lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentgym_envs.webarena.sites.framework.fields import Fields


@dataclass(frozen=True, slots=True)
class Paging:
    """One page of a list. `count` is the number of all entries, `size` that of a page; pages count from 1.

    `sizes` are the sizes that the page offers, if the user can choose one.
    """

    count: int
    size: int
    page: int
    sizes: Sequence[int] = ()

    @classmethod
    def of(cls, query: Fields, count: int, size: int, sizes: Sequence[int] = ()) -> Paging:
        """Take the page number from the field "page" of a query; clip it to the existing pages.

        The field "limit" selects one of the `sizes`; without one, the size is `size`.
        """
        chosen = query.number("limit", size)
        size = chosen if chosen in sizes else size
        last = max(1, -(-count // size))
        return cls(count, size, min(query.number("page", 1, least=1), last), sizes)

    @property
    def last(self) -> int:
        """Number of the last page."""
        return max(1, -(-self.count // self.size))

    @property
    def skipped(self) -> int:
        """Number of entries before this page: SQL's OFFSET."""
        return (self.page - 1) * self.size

    @property
    def first_shown(self) -> int:
        """Position of the first entry on this page, counted from 1; 0 if the list is empty."""
        return min(self.skipped + 1, self.count)

    @property
    def last_shown(self) -> int:
        """Position of the last entry on this page."""
        return min(self.skipped + self.size, self.count)

    @property
    def pages(self) -> list[int]:
        """Page numbers to link: the first, the last and those near the current one; 0 marks a gap."""
        near = {1, self.last, *range(max(1, self.page - 2), min(self.last, self.page + 2) + 1)}
        numbers: list[int] = []
        for number in sorted(near):
            if numbers and number - numbers[-1] > 1:
                numbers.append(0)
            numbers.append(number)
        return numbers
