"""What may be done with an order, by its status and what was invoiced, shipped and refunded."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from agentgym_envs.webarena.sites.framework.context import RequestContext

STATUSES = ("pending", "processing", "complete", "canceled", "on hold", "closed")
STATUS_CHOICES = tuple((status, status.capitalize()) for status in STATUSES)
OPEN = ("pending", "processing")
_FACTS = """
SELECT o.*, c.first || ' ' || c.last AS customer_name, c.email, c.customer_group,
    EXISTS (SELECT 1 FROM shop_invoices WHERE order_id = o.id) AS invoiced,
    EXISTS (SELECT 1 FROM shop_shipments WHERE order_id = o.id) AS shipped,
    (SELECT COALESCE(SUM(total), 0) FROM shop_refunds WHERE order_id = o.id) AS refunded
FROM shop_orders o JOIN shop_customers c ON c.id = o.customer WHERE o.id = ?
"""


@dataclass(frozen=True, slots=True)
class Order:
    """An order; `row` has its customer and what became of it besides its own columns."""

    row: sqlite3.Row

    @classmethod
    def of(cls, visit: RequestContext, id: int) -> Order:
        """The order of that id. Raises Missing."""
        return cls(visit.one(_FACTS, id))

    @property
    def status(self) -> str:
        """One of STATUSES."""
        return str(self.row["status"])

    @property
    def may_cancel(self) -> bool:
        """Only while nothing was charged or sent."""
        return self.status in OPEN and not self.row["invoiced"] and not self.row["shipped"]

    @property
    def may_hold(self) -> bool:
        """While there is something left to do."""
        return self.status in OPEN

    @property
    def may_unhold(self) -> bool:
        """Only what is held."""
        return self.status == "on hold"

    @property
    def may_invoice(self) -> bool:
        """Once."""
        return self.status in OPEN and not self.row["invoiced"]

    @property
    def may_ship(self) -> bool:
        """Once."""
        return self.status in OPEN and not self.row["shipped"]

    @property
    def may_refund(self) -> bool:
        """Only what was charged, once."""
        return self.status in ("processing", "complete") and bool(self.row["invoiced"]) and not self.row["refunded"]

    @property
    def unheld(self) -> str:
        """The status of an order that is held no longer."""
        return "processing" if self.row["invoiced"] or self.row["shipped"] else "pending"

    @property
    def next_statuses(self) -> list[str]:
        """What a comment may set the status to; first the one that it has."""
        others = ["on hold"] if self.may_hold else [self.unheld] if self.may_unhold else []
        return [self.status, *others]

    @property
    def status_choices(self) -> list[tuple[str, str]]:
        """The same, as a form tells them."""
        return [(status, status.capitalize()) for status in self.next_statuses]


def set_status(visit: RequestContext, order: Order, status: str) -> None:
    """Change the status, and nothing if it is that already."""
    visit.write("UPDATE shop_orders SET status = ? WHERE id = ? AND status <> ?", status, order.row["id"], status)


def move_on(visit: RequestContext, order: Order) -> None:
    """After an invoice or a shipment: complete as soon as there are both."""
    fresh = Order.of(visit, order.row["id"])
    set_status(visit, fresh, "complete" if fresh.row["invoiced"] and fresh.row["shipped"] else "processing")


def next_number(visit: RequestContext, table: str) -> str:
    """The number of the next document in a table, which is never what somebody typed."""
    found = visit.value(f"SELECT printf('%09d', COALESCE(MAX(CAST(number AS INTEGER)), 0) + 1) FROM {table}")
    return str(found)
