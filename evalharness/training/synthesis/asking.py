"""A persona's conversation with the model, call by call: asked, kept, judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from evalharness.models.asking import AskedModel
from evalharness.training.synthesis.conversation import Conversation
from evalharness.training.synthesis.synthesis_progress import SynthesisProgress
from evalharness.training.synthesis.synthesis_store import SynthesisStore


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
