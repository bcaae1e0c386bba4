"""Agent loop for verl 0.9: each rollout plays an episode on the server, and is trained on the sampled token ids.

The trainer's `agent_loop_config_path` is a YAML file with this entry, which the rows' `agent_name` selects:

    - {name: evalharness, _target_: evalharness.rl.clients.verl_loop.EpisodeLoop, url: "http://127.0.0.1:8000"}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput
from verl.utils.profiler import simple_timer

from evalharness.rl.clients.session import AsyncSession, tasks


class EpisodeLoop(AgentLoopBase):  # type: ignore[misc]
    """`reply_tokens` limits one reply; the trainer's `response_length` limits the episode, which then ends unsolved."""

    def __init__(
        self,
        *given: Any,
        url: str,
        split: str = "train",
        reward: str | None = None,
        reply_tokens: int = 512,
        **more: Any,
    ) -> None:
        super().__init__(*given, **more)
        self._url, self._split, self._reward, self._reply_tokens = url, split, reward, reply_tokens

    async def run(self, sampling_params: dict[str, Any], *, task: str, **row: Any) -> AgentLoopOutput:
        room = self.rollout_config.response_length
        request, metrics, extra = uuid4().hex, dict[str, float](), dict[str, Any]()
        mask, logprobs, rewards = list[int](), None, list[float]()
        async with AsyncSession(self._url) as session:
            turn = await session.reset(split=self._split, task_id=task, reward=self._reward)
            messages = turn.messages
            ids = await self.ct_build_initial_tokens(messages)
            while not turn.done and len(mask) < room:
                limit = min(self._reply_tokens, room - len(mask))
                with simple_timer("generate_sequences", metrics):
                    reply = await self.server_manager.generate(
                        request, prompt_ids=ids, sampling_params={**sampling_params, "max_tokens": limit}
                    )
                extra = {**reply.extra_fields, **extra}
                merged, mask, logprobs = await self.ct_merge_assistant_token(
                    ids, reply.token_ids, mask, logprobs or ([] if reply.log_probs else None), reply.log_probs
                )
                ids = merged.token_ids
                text = self.tokenizer.decode(reply.token_ids, skip_special_tokens=True)
                with simple_timer("tool_calls", metrics):
                    turn = await session.step(
                        text, finish_reason="length" if len(reply.token_ids) == limit else "stop"
                    )
                rewards.append(turn.reward)
                messages = [*messages, {"role": "assistant", "content": text}]
                if not turn.done:
                    merged, mask, logprobs = await self.ct_merge_context_msg(
                        messages, [*messages, *turn.messages], ids, mask, logprobs
                    )
                    ids, messages = merged.token_ids, [*messages, *turn.messages]
        start = len(ids) - len(mask)
        return AgentLoopOutput(
            prompt_ids=ids[:start],
            response_ids=ids[start : start + room],
            response_mask=mask[:room],
            response_logprobs=logprobs and logprobs[:room],
            reward_score=sum(rewards),
            num_turns=len(messages),
            metrics=metrics,
            extra_fields={**extra, "turn_scores": rewards, "tool_rewards": []},
        )


def rows(url: str, split: str = "train") -> Iterator[dict[str, Any]]:
    """Yield a row for each task. The server sends the text of the prompt when the episode begins."""
    for index, task in enumerate(tasks(url, split)):
        yield {
            "prompt": [{"role": "user", "content": task["goal"]}],
            "agent_name": "evalharness",
            "task": task["id"],
            "data_source": f"evalharness/{split}",
            "extra_info": {"index": index},
        }
