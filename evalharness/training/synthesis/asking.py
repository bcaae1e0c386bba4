"""A persona's conversation with the model, call by call: asked, kept, judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from evalharness.models.asking import AskedModel
from evalharness.models.work import WorkProgress
from evalharness.training.synthesis.conversation import Conversation
from evalharness.training.synthesis.synthesis_store import SynthesisStore
from evalharness.training.synthesis.tally import Tally


@dataclass
class SynthesisProgress(WorkProgress):
    tally: Tally = field(default_factory=Tally)
    """Of all finished personas, those of earlier sessions included."""

    def details(self) -> list[str]:
        counted = self.tally
        at = ", ".join(f"{counted.passed_at[call]} at call {call}" for call in sorted(counted.passed_at))
        parts = [f"passed {counted.passed}" + (f" ({at})" if at else "")]
        if counted.rejected:
            why = ", ".join(f"{signal} {count}" for signal, count in counted.rejected.most_common())
            parts.append(f"rejected {counted.rejected.total()} ({why})")
        return parts


@dataclass
class Job:
    """A persona that is not finished. Its conversation is made when its turn comes: not all fit into memory."""

    key: str
    make: Callable[[], Conversation]
    _conversation: Conversation | None = None
    """Where an earlier try has left it."""

    async def run(self, model: AskedModel, store: SynthesisStore, progress: SynthesisProgress) -> None:
        conversation = self._conversation
        if conversation is None:
            # In a thread, as every verification: it may take the time limit of untrusted expressions.
            conversation = self._conversation = await asyncio.to_thread(self._begin, store)
        while not conversation.finished:
            messages, number = conversation.messages(), conversation.calls + 1
            answer = await model.answer(self.key, messages, number=number)
            store.add_call(answer)
            await asyncio.to_thread(conversation.take, answer)
        store.add_finished(conversation)
        progress.tally.add(conversation.record())
        progress.finish()
        self._conversation = None

    def _begin(self, store: SynthesisStore) -> Conversation:
        """From its beginning, or from where an earlier session left it."""
        conversation = self.make()
        for call in store.calls.get(self.key, ()):
            conversation.take(call)
        return conversation
