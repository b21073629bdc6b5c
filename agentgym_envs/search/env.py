"""`SearchEnv`: multi-turn question answering with a search engine."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from agentgym_envs.core import TextEnv, Transition, describe
from agentgym_envs.difficulty import dial
from agentgym_envs.errors import EnvError, InvalidAction, NoOracle, RetrieverError, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.search import scoring
from agentgym_envs.search.actions import (
    ANSWER,
    SEARCH_TOOLS,
    SearchAction,
    SearchTags,
    SearchTools,
    TagTool,
    read_action,
    read_search_r1,
    search_grammars,
    truncate_search_r1,
)
from agentgym_envs.search.formats import find_format, shown_passages
from agentgym_envs.search.judging import JUDGE, AnswerJudge, Judgement, judge_answer, require_judge, wait_for
from agentgym_envs.search.options import METRICS, check_compat, check_metric, check_weights, check_whole
from agentgym_envs.search.oracle import is_grounded, queries_of
from agentgym_envs.search.questions.sets import facts_version, open_questions, scorer_of
from agentgym_envs.search.retrieval.base import Hit, Retriever
from agentgym_envs.search.retrieval.factory import Spec, check_retriever, is_url, open_retriever, uses_encoder
from agentgym_envs.task import Task, TaskSet

MOST_PASSAGES = 50
"""The largest `top_k`."""
_EXAMPLE = "For example, <answer> Beijing </answer>."
"""From Search-R1's prompt. Its scorer relies on this tag: it never counts the first tag of a transcript."""
_RIGHT, _WRONG, _AGAIN = "That answer is right.", "That answer is wrong.", "You can search on and answer again."
_RULES = """\
You are asked a question. Answer it with the help of a search engine over a collection of short passages, most of them \
about a single thing. Several searches may be needed, each for what the one before it told.

{search} searches: the best passages come back.
{answer} answers{end}. {form}"""

_SHORT = "An answer is short, such as a name, a date or a number, without explanation."
_LONG = "An answer is one or a few sentences that say all that the question asks for."


