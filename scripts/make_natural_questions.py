"""Write benchmarks/data/natural-questions.jsonl: natural questions about the embedded corpus, with their gold passages.

    python scripts/make_natural_questions.py [--check]

The questions measure a search engine, with the question as the query. Their words are those of
natural_questions_templates.py and natural_questions_by_hand.py, and not those of the task tables. They are kept apart
from training and test: all are about validation entities, which are the countries of the validation split, what lies
in them, and elements of that split. (The pages of all entities are in the corpus.) They have two halves, "choose" and
"report", that share no entity.

A gold passage states the answer: it is the page of the subject, or a passage of the World Factbook about it that has
the answer after the right label. `--check` writes nothing, and fails if the file differs. Both fail if a question
breaks a rule.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import natural_questions_templates as templates
from natural_questions_by_hand import BY_HAND
from search_corpus_names import plain

from agentgym_envs.corpus.facts import page_facts
from agentgym_envs.search.corpus.embedded import embedded_passages
from agentgym_envs.search.corpus.pages import airport_id, city_id, country_id, element_id, landmark_id
from agentgym_envs.search.corpus.values import accepted, quantity
from agentgym_envs.search.oracle import holds_answer
from agentgym_envs.search.questions import question_templates
from agentgym_envs.search.questions.fact_arrays import VALIDATION, Graph, graph
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.scoring import normalise

OUT = Path(__file__).parents[1] / "benchmarks" / "data" / "natural-questions.jsonl"
PER_COUNTRY = {"country": 6, "reverse": 2, "prose": 8, "city": 3, "airport": 2}
PER_ELEMENT = 3
MOST_GOLD = 8
"""An answer that more passages of a subject state is not used."""
LABELS = {
    "capital": "Capital - name",
    "peak": "Elevation extremes - highest point",
    "peak_m": "Elevation extremes - highest point",
    "anthem": "National anthem - name",
    "tld": "Internet country code",
    "currency": "Exchange rates",
    "independence": "Independence",
    "holiday": "National holiday",
    "area": "Area - total",
    "population": "Population",
    "life": "Life expectancy at birth - total population",
    "border": "Land boundaries - total",
    "borders": "Land boundaries - border countries",
    "coast": "Coastline",
    "roads": "Roadways - total",
    "rail": "Railways - total",
}
"""The labels of the prose that state an attribute of a country."""
LANDMARKS = {"peak": "peak", "peak_m": "peak", "anthem": "anthem", "currency": "currency"}


class Found(NamedTuple):
    """A question, what it is about, the words of its answer, and the passages that state it."""

    kind: str
    subject: str
    question: str
    answer: str
    passages: list[str]


def main() -> None:
    """Make the questions, and write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the file with the questions; write nothing")
    arguments = parser.parse_args()
    rows = numbered(make_questions(graph(), {passage.id: passage for passage in embedded_passages()}))
    check(rows)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if arguments.check:
        assert OUT.read_text(encoding="utf-8") == text, f"{OUT} differs: run the script without --check"
    else:
        OUT.parent.mkdir(exist_ok=True)
        OUT.write_text(text, encoding="utf-8")
    print(len(rows), dict(Counter(row["kind"] for row in rows)), dict(Counter(row["half"] for row in rows)))


def make_questions(walk: Graph, passages: dict[str, Passage]) -> list[Found]:
    """Return all questions, without those that several passages answer."""
    countries = [c for c, split in enumerate(walk.split) if split == VALIDATION and walk.usable[c]]
    prose = prose_of(walk, passages)
    found = [row for country in countries for row in about_country(walk, country, prose, passages)]
    found += [row for element in elements(walk) for row in about_element(walk, element)]
    found += by_hand(passages, prose)
    return [row for row in found if 1 <= len(row.passages) <= MOST_GOLD]


def numbered(found: list[Found]) -> list[dict]:
    """Return the rows of the file; the halves take turns among the countries, and among the elements."""
    subjects = sorted({row.subject for row in found}, key=lambda name: (name in ELEMENTS, name))
    halves = {name: ("choose", "report")[index % 2] for index, name in enumerate(subjects)}
    return [
        {"id": f"natural/{number}", "half": halves[row.subject], **row._asdict()} for number, row in enumerate(found)
    ]


ELEMENTS = frozenset(graph().facts.elements["name"])


