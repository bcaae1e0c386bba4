"""Games recorded from the originals of other groups' protocols, one JSON object a line: what was sent, what was said,
what was read, what the world answered. Each original's recording has a form of its own; here they become one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.protocol.prompt import Message
from evalharness.protocol.published import load_protocol, protocol_names
from tests.conform.transcripts import Step, Transcript, list_recorded_rows

Compare = Callable[[list[Message]], tuple[str, str]]
"""Maps our messages to two texts, the recorded one and ours: the first message that differs, else two equal texts."""
Count = Callable[[list[Message]], int]
"""Counts a request's words, the recorders' stand-in for tokens."""


def words_of_chat(messages: list[Message]) -> int:
    """As of a chat of OpenAI: the words of the messages, a word for each role, three for the reply."""
    return 3 + sum(1 + len(message["content"].split()) for message in messages)


@dataclass(frozen=True)
class RecordedCall:
    compare: Compare
    reply: str


@dataclass(frozen=True)
class RecordedStep:
    calls: tuple[RecordedCall, ...]
    """The last one's reply is read for the action."""
    action: str | None
    """As the original read it; None: it refused the reply, and the world was not asked."""
    observation: str
    valid_actions: tuple[str, ...] = ()
    valid: bool | None = None
    """By the protocol's own rule; None where it has none."""


@dataclass(frozen=True)
class RecordedGame:
    family: str
    kind: str
    options: Mapping[str, Any]
    """Of the agent."""
    goal: str
    observation: str
    valid_actions: tuple[str, ...]
    steps: tuple[RecordedStep, ...]
    source: str
    most_words: int | None = None
    """Words of a request at most; None: no limit was met."""
    count_words: Count = words_of_chat
    """As the original's model counts its request."""
    replay: Transcript | None = None
    """The same game as its world answered; None where that was replayed from elsewhere."""
    suite: str = "unwrapped"
    seed: int = 0
    """Of the suite."""
    place: str = ""
    """Kind or game of the task, where the recording does not know its number."""


@dataclass(frozen=True)
class RecordedReading:
    """A reply, and what the original made of it."""

    family: str
    options: Mapping[str, Any]
    reply: str
    action: str | None
    source: str


@dataclass(frozen=True)
class Recording:
    games: tuple[RecordedGame, ...]
    readings: tuple[RecordedReading, ...]
    left_out: Mapping[str, int]
    """What is not compared -> how many records of it there are."""


def _equal(*wanted: Message) -> Compare:
    def compare(messages: list[Message]) -> tuple[str, str]:
        texts = ([f"{m['role']}: {m['content']}" for m in sent] for sent in (wanted, messages))
        pairs = zip_longest(*texts, fillvalue="(no message)")
        return next(((recorded, ours) for recorded, ours in pairs if recorded != ours), ("", ""))

    return compare


def _hashed(sha256: str, last: Message) -> Compare:
    """Only the last of the recorded messages is at hand, and the hash of all."""

    def compare(messages: list[Message]) -> tuple[str, str]:
        own = hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest()
        recorded, ours = _equal(last)(messages[-1:])
        return (recorded, ours) if recorded != ours else (f"SHA-256 {sha256}", f"SHA-256 {own}")

    return compare


def _replay(
    row: Mapping[str, Any],
    source: str,
    first: str,
    steps: list[Step],
    *,
    success: bool | None,
    index: int = 0,
) -> Transcript:
    """Its goal is not compared: a protocol shows it, or not, in words of its own."""
    return Transcript(row["family"], index, "", None, first, success, tuple(steps), row, source)


def _step(
    row: Mapping[str, Any],
    action: str,
    done: bool | None,
    observation: str | None = None,
    progress: float | None = None,
) -> Step:
    return Step(action, row["obs"] if observation is None else observation, progress, done, None, row)


