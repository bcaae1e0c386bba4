"""Split the text of a reply into reasoning and answer.

If a server has no parser for reasoning, the text contains the reasoning between marks, such as `<think>` and
`</think>`. An action in the reasoning is not played, even if the token limit has cut off the closing mark.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

_NAME = (
    r"(?:\w{1,20}[:|])?(?:think(?:ing|_\w{1,10})?|thoughts?|reason(?:ing|s)?|longcat_think|reflect(?:ion)?|analysis|"
    r"scratch_?pad|rationale|cot|chain_of_thought|inner_?monologue|deliberation)"
)
_CHANNEL = r"(?:analysis|commentary|thought|thinking)\b[^\n<]{0,40}(?:<\|message\|>)?"
_OPENED = re.compile(
    rf"^[ \t]*<{_NAME}(?: [^<>\n]{{0,80}})?>|^[ \t]*(?-i:\[THINK\])|◁{_NAME}▷|"
    rf"<\|(?:begin_of_|start_)?{_NAME}(?:_start)?\|>|"
    rf"(?:<\|start\|>assistant)?<\|channel\|?>[ \t]*{_CHANNEL}|<unused94>(?:thought)?|"
    r"<\|im_start\|>think\b|\A(?-i:analysis(?=[A-Z]))|"
    r"\A\s*here (?:is my thought process|are my reasoning steps):",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks that open the reasoning, in this order: tags (DeepSeek, Qwen, Seed, EXAONE, MiniMax, and prompts that ask for
tags), Mistral, Kimi, tokens of Sky-T1 and Cohere, channels of harmony (gpt-oss) and Gemma, MedGemma, s1, harmony
without its tokens, and the sentences of Granite and Apriel."""
_CLOSED = re.compile(
    rf"</{_NAME}>|\[/{_NAME}\]|◁/{_NAME}▷|<\|(?:/{_NAME}|end_(?:of_)?{_NAME}|{_NAME}_end)\|>|<unused95>|<channel\|>|"
    r"(?:<\|end\|>)?(?:<\|start\|>assistant)?<\|channel\|>final\b[^\n<]{0,40}(?:<\|constrain\|>\w{0,20})?<\|message\|>|"
    r"(?:<\|im_end\|>\s{0,4})?<\|im_start\|>answer\b|\[BEGIN FINAL RESPONSE\]",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"\A\s*(?:here is my thought process:.*?here is my response:|analysis(?-i:(?=[A-Z])).*assistant\s?final)",
    re.IGNORECASE | re.DOTALL,
)
_WORDED_END = re.compile(r"(?:here is my response:|assistant\s?final)\Z", re.IGNORECASE)
_ANSWER = r"<\|{0}_(?:RESPONSE|TEXT)\|>|<\|{0}_of_solution\|>|\[{0} FINAL RESPONSE\]"
_ANSWER_MARKS = re.compile("|".join(_ANSWER.format(end) for end in ("START", "BEGIN", "END")), re.IGNORECASE)
"""Marks around the answer. Some models write them after their reasoning, and they are removed."""

_MARK = re.compile(
    r"[<＜⟨〈«](?P<end1> ?/? ?)(?P<angle>[^\W\d_][\w:|-]{1,30})(?: [^<>\n]{0,80})?[ ]?[>＞⟩〉»]|"
    r"[\[【](?P<end2>/?)(?P<square>[^\W\d_][\w:-]{1,30})[\]】]|◁(?P<end3>/?)(?P<triangle>\w{1,30})▷|"
    r"<\|(?:begin_(?:of_)?|start_|(?P<end4>end_(?:of_)?|/))?(?P<token>\w{1,30}?)(?:_(?:start|(?P<end5>end)))?\|>|"
    r"&lt;(?P<end6>/?)(?P<escaped>[a-z][\w:-]{1,30})&gt;|[({]{1,2}(?P<end7>/?)(?P<round>[a-z][\w:-]{1,30})[)}]{1,2}",
    re.IGNORECASE,
)
_MARK_BEGINS = re.compile(r"[<＜⟨〈«\[【◁&({]")
"""First characters of `_CLOSED` and `_MARK`. Most replies lack them, which this search finds out ten times faster."""
_KINDS = ("angle", "square", "triangle", "token", "escaped", "round")
_OF_ANSWERS = re.compile(
    r"(?:final_?)?(?:answer|final|response|reply|output|result|solution|conclusion|actions?|act|command|move|step|turn|"
    r"react|assistant|model|user|system|tools?|tool_calls?|functions?|code|message|text|pre|strong|em|span|div|li|ul|ol|"
    r"observation|inst|turn|header_id|im)",
    re.IGNORECASE,
)
_ACTION = re.compile(r"\baction[ \t]*+\d*+[*_`]*+[ \t]*+[:：]", re.IGNORECASE)
_LABEL_AHEAD = re.compile(r"[^\w<\[◁]*+(?:thought|action)[ \t]*+\d*+[*_`]*+[ \t]*+[:：]", re.IGNORECASE)


