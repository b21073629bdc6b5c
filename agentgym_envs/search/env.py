"""`SearchEnv`: questions that are answered by searching a corpus, in several turns."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.core import TextEnv, Transition, describe
from agentgym_envs.errors import EnvError, InvalidAction, RetrieverError, UsageError
from agentgym_envs.grammar import GRAMMARS, ActionGrammar
from agentgym_envs.search import scoring
from agentgym_envs.search.actions import Action, SearchTags, SearchTools, cut_search_r1, read, read_search_r1
from agentgym_envs.search.formats import find_format
from agentgym_envs.search.questions.sets import open_questions
from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.factory import check_retriever, is_url, open_retriever
from agentgym_envs.task import Task, TaskSet

METRICS: dict[str, Callable[[str, Sequence[str]], float]] = {
    "em": scoring.em,
    "em_plus": scoring.em_plus,
    "subem": scoring.subem,
    "f1": scoring.f1,
}
"""What an answer can be worth, from 0 to 1."""
MOST_PASSAGES = 50
"""The largest `top_k`."""
_EXAMPLE = "For example, <answer> Beijing </answer>."
"""Search-R1's prompt holds a tag, and its scorer counts on that: the first one is never taken for an answer."""
_RIGHT, _WRONG, _AGAIN = "That answer is right.", "That answer is wrong.", "You can search on and answer again."
_RULES = """\
You are asked a question. Answer it with the help of a search engine over a collection of short passages, most of them \
about a single thing. Several searches may be needed, each for what the one before it told.

{search}: the best passages come back.
{answer}{end}. An answer is short, such as a name, a date or a number, without explanation."""
_TAGS = {"search": "<search>query</search> searches", "answer": "<answer>answer</answer> answers"}
_TOOLS = {"search": "search(query) searches", "answer": "answer(answer) answers"}