class SearchEnv(TextEnv):
    """Find the answer to a question in a corpus, with a search engine.

    ## Description
    Deep search as in Search-R1: think, search, read, search again, answer. By default the corpus and the questions are
    the embedded ones. The corpus holds 53,000 passages of true statements about countries, cities, airports and
    elements (as of 2015). The questions take one to six hops, or ask to compare, order, count or calculate; for most of
    them, no single search finds all passages that are needed. A task is `search/<kind>/<number>`; its group is the
    kind. Test questions are about entities that no training question names. With `questions=DIR`, the tasks are the
    published sets that AgentGym and Search-R1 use, with AgentGym's numbers as ids (`searchqa/51713`). `task.data` holds
    `answers` (all accepted ones), `passages` (ids of the passages with the answer and the steps to it) and `queries`
    (those of the oracle).

    The seed only decides which task is drawn.

    ## Action Space
    Text, in the format of the grammar; by default a message with one of these tags:

    | command | |
    |---|---|
    | `<search>query</search>` | the best passages for the query |
    | `<answer>answer</answer>` | the final answer |

    The first complete tag outside of `<think>...</think>` counts. A `</think>` without a `<think>` ends a thought that
    began before the message, and an unclosed thought hides what follows. With `grammar="tool_call"` the tools are
    `search(query)` and `answer(answer)`. Other messages get an explanation and set `info["invalid_action"]`.

    ## Observation
    First `Question: ...`; after a search, the passages between `<information>` and `</information>`, in the format
    `format`. Tags in a passage that look like tags of the episode are escaped, and truncation never removes the end of
    the wrapper. `info` also holds `recall`: the share found so far of the gold passages, those that the answer
    follows from (None if they are unknown). After a valid action it holds `query`, `answer` (None, or the text) and
    `hits` (ids). With the answer it holds `answers` (the accepted ones), `em`, `em_plus`, `subem` and `f1`.

    ## Rewards
    The score of the answer by `metric`; by default "em", or "judge" if the file of the questions asks for it. "em" is
    exactly Search-R1's exact match. "em_plus" also ignores accents,
    quotes, dashes and hyphens. "subem" looks for an accepted answer within the given one, so a list of guesses may be
    right. "f1" is the word F1. "judge" asks a language model whether the answer is right; `info["judge"]` then holds
    `correct`, `model`, `version` and `prompt`. A judge that gives no verdict ends the episode as `env_error`. Three
    terms of Search-R1's reward can be added, by default all 0 (there 0.2, 0 and 0.1;
    an earlier recipe has 0.1 for retrieval):

    - `format_reward=w`: the score is multiplied by 1 - w, and w is added if each turn is one thought and one action
      (`structure_format_score` there).
    - `retrieval_score=r`: a wrong answer after such turns gets r if a result held an accepted answer.
    - `final_format_score=f`: a wrong answer after other turns gets f.

    ## Termination
    The first answer ends the episode. There is no turn limit; wrap the environment in `ScheduledTimeLimit`. An error of
    the search engine ends the episode as `env_error`; its text never reaches the agent.

    ## Arguments
    - `grammar`: the format of actions; see `agentgym_envs.grammar`.
    - `split`, `groups`: the tasks that a reset without a task draws from.
    - `difficulty`: a range of turns such as (3, 8): only tasks that the oracle solves in as many are drawn.
    - `questions`: "embedded", a folder with the published sets, a JSONL file of tasks, or a `TaskSet`.
    - `table_version`: the version of the embedded questions and their corpus; by default 3, the newest. Version 2 has
      no questions of four and more hops. Version 1 has some false statements as well, such as ICAO codes that do not
      exist.
    - `retriever`: the search engine: "tantivy", "bm25s", "dense", "hybrid", "faiss" (Search-R1's prebuilt indexes), a
      web engine such as "brave", the URL of a Search-R1 server (`http://host:8000/retrieve`), a mapping with the
      engine, its options and a reranker (`{"engine": "tantivy", "ranking": "natural"}`), or a `Retriever`.
    - `index`: the folder of an index built by `agentgym search index`, or of a prebuilt one; by default the embedded
      corpus.
    - `top_k`: the number of passages per query, from 1 to 50.
    - `format`: "agentgym" (Search-R1's lines in a bare wrapper), "search-r1", "skyrl", "verl" or "plain".
    - `max_chars`: the most characters of passages in an observation; later passages are truncated first.
    - `metric`, `format_reward`, `retrieval_score`, `final_format_score`: see above.
    - `judge`: an `AnswerJudge`; by default the model of the environment variables AGENTGYM_JUDGE_BASE_URL,
      AGENTGYM_JUDGE_MODEL and AGENTGYM_JUDGE_API_KEY.
    - `compat`: "search-r1" parses and scores as Search-R1 does, for comparison with its results: the first tag acts,
      even in a thought, and the last `<answer>` of the whole transcript is scored, even if a passage contains it.
    - `instructions`: replaces the text meant for the system prompt; "" removes it.
    - `render_mode`: "ansi" (the question, the actions and the last observation) or None.

    ## Differences from Search-R1 and AgentGym
    - The answer that ends the episode is the one that is scored, and only the agent's turns are parsed. There, an
      `<answer>` in a passage was scored as the agent's.
    - Actions in thoughts are not carried out.
    - In other suites, an error of the search engine was shown to the agent or crashed the run.
    - Search-R1 writes everything into one message and truncates an observation to 500 tokens, including its closing
      tag.
    - In AgentGym, the episode continues after a wrong answer; use `SearchRetryEnv` for this.

    Source: Search-R1 (arXiv 2503.09516, commit a14dc3a); AgentGym (arXiv 2406.04151, commit 3ef9235).

    ## Version History
    - v0: first version. Version 2 of the task table leaves out false and contradicted facts. Version 3 adds questions
      of four to six hops and chains of comparisons, and keeps the others under their ids. `table_version` selects an
      earlier one.
    """

    native_async = True
    guess_rates: ClassVar[Mapping[str, float]] = {"count": 0.14, "": 0.012}
    """The share of the most frequent answer of a group; of other groups than "count" at most this."""
    retry: ClassVar[bool] = False
    """True if the episode continues after a wrong answer."""
    remote_options = TextEnv.remote_options | {
        "difficulty",
        "table_version",
        "top_k",
        "format",
        "max_chars",
        "metric",
        "format_reward",
        "retrieval_score",
        "final_format_score",
        "compat",
    }
    grammars: Mapping[str, Callable[[], ActionGrammar]] = search_grammars(SEARCH_TOOLS)
    actions: ClassVar[tuple[TagTool, ...]] = SEARCH_TOOLS
    """The tools of the agent."""
    description: ClassVar[str] = _RULES
    """The rules, with the names of the tools as fields."""

    def __init__(
        self,
        *,
        grammar: str | ActionGrammar = "bare",
        split: str | None = "train",
        groups: Sequence[str] | None = None,
        difficulty: Sequence[int] | None = None,
        questions: str | os.PathLike[str] | TaskSet = "embedded",
        table_version: int | None = None,
        retriever: Spec = "tantivy",
        index: str | os.PathLike[str] | None = None,
        top_k: int = 3,
        format: str = "agentgym",
        max_chars: int = 8_000,
        metric: str | None = None,
        format_reward: float = 0.0,
        retrieval_score: float = 0.0,
        final_format_score: float = 0.0,
        judge: AnswerJudge | None = None,
        compat: str | None = None,
        instructions: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Create the environment; the class documents the arguments.

        A local index is opened at the first search, and the embedded one is built then if it does not exist. Raises
        UsageError for an invalid argument, and MissingExtra if a package is not installed.
        """
        self.tasks = open_questions(questions, table_version)
        self._questions, self._table_version, self._index = questions, table_version, index
        self._retriever_spec = check_retriever(retriever, index)
        self._retriever: Retriever | None = None
        self.top_k = check_whole("top_k", top_k, 1, MOST_PASSAGES)
        self.format, self.max_chars = format, check_whole("max_chars", max_chars, 1, find_format(format).most_chars)
        self._choose_metric(metric, judge)
        self._weights = check_weights(format_reward, retrieval_score, final_format_score)
        self.compat = check_compat(
            compat,
            grammar=grammar,
            metric=metric or "em",
            format_reward=self._weights.structure_format_score,
            retrieval_score=self._weights.retrieval_score,
            final_format_score=self._weights.final_format_score,
            retry=self.retry,
        )
        self.blocking = self._judges or self.needs_worker({"retriever": retriever})
        super().__init__(
            grammar=grammar,
            split=split,
            groups=groups,
            difficulty=difficulty,
            instructions=instructions,
            render_mode=render_mode,
        )
        self.rules = self._make_rules()
        self._found: dict[str, None] = {}  # ids in order, as a set
        self._done: list[SearchAction] = []
        self._transcript: list[str] = []
        self._retrieved = False  # true if an observation held an accepted answer
        self._grounded: bool | None = None  # of the oracle's answer to this task; None until it is needed

    def _choose_metric(self, metric: str | None, judge: AnswerJudge | None) -> None:
        """Take the metric, by default that of the questions. Raises UsageError if a judge is missing."""
        self.metric, self._given_judge = check_metric(metric), judge
        self._judges = metric == JUDGE or (metric is None and scorer_of(self.tasks) == JUDGE)
        if self._judges:
            require_judge(judge)

    def _make_rules(self) -> str:
        calls = isinstance(self.grammar, SearchTools)
        tools = {
            tool.name: f"{tool.name}({tool.argument})" if calls else f"<{tool.name}>{tool.argument}</{tool.name}>"
            for tool in self.actions
        }
        end = ", and if it is wrong, you go on" if self.retry else " and ends the episode"
        return self.description.format(**tools, end=end, form=_LONG if self._judges else _SHORT)

    @classmethod
    def needs_worker(cls, options: Mapping[str, Any]) -> bool:
        """Return true if a step waits for a server, or runs an encoder, which takes CPU time."""
        retriever = options.get("retriever", "")
        if isinstance(retriever, Retriever):
            return retriever.waits
        return uses_encoder(retriever) or is_url(retriever)

    @property
    def retriever(self) -> Retriever:
        """The search engine, shared by all environments of this process with the same arguments."""
        if self._retriever is None:
            self._retriever = open_retriever(self._retriever_spec, self._index, facts_version(self._table_version))
        return self._retriever

    def prepare(self) -> None:
        """Open the search engine."""
        with failures():
            _ = self.retriever

    def random_command(self, rng: random.Random) -> str:
        """Return some words of the question as a query, or sometimes as an answer."""
        words = "" if self.task is None else self.task.goal.strip("?. ").split()
        some = " ".join(rng.sample(list(words), min(3, len(words)))) or "?"
        return str(SearchAction("answer" if rng.random() < 0.1 else "search", some))

    def _begin(self, task: Task, rng: np.random.Generator) -> str:
        self._found, self._done, self._transcript = {}, [], [_EXAMPLE]
        self._grounded, self._retrieved = None, False
        return f"Question: {task.goal}"

    def _act(self, command: str) -> Transition:
        action = self._read(command)
        return self._record(action, self._take_action(action))

    async def _act_async(self, command: str) -> Transition:
        action = self._read(command)
        return self._record(action, await self._take_action_async(action))

    def _record(self, action: SearchAction, transition: Transition) -> Transition:
        self._done.append(action)
        # Only what shows passages counts: other replies may quote the agent's own words.
        shown = not transition.terminated and transition.info["hits"]
        if self._weights.retrieval_score and not self._retrieved and shown:
            self._retrieved = scoring.subem(transition.observation, self._golds)
        return transition

    def _take_action(self, action: SearchAction) -> Transition:
        if action.kind == "answer":
            return self._answer(action.text, wait_for(self._judge(action.text)) if self._judges else None)
        with failures():
            [hits] = self.retriever.search([action.text], self.top_k)
        return self._show(action.text, hits[: self.top_k])

    async def _take_action_async(self, action: SearchAction) -> Transition:
        if action.kind == "answer":
            return self._answer(action.text, await self._judge(action.text) if self._judges else None)
        with failures():
            [hits] = await self.retriever.asearch([action.text], self.top_k)
        return self._show(action.text, hits[: self.top_k])

    def _read(self, command: str) -> SearchAction:
        if self.compat:  # only this mode needs the transcript, which may become long
            self._transcript.append(truncate_search_r1(command))
        return read_search_r1(command) if self.compat else read_action(command, self.actions)

    def _show(self, query: str, hits: Sequence[Hit]) -> Transition:
        text, count = find_format(self.format).render(hits, self.max_chars, neutral=not self.compat)
        if self.compat:
            self._transcript.append(text)
        ids = [hit.passage.id for hit in hits[:count]]
        self._found.update(dict.fromkeys(ids))
        return Transition(text, info={**self._details(), "query": query, "answer": None, "hits": ids})

    async def _judge(self, answer: str) -> Judgement:
        assert self.task is not None
        return await judge_answer(require_judge(self._given_judge), self.task.goal, self._golds, answer)

    def _answer(self, answer: str, judged: Judgement | None) -> Transition:
        score = self._score_answer(answer) if judged is None else float(judged.correct)
        info = {**self._details(), "query": None, "answer": answer, "hits": []}
        if judged is not None:
            info["judge"] = judged.record
        if score < 1.0 and self.retry:
            return Transition(f"{_WRONG} {_AGAIN}", info=info)
        info |= {"answers": list(self._golds), **{name: float(of(answer, self._golds)) for name, of in METRICS.items()}}
        formed = scoring.well_formed(self._turns(), [tool.name for tool in self.actions if tool is not ANSWER])
        reward = scoring.combine_rewards(score, formed, self._retrieved, self._weights)
        return Transition(_RIGHT if score >= 1.0 else _WRONG, reward, True, score >= 1.0, info)

    def _score_answer(self, answer: str) -> float:
        """Score an answer without the format reward, from 0 to 1."""
        if self.compat:
            return scoring.search_r1_score("".join(self._transcript), self._golds)
        return float(METRICS[self.metric or "em"](answer, self._golds))

    @property
    def _golds(self) -> list[str]:
        assert self.task is not None
        golds: list[str] = self.task.data["answers"]
        return golds

    def _turns(self) -> list[str]:
        """Turns so far, written as tags for every grammar."""
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
        if self._grounded is None:
            self._grounded = self._is_grounded(self.task)
        if not self._grounded:
            raise self._ungrounded(self.task)
        searches = [SearchAction("search", query) for query in queries_of(self.task)]
        return [*(str(search) for search in searches if search not in self._done), self._right_answer()]

    def _is_grounded(self, task: Task) -> bool:
        """Return true if the passages that the oracle's searches show hold the answer. Changes nothing."""
        found, texts = set[str](), list[str]()
        for hits in self._search_for_plan(queries_of(task)):
            shown = shown_passages(hits, self.max_chars, neutral=False)
            found.update(hit.passage.id for hit in hits[: len(shown)])
            texts += [passage.contents for passage in shown]
        return is_grounded(texts, found, task.data.get("passages", ()), self._golds)

    def _ungrounded(self, task: Task) -> NoOracle:
        return NoOracle(
            f"the passages that the oracle's searches for {task.id!r} show do not hold its answer, so a demonstration "
            "would teach guessing; the corpus may not know it"
        )

    def _search_for_plan(self, queries: Sequence[str]) -> list[list[Hit]]:
        with self._planning():
            return [hits[: self.top_k] for hits in self.retriever.search(queries, self.top_k)]

    @contextlib.contextmanager
    def _planning(self) -> Iterator[None]:
        """Convert any exception of the search engine to NoOracle: planning must not end the episode."""
        try:
            with failures():
                yield
        except EnvError as error:
            raise NoOracle(f"the search engine failed during planning: {error}") from error

    def _right_answer(self) -> str:
        return str(SearchAction("answer", next((gold for gold in self._golds if gold.strip()), "")))

    def _save(self) -> Any:
        return self._settings(), tuple(self._found), tuple(self._done), tuple(self._transcript), self._retrieved

    def _load(self, state: Any) -> None:
        settings, found, done, transcript, retrieved = state
        if settings != self._settings():
            raise UsageError("the snapshot is of an environment with another search engine, format or rule")
        self._found, self._done, self._transcript = dict.fromkeys(found), list(done), list(transcript)
        self._grounded, self._retrieved = None, retrieved

    def _settings(self) -> tuple[Any, ...]:
        """Options that affect the outcome of an action."""
        engine = self._retriever_spec, str(self._index), self._table_version
        return *engine, self.top_k, self.format, self.max_chars, self.metric, self._weights, self.compat

    def _draw(self) -> str:
        goal = "" if self.task is None else f"Question: {self.task.goal}\n"
        return f"{goal}{''.join(f'{action}{chr(10)}' for action in self._done)}{self._observation}"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the retriever and the tasks if they can be opened again by name."""
        named = {"_retriever": isinstance(self._retriever_spec, str), "tasks": not isinstance(self._questions, TaskSet)}
        return {name: None if named.get(name) else value for name, value in self.__dict__.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the tasks again; the retriever opens at its first use."""
        self.__dict__.update(state)
        self.tasks = dial(
            open_questions(self._questions, self._table_version), self.difficulty, split=self.split, groups=self.groups
        )


class SearchRetryEnv(SearchEnv):
    """`SearchEnv` with AgentGym's rule: a wrong answer is reported to the agent and does not end the episode.

    An agent may guess until its turns are used up, so success rates are not comparable with those of `SearchEnv`. There
    is no turn limit; wrap the environment in `ScheduledTimeLimit` (AgentGym evaluates with 30 turns).

    ## Version History
    - v0: first version.
    """

    retry = True


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Convert any exception of a search engine to an infrastructure error."""
    try:
        yield
    except EnvError:
        raise
    except Exception as error:
        raise RetrieverError(describe(error)) from error