def split_reasoning(reply: str) -> tuple[str, str]:
    """Split a reply into (reasoning, answer). Text with an action between unknown marks counts as reasoning."""
    reasoning, text = split_known(reply)
    parts = [reasoning]
    for _, start, end in reversed([*_find_unknown(text)]):
        parts.append(text[start:end].strip())
        text = text[:start] + text[end:]
    return "\n".join(filter(None, parts)), text


def split_known(reply: str) -> tuple[str, str]:
    """Return (reasoning, answer). The answer begins after the last closing mark and ends at the next opening mark."""
    head, text = "", reply
    if worded := _IN_WORDS.match(text):
        head, text = text[: worded.end()], text[worded.end() :]
    ends = [match.end() for match in _CLOSED.finditer(text)] if _MARK_BEGINS.search(text) else []
    if ends:
        head, text = head + text[: ends[-1]], text[ends[-1] :]
    parts = [_CLOSED.sub("", _OPENED.sub("", _WORDED_END.sub("", head))).strip()]
    if opened := _OPENED.search(text):
        parts.append(text[opened.end() :].strip())
        text = text[: opened.start()]
    if parts[0] or len(parts) > 1:
        text = _ANSWER_MARKS.sub("", text)
    return "\n".join(filter(None, parts)), text


def opens_reasoning(prompt: str) -> bool:
    """Return whether a prompt ends with a mark that opens the reasoning, so that the reply begins with reasoning."""
    return any(not prompt[match.end() :].strip() for match in _OPENED.finditer(prompt))


def closes_reasoning(reply: str) -> bool:
    return bool(_IN_WORDS.match(reply) or _CLOSED.search(reply))


def find_unknown_marks(reply: str) -> list[str]:
    """Return the unknown marks that enclose an action in the reply. Such an action is not played."""
    return [mark for mark, _, _ in _find_unknown(split_known(reply)[1])] if _MARK_BEGINS.search(reply) else []


def _find_unknown(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (mark, start, end) of each text between unknown marks that contains an action, in order. Leave out a text
    that is the whole reply and begins with a label, because it is the answer."""
    if not _MARK_BEGINS.search(text):
        return
    actions = [match.start() for match in _ACTION.finditer(text)]
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    closing: dict[tuple[str, str], int] = {}
    blocks: list[tuple[str, int, int]] = []
    for match in reversed([*_MARK.finditer(text)]):
        kind = next(kind for kind in _KINDS if match[kind])
        name = match[kind].lower()
        if _OF_ANSWERS.fullmatch(name):
            continue
        if any((match[f"end{number}"] or "").strip() for number in range(1, 8)):
            closing[kind, name] = match.end()
            continue
        begins = match.start() <= first
        end = closing.pop((kind, name), None)
        if end is None and (kind in ("token", "round") or not begins):
            continue
        end = end or len(text)
        wraps = begins and end >= last and _LABEL_AHEAD.match(text, match.end())
        if bisect_left(actions, match.end()) < bisect_left(actions, end) and not wraps:
            blocks.append((match[0], match.start(), end))
    past = 0
    for mark, start, end in reversed(blocks):
        if start >= past:
            yield mark, start, end
            past = end
