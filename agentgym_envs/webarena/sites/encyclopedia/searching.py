"""Full-text search of articles, and suggestions for misspelt titles."""

from __future__ import annotations

import math
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from agentgym_envs.webarena.sites.encyclopedia.articles import Article
from agentgym_envs.webarena.sites.words import words

_WORD = re.compile(r"\w+")
_COMMON = frozenset(words("a an and as at by for from in is it of on or the to was were what which who with"))
_MOST_WORDS = 10
_SNIPPET = 220
_SIMILAR = 0.45
_TITLE, _LEAD = 12, 3


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
        for number, article in enumerate(articles):
            for part in _trigrams(article.title):
                self._trigrams[part].append(number)

    def count(self, word: str) -> int:
        """Return the number of articles with a word."""
        return len(self._postings[word][0]) if word in self._postings else 0

    def weights(self, word: str) -> Iterable[tuple[Article, float]]:
        """Return the articles with a word, and the weight of the word in each."""
        numbers, weights = self._postings.get(word, (array("H"), array("B")))
        return ((self.articles[n], math.log1p(weight)) for n, weight in zip(numbers, weights, strict=True))

    def similar(self, text: str) -> list[tuple[float, Article]]:
        """Return articles whose titles resemble a text, with the similarity of the two (from 0 to 1)."""
        parts = _trigrams(text)
        shared = Counter(number for part in parts for number in self._trigrams.get(part, ()))
        found = []
        for number, count in shared.most_common(20):
            article = self.articles[number]
            found.append((2 * count / (len(parts) + len(_trigrams(article.title))), article))
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


def search(indexes: Sequence[ArticleIndex], text: str) -> list[Article]:
    """Return the articles with most of the words of a query, the best first."""
    words, size = query_words(text), sum(len(index.articles) for index in indexes)
    scores, matched = defaultdict[str, float](float), Counter[str]()
    found: dict[str, Article] = {}
    for word in words:
        rarity = math.log(1 + size / (1 + sum(index.count(word) for index in indexes)))
        for article, weight in (one for index in indexes for one in index.weights(word)):
            found[article.title] = article
            scores[article.title] += rarity * weight
            matched[article.title] += 1
    most = max(matched.values(), default=0)
    if most < (len(words) + 1) // 2:
        return []
    best = [title for title, count in matched.items() if count == most]
    return [found[title] for title in sorted(best, key=lambda title: (-scores[title], title))]


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