def prose_of(walk: Graph, passages: dict[str, Passage]) -> dict[str, list[Passage]]:
    """Passages of the World Factbook by the name of their country."""
    found: defaultdict[str, list[Passage]] = defaultdict(list)
    for passage in passages.values():
        if passage.id.startswith("prose/"):
            found[passage.title.split(": ")[0]].append(passage)
    return found


def about_country(
    walk: Graph, country: int, prose: dict[str, list[Passage]], passages: dict[str, Passage]
) -> Iterator[Found]:
    """Yield questions about a country and what lies in it."""
    name = walk.facts.countries["name"][country]
    own, rng = prose[name], random.Random(f"natural {name}")
    yield from country_facts(walk, country, own, rng)
    yield from reversed_facts(walk, country, own, rng)
    for label in rng.sample(list(templates.PROSE), len(templates.PROSE))[: PER_COUNTRY["prose"] + 2]:
        if stated := [(p.id, value) for p in own if (value := after(p, label))]:
            question = rng.choice(templates.PROSE[label]).format(called(name, rng))
            yield Found("prose", name, question, stated[0][1][:80], [id for id, _ in stated])
    yield from cities(walk, country, rng)
    yield from airports(walk, country, rng)


def called(name: str, rng: random.Random) -> str:
    """Return a name that people use for a country."""
    return rng.choice(templates.OTHER_NAMES.get(name, (name,)))


def after(passage: Passage, label: str) -> str:
    """Return the text after a label, up to the next one; "" if the passage does not have it."""
    found = re.search(rf"(?:^|[.)] ){re.escape(label)}: (.+?)(?=\. [A-Z][^.:]*: |\.? ?$)", passage.text)
    return found[1] if found else ""


def country_facts(walk: Graph, country: int, own: list[Passage], rng: random.Random) -> Iterator[Found]:
    """Yield questions for attributes of a country."""
    row = {name: column[country] for name, column in walk.facts.countries.items()}
    known = [name for name in templates.COUNTRY if row[name] and (name in row["ask"] or name == "borders")]
    for name in rng.sample(known, min(len(known), PER_COUNTRY["country"])):
        answers = borders(walk, country) if name == "borders" else accepted(name, row[name])
        question = rng.choice(templates.COUNTRY[name]).format(called(row["name"], rng))
        yield Found("country", row["name"], question, answers[0], states(walk, country, name, answers, own))


def borders(walk: Graph, country: int) -> list[str]:
    """Return the length of the first border as pages write it, with the neighbour's name."""
    other, km = walk.facts.countries["borders"][country][0]
    return [f"{walk.facts.countries['name'][other]} {quantity(int(km))} km"]


def states(walk: Graph, country: int, name: str, answers: list[str], own: list[Passage]) -> list[str]:
    """Return the ids of the passages that state an attribute of a country."""
    ids = [country_id(walk.facts, country)]
    if name in LANDMARKS and (name != "peak_m" or walk.facts.countries["peak"][country]):
        ids.append(landmark_id(walk.facts, country, LANDMARKS[name]))
    if name == "capital" and (city := walk.facts.countries["capital_city"][country]) >= 0:
        ids.append(city_id(walk.facts, city))
    return ids + [p.id for p in own if name in LABELS and holds_answer(after(p, LABELS[name]), answers)]


def reversed_facts(walk: Graph, country: int, own: list[Passage], rng: random.Random) -> Iterator[Found]:
    """Yield questions for the country that has a value."""
    row = {name: column[country] for name, column in walk.facts.countries.items()}
    known = [name for name in templates.REVERSE if row[name] and name in row["ask"]]
    for name in rng.sample(known, min(len(known), PER_COUNTRY["reverse"])):
        value = row[name][0]
        passages = states(walk, country, name, accepted(name, row[name]), own)
        yield Found("reverse", row["name"], rng.choice(templates.REVERSE[name]).format(value), row["name"], passages)


