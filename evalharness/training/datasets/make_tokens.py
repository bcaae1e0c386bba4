"""Convert conversations to token ids and mark the trained tokens. The Python of the model server's environment runs
this file, so it imports nothing of this package.

python -I make_tokens.py MODEL IN OUT MAX_LENGTH [TEMPLATE]      (MAX_LENGTH 0: no limit)

TEMPLATE is a file with a chat template that replaces the model's own.

IN has a line for each conversation, `{"id", "messages": [{"role", "content", "loss"}]}`. OUT gets a line for each
conversation: `{"id", "input_ids", "spans": [[first token, token after the last], ...], "cut": turns beyond the limit,
"ended": spans that end with an end-of-turn token, "end_ids": those tokens, "special_texts": {special token in a text:
times}}` or `{"id", "refused": reason}`.

A whole conversation is rendered, and its turns are found in the text by their content. Rendering message by message
would be wrong: Qwen3's template then gives other tokens than at inference. The end-of-turn token of a trained turn is
trained, too. A special token in a message's content is encoded as ordinary text.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_TURN_ENDS = (
    "<|im_end|>", "<|eot_id|>", "<|eot|>", "<end_of_turn>", "<|end|>", "<|end_of_turn|>", "</s>", "<|endoftext|>",
    "<|return|>",
)  # fmt: skip
"""End-of-turn tokens of common templates. `end_ids` adds those that the model's files name."""


_PROBE = "[[evalharness]]"
_APART = "\ufdd0\ufdd1"
"""Inserted into a special token in a message's text, so that the tokenizer does not recognise the special token. The
normalizer removes it. Messages do not contain it: Unicode reserves these two numbers as noncharacters."""
_NO_TOKENS = re.compile("(?!)")

Render = Callable[[list[dict[str, str]]], str]
Encode = Callable[[str], tuple[list[int], list[tuple[int, int]]]]


class NotTokenizedError(Exception):
    """The conversation cannot be rendered, or its turns cannot be found in the rendered text."""


def find_contents(text: str, contents: Sequence[str], gaps: Sequence[str]) -> list[tuple[int, int]]:
    """Return (start, end) of each message's content in the rendered text, in order.

    `gaps` are the template's texts between the contents, taken from a rendering of other contents. With them, a reply
    "a" is not confused with the letter in "assistant". If a gap differs in this rendering, a content of 20 characters
    or more is searched for instead. Some templates strip contents, so the stripped content is tried, too.
    """
    spans = []
    cursor = 0
    for number, content in enumerate(contents):
        gap, after = gaps[number : number + 2]
        start = cursor + len(gap)
        # Compare the following gap, too: otherwise a blank of the template could count as part of the content.
        forms = (form for form in (content, content.strip()) if text.startswith(gap + form + after, cursor))
        form = next(forms, None)
        if form is None:
            rest = text[start : text.find(after, start)].strip() if after else ""
            if rest and rest != content.strip() and content.strip().endswith(rest):
                raise NotTokenizedError(
                    "the template drops the beginning of an earlier reply (its reasoning)"
                )
            form = content.strip()
            start = text.find(form, cursor)
            if start < 0 or len(form) < 20:
                raise NotTokenizedError(f"the template changes message {number + 1}")
        cursor = start + len(form)
        spans.append((start, cursor))
    return spans


def render_or_refuse(render: Render, messages: list[dict[str, str]]) -> str:
    """Return the rendered text. Raises NotTokenizedError if the template refuses the messages."""
    try:
        return render(messages)
    except Exception as error:
        raise NotTokenizedError(f"the template refuses it: {str(error)[:200]}") from None


def find_order(render: Render, bare: Sequence[dict[str, str]]) -> tuple[list[int], list[str]]:
    """Return the messages' numbers in the order in which the template shows them, and the template's texts around their
    contents. Mistral's v3 template puts the system text into the last user message. Raises NotTokenizedError."""
    marks = [f"[[{number}-of-{len(bare)}-evalharness]]" for number in range(len(bare))]
    text = render_or_refuse(render, [{**message, "content": mark} for message, mark in zip(bare, marks)])  # noqa: B905
    for number, mark in enumerate(marks, 1):
        if mark not in text:
            raise NotTokenizedError(f"the template changes message {number}")
    order = sorted(range(len(bare)), key=lambda number: text.index(marks[number]))
    gaps = []
    for number in order:
        before, _, text = text.partition(marks[number])
        gaps.append(before)
    return order, [*gaps, text]


def find_token_spans(
    offsets: Sequence[tuple[int, int]],
    ids: Sequence[int],
    turns: Sequence[tuple[int, int, int]],
    ends: frozenset[int],
) -> list[tuple[int, int]]:
    """Return (first token, token after the last) of each turn; an end-of-turn token is part of its turn.

    `turns` are (start, end of the content, start of the next content) in the text. A token belongs to the turn in which
    it ends, because a SentencePiece token begins with the blank before a word.
    """
    spans = []
    at = 0
    for start, end, following in turns:
        while at < len(ids) and (offsets[at][1] <= start or offsets[at][0] == offsets[at][1]):
            at += 1
        first = at
        while at < len(ids) and offsets[at][0] < end:
            at += 1
        stop = at
        look = at
        while look < len(ids) and offsets[look][0] < following:
            if ids[look] in ends:
                stop = look + 1
                break
            look += 1
        spans.append((first, stop))
        at = stop
    return spans