class SearchEnv(TextEnv):
    """Find the answer to a question in a corpus, with a search engine.

    ## Description
    Deep search in Search-R1's manner: think, search, read, search for what that told, answer. By default the corpus and
    the questions are the embedded ones: 53,000 passages of true statements about countries, cities, airports and
    elements (as of 2015), and questions of one to three hops, of comparing, ordering and counting, whose answers stand
    in passages that no single search finds. A task is `search/<kind>/<number>`; its group is the kind. Test questions
    are about entities that no training question names. With `questions=DIR` they are the published sets that AgentGym
    and Search-R1 use, with AgentGym's numbers as ids (`searchqa/51713`). `task.data` holds `answers` (all that are
    accepted), `passages` (ids of those that hold the answer and what leads to it) and `queries` (an oracle's).

    A seed decides nothing but which task is drawn.

    ## Action Space
    Text, in the form that the grammar asks for; by default a message that holds one of these:

    | command | |
    |---|---|
    | `<search>query</search>` | the best passages for the query |
    | `<answer>answer</answer>` | the final answer |

    The first complete tag outside of `<think>...</think>` counts. A `</think>` that no `<think>` began ends a thought
    that began before the message, and a thought without an end hides what follows. With `grammar="tool_call"` the tools
    are `search(query)` and `answer(answer)`. What is no action is answered in text and sets `info["invalid_action"]`.

    ## Observation
    First `Question: ...`, then after a search the passages between `<information>` and `</information>`, in the form
    that `format` names. Tags in a passage that could be taken for an episode's own are made harmless, and a cut never
    takes the wrapper's end away. `info` also holds `recall` (the share of the gold passages found so far, None if none
    are known), after a valid action `query`, `answer` (None, or what was asked or answered) and `hits` (ids), and with
    the answer `answers` (those accepted), `em`, `em_plus`, `subem` and `f1`.

    ## Rewards
    What the answer is worth by `metric`: "em" is Search-R1's exact match bit for bit, "em_plus" also forgives accents,
    quotes, dashes and hyphens, "subem" looks for an accepted answer within what was answered (so a list
    of guesses is right, too), "f1" is that of words.
    With `format_reward=w` a right answer is worth 1 - w, and w is added for turns that are each one thought and one
    action: Search-R1's structural reward (0.2 there).

    ## Termination
    The first answer ends the episode. There is no limit of turns; wrap it in `ScheduledTimeLimit`. A search engine that
    fails ends the episode as `env_error`; no text of the failure ever reaches the agent.

    ## Arguments
    - `grammar`: how an action is written; see `agentgym_envs.grammar`.
    - `split`, `groups`: what a reset without a task draws from.
    - `questions`: "embedded", a folder with the published sets, a JSONL file of tasks, or a `TaskSet`.
    - `retriever`: the search engine: "tantivy", "bm25s", "dense", "hybrid", the URL of a Search-R1 server
      (`http://host:8000/retrieve`), or a `Retriever`.
    - `index`: the folder of an index that `agentgym search index` made; by default the embedded corpus.
    - `top_k`: passages for a query, from 1 to 50.
    - `format`: "agentgym" (Search-R1's lines in a bare wrapper), "search-r1", "skyrl", "verl" or "plain".
    - `max_chars`: how many characters of passages an observation may hold; later passages are cut first.
    - `metric`, `format_reward`: see above.
    - `compat`: "search-r1" routes and scores as Search-R1 does, for comparison with its figures: the first tag anywhere
      acts, also in a thought; the last `<answer>` of the whole transcript is scored, also if a passage wrote it.
    - `instructions`: replaces the text meant for the system prompt; "" is none at all.
    - `render_mode`: "ansi" (the question, the actions and the last observation) or None.

    ## Differences from Search-R1 and AgentGym
    - The answer that ends the episode is the answer that is scored, and only the agent's turns are read: there, an
      `<answer>` in a passage was scored as the agent's.
    - Actions in thoughts are not carried out.
    - A failure of the search engine was told to the agent in other suites, or crashed the run.
    - Search-R1 writes everything into one message and cuts an observation at 500 tokens, its closing tag included.
    - AgentGym goes on after a wrong answer; `SearchRetryEnv` does so.

    Source: Search-R1 (arXiv 2503.09516, commit a14dc3a); AgentGym (arXiv 2406.04151, commit 3ef9235).

    ## Version History
    - v0: first version.
    """

    native_async = True
    retry: ClassVar[bool] = False
    """Whether a wrong answer lets the episode go on."""
    remote_options = TextEnv.remote_options | {"top_k", "format", "max_chars", "metric", "format_reward", "compat"}
    grammars: Mapping[str, Callable[[], ActionGrammar]] = GRAMMARS | {"bare": SearchTags, "tool_call": SearchTools}

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        questions: str | os.PathLike[str] | TaskSet = "embedded",
        retriever: str | Retriever = "tantivy",
        index: str | os.PathLike[str] | None = None,
        top_k: int = 3,
        format: str = "agentgym",
        max_chars: int = 8_000,
        metric: str = "em",
        format_reward: float = 0.0,
        compat: str | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """See the class for the arguments. Raises UsageError for one that cannot be, MissingExtra without the packages.

        A local index is opened, and the embedded one made if this is the first time, at the first search.
        """
        self.tasks = open_questions(questions)
        self._questions, self._index = questions, index
        self._retriever_spec = check_retriever(retriever, index)
        self._retriever: Retriever | None = None
        self.top_k = _whole("top_k", top_k, 1, MOST_PASSAGES)
        self.format, self.max_chars = format, _whole("max_chars", max_chars, 1, find_format(format).most_chars)
        if not isinstance(metric, str) or metric not in METRICS:
            raise UsageError(f"there is no metric {metric!r}; choose one of {', '.join(METRICS)}")
        self.metric, self.format_reward = metric, _part("format_reward", format_reward)
        self.compat = _check_compat(
            compat, grammar=grammar, metric=metric, format_reward=self.format_reward, retry=self.retry
        )
        self.blocking = self.needs_worker({"retriever": retriever})
        super().__init__(
            grammar=grammar, split=split, groups=groups, instructions=instructions, render_mode=render_mode
        )
        end = ", and if it is wrong, you go on" if self.retry else " and ends the episode"
        self.rules = _RULES.format(**(_TOOLS if self.grammar.name == "tool_call" else _TAGS), end=end)
        self._found: dict[str, None] = {}
        self._done: list[Action] = []
        self._transcript: list[str] = []

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        """Whether the search engine is a server, which a step waits for, or an encoder, which burns CPU."""
        retriever = options.get("retriever", "")
        if isinstance(retriever, Retriever):
            return retriever.waits
        return retriever in ("dense", "hybrid") or is_url(retriever)

    @property
    def retriever(self) -> Retriever:
        """The search engine, which all environments of this process with the same arguments share."""
        if self._retriever is None:
            self._retriever = open_retriever(self._retriever_spec, self._index)
        return self._retriever

    def prepare(self) -> None:
        """Open the search engine."""
        with _failures():
            _ = self.retriever

    def random_command(self, rng: random.Random) -> str:
        """Words of the question as a query, now and then as an answer."""
        words = "" if self.task is None else self.task.goal.strip("?. ").split()
        some = " ".join(rng.sample(list(words), min(3, len(words)))) or "?"
        return str(Action("answer" if rng.random() < 0.1 else "search", some))

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._found, self._done, self._transcript = {}, [], [_EXAMPLE]
        return f"Question: {task.goal}"

    def _act(self, command: str) -> Transition:
        action = self._read(command)
        if action.kind == "answer":
            return self._answer(action.text)
        with _failures():
            [hits] = self.retriever.search([action.text], self.top_k)
        return self._tell(action.text, hits[: self.top_k])

    async def _act_async(self, command: str) -> Transition:
        action = self._read(command)
        if action.kind == "answer":
            return self._answer(action.text)
        with _failures():
            [hits] = await self.retriever.asearch([action.text], self.top_k)
        return self._tell(action.text, hits[: self.top_k])

    def _read(self, command: str) -> Action:
        if self.compat:  # nothing else reads it, and an episode may be long
            self._transcript.append(cut_search_r1(command))
        action = read_search_r1(command) if self.compat else read(command)
        self._done.append(action)
        return action

    def _tell(self, query: str, hits: Sequence[Hit]) -> Transition:
        told, count = find_format(self.format).tell(hits, self.max_chars, neutral=not self.compat)
        if self.compat:
            self._transcript.append(told)
        ids = [hit.passage.id for hit in hits[:count]]
        self._found.update(dict.fromkeys(ids))
        return Transition(told, info={**self._details(), "query": query, "answer": None, "hits": ids})

    def _answer(self, answer: str) -> Transition:
        worth = self._worth(answer)
        info = {**self._details(), "query": None, "answer": answer, "hits": []}
        if worth < 1.0 and self.retry:
            return Transition(f"{_WRONG} {_AGAIN}", info=info)
        info |= {"answers": list(self._golds), **{name: float(of(answer, self._golds)) for name, of in METRICS.items()}}
        reward = scoring.with_form(worth, scoring.well_formed(self._turns()), self.format_reward)
        return Transition(_RIGHT if worth >= 1.0 else _WRONG, reward, True, worth >= 1.0, info)

    def _worth(self, answer: str) -> float:
        """What an answer is worth by itself, from 0 to 1."""
        if self.compat:
            return scoring.search_r1_score("".join(self._transcript), self._golds)
        return float(METRICS[self.metric](answer, self._golds))

    @property
    def _golds(self) -> list[str]:
        assert self.task is not None
        golds: list[str] = self.task.data["answers"]
        return golds

    def _turns(self) -> list[str]:
        """The turns so far in the form of tags, whatever the grammar."""
        turns = []
        for action in self._actions:
            try:
                thought, command = self.grammar.parse(action)
            except InvalidAction:
                thought, command = "", action
            turns.append(action if self.grammar.name == "bare" else SearchTags().format(command, thought))
        return turns

    def _details(self) -> Mapping[str, Any]:
        assert self.task is not None
        return {"recall": scoring.recall(self._found, self.task.data.get("passages", ()))}

    def _state(self) -> str:
        return "\n".join(map(str, self._done))

    def _plan(self) -> Sequence[str]:
        assert self.task is not None
        queries = [query for query in self.task.data.get("queries", ()) if Action("search", query) not in self._done]
        answer = next((gold for gold in self._golds if gold.strip()), "")
        return [*(str(Action("search", query)) for query in queries), str(Action("answer", answer))]

    def _save(self) -> Any:
        return self._settings(), tuple(self._found), tuple(self._done), tuple(self._transcript)

    def _load(self, state: Any) -> None:
        settings, found, done, transcript = state
        if settings != self._settings():
            raise UsageError("the snapshot is of an environment with another search engine, format or rule")
        self._found, self._done, self._transcript = dict.fromkeys(found), list(done), list(transcript)

    def _settings(self) -> tuple[Any, ...]:
        """What decides what an action leads to."""
        engine = self._retriever_spec, str(self._index)
        return *engine, self.top_k, self.format, self.max_chars, self.metric, self.format_reward, self.compat

    def _draw(self) -> str:
        goal = "" if self.task is None else f"Question: {self.task.goal}\n"
        return f"{goal}{''.join(f'{action}{chr(10)}' for action in self._done)}{self._observation}"

    def __getstate__(self) -> dict[str, Any]:
        """Without what another process opens by name."""
        named = {"_retriever": isinstance(self._retriever_spec, str), "tasks": not isinstance(self._questions, TaskSet)}
        return {name: None if named.get(name) else value for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open again what was left out."""
        self.__dict__.update(state)
        self.tasks = open_questions(self._questions)


class SearchRetryEnv(SearchEnv):
    """`SearchEnv` whose wrong answers say so and do not end the episode: AgentGym's rule.

    An agent may guess until its turns are used up, so success rates are not those of `SearchEnv`. There is no limit of
    turns; wrap it in `ScheduledTimeLimit` (AgentGym evaluates with 30).

    ## Version History
    - v0: first version.
    """

    retry = True


@contextlib.contextmanager
def _failures() -> Iterator[None]:
    """Whatever a search engine raises is the machine's fault."""
    try:
        yield
    except EnvError:
        raise
    except Exception as error:
        raise RetrieverError(describe(error)) from error


def _check_compat(compat: str | None, **others: Any) -> str | None:
    if compat not in (None, "search-r1"):
        raise UsageError(f"compat is 'search-r1' or None, got {compat!r}")
    usual = {"grammar": "bare", "metric": "em", "format_reward": 0.0, "retry": False}
    if compat and others != usual:
        wrong = [f"{name}={value!r}" for name, value in others.items() if value != usual[name]]
        raise UsageError(f"compat={compat!r} fixes how turns are read and answers scored; {', '.join(wrong)} cannot be")
    return compat


def _whole(name: str, value: object, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise UsageError(f"{name} is a whole number from {least} to {most}, got {value!r}")
    return value


def _part(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value < 1.0:
        raise UsageError(f"{name} is a number from 0 to below 1, got {value!r}")
    return float(value)
