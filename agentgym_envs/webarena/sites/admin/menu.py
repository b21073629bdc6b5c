"""The menu on the left side."""

from __future__ import annotations

from typing import NamedTuple


class MenuEntry(NamedTuple):
    """A link in the menu."""

    label: str
    path: str


class MenuSection(NamedTuple):
    """A section of the menu. `icon` is the name of its picture in icons.html."""

    label: str
    icon: str
    entries: tuple[MenuEntry, ...]


MENU = (
    MenuSection(
        "Sales",
        "sales",
        (
            MenuEntry("Orders", "/orders"),
            MenuEntry("Invoices", "/invoices"),
            MenuEntry("Shipments", "/shipments"),
            MenuEntry("Credit Memos", "/credit-memos"),
        ),
    ),
    MenuSection("Catalog", "catalog", (MenuEntry("Products", "/products"), MenuEntry("Categories", "/categories"))),
    MenuSection(
        "Customers", "customers", (MenuEntry("All Customers", "/customers"), MenuEntry("Enquiries", "/enquiries"))
    ),
    MenuSection(
        "Marketing",
        "marketing",
        (
            MenuEntry("Cart Price Rules", "/rules"),
            MenuEntry("All Reviews", "/reviews"),
            MenuEntry("Pending Reviews", "/reviews/pending"),
            MenuEntry("Search Terms", "/search-terms"),
            MenuEntry("Newsletter Subscribers", "/subscribers"),
        ),
    ),
    MenuSection("Content", "content", (MenuEntry("Pages", "/pages"),)),
    MenuSection(
        "Reports",
        "reports",
        (
            MenuEntry("Orders Report", "/reports/orders"),
            MenuEntry("Coupons Report", "/reports/coupons"),
            MenuEntry("Bestsellers Report", "/reports/bestsellers"),
            MenuEntry("Ordered Products Report", "/reports/products"),
            MenuEntry("Low Stock Report", "/reports/low-stock"),
            MenuEntry("Order Count Report", "/reports/customers"),
            MenuEntry("Product Reviews Report", "/reports/reviews"),
            MenuEntry("Customer Reviews Report", "/reports/reviewers"),
            MenuEntry("Search Terms Report", "/reports/search-terms"),
        ),
    ),
    MenuSection("Stores", "stores", (MenuEntry("Settings", "/settings"),)),
)
_PATHS = sorted((entry.path for section in MENU for entry in section.entries), key=len, reverse=True)


def menu_path_of(path: str) -> str:
    """Return the path of the menu entry that a page belongs to; "" if it belongs to none."""
    return next((entry for entry in _PATHS if path == entry or path.startswith(f"{entry}/")), "")
