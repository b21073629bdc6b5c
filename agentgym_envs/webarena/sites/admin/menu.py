"""The menu at the left."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A page of the menu."""

    label: str
    path: str


class Section(NamedTuple):
    """A part of the menu. `icon` names its picture in icons.html."""

    label: str
    icon: str
    entries: tuple[Entry, ...]


MENU = (
    Section(
        "Sales",
        "sales",
        (
            Entry("Orders", "/orders"),
            Entry("Invoices", "/invoices"),
            Entry("Shipments", "/shipments"),
            Entry("Credit Memos", "/credit-memos"),
        ),
    ),
    Section("Catalog", "catalog", (Entry("Products", "/products"), Entry("Categories", "/categories"))),
    Section("Customers", "customers", (Entry("All Customers", "/customers"), Entry("Enquiries", "/enquiries"))),
    Section(
        "Marketing",
        "marketing",
        (
            Entry("Cart Price Rules", "/rules"),
            Entry("All Reviews", "/reviews"),
            Entry("Pending Reviews", "/reviews/pending"),
            Entry("Search Terms", "/search-terms"),
            Entry("Newsletter Subscribers", "/subscribers"),
        ),
    ),
    Section("Content", "content", (Entry("Pages", "/pages"),)),
    Section(
        "Reports",
        "reports",
        (
            Entry("Orders Report", "/reports/orders"),
            Entry("Coupons Report", "/reports/coupons"),
            Entry("Bestsellers Report", "/reports/bestsellers"),
            Entry("Ordered Products Report", "/reports/products"),
            Entry("Low Stock Report", "/reports/low-stock"),
            Entry("Order Count Report", "/reports/customers"),
            Entry("Product Reviews Report", "/reports/reviews"),
            Entry("Customer Reviews Report", "/reports/reviewers"),
            Entry("Search Terms Report", "/reports/search-terms"),
        ),
    ),
    Section("Stores", "stores", (Entry("Settings", "/settings"),)),
)
_PATHS = sorted((entry.path for section in MENU for entry in section.entries), key=len, reverse=True)


def place_of(path: str) -> str:
    """The path of the menu's entry that a page belongs to; "" if it is none's."""
    return next((entry for entry in _PATHS if path == entry or path.startswith(f"{entry}/")), "")
