"""Use the environments in TRL's GRPOTrainer: `rollout_func=rollout(url), reward_funcs=episode_reward,
train_dataset=data_set(url)`. For models that call tools: `environment_factory=environment(url),
train_dataset=tool_data_set(url)`.

With `rollout_func`, the model is trained on the token ids that it sampled: replies are never decoded and tokenized
again. Tokens of the environment's text between two replies are masked (`env_mask`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalharness.rl.clients.session import Session, all_results, tasks

Ids = list[int]
_REPLY, _OBSERVATION = "REPLY", "OBSERVATION"


class TemplateError(ValueError):
    """The chat template changes earlier messages, so the next prompt does not begin with the sampled token ids."""


@dataclass
class _Rollout:
    """One episode's token ids and reward, for the trainer."""

    prompt_ids: Ids
    completion_ids: Ids = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    env_mask: list[int] = field(default_factory=list)
    """For each token of `completion_ids`: 1 if the model sampled it, 0 if it is the environment's text."""
    reward: float = 0.0
    done: bool = False

    @property
    def ids(self) -> Ids:
        return self.prompt_ids + self.completion_ids

    def add(self, ids: Ids, logprobs: Sequence[float] | None, *, sampled: bool) -> None:
        self.completion_ids += ids
        self.logprobs += logprobs if logprobs is not None else [0.0] * len(ids)
        self.env_mask += [int(sampled)] * len(ids)


def data_set(url: str, split: str = "train") -> Any:
    """Return a data set whose prompts are task ids. `rollout` gets the text of the prompt from the server."""
    from datasets import Dataset

    return Dataset.from_list([{"prompt": task["id"]} for task in tasks(url, split)])


def episode_reward(completions: Sequence[Any], episode_reward: Sequence[float], **_: Any) -> list[float]:
    """Return each episode's reward, which `rollout` summed over the turns."""
    return list(episode_reward)


def rollout(
    url: str,
    *,
    split: str = "train",
    reward: str | None = None,
    context: int | None = None,
    template: dict[str, Any] | None = None,
) -> Callable[[list[str], Any], dict[str, Any]]:
    """Return a `rollout_func` for GRPOTrainer. The trainer's `max_completion_length` limits each reply.

    `context` is the largest number of tokens in an episode; None means the model's own limit. `template` has keyword
    arguments for the chat template, such as `{"enable_thinking": False}`.
    """

    def play(prompts: list[str], trainer: Any) -> dict[str, Any]:
        tokenizer = trainer.processing_class
        limit = context or int(trainer.model.config.max_position_embeddings)
        chat = _ChatTemplate(tokenizer, template or {})
        step = trainer.state.global_step
        with Session(url) as session:
            # Rollouts of a prompt have one id, so that `--perturb random` gives them the same wording in all processes.
            named = [(task, f"{step}/{task}") for task in prompts]
            episodes = [
                {"split": split, "task_id": t, "reward": reward, "episode_id": name} for t, name in named
            ]
            turns = all_results(session.reset_many(episodes))
            rollouts = [_Rollout(chat.opening(turn.messages)) for turn in turns]
            room = trainer.args.max_completion_length
            while running := [i for i, r in enumerate(rollouts) if not r.done]:
                fits = [i for i in running if len(rollouts[i].ids) + room <= limit]
                for i in set(running) - set(fits):
                    if not rollouts[i].completion_ids:
                        raise ValueError(
                            f"{prompts[i]}: {len(rollouts[i].ids)} tokens of prompt and {room} of a reply are more "
                            f"than the context of {limit}"
                        )
                    rollouts[i].done = True  # the context is full: end the episode as unsolved
                if not fits:
                    break
                # Sample a reply for each episode with the trainer's engine: transformers, or vLLM with logprobs.
                sampled, logprobs = trainer._generate_single_turn(
                    [rollouts[i].ids for i in fits], None, {}, 1
                )
                turn_ids = [chat.cut_after_end(list(ids)) for ids in sampled]
                replies = [chat.read_reply(ids) for ids in turn_ids]
                for i, turn in enumerate(all_results(session.step_many(replies, fits))):
                    rolled, ids = rollouts[fits[i]], turn_ids[i]
                    rolled.add(ids, None if logprobs is None else logprobs[i][: len(ids)], sampled=True)
                    rolled.reward += turn.reward
                    rolled.done = turn.done
                    if not turn.done:
                        rolled.add(chat.encode_observation(turn.text, reply=ids), None, sampled=False)
        with_logprobs = trainer.use_vllm
        return {
            "prompt_ids": [r.prompt_ids for r in rollouts],
            "completion_ids": [r.completion_ids for r in rollouts],
            "logprobs": [r.logprobs for r in rollouts] if with_logprobs else None,
            "env_mask": [r.env_mask for r in rollouts],
            "episode_reward": [r.reward for r in rollouts],
        }

    return play


