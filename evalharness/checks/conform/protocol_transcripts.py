"""Games recorded from the originals of other groups' protocols, one JSON object a line: what was sent, what was said,
what was read, what the world answered. Each original's recording has a form of its own; here they become one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalharness.base.errors import UserError
from evalharness.checks.conform.transcripts import Step, Transcript, recorded_rows
from evalharness.protocol.prompt import Message
from evalharness.protocol.published import load_protocol, protocol_names

Sent = Callable[[list[Message]], bool]
"""Whether messages are those that the original sent."""


@dataclass(frozen=True)
class RecordedCall:
    sent: Sent
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
    """Words of a request at most: the recorders' stand-in for tokens. None: no limit was met."""
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


def _equal(*wanted: Message) -> Sent:
    return lambda messages: (
        [(m["role"], m["content"]) for m in messages] == [(m["role"], m["content"]) for m in wanted]
    )


def _hashed(sha256: str) -> Sent:
    return lambda messages: (
        hashlib.sha256(json.dumps(messages, ensure_ascii=False).encode()).hexdigest() == sha256
    )


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
    settings = row["settings"]
    # The strings of its vLLM models are made by templates of its own: what is compared is what goes into them.
    calls = [
        RecordedCall(_system_and_user(step["call"].get("system"), step["prompt"]), step["reply_after_stop"])
        for step in row["steps"]
    ]
    steps = [
        RecordedStep((call,), step["agent_action"], step["obs"])
        for call, step in zip(calls, row["steps"], strict=True)
    ]
    kind = settings.get("alfworld_examples_key") or row["task"].get("subtask", "")
    most = settings["llm_config"]["context_length"] - settings["llm_max_tokens"]
    return RecordedGame(
        row["family"], kind, {"memory": settings["memory_size"]}, row["goal"], row["init_obs"], (),
        tuple(steps), source, most_words=most if settings["forced_cut"] else None,
    )  # fmt: skip


def _system_and_user(system: str | None, user: str) -> Sent:
    def sent(messages: list[Message]) -> bool:
        [first, last] = messages
        return bool((system is None or first["content"] == system) and last["content"] == user)

    return sent


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


def _options(texts: str, family: str) -> Mapping[str, Any]:
    """The agent's options in the protocol that has these texts and plays this family."""
    known = map(load_protocol, protocol_names())
    return next(
        (protocol.options for protocol in known if (protocol.texts, protocol.tasks) == (texts, family)), {}
    )


def _tales(row: dict[str, Any], source: str) -> RecordedGame:
    settings, calls = row["settings"], [
        RecordedCall(_hashed(call["messages_sha256"]), call["reply"]) for call in row["calls"]
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
        for number, row in recorded_rows(path):
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
