"""The actions that an order allows, by its status and by its invoices, shipments and refunds."""

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
class AdminOrder:
    """An order. `row` also has its customer, and flags for invoices, shipments and refunds."""

    row: sqlite3.Row

    @classmethod
    def of(cls, context: RequestContext, id: int) -> AdminOrder:
        """Load the order with this id. Raises NotFound."""
        return cls(context.one(_FACTS, id))

    @property
    def status(self) -> str:
        """One of STATUSES."""
        return str(self.row["status"])

    @property
    def may_cancel(self) -> bool:
        """An open order can be canceled until it is invoiced or shipped."""
        return self.status in OPEN and not self.row["invoiced"] and not self.row["shipped"]

    @property
    def may_hold(self) -> bool:
        """Only an open order can be put on hold."""
        return self.status in OPEN

    @property
    def may_unhold(self) -> bool:
        """Only an order on hold can be released."""
        return self.status == "on hold"

    @property
    def may_invoice(self) -> bool:
        """An open order can be invoiced once."""
        return self.status in OPEN and not self.row["invoiced"]

    @property
    def may_ship(self) -> bool:
        """An open order can be shipped once."""
        return self.status in OPEN and not self.row["shipped"]

    @property
    def may_refund(self) -> bool:
        """An invoiced order can be refunded once."""
        return self.status in ("processing", "complete") and bool(self.row["invoiced"]) and not self.row["refunded"]

    @property
    def status_after_hold(self) -> str:
        """Status of the order after it is released from hold."""
        return "processing" if self.row["invoiced"] or self.row["shipped"] else "pending"

    @property
    def next_statuses(self) -> list[str]:
        """Statuses that a comment may set, starting with the current one."""
        others = ["on hold"] if self.may_hold else [self.status_after_hold] if self.may_unhold else []
        return [self.status, *others]

    @property
    def status_choices(self) -> list[tuple[str, str]]:
        """`next_statuses` as choices of a form."""
        return [(status, status.capitalize()) for status in self.next_statuses]


def set_status(context: RequestContext, order: AdminOrder, status: str) -> None:
    """Set the status of an order if it changes."""
    context.write("UPDATE shop_orders SET status = ? WHERE id = ? AND status <> ?", status, order.row["id"], status)


def advance_status(context: RequestContext, order: AdminOrder) -> None:
    """After an invoice or a shipment, set the status to "complete" if the order has both, else "processing"."""
    fresh = AdminOrder.of(context, order.row["id"])
    set_status(context, fresh, "complete" if fresh.row["invoiced"] and fresh.row["shipped"] else "processing")


def next_number(context: RequestContext, table: str) -> str:
    """Return the number of the next document in a table."""
    number = context.value(f"SELECT printf('%09d', COALESCE(MAX(CAST(number AS INTEGER)), 0) + 1) FROM {table}")
    return str(number)