def find_reply_start(text: str, start: int, prompt_end: str) -> int:
    """Return the position at which the model's generation of a reply begins; the reply's content begins at `start`.

    The model generates the blanks before the content, except those at the end of the prompt (`prompt_end`): Mistral's
    prompt ends with "[/INST]", and the model generates " Thought" as one token.
    """
    blanks = start - len(text[:start].rstrip(" "))
    return start - max(0, blanks - (len(prompt_end) - len(prompt_end.rstrip(" "))))


def encode_turns(text: str, begins: Sequence[int], encode: Encode) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the tokens and offsets of the whole text, with no token across the boundary of prompt and reply. Such a
    token (two newlines of the prompt and one of the reply) cannot occur at inference, so the text is split at the
    boundary and each part is tokenized."""
    ids, offsets = encode(text)
    inside = set(begins)
    cuts = sorted(
        begin
        for first, last in offsets
        for begin in inside.intersection(range(first + 1, last))
        if text[first:begin].strip(" ")
    )
    if not cuts:
        return ids, offsets
    ids, offsets = [], []
    for first, last in zip([0, *cuts], [*cuts, len(text)]):  # noqa: B905  (Python 3.9 runs this, too)
        more, where = encode(text[first:last])
        ids += more
        offsets += [(start + first, end + first) for start, end in where]
    return ids, offsets


def merge_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put the system text before the text of the first user message, for templates without a system role."""
    if len(messages) < 2 or messages[0]["role"] != "system":
        return messages
    first = {**messages[1], "content": f"{messages[0]['content']}\n\n{messages[1]['content']}"}
    return [first, *messages[2:]]


def convert(
    record: dict[str, Any],
    render: Render,
    encode: Encode,
    ends: frozenset[int],
    max_length: int,
    prompt_end: str = "",
    special: re.Pattern[str] = _NO_TOKENS,
) -> dict[str, Any]:
    """Return the tokens of one conversation. `prompt_end` is the text with which a prompt ends at inference. `special`
    finds the special tokens in a message's text. Raises NotTokenizedError."""
    special_texts: Counter[str] = Counter()

    def set_apart(match: re.Match[str]) -> str:
        special_texts[match[1]] += 1
        return match[0] + _APART

    messages = [{**m, "content": special.sub(set_apart, m["content"])} for m in record["messages"]]
    bare = [{"role": m["role"], "content": m["content"]} for m in messages]
    try:
        text = render(bare)
    except Exception:
        messages = merge_system(messages)
        bare = [{"role": m["role"], "content": m["content"]} for m in messages]
        text = render_or_refuse(render, bare)
    order, gaps = find_order(render, bare)
    messages = [messages[number] for number in order]
    contents = find_contents(text, [m["content"] for m in messages], gaps)
    starts = [start for start, _ in contents[1:]] + [len(text) + 1]
    turns = [
        (find_reply_start(text, start, prompt_end), end, following)
        for (start, end), following, m in zip(contents, starts, messages)  # noqa: B905  (Python 3.9 runs this, too)
        if m["role"] == "assistant"
    ]
    ids, offsets = encode_turns(text, [start for start, _, _ in turns], encode)
    trained = [m.get("loss", True) is not False for m in messages if m["role"] == "assistant"]
    spans = find_token_spans(offsets, ids, turns, ends)
    for (start, end, _), (first, stop) in zip(turns, spans):  # noqa: B905
        if first == stop or offsets[first][0] > start or max(offsets[i][1] for i in range(first, stop)) < end:
            raise NotTokenizedError("a turn's tokens do not cover its text")
    stops = [stop for _, stop in spans if not max_length or stop <= max_length]
    length = stops[-1] if stops else 0
    chosen = [[first, stop] for (first, stop), train in zip(spans, trained) if train and stop <= length]  # noqa: B905
    if not chosen:
        raise NotTokenizedError("no trained turn fits" if any(trained) else "no turn is trained")
    return {
        "id": record["id"],
        "input_ids": ids[:length],
        "spans": chosen,
        "cut": len(spans) - len(stops),
        "ended": sum(ids[stop - 1] in ends for _, stop in chosen),
        "end_ids": sorted({ids[stop - 1] for _, stop in chosen} & ends),
        "special_texts": special_texts,
    }


def read_records(source: Path) -> Iterator[dict[str, Any]]:
    with source.open(encoding="ascii") as file:
        for line in file:
            yield json.loads(line)


