"""GeoNames' places of 500 people and more, as a second source on where airports and cities lie."""

from collections import Counter, defaultdict

import numpy as np
from search_corpus_names import fold

EARTH_KM = 6_371.0


class Places:
    """Looks up places by position and by name."""

    def __init__(self, rows: list[dict], states: dict[str, dict]) -> None:
        """Take the rows of cities500.json and us_states.json."""
        self._rows = rows
        self._points = _points([row["latitude"] for row in rows], [row["longitude"] for row in rows])
        self._states = {code: state["name"] for code, state in states.items()}
        self._cells: dict[tuple[int, int], list[int]] = defaultdict(list)
        self._named: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.zones: dict[str, Counter[str]] = defaultdict(Counter)
        """The countries of the places in each time zone."""
        for index, row in enumerate(rows):
            self._cells[int(row["latitude"] // 1), int(row["longitude"] // 1)].append(index)
            self.zones[row["timezone"]][row["countrycode"]] += 1
            for name in {fold(name) for name in (row["name"], *row["alternatenames"])}:
                self._named[name, row["countrycode"]].append(index)

    def other_country(self, latitude: float, longitude: float, iso: str) -> str:
        """Return another country in which all of the five nearest places within 30 km lie, or ""."""
        near = [self._rows[i] for _, i in self._around(latitude, longitude, 30)[:5]]
        countries = {row["countrycode"] for row in near}
        return "" if len(near) < 2 or iso in countries else min(countries)

    def states_around(self, latitude: float, longitude: float) -> set[str]:
        """Return the states of the United States within 60 km."""
        rows = [self._rows[i] for _, i in self._around(latitude, longitude, 60)]
        return {self._states[row["admin1code"]] for row in rows if row["countrycode"] == "US"}

    def nearest_named(self, name: str, iso: str, latitude: float, longitude: float) -> float | None:
        """Return the distance in km to the nearest place of that name in a country; None if there is no such place."""
        found = self._named.get((fold(name), iso), []) if name else []
        return float(self._distances(found, latitude, longitude).min()) if found else None

    def _around(self, latitude: float, longitude: float, most: float) -> list[tuple[float, int]]:
        width = 1 + int(most / 111 / max(0.05, np.cos(np.radians(latitude))))
        rows, columns = int(latitude // 1), int(longitude // 1)
        near = [
            index
            for row in (rows - 1, rows, rows + 1)
            for column in range(columns - width, columns + width + 1)
            for index in self._cells.get((row, (column + 180) % 360 - 180), ())
        ]
        if not near:
            return []
        return sorted(
            (float(km), i) for km, i in zip(self._distances(near, latitude, longitude), near, strict=True) if km <= most
        )

    def _distances(self, indices: list[int], latitude: float, longitude: float) -> np.ndarray:
        here = _points([latitude], [longitude])[0]
        return EARTH_KM * np.arccos(np.clip(self._points[indices] @ here, -1, 1))


def _points(latitudes: list[float], longitudes: list[float]) -> np.ndarray:
    """Return unit vectors."""
    a, b = np.radians(latitudes), np.radians(longitudes)
    return np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], -1)