def cities(walk: Graph, country: int, rng: random.Random) -> Iterator[Found]:
    """Yield questions about cities with a unique name; some names are written without accents."""
    facts, more = walk.facts.cities, page_facts()["cities"]
    own = walk.cities.usable[walk.cities.country[walk.cities.usable] == country].tolist()
    for city in rng.sample(own, min(len(own), PER_COUNTRY["city"])):
        name, field = facts["name"][city], rng.choice(list(templates.CITY))
        answers = {
            "population": quantity(facts["population"][city]),
            "country": walk.facts.countries["name"][country],
            "zone": facts["zones"][facts["zone"][city]] if facts["zone"][city] >= 0 else "",
            "latitude": str(more["latitude"][city]),
        }
        written = plain(name) if rng.random() < 0.5 else name
        question = rng.choice(templates.CITY[field]).format(written)
        if answers[field]:
            yield Found(
                "city", walk.facts.countries["name"][country], question, answers[field], [city_id(walk.facts, city)]
            )


def airports(walk: Graph, country: int, rng: random.Random) -> Iterator[Found]:
    """Yield questions about airports."""
    facts = walk.facts.airports
    own = walk.airports.usable[walk.airports.country[walk.airports.usable] == country].tolist()
    for airport in rng.sample(own, min(len(own), PER_COUNTRY["airport"])):
        field = rng.choice([name for name in templates.AIRPORT if name in ("country", "name") or facts[name][airport]])
        values = {name: str(facts[name][airport]) for name in ("iata", "icao", "name")}
        values["elevation"] = quantity(facts["elevation"][airport] or 0)
        values["country"] = walk.facts.countries["name"][country]
        subject = values["iata"] if field == "name" else walk.airport(airport)
        yield Found(
            "airport",
            walk.facts.countries["name"][country],
            rng.choice(templates.AIRPORT[field]).format(subject),
            values[field],
            [airport_id(walk.facts, airport)],
        )


def elements(walk: Graph) -> list[int]:
    """Return the elements of the validation split."""
    return [e for e, split in enumerate(walk.facts.elements["split"]) if split == VALIDATION]


def about_element(walk: Graph, element: int) -> Iterator[Found]:
    """Yield questions about an element."""
    name, facts = walk.facts.elements["name"][element], {**walk.facts.elements, **page_facts()["elements"]}
    rng = random.Random(f"natural {name}")
    values = {field: str(element + 1 if field == "number" else facts[field][element]) for field in templates.ELEMENT}
    values |= {"weight": "" if facts["radioactive"][element] else values["weight"]}
    known = [field for field, value in values.items() if value]
    for field in rng.sample(known, PER_ELEMENT):
        question = rng.choice(templates.ELEMENT[field]).format(name.lower())
        answer = values[field].rstrip(".")[:80]
        yield Found("element", name, question, answer, [element_id(walk.facts, element)])


def by_hand(passages: dict[str, Passage], prose: dict[str, list[Passage]]) -> list[Found]:
    """Return the questions written by hand, with all passages about their subject that have the words of the answer."""
    found = []
    for line in BY_HAND.strip().splitlines():
        question, subject, answer = map(str.strip, line.split(" | "))
        own = [*prose[subject], *(p for p in passages.values() if p.title == subject and not p.id.startswith("city/"))]
        gold = [p.id for p in own if normalise(answer) in normalise(p.text)]
        assert gold, f"no passage about {subject} says {answer!r}"
        found.append(Found("by hand", subject, question, answer, gold))
    return found


def check(rows: list[dict]) -> None:
    """Fail if a question breaks a rule: unique, not worded as in the task tables, answered by its gold passages."""
    walk = graph()
    contents = {passage.id: passage.contents for passage in embedded_passages()}
    frames = {frame.format("").rstrip("?. ") for frame in question_templates.FRAMES if not frame.startswith("What")}
    for row in rows:
        assert not any(row["question"].startswith(frame) for frame in frames), row
        assert "{" not in row["question"] and row["answer"] and len(row["question"]) < 160, row
        texts = [normalise(contents[id]) for id in row["passages"]]
        named = row["kind"] == "reverse" or any(normalise(row["answer"]) in text for text in texts)
        assert named, row
    assert len({row["question"] for row in rows}) == len(rows), Counter(row["question"] for row in rows).most_common(3)
    splits = dict(zip(walk.facts.countries["name"], walk.facts.countries["split"], strict=True))
    splits |= dict(zip(walk.facts.elements["name"], walk.facts.elements["split"], strict=True))
    assert {splits[row["subject"]] for row in rows} == {VALIDATION}
    halves = {(row["subject"], row["half"]) for row in rows}
    assert len(halves) == len({subject for subject, _ in halves})


if __name__ == "__main__":
    main()
