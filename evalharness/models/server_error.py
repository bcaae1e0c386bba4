"""Read the codes, the text and the kind of error from a server's error response."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_TEXTS = frozenset({
    "message", "msg", "detail", "details", "error", "errors", "error_msg", "error_message", "reason", "description",
    "title", "raw",
})  # fmt: skip
_CODES = frozenset({"code", "type", "status", "error_code", "error_type", "errorcode", "__type"})
_PASSED = frozenset({"metadata", "innererror", "inner_error", "data", "response", "body"})
"""Keys under which an error contains another error. Other keys may repeat the request, so they are not read."""
_DEEPEST = 8
_LONGEST = 4000
"""Maximum number of characters of all texts together."""

_FULL_CODES = (
    "contextlengthexceeded", "contextsizeexceeded", "contextwindowexceeded", "contextlimitexceeded", "contextoverflow",
    "exceedcontext", "exceedscontext", "inputtoolong", "prompttoolong", "requesttoolarge", "tokenslimitreached",
    "tokenlimitexceeded", "maxtokensexceeded", "texttoolong", "contextwindowfull", "contextlengtherror",
    "inputlengthexceeded", "prompttokensexceeded", "stringabovemaxlength",
)  # fmt: skip
"""Error codes, types and exception names which mean that the context is full; only lower-case letters and digits."""
_TOKENS = r"(?:tokens?|characters)"
_CONTEXT = (
    r"context[\w -]{0,20}(?:length|window|size|limit|budget)|n_ctx|max_?(?:seq|model|num|input)_?\w{0,12}"
)
_OVER = r"(?:exceed\w*|overflow\w*|too (?:long|large|many|big)|(?:long|larg|great|bigg|high|mor|few|less)(?:e?r)? than)"
_LONG = rf"(?:{_OVER}|too small|only|(?:not|n't) fit|<=|at most|reached|full)"
_FULL_WORDS = re.compile(
    "|".join((
        rf"(?:{_CONTEXT}).{{0,80}}{_LONG}",
        rf"{_LONG}.{{0,80}}(?:{_CONTEXT}|context\b)",
        r"(?:context|session)[\w ]{0,20}(?:length|window|size|len)\w*(?: is| of|:|=)? ?\(?\d",
        rf"{_TOKENS}\b.{{0,80}}(?:{_LONG}|limit of \d|supports)",
        rf"{_OVER} .{{0,40}}{_TOKENS}",
        rf"(?:length|size|count|number) of (?:the |your |all )?(?:input|prompt|messages|request).{{0,60}}{_LONG}",
        rf"(?:input|prompt|sequence|request|query)(?: \w+)? (?:length|size|len|count)\b.{{0,60}}(?:{_LONG}|should be)",
        r"(?:prompt|inputs?|messages|conversation|chat|request|payload|entity|body|content)(?: \S+){0,4} too "
        r"(?:long|large|big)",
        r"messages?\[\d+\]\S* (?:string )?too long",
        r"max(?:imum)?[\w ]{0,20} (?:input|prompt)[\w ]{0,20}(?: is| of|:)? ?\(?\d",
        r"max_(?:new_|completion_|output_)?tokens\b.{0,60}(?:got|\() ?-\d",
        r"(?:reduce|shorten|trim) (?:the |your |its )?(?:length|size|number|prompt|input|messages|conversation)",
        r"expected maxlength|context[ -]?shift|shifting is disabled|(?:context|kv.?cache) (?:is )?full",
        rf"(?:prompt|sequence) (?:\S+ ){{0,3}}{_OVER}",
        r"超长|过长|(?:长度|上下文|tokens?).{0,20}超(?:过|出|限)|超(?:过|出).{0,20}(?:长度|上下文|tokens?)",
    )),
    re.DOTALL,
)  # fmt: skip
"""Error texts of full contexts; `tests/models/test_server_error.py` lists them by server."""
_FORM_WORDS = re.compile(
    r"\b(?:schema|fields?|propert(?:y|ies)|parameters?|arguments?|json|enum|unknown|unexpected|unrecognized|unsupported|"
    r"deprecated|not (?:supported|permitted|allowed))\b"
)
"""Words of errors about the form of a request, not its length."""
_BUDGET_WORDS = re.compile(r"max_\w*tokens|(?:completion|output) tokens")
_CHAT_WORDS = re.compile(r"context|prompt|input|messages|-\d")
_SIZES = re.compile(rf"\d[\d,]* (?:\w+ )?{_TOKENS}|{_TOKENS} \d|\b(?:got|\() ?-\d")
_RATE_WORDS = re.compile(
    r"rate.?limit|per (?:minute|hour|day|second)|too many requests|throttl|quota|please wait|queue|in flight|"
    r"time[d -]{0,2}out|took too long|overloaded|concurren|\b[tr]p[md]\b"
)
_FILTER_CODES = (
    "contentfilter", "contentpolicy", "responsibleai", "datainspection", "moderation", "sensitive", "guardrail",
    "prohibitedcontent", "safety", "blocklist", "recitation", "refusal", "policyviolation", "unsafecontent",
    "promptblocked", "jailbreak",
)  # fmt: skip
"""Codes and finish reasons of content filters, reduced to lower-case letters and digits."""
_FILTER_WORDS = re.compile(
    r"content (?:filter|management policy|policy|moderation|inspection)|read_filter_error due to|inappropriate content|"
    r"(?:was|been|is) (?:flagged|blocked by)|safety (?:system|filter|polic|reasons|setting)|moderation|"
    r"prohibited content|guardrail|usage (?:polic|guideline)|敏感|违规|content (?:exists )?risk|high risk|jailbreak|"
    r"prompt shield|put_sensitive|new_sensitive|unsafe content"
)

_USED_UP = frozenset({"insufficientquota", "billinghardlimitreached", "insufficientbalance"})


@dataclass(frozen=True)
class ServerError:
    status: int
    """The HTTP status. If the HTTP status is 200: the status in the error's own codes, or 500 without such a code."""
    message: str
    """The server's error text, at most 500 characters."""
    codes: frozenset[str]
    """The error's codes and types, reduced to lower-case letters and digits."""
    words: str
    """The complete error text in lower case."""

    @classmethod
    def of(cls, status: int, raw: bytes | bytearray) -> ServerError:
        try:
            leaves = list(_leaves(json.loads(raw)))
        except (ValueError, RecursionError):
            leaves = []
        codes = {_plain(str(value)) for key, value in leaves if key in _CODES}
        texts = dict.fromkeys(
            value.strip() for key, value in leaves if key in _TEXTS and isinstance(value, str)
        )
        message = "; ".join(filter(None, texts)) or raw.decode(errors="replace").strip()
        message = message.encode("utf-8", "replace").decode()
        if status == 200:
            status = next((int(code) for code in codes if re.fullmatch("[45][0-9][0-9]", code)), 500)
        return cls(status, message[:500], frozenset(codes), message[:_LONGEST].lower())

    @property
    def is_used_up(self) -> bool:
        """Whether a code says that the account's money or quota is used up: waiting does not help then."""
        return bool(_USED_UP & self.codes)

    @cached_property
    def is_context_full(self) -> bool:
        """Whether the request is too long for the model, or for the server."""
        if self.status == 413:
            return True
        if "request too large" in self.words:  # even if 429: it exceeds the tokens per minute
            return True
        if _names_full(self.codes):
            return True
        if self.status in (401, 402, 408, 425, 429):
            return False
        if _RATE_WORDS.search(self.words) or (self._is_about_form and not _SIZES.search(self.words)):
            return False
        if _BUDGET_WORDS.search(self.words) and not _CHAT_WORDS.search(self.words):
            return False  # `--max-tokens` exceeds the longest reply that the model may write
        return _names_full([_plain(self.words)]) or _FULL_WORDS.search(self.words) is not None

    @property
    def is_filtered(self) -> bool:
        """Whether a content filter blocked the request or the reply; the model itself has refused nothing."""
        if any(name in code for name in _FILTER_CODES for code in self.codes):
            return self.status >= 400 and self.status not in (401, 402, 408, 425, 429)
        return self.status in (400, 403, 422, 446, 451) and _FILTER_WORDS.search(self.words) is not None

    @property
    def may_be_length(self) -> bool:
        """Whether the request may have been too long. Sending a shorter request shows whether this is the reason."""
        refused = 400 <= self.status < 500 and self.status not in (401, 402, 408, 409, 425, 429)
        other = self._is_about_form or self.is_filtered or _RATE_WORDS.search(self.words)
        return refused and not other

    @property
    def _is_about_form(self) -> bool:
        return _FORM_WORDS.search(self.words) is not None


def read_filter_error(finish_reason: str) -> ServerError | None:
    """Return the error for a reply that was ended by a content filter; None for any other finish reason."""
    if any(code in _plain(finish_reason) for code in _FILTER_CODES):
        words = f"the reply ended by {finish_reason}"
        return ServerError(400, words, frozenset({_plain(finish_reason)}), words)
    return None


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())


def _names_full(names: Collection[str]) -> bool:
    return any(code in name for code in _FULL_CODES for name in names)


def _leaves(value: Any, key: str = "error", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (key, code or text) of an error and of the errors inside it; some gateways send these as JSON in a text."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            if (name := name.lower()) in _TEXTS | _CODES | _PASSED:
                yield from _leaves(inner, name, depth + 1)
    elif isinstance(value, list):
        for inner in value[:20]:
            yield from _leaves(inner, key, depth + 1)
    elif isinstance(value, str) and key not in _CODES and value.lstrip()[:1] in ("{", "["):
        try:
            yield from _leaves(json.loads(value), key, depth + 1)
        except (ValueError, RecursionError):
            yield key, value
    elif isinstance(value, str) or (isinstance(value, int) and key in _CODES):
        yield key, value
