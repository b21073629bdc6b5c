import atexit
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from agentgym_envs.corpus.facts import FILES, raw, world_facts
from agentgym_envs.search.corpus import embedded
from agentgym_envs.search.corpus.embedded import CACHE, corpus_digest, embedded_index
from agentgym_envs.search.corpus.pages import country_id, country_pages, embedded_passages
from agentgym_envs.search.corpus.values import accepted, quantities
from agentgym_envs.search.retrieval.base import Passage
from agentgym_envs.search.retrieval.index import open_index
from agentgym_envs.search.retrieval.manifest import read_manifest
from agentgym_envs.search.scoring import em


@pytest.fixture(scope="session")
def passages() -> list[Passage]:
    return list(embedded_passages())


def test_data_files_match_the_readme() -> None:
    readme = (files("agentgym_envs.corpus") / "data" / "README.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"\| (\S+\.xz) \| ([0-9a-f]{64}) \|", readme))
    assert named == {name: hashlib.sha256(raw(name)).hexdigest() for name in FILES}
    assert sum(len(raw(name)) for name in FILES) < 3_000_000


def test_tables_are_complete() -> None:
    facts = world_facts()
    for columns, left_out in zip(facts, ((), ("zones",), (), ()), strict=True):
        assert len({len(column) for name, column in columns.items() if name not in left_out}) == 1
    countries = facts.countries
    assert len(set(countries["name"])) == len(countries["name"]) == 252
    for index, asks in enumerate(countries["ask"]):
        assert countries["asked"][index] or not asks
        assert all(countries[name][index] for name in asks)


def test_country_pages_state_all_facts() -> None:
    pages = {page.id: page for page in country_pages(world_facts())}
    france = pages["country/france"]
    assert france.title == "France"
    for shown in (
        "(as of 2015)",
        "Capital city: Paris.",
        "Mont Blanc",
        "4,807 m",
        "66,553,766",
        ".fr",
        "+33",
        "Spain 646 km",
    ):
        assert shown in france.text
    assert "Burma" in pages["country/myanmar"].text and "Swaziland" in pages["country/eswatini"].text
    assert "Pretoria (administrative capital)" in pages["country/south-africa"].text
    assert all("None" not in page.text and "  " not in page.text for page in pages.values())


def test_a_value_is_an_answer_for_few_countries_of_one_split() -> None:
    countries = world_facts().countries
    for name in ("capital", "peak", "currency", "independence", "holiday", "coast", "phone"):
        users: dict[str, list[int]] = {}
        for index, asks in enumerate(countries["ask"]):
            if name in asks:
                users.setdefault(accepted(name, countries[name][index])[0], []).append(index)
        assert all(len(indices) <= 3 for indices in users.values()), name
        assert all(len({countries["split"][index] for index in indices}) == 1 for indices in users.values()), name
    euro = [index for index, names in enumerate(countries["currency"]) if names and names[0] == "euro"]
    assert len(euro) > 15 and not any("currency" in countries["ask"][index] for index in euro)


@pytest.mark.parametrize(
    ("attribute", "value", "shown"),
    [
        ("independence", [5, 7, 1962], ["5 July 1962", "July 5, 1962", "5th July 1962", "1962-07-05"]),
        ("holiday", [1, 11, "Revolution Day"], ["1 November", "November 1st", "the 1st of November"]),
        ("area", 643801, ["643,801", "643801", "643,801 sq km", "643801 square kilometres"]),
        ("capital", ["Mexico City"], ["Mexico City", "Mexico"]),
        ("phone", ["+1-876"], ["+1-876", "1-876", "+1 876"]),
        ("peak", ["Møllehøj", "Ejer Bavnehøj", "Mollehoj"], ["Møllehøj", "Mollehoj", "Møllehøj (Ejer Bavnehøj)"]),
        ("anthem", ["Pátria", "Fatherland", "Patria"], ["Pátria", "Patria", '"Pátria" (Fatherland)']),
        ("border", 4347.15, ["4,347.15", "4,347.2", "4,347", "4,347 km"]),
        ("weight", 44.955907, ["44.955907", "44.956", "45.0"]),
        ("tld", [".fr"], [".fr", "fr"]),
        ("currency", ["pula", "pulas", "BWP"], ["pula", "the pula", "pulas", "BWP"]),
    ],
)
def test_accepted_lists_common_spellings(attribute: str, value: object, shown: list[str]) -> None:
    answers = accepted(attribute, value)
    assert all(em(spelling, answers) for spelling in shown)
    assert len(set(answers)) == len(answers) and all(answers)


def test_accepted_names_follow_the_data() -> None:
    countries = world_facts().countries
    shown = {
        ("EE", "anthem"): ["Mu isamaa, mu õnn ja rõõm", "Mu isamaa, mu onn ja room"],
        ("IE", "anthem"): ["Amhrán na bhFiann"],
        ("TH", "anthem"): ["Phleng Chat"],
        ("NO", "peak"): ["Galdhøpiggen", "Galdhopiggen"],
        ("BW", "currency"): ["Botswana pula", "pula", "BWP"],
        ("PL", "currency"): ["Polish zloty", "Polish złoty"],
    }
    for (iso, name), spellings in shown.items():
        answers = accepted(name, countries[name][countries["iso"].index(iso)])
        assert all(em(spelling, answers) for spelling in spellings), (iso, answers)
    assert not any("City of" in answer for answer in accepted("capital", ["Rome"]))
    assert not em("1", accepted("weight", 1.008)) and not em("79", accepted("life", 79.4))


def test_airports_serve_towns_and_not_islands() -> None:
    airports = world_facts().airports
    assert airports["city"][airports["iata"].index("DJJ")] == "Jayapura"
    assert not any(re.search(r"-[^-]* Island$", city) for city in airports["city"])
    assert not any(name.endswith("Airport Airport") for name in airports["name"])


def test_no_town_name_is_made_of_question_words_only() -> None:
    names = set(world_facts().cities["name"])
    assert not names & {"Date", "Independence", "Holiday", "Anthem", "Lake Country"} and "Road Town" in names


def test_quantities_are_written_with_commas_first() -> None:
    assert quantities(1234, ("km",)) == ["1,234", "1234", "1,234 km", "1234 km"]
    assert quantities(12) == ["12"]


@pytest.mark.slow
def test_passages_are_many_and_in_search_r1s_format(passages: list[Passage]) -> None:
    ids = [passage.id for passage in passages]
    assert len(ids) == len(set(ids)) > 52_000
    assert {id.split("/")[0] for id in ids} == {
        "country", "peak", "anthem", "currency", "city", "airport", "element", "prose",
    }  # fmt: skip
    for passage in passages:
        title, newline, text = passage.contents.partition("\n")
        assert newline and title[0] == title[-1] == '"' and len(title) > 2 and text.strip()
        assert not re.search(r"</?(search|answer|information|think)>", text)


def hash_of_passages(hash_seed: str) -> str:
    code = (
        "import hashlib\nfrom agentgym_envs.search.corpus.pages import embedded_passages\n"
        "print(hashlib.sha256(repr(list(embedded_passages())).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.slow
def test_passages_are_the_same_everywhere() -> None:
    assert hash_of_passages("1") == hash_of_passages("2")


@pytest.mark.slow
def test_the_index_is_built_once_and_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    folder = embedded_index()
    assert folder.is_relative_to(tmp_path) and corpus_digest()[:16] in folder.name
    changed = folder.stat().st_mtime_ns
    assert embedded_index() == folder and folder.stat().st_mtime_ns == changed
    assert read_manifest(folder)["corpus"] == "embedded"
    hits = open_index(folder).search(["Nice airport IATA code"], 3)[0]
    assert "airport/NCE" in [hit.passage.id for hit in hits]


def test_an_unwritable_cache_is_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv(CACHE, str(tmp_path / "file"))
    monkeypatch.setattr(embedded, "embedded_passages", lambda *_: iter(list(country_pages(world_facts()))[:20]))
    embedded._temporary_folder.cache_clear()
    with caplog.at_level(logging.WARNING):
        folder, again = embedded_index(), embedded_index()
    assert folder == again and not folder.is_relative_to(tmp_path)
    child = os.fork()
    if child == 0:
        atexit._run_exitfuncs()  # what sys.exit does, without what pytest would do
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0 and folder.exists()
    assert [record.message for record in caplog.records if CACHE in record.message].__len__() == 1
    assert open_index(folder).search(["Albania"], 1)[0][0].passage.id == country_id(world_facts(), 5)
    shutil.rmtree(embedded._temporary_folder())
    embedded._temporary_folder.cache_clear()


@pytest.mark.parametrize("damage", ["passages.bin", "tantivy/meta.json", "index.json", "no manifest"])
def test_a_damaged_index_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path))
    monkeypatch.setattr(embedded, "embedded_passages", lambda *_: iter(list(country_pages(world_facts()))[:20]))
    folder = embedded_index()
    if damage == "no manifest":
        (folder / "index.json").unlink()
    else:
        os.truncate(folder / damage, (folder / damage).stat().st_size - 1)
    assert embedded_index() == folder
    assert open_index(folder).search(["Albania"], 1)[0][0].passage.id == country_id(world_facts(), 5)
    assert {path.name for path in (tmp_path / "search").iterdir()} <= {folder.name, "lock"}
