"""Apply perturbations: present an environment to a policy in other words.

A `PlayedSurface` stands between policy and environment. It rewords the prompt, the observations and the lists of valid
actions for the policy, and it translates the policy's actions back to the environment's own words. The environment and
its scoring do not change. An environment defines its perturbations as data (`evalharness.envs.base.Perturbation`).

If a perturbation changes the wording of an action, the old wording becomes invalid: the environment gets an unknown
word instead, and its answer goes to the policy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter, ascii_lowercase
from typing import Any, NamedTuple

from evalharness.base.errors import UserError
from evalharness.envs.base import EnvSpec, GameWords, Perturbation
from evalharness.envs.surface import Action, ActionSurface
from evalharness.protocol.perturbation_names import FROM_FILE, compose, normal_name
from evalharness.protocol.prompt import Example, ExampleTurn, PromptFile

UNPERTURBED = Perturbation("")
UNKNOWN_WORD = "qzxvkw"
"""The environment gets this word, which no environment knows, instead of an action in its old wording."""


def _in_capitals(template: str) -> str:
    """Write the words of a template in capitals, but not the names of its slots."""
    return "".join(
        literal.upper() + ("" if slot is None else f"{{{slot}}}")
        for literal, slot, _, _ in Formatter().parse(template)
    )


def _opening(template: str) -> str:
    return template.partition("{")[0].strip()


class PlayedSurface:
    """The wording in which a policy plays an environment: the original wording, or that of a perturbation."""

    def __init__(
        self,
        spec: EnvSpec,
        name: str | None = None,
        perturbation: Perturbation = UNPERTURBED,
        *,
        words: str = "",
    ) -> None:
        """Make the wording of `perturbation`; `name` is its name in records. `words`: name of a game's own templates
        (`Task.words`), if the game uses others than the family."""
        self._made_with = (spec, name, perturbation)
        self._of_games: dict[str, PlayedSurface] = {words: self}
        self.words = words
        self._game = spec.actions.wording.games.get(words, GameWords())
        self._written = ActionSurface(spec.actions.templates)
        self.name, self.perturbation = name, perturbation
        self.wording = spec.actions.wording
        self.help_action = spec.actions.help_action
        self.canonical = ActionSurface(spec.actions.templates_in(words))
        templates = {**self.canonical.templates, **self.perturbation.actions}
        if self.perturbation.upper_case:
            templates = {action: _in_capitals(template) for action, template in templates.items()}
        self.perturbed = ActionSurface(templates)
        self.changed = [
            action for action, template in self.canonical.templates.items() if templates[action] != template
        ]
        # Case matters in actions if it matters in the original, or if the perturbation writes actions in capitals.
        strict = self.wording.case_matters or self.perturbation.upper_case
        self._parser = _ActionParser({a: templates[a] for a in self.changed}, ignore_case=not strict)
        self._old = _ActionParser({a: self.canonical.templates[a] for a in self.changed}, ignore_case=True)
        self._also = {
            action: re.compile(pattern, re.IGNORECASE | re.DOTALL)
            for action, pattern in self.wording.also.items()
            if action in self.changed
        }
        words = self.wording.numbered if self.perturbation.join_numbers else ""
        self._spaced = re.compile(rf"\b({words}) (\d+)\b", re.IGNORECASE) if words else None
        self._joined = re.compile(rf"\b({words})(\d+)\b", re.IGNORECASE) if words else None
        self._unread_from = re.compile(self.wording.unread_from) if self.wording.unread_from else None
        self._quoted = re.compile(self.wording.quoted, re.DOTALL) if self.wording.quoted else None
        if self.name is not None and "@" in self.name and (action := self.find_confused_action()):
            raise UserError(
                f"--perturb {self.name}: in {spec.title} {action} has the same new wording as another action, or its "
                "old wording is still an action"
            )

    def for_game(self, words: str) -> PlayedSurface:
        """Return the same perturbation for a game with its own templates (`Task.words`)."""
        if words not in self._of_games:
            self._of_games[words] = PlayedSurface(*self._made_with, words=words)
        return self._of_games[words]

    def require_effect(self, prompt: PromptFile) -> None:
        """Raise UserError if a perturbation comes from a user's file, and changes neither actions nor the prompt."""
        if FROM_FILE not in self.perturbation.source or self.changed or self.perturbation.join_numbers:
            return
        spec = self._made_with[0]
        plain = PlayedSurface(spec, self.name, words=self.words)
        if self.prompt(prompt) == plain.prompt(prompt):
            raise UserError(f"--perturb {self.name}: it changes nothing in {spec.title}")

    def find_confused_action(self) -> str | None:
        """Return an action whose new wording is ambiguous or whose old wording is still valid; None: no such action."""
        for name, template in self.canonical.templates.items():
            slots = [slot for _, slot, _, _ in Formatter().parse(template) if slot is not None]
            meant = Action(
                name, {slot: f"thing{letter}" for letter, slot in zip(ascii_lowercase, slots, strict=False)}
            )
            words, canonical = self.perturbed.render(meant), self.canonical.render(meant)
            if (
                self.perturbed.parse(words) != meant
                or self.to_world(self.from_world(canonical)) != canonical
                or (name in self.changed and self.to_world(canonical) != UNKNOWN_WORD)
            ):
                return name
        return None

    def is_listing(self, observation: str) -> bool:
        """Return whether an observation is a list of valid actions, the answer to the help action."""
        return bool(self.wording.listing) and observation.startswith(self.wording.listing)

    def to_world(self, text: str) -> str:
        """Translate a policy's action to the environment's own words. Replace the old wording of a changed action by
        `UNKNOWN_WORD`, and return any other text unchanged."""
        if self._spaced is not None and self._joined is not None:
            if self._spaced.search(text):
                return UNKNOWN_WORD
            text = self._joined.sub(r"\1 \2", text)
        if not self.changed:
            return text
        part = self._read_part(text)
        parsed = self._parser.parse(part.words)
        if parsed is not None:
            return part.before + self.canonical.render(parsed.action) + part.text_after(parsed.period)
        return UNKNOWN_WORD if self._is_old(part.words) else text

    def from_world(self, text: str) -> str:
        """Translate an action in the environment's words to the policy's words. Return any other text unchanged."""
        action = self.canonical.parse(text.strip())
        if action is None or action.name not in self.changed:
            action = self._read_otherwise(text.strip()) or action
        if action is not None and action.name in self.changed:
            tail = text[len(text.rstrip()) :]
            text = self.perturbed.render(action) + tail
        return self.names(text)

    def names(self, text: str) -> str:
        """Write the numbered names in a text (`cup 1`) as the perturbation requires (`cup1`)."""
        return text if self._spaced is None else self._spaced.sub(r"\1\2", text)

    def observation(self, text: str, sent: str = "") -> str:
        """Reword an observation for the policy. `sent`: the action of the policy that the environment answers."""
        if UNKNOWN_WORD in text:
            # The environment repeats `UNKNOWN_WORD` in its answer: write the first word of the policy's action instead.
            word = (sent.split() or [""])[0]
            text = re.sub(UNKNOWN_WORD, lambda _: word, text)
        listing = self.wording.listing
        if self.is_listing(text) and self.name is not None:
            return listing + ", ".join(self._reorder(text.removeprefix(listing).split(", ")))
        if self.changed and self._quoted is not None and (quote := self._quoted.search(text)):
            start, end = quote.span("action")
            text = text[:start] + self.from_world(quote["action"]) + text[end:]
        return self.names(text)

    def prompt(self, prompt: PromptFile) -> PromptFile:
        """Reword the prompt for one kind of task (`PromptFile.for_kind`)."""
        if self.name is None and not self.words:
            return prompt
        how = self.perturbation
        instruction, rules = self._prose(prompt.instruction), self._prose(prompt.format_rules)
        if how.drop_format_rules:
            rules = ""
        if how.reorder_instruction:
            instruction = _reverse_bullets(instruction)
            instruction, rules = f"{rules.strip()}\n\n{instruction.strip()}".strip(), ""
        listed = list(prompt.actions or self.canonical.templates)
        if how.reverse_actions:
            listed = _reverse_but_last(listed, lambda name: name == self.help_action)
        if how.listed:
            listed.sort(key=how.listed.index)
        update: dict[str, Any] = {
            "instruction": instruction,
            "format_rules": rules,
            "actions": tuple(listed),
        }
        if prompt.example is not None:
            update["example"] = self._example(prompt.example)
            update["more_examples"] = tuple(map(self._example, prompt.more_examples))
        return prompt.model_copy(update=update)

    def _example(self, example: Example) -> Example:
        steps = tuple(
            ExampleTurn(
                thought=self.names(step.thought),
                action=self.from_world(self._in_game(step.action)),
                observation=self.observation(self._feedback_in_game(step.observation)),
            )
            for step in example.steps
        )
        observation = self.observation(example.observation)
        return Example(goal=self.names(example.goal), observation=observation, steps=steps)

    def _in_game(self, written: str) -> str:
        """Translate an action in a prompt file to the words of a game that has its own templates."""
        action = self._written.parse(written)
        return self.canonical.render(action) if action and action.name in self._game.actions else written

    def _feedback_in_game(self, written: str) -> str:
        for pattern, replacement in self._game.feedback.items():
            written = re.sub(pattern, replacement, written)
        return written

    def _read_part(self, text: str) -> _SplitReply:
        """Split a policy's text into the words of an action and the text around them, which environments may ignore."""
        unread = self._unread_from.search(text) if self._unread_from else None
        read = text[: unread.start()] if unread else text
        words = read.strip().rstrip(_FINAL)
        start = len(read) - len(read.lstrip())
        return _SplitReply(text[:start], words, text[start + len(words) :])

    def _is_old(self, words: str) -> bool:
        return self._old.parse(words) is not None or any(
            pattern.fullmatch(words) for pattern in self._also.values()
        )

    def _read_otherwise(self, text: str) -> Action | None:
        """Return the changed action whose other accepted wording (`Wording.also`) the text is; None for other texts."""
        for name, pattern in self._also.items():
            if (match := pattern.fullmatch(text)) and match.groupdict():
                return Action(name, match.groupdict())
        return None

    def _reorder(self, items: list[str]) -> list[str]:
        if self.perturbation.reverse_actions:

            def asks_for_help(item: str) -> bool:
                action = self.canonical.parse(item.strip())
                return action is not None and action.name == self.help_action

            items = _reverse_but_last(items, asks_for_help)
        if self.perturbation.listed:
            items.sort(key=self._place)
        return [self.from_world(item) for item in items]

    def _place(self, item: str) -> int:
        """Return the position of a listed action in the perturbation's order; unknown actions come last."""
        action = self.canonical.parse(item.strip()) or self._read_otherwise(item.strip())
        listed = self.perturbation.listed
        return len(listed) if action is None else listed.index(action.name)

    def _prose(self, text: str) -> str:
        """Reword a text of the prompt: replace the phrases that the perturbation lists, and the verbs in quotes."""
        for old, new in {**self._game.prose, **self.perturbation.prose}.items():
            text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", lambda _, new=new: new, text)  # type: ignore[misc]
        for name in self.changed:
            old, new = _opening(self.canonical.templates[name]), _opening(self.perturbed.templates[name])
            if old and new:
                text = text.replace(f'"{old}"', f'"{new}"')
        return text


