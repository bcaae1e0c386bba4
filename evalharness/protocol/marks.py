"""Remove marks that a model writes around a thought or an action: markdown, quotes, tags, chat template tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_UNSEEN = (
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
)
_PLAIN = str.maketrans(dict.fromkeys(_UNSEEN, ""))
_OTHER_SPACES = re.compile(rf"(?<! ) *+[\t{_SPACES}][ \t{_SPACES}]*+")

_TOKEN = (
    r"(?:<[|｜](?!tool|python_tag)[\w▁./ -]{1,40}[|｜]>|\[\|[\w ]{1,40}\|\]|<\|turn>|<turn\|>"
    r"|</?s>|<(?:start|end)_of_(?:turn|utterance|text|image)>|(?i:<(?:bos|eos|eot|eod|eom|eoa|eoh|pad|unk|sep|sop|eop)(?:_token)?>)|<0x[0-9A-F]{2}>"
    r"|<(?:extra_id|reserved|unused|SPECIAL)_?\d{1,5}>|</?<?/?SYS>>|\[/?INST\]|\[(?:BOS|EOS|PAD|gMASK|end of text)\])"
)
"""Pattern for a chat template token of Llama, Qwen, Mistral, Gemma, Phi, DeepSeek, GLM, EXAONE, Cohere and others."""
_TOKENS = re.compile(_TOKEN)
_TOKENS_AHEAD = re.compile(rf"\s*+(?:{_TOKEN}\s*+(?:(?:assistant|model)\b\s*+)?)+")
_TAG = r"<[A-Za-z][\w-]{0,30}>"
_CLOSING_TAG = r"(?:</[A-Za-z][\w-]{0,30}>|<br ?/?>)"

OPENING = rf"""(?:[*_`~"'“‘„‚«»‹›「『《〈【⟨（［(\[{{$]|\\(?:boxed|text)\{{|{_TAG})"""
"""Pattern for an opening mark before a label, such as `**` in `**Action: look**`."""
_PAIRS = (
    ("**", "**"), ("__", "__"), ("~~", "~~"), ("``", "``"), ("`", "`"), ("*", "*"), ("_", "_"), ("$", "$"),
    ('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’"), ("„", "“"), ("«", "»"), ("「", "」"), ("『", "』"),
    ("„", "”"), ("‚", "‘"), ("‚", "’"), ("»", "«"), ("‹", "›"), ("›", "‹"), ("《", "》"), ("〈", "〉"), ("【", "】"),
    ("⟨", "⟩"), ("（", "）"), ("［", "］"), ("´", "´"), ("\\boxed{", "}"), ("(", ")"), ("[", "]"), ("{", "}"),
    ("<", ">"),
)  # fmt: skip
_NO_WORDS = ("**", "__", "~~", "``", "`")
"""Marks that are never part of an action; quotes and brackets may be."""
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_EMPHASIS = re.compile(r"(?<!\w)(\*\*|`)(?=[^\s*`])(.+?)(?<=[^\s*`])\1(?!\w)")
_LATEX = re.compile(r"\\text(?:tt|bf|it)?\{([^{}]*)\}")
_BULLET = re.compile(r"(?:[>#•→:-]+[ \t]+)*")
_JSON_ACTIONS = ("action", "command")
_JSON_INSIDE = ("arguments", "parameters", "function")
_BEHIND = ".,;! "
"""Characters that may follow a closing mark at the end of an action."""
_MOST = 16
"""Maximum number of nested marks that are removed."""
_LONGEST = 1000
"""Maximum length of a line in characters; marks are not removed from a longer line, to limit the time."""


MARKS_ALONE = re.compile(
    rf"[ \t]*+(?:(?:`{{3,}}|~{{3,}})[ \t]*+[\w+-]*+|(?:(?:{_TAG}|{_CLOSING_TAG})[ \t]*+)+)[ \t]*+"
)
"""Pattern for a line that has only a code fence or tags."""


def plain_spaces(text: str) -> str:
    """Replace tabs and special spaces by the usual space, and remove characters without width."""
    return _OTHER_SPACES.sub(" ", text.translate(_PLAIN))


def cut_template_tokens(text: str) -> tuple[str, str]:
    """Remove template tokens at the beginning, and all text from the next token. Return (text, first token or "")."""
    first = _TOKENS.search(text)
    if first is None:
        return text, ""
    ahead = _TOKENS_AHEAD.match(text)
    text = text[ahead.end() :] if ahead else text
    later = _TOKENS.search(text)
    return text[: later.start()] if later else text, first[0]


def drop_closing_marks(text: str, openings: Iterable[str]) -> str:
    """Remove closing marks at the end of the text. `openings`: earlier texts that contain the opening marks."""
    openings = tuple(openings)
    text = text.strip()
    for _ in range(_MOST):
        shorter = _drop_one_closing(text, openings)
        if shorter is None:
            break
        text = shorter
    return text


def strip_marks(text: str, openings: Iterable[str] = ()) -> str:
    """Remove the marks around an action or around some of its words. `openings`: earlier texts with opening marks."""
    openings = tuple(openings)
    text = text.strip()
    if len(text) > _LONGEST:
        return text
    text = _cut_at_closing(_BULLET.sub("", text, count=1), openings)
    if '"' in text and (action := _json_action(text.strip("` "))):
        return action
    ended = text.rstrip(_BEHIND)
    text = _EMPHASIS.sub(r"\2", _LATEX.sub(r"\1", ended if ended.endswith(("**", "`")) else text))
    for _ in range(_MOST):
        shorter = _unwrap(text) or _unwrap(text.rstrip(_BEHIND)) or _drop_one_closing(text, openings)
        if shorter is None:
            break
        text = shorter
    return text


def _json_action(text: str) -> str | None:
    """Return the action in JSON such as `{"action": ...}` or a call of the tool `act`; None for any other text."""
    try:
        value = json.loads(text)
        for _ in range(_MOST):
            value = value[0] if isinstance(value, list) else value
            value = json.loads(value) if isinstance(value, str) else value
            if value.get("name", "act") != "act":
                return None
            if (action := next((value[key] for key in _JSON_ACTIONS if key in value), None)) is not None:
                return " ".join(action.split()) or None
            value = next(value[key] for key in _JSON_INSIDE if key in value)
    # RecursionError: the text has several thousand nested brackets.
    except (ValueError, LookupError, AttributeError, StopIteration, RecursionError):
        pass
    return None


def _open(opening: str, closing: str, text: str) -> int:
    """Return the number of opening marks minus that of closing marks; for equal marks, 1 if their number is odd."""
    if opening == closing:
        return _APOSTROPHE.sub("", text).count(opening) % 2
    return text.count(opening) - text.count(closing)


def _has_open_mark(opening: str, closing: str, openings: Iterable[str]) -> bool:
    return any(_open(opening, closing, text) > 0 for text in openings)


def _cut_at_closing(text: str, openings: Iterable[str]) -> str:
    """Cut the text at a mark whose opening mark is in `openings`: `**Action: look** around here` gives `look`."""
    for mark in ("**", "`"):
        ends = text.rstrip(_BEHIND).endswith(mark)
        if not ends and _has_open_mark(mark, mark, openings) and _open(mark, mark, text):
            return text[: text.index(mark)].strip() or text
    return text


def _drop_one_closing(text: str, openings: Iterable[str]) -> str | None:
    """Remove one closing mark at the end that has no opening mark in the text; None if there is no such mark."""
    ended = text.rstrip(_BEHIND)
    if tag := re.search(rf"{_CLOSING_TAG}\Z", ended):
        return ended[: tag.start()].rstrip()
    for opening, closing in _PAIRS:
        if not ended.endswith(closing) or not (
            _open(opening, closing, ended) if opening == closing else _open(opening, closing, ended) < 0
        ):
            continue
        rest = ended[: -len(closing)]
        glued = closing in _NO_WORDS and rest[-1:].strip()
        if glued or _has_open_mark(opening, closing, openings):
            return rest.rstrip()
    return None


def _unwrap(text: str) -> str | None:
    if tag := re.match(rf"{_TAG}|{_CLOSING_TAG}", text):
        rest = text[tag.end() :].strip()
        if rest:
            return rest
    for mark in _NO_WORDS:
        rest = text.removeprefix(mark)
        if rest != text and rest.strip() == rest and _open(mark, mark, text):
            return rest
    for opening, closing in _PAIRS:
        inner = text[len(opening) : -len(closing)]
        if not inner or not text.startswith(opening) or not text.endswith(closing):
            continue
        if _is_whole(opening, closing, inner):
            return inner.strip()
    return None


def _is_whole(opening: str, closing: str, inner: str) -> bool:
    """Return whether the marks around `inner` belong together; in `"a" or "b"`, the outer marks do not."""
    if inner.startswith(opening) and inner.endswith(closing):
        return True
    if opening == closing:
        return not re.search(rf"(?<!\w){re.escape(opening)}|{re.escape(opening)}(?!\w)", inner)
    depth = 0
    for part in re.findall(rf"{re.escape(opening)}|{re.escape(closing)}", inner):
        depth += 1 if part == opening else -1
        if depth < 0:
            return False
    return True