def main(model: Path, source: Path, target: Path, max_length: int, template: Path | None = None) -> None:
    from transformers import AutoTokenizer  # type: ignore[import-not-found, unused-ignore]

    tokenizer = AutoTokenizer.from_pretrained(str(model), local_files_only=True)
    if not tokenizer.is_fast:
        sys.exit("error: the model's tokenizer gives no offsets (it is not a fast tokenizer)")
    if template is not None:
        tokenizer.chat_template = template.read_text(encoding="utf-8")
    if not getattr(tokenizer, "chat_template", None):
        sys.exit(
            "error: the model has no chat template; choose one with --chat-template llama3|mistral|chatml|FILE"
        )

    def render(messages: list[dict[str, str]], *, prompt: bool = False) -> str:
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=prompt))

    special, special_ids = set_special_apart(tokenizer)

    def encode(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, truncation=False)
        ids, offsets = list(encoded["input_ids"]), [tuple(pair) for pair in encoded["offset_mapping"]]
        if _APART in text:
            for token, (start, end) in zip(ids, offsets):  # noqa: B905  (Python 3.9 runs this, too)
                if token in special_ids and _APART in text[start:end]:
                    name = text[start:end].replace(_APART, "")
                    raise NotTokenizedError(
                        f"a text holds {name}, which this tokenizer cannot encode as text"
                    )
        return ids, offsets

    asked = [{"role": "user", "content": _PROBE}]
    try:
        prompt = render(asked, prompt=True)
        whole = render([*asked, {"role": "assistant", "content": _PROBE}])
    except Exception as error:
        sys.exit(f"error: the chat template cannot be used: {str(error)[:300]}")
    if _PROBE not in prompt or whole.count(_PROBE) < 2:
        sys.exit("error: the chat template changes texts or leaves them out; choose another --chat-template")
    prompt_end = prompt.rpartition(_PROBE)[2]
    ends = frozenset(end_ids(tokenizer, model))
    if template is not None:
        ends |= {find_required_end(whole, encode, ends | frozenset(tokenizer.get_added_vocab().values()))}

    with target.open("w", encoding="ascii") as file:
        for number, record in enumerate(read_records(source), 1):
            try:
                row = convert(record, render, encode, ends, max_length, prompt_end, special)
            except NotTokenizedError as reason:
                row = {"id": record["id"], "refused": str(reason)}
            file.write(json.dumps(row) + "\n")
            if number % 500 == 0:
                print(f"{number} conversations", flush=True)


def set_special_apart(tokenizer: Any) -> tuple[re.Pattern[str], frozenset[int]]:
    """Make the tokenizer remove `_APART`. Return a pattern that finds the first letter of each special token, and the
    ids of the special tokens."""
    from tokenizers import normalizers  # type: ignore[import-not-found, unused-ignore]

    tokens = {
        number: token.content for number, token in tokenizer.added_tokens_decoder.items() if token.special
    }
    longest_first = sorted((text for text in tokens.values() if len(text) > 1), key=len, reverse=True)
    backend = tokenizer.backend_tokenizer
    steps = [normalizers.Replace(_APART, ""), *filter(None, [backend.normalizer])]
    backend.normalizer = normalizers.Sequence(steps)
    names = "|".join(map(re.escape, longest_first)) or "(?!)"
    return re.compile(f"(?=({names})).", re.DOTALL), frozenset(tokens)


def find_required_end(text: str, encode: Encode, known: frozenset[int]) -> int:
    """Return the end-of-turn token after the reply `_PROBE` in `text`. Exits if the template ends a turn with a text
    that is no token of the vocabulary."""
    end = text.rindex(_PROBE) + len(_PROBE)
    ids, offsets = encode(text)
    for token, (start, _) in zip(ids, offsets):  # noqa: B905  (Python 3.9 runs this, too)
        if start >= end and token in known:
            return token
    after = text[end:].strip()
    what = f"with {after[:40]!r}, which is no token of this model's vocabulary" if after else "with nothing"
    sys.exit(f"error: the chat template ends a turn {what}; choose another --chat-template")


def end_ids(tokenizer: Any, model: Path) -> set[int]:
    """Return the ids of end-of-turn tokens: the tokenizer's, the generation configuration's, and common ones."""
    ids = set() if tokenizer.eos_token_id is None else {int(tokenizer.eos_token_id)}
    try:
        config = json.loads((model / "generation_config.json").read_text(encoding="utf-8"))
        eos = config.get("eos_token_id", [])
        ids.update(int(number) for number in (eos if isinstance(eos, list) else [eos]) if number is not None)
    except (OSError, ValueError, TypeError):
        pass
    known = tokenizer.get_added_vocab()
    return ids | {int(known[name]) for name in _TURN_ENDS if name in known}


if __name__ == "__main__":
    # Keep transformers from importing torch: the import takes two of three seconds, and tokenizers do not need torch.
    sys.modules["torch"] = None  # type: ignore[assignment]
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # do not warn that torch is missing
    template_path = Path(sys.argv[5]) if len(sys.argv) > 5 else None
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), template_path)
