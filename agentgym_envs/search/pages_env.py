"""`SearchPagesEnv`: search results are snippets, and the pages behind them can be opened, scrolled and searched."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from agentgym_envs.core import Transition
from agentgym_envs.errors import InvalidAction, UsageError
from agentgym_envs.search.actions import ANSWER, SEARCH, SearchAction, TagTool, search_grammars
from agentgym_envs.search.env import SearchEnv, failures
from agentgym_envs.search.options import check_whole
from agentgym_envs.search.oracle import holds_answer, queries_of
from agentgym_envs.search.page_text import (
    MAX_FIND_CHARS,
    PageText,
    handle,
    make_page_text,
    neutralise,
    render_results,
)
from agentgym_envs.search.retrieval.base import Hit, Page, Passage
from agentgym_envs.task import Task, plain_number

PAGE_TOOLS = (
    SEARCH,
    TagTool(
        "open",
        "id",
        "the id of a result",
        "open its page",
        "Open the page of a search result, at the place of that passage.",
        "The id of the result.",
    ),
    TagTool(
        "scroll",
        "to",
        "down",
        "see the next part of the page (or up, or the number of a part)",
        "Show another part of the open page.",
        "down, up, or the number of a part.",
    ),
    TagTool(
        "find",
        "words",
        "some words",
        "see where they are in the page",
        "List the places of some words in the open page.",
        "The words, exactly as the page has them.",
    ),
    ANSWER,
)
MOST_SNIPPET_CHARS, LEAST_WINDOW_CHARS, MOST_WINDOW_CHARS = 2_000, 200, 100_000
_RULES = """\
You are asked a question. Answer it with the help of a search engine over a collection of pages. Several searches may \
be needed, each for what the one before it told.