def _verl_agent(row: dict[str, Any], source: str) -> RecordedGame:
    steps = [
        RecordedStep(
            (RecordedCall(_equal({"role": "user", "content": step["prompt"]}), step["reply"]),),
            step["projected_action"],
            step["obs"],
            tuple(step["admissible"]),
            bool(step["valid"]),
        )
        for step in row["steps"]
    ]
    most = row["settings"]["max_steps"]
    # Its world says that a game is over at its last step; with us the run's limit does.
    played = [
        _step(step, step["projected_action"], step["done"] if step["step"] < most else None)
        for step in row["steps"]
    ]
    whole = row["settings"].get("driver_step_cap", most) >= most
    success = bool(row["success"]) if whole else None
    replay = _replay(
        row, source, row["init_obs"], played, success=success, index=row["task"]["agentboard_id"]
    )
    return RecordedGame(
        row["family"], "", {"history": row["settings"]["history_length"]}, row["task_description"], row["init_obs"],
        tuple(row["init_admissible"]), tuple(steps), source,
        replay=None if "game_text" in row["settings"] else replay,
    )  # fmt: skip


def _agentboard(row: dict[str, Any], source: str) -> RecordedGame:
    settings, steps = row["settings"], list[RecordedStep]()
    count: Count = words_of_chat
    for step in row["steps"]:
        system, user = step["call"].get("system"), step["prompt"]
        if system is None:
            # A model of its vLLM gets one string: system text and a sentence of its own, then the user message, in a
            # template of its own. The string is counted whole.
            before, _, after = step["call"]["full_prompt"].partition(user)
            compare, count = _system_in(before, user), _words_between(before, after)
        else:
            compare = _equal({"role": "system", "content": system}, {"role": "user", "content": user})
        call = RecordedCall(compare, step["reply_after_stop"])
        steps.append(RecordedStep((call,), step["agent_action"], step["obs"]))
    kind = settings.get("alfworld_examples_key") or row["task"].get("subtask", "")
    most = settings["llm_config"]["context_length"] - settings["llm_max_tokens"]
    return RecordedGame(
        row["family"], kind, {"memory": settings["memory_size"]}, row["goal"], row["init_obs"], (), tuple(steps),
        source, most_words=most if settings["forced_cut"] else None, count_words=count,
    )  # fmt: skip


def _system_in(before: str, user: str) -> Compare:
    def compare(messages: list[Message]) -> tuple[str, str]:
        system = messages[0]["content"]
        recorded = [{"role": "system", "content": system if system in before else before}]
        return _equal(*recorded, {"role": "user", "content": user})(messages)

    return compare


def _words_between(before: str, after: str) -> Count:
    return lambda messages: len(f"{before}{messages[-1]['content']}{after}".split())


def _agentgym(row: dict[str, Any], source: str) -> RecordedGame | None:
    how = row["settings"]["action_format"].partition(" ")[0]
    if row["conversation"] is None:
        return None  # it evaluated Python that makes no text, and the game ended there without a record
    family, roles = row["family"], {"human": "user", "gpt": "assistant"}
    # Its local agent keeps another form of the same conversation, and fills a chat template with it.
    said: list[Message] = [
        {"role": roles[m["from"]], "content": m["value"]} if "from" in m else m for m in row["conversation"]
    ]
    task, steps, played = row["task"], list[RecordedStep](), list[Step]()
    for number, step in enumerate(row["steps"]):
        call = RecordedCall(_equal(*said[: 3 + 2 * number]), step["reply"])
        listed = tuple(step.get("available_actions") or ())
        steps.append(RecordedStep((call,), step["sent_action"], step["obs"], listed))
        if step["sent_action"] is not None:
            # Points of 100; a mistake that fails the task is -100.
            points = max(0, step["reward"]) / 100 if task.get("variation") is not None else None
            played.append(_step(step, step["sent_action"], step["done"], progress=points))
    options = {**_options("agentgym", family), "format": _FORMATS[how]}
    first, lists, actions = said[2]["content"].partition("\nAVAILABLE ACTIONS: ")
    success, index, suite = row["success"], task.get("data_idx"), "agentgym"
    if lists:
        room, _, goal = first.partition("\nYour task is to: ")
        opening = f"-= Welcome to TextWorld, ALFRED! =-\n\n{room}\n\nYour task is to: {goal}"
        index, suite = task["agentboard_id"], "unwrapped"
    else:
        goal, _, opening = first.removeprefix("Your goal: ").partition("\n")
    if "level" in task:
        # Its success asks for a reward of 1, which no mission pays; ours for any.
        success, index = row["reward"] > 0, task["data_idx"] % 40
    known = lists or "variation" in task or "level" in task
    return RecordedGame(
        family, "", options, goal, opening, tuple(actions.split(",")) if lists else (), tuple(steps), source,
        replay=_replay(row, source, opening, played, success=success, index=index) if known else None,
        suite=suite, seed=0 if lists else task.get("seed", 0),
    )  # fmt: skip