def tool_data_set(url: str, split: str = "train") -> Any:
    """Return a data set for `environment` with a row for each task. TRL appends the result of `reset` to the prompt."""
    from datasets import Dataset

    prompt = [{"role": "user", "content": _CALL_ACT}]
    return Dataset.from_list([{"prompt": prompt, "task": task["id"]} for task in tasks(url, split)])


_CALL_ACT = "Call the tool `act` for each of your actions, one at a time, until the goal is reached.\n\n"


def environment(url: str, *, split: str = "train", reward: str | None = None) -> Callable[[], ActEnvironment]:
    """Return an `environment_factory` for GRPOTrainer: the model acts by calling the tool `act`."""
    return lambda: ActEnvironment(url, split, reward)


class ActEnvironment:
    """Plays one episode at a time. TRL makes a tool of each public method except `reset` and `get_reward`."""

    def __init__(self, url: str, split: str = "train", reward: str | None = None) -> None:
        self._url, self._split, self._kind = url, split, reward
        self._session: Session | None = None
        self._reward, self._done = 0.0, True

    def reset(self, task: str, **_: Any) -> str:
        """Begin the task of a row of `tool_data_set`, and close the session of the previous episode."""
        self._close()
        self._session = Session(self._url)
        turn = self._session.reset(split=self._split, task_id=task, reward=self._kind)
        self._reward, self._done = 0.0, turn.done
        return "\n\n".join(message["content"] for message in turn.messages)

    def act(self, command: str) -> str:
        """
        Do one action in the environment.

        Args:
            command: The action, worded as in the list of actions.

        Returns:
            What you observe then.
        """
        if self._done or self._session is None:
            return "The episode is over."
        turn = self._session.step("Action: " + " ".join(str(command).split()))
        self._reward, self._done = self._reward + turn.reward, turn.done
        if turn.done:
            self._close()
        return str(turn.text)

    def get_reward(self) -> float:
        """Return the reward summed over the turns. If the episode is not finished, end it."""
        self._close()
        self._done = True
        return self._reward

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None


class _ChatTemplate:
    """Finds the token ids that the chat template puts between the texts of messages.

    The token that ends a reply is read from the template, because the tokenizer's `eos_token` can differ (LLaMA 3:
    `<|eot_id|>` ends a reply, and `eos_token` can be `<|end_of_text|>`).
    """

    def __init__(self, tokenizer: Any, keywords: dict[str, Any]) -> None:
        self._tokenizer, self._keywords = tokenizer, keywords
        start = [{"role": "user", "content": "."}, {"role": "assistant", "content": _REPLY}]
        before = self._render(start, prompt=False)
        after = self._render([*start, {"role": "user", "content": _OBSERVATION}], prompt=True)
        if not after.startswith(before) or after.count(_OBSERVATION) != 1:
            raise TemplateError(
                "this chat template changes earlier messages when one is appended; give a template that only appends"
            )
        self._head, self._tail = after[len(before) :].split(_OBSERVATION)
        self._closing = before[before.rindex(_REPLY) + len(_REPLY) :]
        self._end = self._find_end()
        eos = tokenizer.eos_token_id
        self._ends = {self._end, *(eos if isinstance(eos, list) else [eos])}

    def _find_end(self) -> int:
        """Return the token with which the template ends a reply."""
        added = {*self._tokenizer.all_special_ids, *self._tokenizer.get_added_vocab().values()}
        for number in self._encode(self._closing):
            if number in added:
                return number
            if self._tokenizer.decode([number]).strip():
                break
        raise TemplateError(
            f"this chat template ends a reply with {self._closing!r}, not with a special token, so no one can tell "
            "where a reply ends; give a template that ends each reply with a special token"
        )

    def opening(self, messages: list[dict[str, str]]) -> Ids:
        return self._encode(self._render(messages, prompt=True))

    def cut_after_end(self, ids: Ids) -> Ids:
        """Remove the ids after the token that ends the reply: padding, or tokens that were sampled later."""
        ends = [place for place, number in enumerate(ids) if number in self._ends]
        return ids[: ends[0] + 1] if ends else ids

    def read_reply(self, ids: Ids) -> dict[str, str]:
        ended = bool(ids) and ids[-1] in self._ends
        text = self._tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=True)
        return {"text": text, "finish_reason": "stop" if ended else "length"}

    def encode_observation(self, observation: str, *, reply: Ids) -> Ids:
        """Return the ids between `reply` and the model's next reply, with the observation."""
        closing = self._closing
        if reply and reply[-1] == self._end:
            closing = closing.partition(self._tokenizer.convert_ids_to_tokens(self._end))[2]
        return self._encode(closing + self._head + observation + self._tail)

    def _render(self, messages: list[dict[str, str]], *, prompt: bool) -> str:
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=prompt, **self._keywords
        )
        return str(text)

    def _encode(self, text: str) -> Ids:
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
