"""Full-text search of articles, and suggestions for misspelt titles."""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from agentgym_envs.webarena.sites.encyclopedia.articles import Article
from agentgym_envs.webarena.sites.words import words

_WORD = re.compile(r"\w+")
_COMMON = frozenset(words("a an and as at by for from in is it of on or the to was were what which who with"))
_MOST_WORDS = 10
_SNIPPET = 220
_SIMILAR = 0.45
_TITLE, _LEAD = 12, 3
_LOGARITHMS = [math.log1p(weight) for weight in range(256)]


def plain(text: str) -> str:
    """Return a text in lower case and without accents."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def words_of(text: str) -> list[str]:
    """Return the words of a text as the index has them, without a plural "s"."""
    words = _WORD.findall(plain(text))
    return [word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word for word in words]


def query_words(text: str) -> list[str]:
    """Return the words of a query; common words count only if there are no others."""
    every = list(dict.fromkeys(words_of(text)))[:_MOST_WORDS]
    return [word for word in every if word not in _COMMON] or every


class ArticleIndex:
    """An inverted index: for each word the articles that contain it, with the weight of the word in each."""

    def __init__(self, articles: Sequence[Article]) -> None:
        self.articles = articles
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        for number, article in enumerate(articles):
            for word, weight in _weights(article).items():
                numbers, weights = self._postings.setdefault(word, (array("H"), array("B")))
                numbers.append(number)
                weights.append(min(weight, 255))
        self._trigrams = defaultdict[str, list[int]](list)
        self._sizes = list[int]()
        for number, article in enumerate(articles):
            parts = _trigrams(article.title)
            self._sizes.append(len(parts))
            for part in parts:
                self._trigrams[part].append(number)

    def count(self, word: str) -> int:
        """Return the number of articles with a word."""
        return len(self._postings[word][0]) if word in self._postings else 0

    def scores(self, words: Mapping[str, float]) -> Iterator[tuple[int, float, Article]]:
        """Yield the number of words that each article contains, and its score, given the rarities of the words."""
        scores, counts = defaultdict[int, float](float), defaultdict[int, int](int)
        for word, rarity in words.items():
            for number, weight in zip(*self._postings.get(word, ((), ())), strict=True):
                scores[number] += rarity * _LOGARITHMS[weight]
                counts[number] += 1
        return ((counts[number], score, self.articles[number]) for number, score in scores.items())

    def similar(self, text: str) -> list[tuple[float, Article]]:
        """Return articles whose titles resemble a text, with the similarity of the two (from 0 to 1)."""
        parts = _trigrams(text)
        shared = Counter(number for part in parts for number in self._trigrams.get(part, ()))
        found = []
        for number, count in shared.most_common(20):
            found.append((2 * count / (len(parts) + self._sizes[number]), self.articles[number]))
        return [one for one in found if one[0] >= _SIMILAR]


def _weights(article: Article) -> Counter[str]:
    found = Counter(words_of(article.body))
    for text in (*article.lead, *(f"{label} {value}" for label, value in article.facts), *article.categories):
        for word in words_of(text):
            found[word] += _LEAD
    for text in (article.title, *article.aliases):
        for word in words_of(text):
            found[word] += _TITLE
    return found


def _trigrams(text: str) -> set[str]:
    padded = f"  {plain(text)} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}


class SearchMatches(NamedTuple):
    """The articles with most of the words of a query, the best first; `complete` if they contain all words."""

    articles: list[Article]
    complete: bool


def search(indexes: Sequence[ArticleIndex], text: str) -> SearchMatches:
    """Return the articles that match a query. Articles with fewer than half of its words do not."""
    size = sum(len(index.articles) for index in indexes)
    found_in = {word: sum(index.count(word) for index in indexes) for word in query_words(text)}
    rarities = {word: math.log(1 + size / (1 + count)) for word, count in found_in.items()}
    found = [one for index in indexes for one in index.scores(rarities)]
    most = max((count for count, _, _ in found), default=0)
    if not found or most < (len(rarities) + 1) // 2:
        return SearchMatches([], False)
    by_title = {article.title: article for _, _, article in found}
    best = sorted((-score, article.title) for count, score, article in found if count == most)
    return SearchMatches([by_title[title] for _, title in best], most == len(rarities))


def suggest(indexes: Sequence[ArticleIndex], text: str, count: int = 3) -> list[str]:
    """Return the titles that are most similar to a text."""
    found = sorted((one for index in indexes for one in index.similar(text)), key=lambda one: (-one[0], one[1].title))
    return [article.title for _, article in found[:count]]


def snippet(article: Article, words: Iterable[str]) -> str:
    """Return the passage of an article with the most words of a query, shortened."""
    wanted = set(words)
    texts = [*article.lead, *article.body.split("\n")]
    best = max(texts, key=lambda text: sum(word in text[:_SNIPPET].casefold() for word in wanted))
    return best if len(best) <= _SNIPPET else f"{best[:_SNIPPET].rsplit(' ', 1)[0]} …"