{search} searches: the results come back, each with an id, a title and a snippet.
{open} opens the page of a result, at the place that was found. A long page is shown in parts.
{scroll} shows another part of the open page: down, up, or the number of the part.
{find} lists the places of some words in the open page.
{answer} answers{end}. {form}"""
_NO_PAGE = "No page is open. Open the page of a search result first."


class SearchPagesEnv(SearchEnv):
    """`SearchEnv` with pages: a search shows snippets, and the agent opens the pages that it wants to read.

    ## Description
    Deep research as with a browser: search, choose among the results, open a page, scroll, find words in it, answer.
    Corpus, questions, engines and scores are those of `SearchEnv`.

    ## Action Space
    Text, in the format of the grammar; by default a message with one of these tags:

    | command | |
    |---|---|
    | `<search>query</search>` | the best passages for the query: id, title and snippet |
    | `<open>id</open>` | the page of a result, from the part on in which its passage begins |
    | `<scroll>down</scroll>` | the next part of the open page; also `up`, or the number of a part |
    | `<find>words</find>` | the places of the words in the open page, regardless of case and accents |
    | `<answer>answer</answer>` | the final answer |

    With `grammar="tool_call"` and `grammar="tools"` the tools are `search(query)`, `open(id)`, `scroll(to)`,
    `find(words)` and `answer(answer)`. Only ids that a search of this episode has shown can be opened.

    ## Observation
    Everything from the corpus is between `<information>` and `</information>`. Text in it that looks like a tag of the
    episode or a token of a chat template is escaped, and every part is limited in length. A page is all neighbouring
    passages of the corpus with the same title, in order. Of a server, which only answers queries, it is the passages
    with that title among the hits for the title, and the observation says that parts may be missing. `info` has the
    keys of `SearchEnv`, and after a valid action `page`: the `title`, `part` and `parts` of the page that this action
    showed, else None. `hits` are the ids of the passages shown. `recall` counts the passages of opened pages, not
    snippets.

    ## Rewards
    As in `SearchEnv`. With `format_reward`, every action of this form may follow a thought.

    ## Termination
    As in `SearchEnv`.

    ## Arguments
    Those of `SearchEnv` without `format`, `max_chars` and `compat`, and:

    - `top_k`: the number of results per query, from 1 to 50.
    - `snippet_chars`: the characters of a snippet, up to 2,000.
    - `window_chars`: the most characters of a page in an observation, from 200 to 100,000. A longer page is divided at
      white space.

    `difficulty` counts the turns of Search's oracle: one for each search and one for the answer.

    ## Version History
    - v0: first version.
    """

    actions = PAGE_TOOLS
    description = _RULES
    grammars = search_grammars(PAGE_TOOLS)
    remote_options = SearchEnv.remote_options - {"format", "max_chars", "compat"} | {"snippet_chars", "window_chars"}

    def __init__(self, *, top_k: int = 5, snippet_chars: int = 300, window_chars: int = 3_000, **options: Any) -> None:
        """Create the environment; the class documents the arguments. Raises as `SearchEnv` does."""
        if wrong := sorted({"format", "max_chars", "compat"} & options.keys()):
            raise UsageError(f"{', '.join(wrong)} is of Search; pages have one format, with window_chars as its limit")
        self.snippet_chars = check_whole("snippet_chars", snippet_chars, 1, MOST_SNIPPET_CHARS)
        self.window_chars = check_whole("window_chars", window_chars, LEAST_WINDOW_CHARS, MOST_WINDOW_CHARS)
        super().__init__(top_k=top_k, **options)
        self._results: dict[str, Passage] = {}  # by the id that was shown
        self._page: PageText | None = None
        self._window = 0

    def random_command(self, rng: random.Random) -> str:
        """Return an action with an argument that fits: often a search, sometimes a page, rarely an answer."""
        choice = rng.random()
        if self._results and choice < 0.3:
            return str(SearchAction("open", rng.choice(list(self._results))))
        if self._page is not None and choice < 0.5:
            return str(SearchAction("scroll", rng.choice(["down", "up"])))
        return super().random_command(rng)

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._results, self._page, self._window = {}, None, 0
        return super()._begin(task, rng)

    def _take_action(self, action: SearchAction) -> Transition:
        if action.kind == "open":
            passage = self._result(action.text)
            with failures():
                page = self.retriever.page(passage)
            return self._open(passage, page)
        return self._read_on(action) or super()._take_action(action)

    async def _take_action_async(self, action: SearchAction) -> Transition:
        if action.kind == "open":
            passage = self._result(action.text)
            with failures():
                page = await self.retriever.apage(passage)
            return self._open(passage, page)
        return self._read_on(action) or await super()._take_action_async(action)

    def _show(self, query: str, hits: Sequence[Hit]) -> Transition:
        for hit in hits:
            self._results.setdefault(handle(hit.passage.id), hit.passage)
        text = render_results(hits, query, self.snippet_chars)
        return Transition(text, info=self._info_of(query=query, hits=[hit.passage.id for hit in hits]))

    def _result(self, id: str) -> Passage:
        if id not in self._results:
            raise InvalidAction(f"No result of a search has the id {neutralise(id)[:200]}. Open an id that was shown.")
        return self._results[id]

    def _open(self, passage: Passage, page: Page) -> Transition:
        self._page = make_page_text(page, self.window_chars)
        return self._show_window(self._page, self._page.window_of(passage.id))

    def _read_on(self, action: SearchAction) -> Transition | None:
        """Carry out an action on the open page; None if it is another action."""
        if action.kind not in ("scroll", "find"):
            return None
        if self._page is None:
            raise InvalidAction(_NO_PAGE)
        if action.kind == "scroll":
            return self._show_window(self._page, self._target(action.text, len(self._page.begins)))
        if len(action.text) > MAX_FIND_CHARS:
            raise InvalidAction(f"These words are too long to be found (at most {MAX_FIND_CHARS} characters).")
        return Transition(self._page.render_places(action.text), info=self._info_of())

    def _target(self, to: str, parts: int) -> int:
        number = {"down": self._window + 1, "up": self._window - 1}.get(to, plain_number(to))
        if number < 0 and to != "up":
            raise InvalidAction("Scroll down, up, or to the number of a part.")
        if not 1 <= number <= parts:
            raise InvalidAction(f"The page has no such part: this is part {self._window} of {parts}.")
        return number

    def _show_window(self, page: PageText, number: int) -> Transition:
        self._window = number
        ids = page.ids_in(number)
        self._found.update(dict.fromkeys(ids))
        where = {"title": page.title, "part": number, "parts": len(page.begins)}
        return Transition(page.render(number), info=self._info_of(hits=ids, page=where))

    def _info_of(self, **known: Any) -> dict[str, Any]:
        return {**self._details(), "query": None, "answer": None, "hits": [], "page": None, **known}

    def _plan(self) -> Sequence[str]:
        """Search for each gold passage and open its page; without gold passages, open a page that has the answer."""
        assert self.task is not None
        gold = list(self.task.data.get("passages", ()))
        queries = queries_of(self.task)
        found = list(zip(queries, self._search_for_plan(queries), strict=True))
        way = self._way_to_gold(gold, found) if gold else None
        if way is None:
            way = self._way_to_answer(found)
        if way is None:
            raise self._ungrounded(self.task)
        return [*map(str, way), self._right_answer()]

    def _way_to_gold(self, gold: Sequence[str], found: Sequence[tuple[str, list[Hit]]]) -> list[SearchAction] | None:
        """The actions that open every gold passage that was not read yet; None if a search does not find one."""
        way, shown = list[SearchAction](), set(self._results)
        for id in gold:
            if id in self._found:
                continue
            step = next(((query, hits, hit) for query, hits in found for hit in hits if hit.passage.id == id), None)
            if step is None:
                return None
            query, hits, hit = step
            if handle(id) not in shown:
                way.append(SearchAction("search", query))
                shown.update(handle(each.passage.id) for each in hits)
            page = self._page_for_plan(hit.passage)
            begin = page.window_of(id)
            way += self._opening(hit.passage, page, self._answer_window(page, begin) or begin)
        return way

    def _way_to_answer(self, found: Sequence[tuple[str, list[Hit]]]) -> list[SearchAction] | None:
        """The actions to the first part of a page that holds the answer; None if no page does."""
        if self._page is not None and holds_answer(self._page.window(self._window), self._golds):
            return []
        for query, hits in found:
            for hit in sorted(hits, key=lambda hit: not holds_answer(hit.passage.text, self._golds)):
                page = self._page_for_plan(hit.passage)
                if window := self._answer_window(page, page.window_of(hit.passage.id)):
                    known = handle(hit.passage.id) in self._results
                    search = [] if known else [SearchAction("search", query)]
                    return [*search, *self._opening(hit.passage, page, window)]
        return None

    def _opening(self, passage: Passage, page: PageText, window: int) -> Iterator[SearchAction]:
        yield SearchAction("open", handle(passage.id))
        if window != page.window_of(passage.id):
            yield SearchAction("scroll", str(window))

    def _answer_window(self, page: PageText, begin: int) -> int | None:
        """The first part of a page that holds the answer, from the part `begin` on and then from the first one on."""
        windows = sorted(range(1, len(page.begins) + 1), key=lambda number: number < begin)
        return next((number for number in windows if holds_answer(page.window(number), self._golds)), None)

    def _page_for_plan(self, passage: Passage) -> PageText:
        with self._planning():
            return make_page_text(self.retriever.page(passage), self.window_chars)

    def _save(self) -> Any:
        return super()._save(), tuple(self._results.items()), self._page, self._window

    def _load(self, state: Any) -> None:
        common, results, page, window = state
        super()._load(common)
        self._results, self._page, self._window = dict(results), page, window

    def _settings(self) -> tuple[Any, ...]:
        return *super()._settings(), self.snippet_chars, self.window_chars