_FORMATS = {"react": "react", "function_calling": "json", "code_as_action": "code"}


@cache
def _options(texts: str, family: str) -> Mapping[str, Any]:
    """The agent's options in the protocol that has these texts and plays this family."""
    known = map(load_protocol, protocol_names())
    return next(
        (protocol.options for protocol in known if (protocol.texts, protocol.tasks) == (texts, family)), {}
    )


def _tales(row: dict[str, Any], source: str) -> RecordedGame:
    settings, calls = row["settings"], [
        RecordedCall(_hashed(call["messages_sha256"], call["last_message"]), call["reply"]) for call in row["calls"]
    ]  # fmt: skip
    think = settings["agent"] == "react"
    each = 2 if think else 1
    observed = [step["Observation"] for step in row["steps"]]
    steps, played, highest = list[RecordedStep](), list[Step](), 0.0
    for number, step in enumerate(row["steps"]):
        action = step["Action"]
        after = observed[number + 1] if number + 1 < len(observed) else step["Feedback"]
        own = tuple(calls[each * number : each * (number + 1)])
        steps.append(RecordedStep(own, None if "\n" in action else action, after))
        if "\n" not in action:
            # What is seen after a lost game is its last words, then the game's new beginning.
            highest = max(highest, step["Score"] / step["Max Score"])
            played.append(_step(step, action, None, after, highest))
    options = {
        "think": think, "conversation": settings["conversation"], "context_limit": settings["context_limit"],
        "think_tokens": settings["cot_max_tokens"],
    }  # fmt: skip
    summary = row["summary"]
    game, seed = row["task"]["game"], row["task"]["game_seed"] or 0
    return RecordedGame(
        row["family"], "", options, "", observed[0], (), tuple(steps), source,
        # Where no game is named, the seed counts through the test variations of a kind.
        seed=0 if game else seed,
        place=row["task"]["env"] if game is None else game if "/" in game else Path(game).stem,
        replay=_replay(row, source, observed[0], played, success=summary["highscore"] >= summary["max_score"]),
    )  # fmt: skip


_GAMES: Mapping[str, Callable[[dict[str, Any], str], RecordedGame | None]] = {
    "verl-agent": _verl_agent,
    "agentboard": _agentboard,
    "agentgym": _agentgym,
    "tales": _tales,
}


def _agentgym_reading(row: dict[str, Any], source: str) -> RecordedReading | None:
    if "reply" not in row or "not_a_string" in row:
        return None  # a step written in a format; Python that makes no text
    options = {**_options("agentgym", row["family"]), "format": _FORMATS[row["format"]]}
    return RecordedReading(row["family"], options, row["reply"], row.get("action"), source)


_READINGS: Mapping[str, Callable[[dict[str, Any], str], RecordedReading | None]] = {
    "agentboard": lambda row, source: RecordedReading("", {}, row["reply"], row["agent_action"], source),
    "agentgym": _agentgym_reading,
}


def read_recording(protocol: str, folder: Path) -> Recording:
    """All recorded games of a protocol in `folder`. Raises UserError."""
    files = sorted(folder.glob(f"{protocol}[-_]*.jsonl"))
    if not files:
        raise UserError(f"no transcripts of {protocol} in {folder}: {protocol}-*.jsonl")
    games, readings, left_out = list[RecordedGame](), list[RecordedReading](), dict[str, int]()
    for path in files:
        for number, row in list_recorded_rows(path):
            source = f"{path.name}:{number}"
            if not isinstance(row, dict):
                raise UserError(f"{path}:{number} is no transcript: not an object")
            try:
                if "parsing" in path.name:
                    reading = _READINGS[protocol](row, source)
                    readings += [reading] if reading else []
                    known = reading is not None
                else:
                    game = _GAMES[protocol](row, source)
                    games += [game] if game else []
                    known = game is not None
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                raise UserError(
                    f"{source} is no transcript of {protocol} ({type(error).__name__}: {error})"
                ) from None
            if not known:
                what = "not a reply" if "to_format_of" in row else "Python that makes no text"
                left_out[what] = left_out.get(what, 0) + 1
    return Recording(tuple(games), tuple(readings), left_out)