def _reverse_but_last(items: Sequence[str], stays_last: Callable[[str], bool]) -> list[str]:
    return [i for i in reversed(items) if not stays_last(i)] + [i for i in items if stays_last(i)]


_FINAL = ". \t\r\n\v\f"


@dataclass(frozen=True)
class _SplitReply:
    """A policy's text in three parts: the words of the action, and the text before and after them."""

    before: str
    words: str
    after: str

    def text_after(self, period: bool) -> str:
        """Return the text after the words. `period`: leave out its first period, which belongs to the action."""
        rest = self.after.lstrip()
        return rest[1:] if period and rest.startswith(".") else self.after


class _ParsedAction(NamedTuple):
    action: Action
    period: bool
    """Whether the template of the action ends with a period."""


class _ActionParser:
    """Finds the template that fits an action. Final periods of the templates are left out."""

    def __init__(self, templates: Mapping[str, str], *, ignore_case: bool) -> None:
        bare = ActionSurface({name: template.rstrip(_FINAL) for name, template in templates.items()})
        flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
        self._patterns = [
            (name, re.compile(pattern.pattern, flags), templates[name].rstrip().endswith("."))
            for name, pattern in bare.patterns()
        ]

    def parse(self, words: str) -> _ParsedAction | None:
        for name, pattern, period in self._patterns:
            if match := pattern.fullmatch(words):
                return _ParsedAction(Action(name, match.groupdict()), period)
        return None


def _reverse_bullets(text: str) -> str:
    """Reverse the order of the bullets (`- `) in each bulleted list. Other lines keep their positions."""
    lines, out, bullets = text.split("\n"), list[str](), list[list[str]]()

    def flush() -> Iterable[str]:
        done = [line for bullet in reversed(bullets) for line in bullet]
        bullets.clear()
        return done

    for line in lines:
        if line.startswith("- "):
            bullets.append([line])
        elif bullets and line.startswith("  "):
            bullets[-1].append(line)
        else:
            out += [*flush(), line]
    return "\n".join([*out, *flush()])


def make_surface(spec: EnvSpec, name: str | None) -> PlayedSurface:
    """Return the wording of the perturbation `name` (None: the original). Raise UserError for an unknown name."""
    if name is None:
        return PlayedSurface(spec)
    return PlayedSurface(spec, normal_name(name), compose(spec, name))


def surfaces(
    specs: Mapping[str, EnvSpec], families: Iterable[str], name: str | None
) -> dict[str, PlayedSurface]:
    """Return family -> its wording with the perturbation. Raise UserError if a family does not have it."""
    return {family: make_surface(specs[family], name) for family in families}
