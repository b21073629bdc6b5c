"""`ChatCodec`: messages to token ids, without ever encoding the same text twice.

The chat template is rendered for the prompt. From then on ids are only appended: the sampled ids unchanged, and each
observation with the template's markup around it. This equals rendering the whole conversation again only if
the template is prefix-preserving, that is, it never changes the text of earlier messages. The codec checks this once.
Templates of thinking models are not: they drop the thoughts of earlier answers. With `forks=True` the codec accepts
them, and an episode has several contexts: one begins wherever the template renders the conversation so far differently.

Text from an environment never becomes a special token: an observation that spells `<|im_end|><|im_start|>assistant` is
encoded as plain characters and cannot forge a turn. With native tools (`NativeTools`), the same holds for all tokens
that were added to the vocabulary, such as `</tool_response>`, so that it cannot forge a call or the end of a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agentgym_envs.errors import TemplateError
from agentgym_envs.grammar import ToolCall
from agentgym_envs.rollout.native_tools import NativeTools, mark_texts, native_messages
from agentgym_envs.rollout.pieces import Pieces
from agentgym_envs.rollout.tokenizer import Tokenizer
from agentgym_envs.trajectory import Message

_THOUGHT = "XTHOUGHTX\n</think>\n\nXANSWERX"
_THINK_TAG = re.compile(r"(\s*</?think>\s*)")
_PROBED_ANSWERS = 100
"""Answers of the test conversation, more than an episode has in practice: some templates drop the oldest messages."""


_TOOL_ANSWERS = (str(ToolCall("", "act", {"action": "XARGUMENTX"})), "XANSWERX")
"""An answer with a tool call, and one without."""
_CALL_IDS = (
    "the chat template shows the id of a tool call, which the model does not write, so that an answer changes when it "
    "becomes an earlier message; train with several contexts (forks), or use the grammar tool_call"
)


class _Piece(NamedTuple):
    text: str
    trusted: bool  # written by the template, so that its special tokens are encoded as such
    foreign: bool = False  # written by the environment, where no added token may be encoded as such


class ChatCodec:
    """Encodes prompts and observations for one tokenizer and chat template."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        template: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        forks: bool = False,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Find out what the template puts around an observation, and check the template.

        Args:
            tokenizer: a Hugging Face tokenizer.
            template: a Jinja chat template, instead of the tokenizer's own.
            template_kwargs: more variables of the template, such as `enable_thinking=False`.
            forks: accept a template that renders earlier messages differently as a conversation grows; `rewrites` says
                whether this one does.
            tools: tools that the template shows, in the JSON schema of OpenAI's API. Answers that call one become
                messages with `tool_calls`, and the observations after them have the role `tool`.

        Raises:
            TemplateError: the template is missing, or it is not prefix-preserving and `forks` is false, or there are
                tools and the template has none; the message says what to do.
        """
        self.tokenizer = tokenizer
        self._options: dict[str, Any] = {"template": template, "template_kwargs": template_kwargs, "forks": forks}
        self._with_tools: dict[str, ChatCodec] = {}
        self.tools = tuple(tools)
        self._template = template if template is not None else tokenizer.chat_template
        if isinstance(self._template, Mapping):  # named templates
            self._template = (self.tools and self._template.get("tool_use")) or self._template.get("default")
        if not self._template:
            raise TemplateError(
                "the tokenizer has no chat template; use an instruction-tuned model, or pass a template "
                "(--chat-template FILE on the command line, ChatCodec(template=...) in code)"
            )
        self._kwargs = dict(template_kwargs or {})
        self._pieces = Pieces(tokenizer)
        self._special = _any_of(_special_tokens(tokenizer))
        added = tokenizer.added_tokens_decoder.values() if self.tools else ()
        self._added = _any_of(token.content for token in added)
        self._native: NativeTools | None = None
        self.system_role, self.rewrites = True, False
        self.system_role = self._accepts_system()
        self._trims = "  XUSERX" not in self._render([_message("user", "  XUSERX  ")])
        self._answers = self._answer_forms()
        self._lead = self._learn_lead()
        self.turn_end, self._before, self._after = self._learn_observation()
        self.turn_end_id: int = tokenizer.convert_tokens_to_ids(self.turn_end)
        self.stop_ids: frozenset[int] = frozenset({self.turn_end_id, tokenizer.eos_token_id} - {None})
        if self.tools:
            without = self._render(_conversation(), tools=None)
            self._native = NativeTools(self._render, without, self._special, self.turn_end)
        change = self._change_of_history() or (self._change_by_tools() if self._native else None)
        self.rewrites = change is not None
        if change is not None and not forks:
            raise TemplateError(change)
        self._check_whole()
        self._check_lead()

    def with_tools(self, tools: Sequence[Mapping[str, Any]]) -> ChatCodec:
        """The codec for these tools (see `tools_of`); the same one without tools. Raises TemplateError."""
        if not tools or list(tools) == list(self.tools):
            return self
        key = json.dumps(list(tools), sort_keys=True)
        if key not in self._with_tools:
            self._with_tools[key] = ChatCodec(self.tokenizer, **self._options, tools=tools)
        return self._with_tools[key]

    def encode_prompt(self, messages: Sequence[Message]) -> list[int]:
        """Encode a conversation up to the beginning of the model's answer."""
        return self._encode(self._pieces_of(messages))

    def continues(self, messages: Sequence[Message]) -> bool:
        """True if a conversation that ends with an answer and an observation renders as the one before it, continued.

        False where the template rewrites an earlier message, so that a new context begins.
        """
        if not self.rewrites:
            return True
        *before, answer, observation = messages
        pieces = self._observation(observation["content"], answer["content"])
        tail = (self.turn_end if self._shows_end else "") + "".join(piece.text for piece in pieces)
        text, earlier = self._text(messages), self._text(before) + self._lead
        return text in {earlier + content + tail for content in (answer["content"], answer["content"].strip())}

    def encode_observation(self, text: str, answer: str = "") -> list[int]:
        """Encode what follows the end token of `answer`, up to the beginning of the next answer."""
        return self._encode([_Piece(self.turn_end, True), *self._observation(text, answer)])[1:]

    def decode(self, ids: Sequence[int]) -> str:
        """Decode a sampled answer, without special tokens except for those of a tool call."""
        kept = self._native.tokens if self._native else ()
        parts, part = list[str](), list[int]()
        for token in ids:
            if kept and (name := self._call_token(token)):
                parts += [self._decode(part), name]
                part = []
            else:
                part.append(token)
        return "".join([*parts, self._decode(part)]).removeprefix(self._lead)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token, special tokens by name. The token that completes a character has the whole character.

        The pieces join to the decoded text.
        """
        return self._pieces.of(ids)

    def encode_answer(self, text: str) -> list[int]:
        """Encode an answer that was not sampled, such as a demonstration, with its end token.

        A demonstration's tool call is written in the format of the template.
        """
        if self._native is None:
            return [*self._encode([_Piece(self._lead + text, False)]), self.turn_end_id]
        pieces, rest = list[_Piece](), self._native.written(text)
        for token in self._native.tokens:  # each once: the rest of the text spells tokens only as plain characters
            before, found, rest = rest.partition(token) if token in rest else ("", "", rest)
            pieces += [_Piece(before, False), _Piece(found, True)]
        begins_with_token = bool(pieces) and not pieces[0].text and bool(pieces[1].text)
        lead = "" if begins_with_token else self._lead
        return [*self._encode([_Piece(lead, False), *pieces, _Piece(rest, False)]), self.turn_end_id]

    def _observation(self, text: str, answer: str) -> list[_Piece]:
        """The text that follows the end token of an answer."""
        native = self._native
        if native is None or native.call_of(answer) is None:
            return [_Piece(self._before, True), self._foreign(self._trim(text)), _Piece(self._after, True)]
        return [_Piece(native.before, True), self._foreign(native.write_result(text)), _Piece(native.after, True)]

    def _foreign(self, text: str) -> _Piece:
        return _Piece(text, False, self._native is not None)

    def _call_token(self, token: int) -> str:
        """The name of a special token that belongs to a tool call, else nothing."""
        name = self.tokenizer.decode([token], skip_special_tokens=False).strip()
        return name if self._native is not None and name in self._native.tokens else ""

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _pieces_of(self, messages: Sequence[Message]) -> list[_Piece]:
        """The rendered conversation, in which the template's own text is separate from the contents of messages."""
        folded = messages if self.system_role else _fold_system(messages)
        contents: dict[str, _Piece] = {}
        marked = [self._marked(m, f"XMESSAGE{n}X", contents) for n, m in enumerate(self._in_roles(folded))]
        rendered = self._render(marked)
        missing = [n for n, m in enumerate(marked, 1) if m["content"] in contents and m["content"] not in rendered]
        if missing and (not self.rewrites or missing[-1] == len(marked)):
            raise TemplateError(f"the chat template does not show message {missing[0]} of the prompt")
        parts = re.split(f"({_any_of(contents).pattern})", rendered)
        return [contents.get(part, _Piece(part, True)) for part in parts]

    def _in_roles(self, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """The messages with tool calls and results in their own roles, if there are tools."""
        return messages if self._native is None else native_messages(messages, self._native.call_of)

    def _marked(self, message: Mapping[str, Any], name: str, contents: dict[str, _Piece]) -> dict[str, Any]:
        """The message with names in place of its texts, which are added to `contents`."""
        marked = {**message, "content": self._mark(message, name, contents)}
        for call in message.get("tool_calls", ()):
            assert self._native is not None
            texts = dict[str, str]()
            write, function = self._native.write_argument, call["function"]
            arguments = {
                key: mark_texts(value, f"{name}A{n}X", texts, write)
                for n, (key, value) in enumerate(function["arguments"].items())
            }
            contents |= {key: _Piece(text, False) for key, text in texts.items()}
            marked["tool_calls"] = [{**call, "function": {**function, "arguments": arguments}}]
        return marked

    def _mark(self, message: Mapping[str, Any], name: str, contents: dict[str, _Piece]) -> str:
        """Return names in place of the content, and add their texts to `contents`.

        The tags of a thought are kept, since a template may look for them.
        """
        text = message["content"]
        if message["role"] == "tool" and self._native is not None:
            contents[name] = self._foreign(self._native.write_result(text))
            return name
        if message["role"] != "assistant" or not (self.rewrites or "tool_calls" in message):
            trimmed = self._trim(text)
            contents[name] = _Piece(trimmed, False) if message["role"] == "assistant" else self._foreign(trimmed)
            return name
        marked = ""
        for number, part in enumerate(_THINK_TAG.split(self._trim(text))):
            if number % 2 or not part:
                marked += part
            else:
                contents[f"{name}{number}X"] = _Piece(part, False)
                marked += f"{name}{number}X"
        return marked

    def _text(self, messages: Sequence[Message]) -> str:
        return "".join(piece.text for piece in self._pieces_of(messages))

    def _render(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> str:
        if not self.system_role:
            messages = _fold_system(messages)
        given = {**self._kwargs, "tools": list(self.tools) or None, **options} if self.tools else self._kwargs
        try:
            text = self.tokenizer.apply_chat_template(
                list(messages), chat_template=self._template, tokenize=False, add_generation_prompt=True, **given
            )
        except Exception as error:  # a template may raise anything
            raise TemplateError(f"the chat template does not render: {type(error).__name__}: {error}") from None
        return str(text)

    def _accepts_system(self) -> bool:
        try:
            return "XSYSTEMX" in self._render([_message("system", "XSYSTEMX"), _message("user", "XUSERX")])
        except TemplateError:
            return False

    def _answer_forms(self) -> list[str]:
        """Test answers for the checks, with and without a thought, as far as the template permits each."""
        generation_prompt = self._render(_conversation()).rpartition("XUSERX")[2]
        if "<think>" in generation_prompt:
            return ["XANSWERX" if "</think>" in generation_prompt else _THOUGHT]
        thinks = "</think>" in str(self._template)
        return [f"<think>\n{_THOUGHT}"] if thinks else ["XANSWERX", f"<think>\n{_THOUGHT}"]

    def _learn_lead(self) -> str:
        """The space between the generation prompt and an answer, which Mistral's templates count to the answer."""
        answer, prompt = self._answers[0], self._render(_conversation())
        return " " if self._render(_conversation(answer)).startswith(f"{prompt} {answer}") else ""

    def _learn_observation(self) -> tuple[str, str, str]:
        """The end token of an answer, and the texts before and after an observation.

        If the template ends answers without a token, the tokenizer's end token is used, since a model must end its
        answer somehow.
        """
        rendered = self._render(_conversation(self._answers[0]))
        _, _, rest = rendered.partition("XANSWERX")
        before, found, after = rest.partition("XOBSERVATIONX")
        if not found:
            raise TemplateError("the chat template does not show a user message that follows an answer")
        match = self._special.match(before.lstrip(" "))
        self._shows_end = match is not None
        if match:
            return match[0], before.lstrip(" ")[match.end() :], after
        if self.tokenizer.eos_token is None:
            raise TemplateError("neither the chat template nor the tokenizer has a token that ends an answer")
        return str(self.tokenizer.eos_token), before, after

    def _change_of_history(self) -> str | None:
        """A description of the change to earlier messages as a conversation grows; None if they stay."""
        for answer in self._answers:
            full = self._render(_conversation(*[answer] * _PROBED_ANSWERS))
            end = self.turn_end if self._shows_end else ""
            turn = f"{self._lead}{answer}{end}{self._before}XOBSERVATIONX{self._after}"
            expected = self._render(_conversation()) + _PROBED_ANSWERS * turn
            if full.replace(f"XANSWERX {end}", f"XANSWERX{end}") != expected:
                return _explain(full, expected)
        return None

    def _change_by_tools(self) -> str | None:
        """A description of a change to earlier messages as a conversation with tool calls grows; None if they stay."""
        assert self._native is not None
        if self._native.shows_ids:
            return _CALL_IDS
        messages = _conversation(*[*_TOOL_ANSWERS] * (_PROBED_ANSWERS // len(_TOOL_ANSWERS)))
        full = self._render(self._in_roles(messages))
        for turns in (0, 1, 2, 3, _PROBED_ANSWERS // 2, _PROBED_ANSWERS - 1):
            before = self._render(self._in_roles(messages[: 2 + 2 * turns]))
            if not full.startswith(before):
                return _explain(full, before)
        return None

    def _check_whole(self) -> None:
        """Check that a template that rewrites messages shows the text of each one whole or not at all."""
        if not self.rewrites:
            return
        words = _any_of(("XSYSTEMX", "XUSERX", "XTHOUGHTX", "XANSWERX", "XOBSERVATIONX"))
        short = _conversation(*self._answers[:1] * 2)
        long = [_message(m["role"], words.sub(lambda word: word[0][::-1] * 100, m["content"])) for m in short]
        if words.sub(lambda word: word[0][::-1] * 100, self._render(short)) != self._render(long):
            raise TemplateError(
                "the chat template shows parts of earlier messages, so that the text of a message cannot be told from "
                "the template's own. Pass a template that shows messages whole (--chat-template FILE)"
            )

    def _check_lead(self) -> None:
        """Check that an answer with a leading space has the same ids on its own as within the conversation."""
        if not self._lead:
            return
        whole = self._ids(self._render(_conversation("XANSWERX")))
        parts = [*self._ids(self._render(_conversation())), *self.encode_answer("XANSWERX")]
        if whole[: len(parts)] != parts:
            raise TemplateError(
                "the chat template puts a space before each answer, and the tokenizer joins it to the text before: the "
                "answers would have other ids in later turns. Pass a template whose generation prompt ends with the "
                "space, or that writes none (--chat-template FILE)"
            )

    def _trim(self, text: str) -> str:
        return text.strip() if self._trims else text

    def _encode(self, pieces: Sequence[_Piece]) -> list[int]:
        text = "".join(piece.text for piece in pieces)
        own = sum(len(self._special.findall(piece.text)) for piece in pieces if piece.trusted)
        forged = any(piece.foreign and self._added.search(piece.text) for piece in pieces)
        if (
            not forged and len(self._special.findall(text)) == own
        ):  # no content spells a special token, alone or joined to its neighbour
            return self._ids(text)
        ids: list[int] = []
        plain = ""
        for piece in pieces:
            end = 0
            for begin, token in self._tokens_in(piece):
                ids += self._ids(plain + piece.text[end:begin], plain=True)
                ids += [self.tokenizer.convert_tokens_to_ids(token)] if token else []
                plain, end = "", begin + len(token)
            plain += piece.text[end:]
        return ids + self._ids(plain, plain=True)

    def _tokens_in(self, piece: _Piece) -> Iterator[tuple[int, str]]:
        """The special tokens of a trusted text; in a foreign text, an empty one in the middle of each spelled token."""
        if piece.trusted:
            yield from ((match.start(), match[0]) for match in self._special.finditer(piece.text))
        elif piece.foreign:
            yield from ((sum(match.span()) // 2, "") for match in self._added.finditer(piece.text))

    def _ids(self, text: str, *, plain: bool = False) -> list[int]:
        if not text:
            return []
        return list(self.tokenizer(text, add_special_tokens=False, split_special_tokens=plain)["input_ids"])


def _special_tokens(tokenizer: Tokenizer) -> set[str]:
    """All special tokens. `all_special_tokens` lacks those without a role, such as Llama-3's headers."""
    added = tokenizer.added_tokens_decoder.values()
    return {*tokenizer.all_special_tokens, *(token.content for token in added if token.special)}


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))) or r"(?!)")


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _conversation(*answers: str) -> list[Message]:
    messages = [_message("system", "XSYSTEMX"), _message("user", "XUSERX")]
    for answer in answers:
        messages += [_message("assistant", answer), _message("user", "XOBSERVATIONX")]
    return messages


def _fold_system(messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Prepend the system message to the first user message, for templates without a system role."""
    if not messages or messages[0]["role"] != "system" or len(messages) < 2:
        return messages
    head = _message("user", f"{messages[0]['content']}\n\n{messages[1]['content']}")
    return [head, *messages[2:]]


def _explain(full: str, expected: str) -> str:
    index = next((i for i, (a, b) in enumerate(zip(full, expected, strict=False)) if a != b), len(expected))
    shown, wanted = full[index : index + 40], expected[index : index + 40]
    return (
        "the chat template is not prefix-preserving: as a conversation grows, it renders an earlier message "
        f"differently (it writes {shown!r} in place of {wanted!r}). Multi-turn training needs the tokens of earlier "
        "turns to stay as they were sampled. Pass a training template that keeps earlier turns, such as TRL's "
        "<family>_training.jinja (--chat-template FILE), or switch thinking off (--chat-template-kwargs "
        "'{\"enable_thinking\": false}') if the template then keeps them"
    )
