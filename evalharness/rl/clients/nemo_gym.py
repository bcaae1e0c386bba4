"""Use the environments in NeMo Gym, as a resources server for its `gymnasium_agent`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponse
from resources_servers.gymnasium import GymnasiumServer, extract_text

from evalharness.rl.clients.session import AsyncSession, tasks


class WorldServerConfig(BaseResourcesServerConfig):  # type: ignore[misc]
    url: str = "http://127.0.0.1:8000"
    """The address that `evalharness env serve` printed; if the server needs a token, set $EVALHARNESS_ENV_TOKEN."""
    split: str = "train"
    reward: str | None = None
    """None means the server's default reward."""


class WorldServer(GymnasiumServer):  # type: ignore[misc]
    """The task of an episode is in the data set's row (`rows`). The first prompt and each observation are user
    messages."""

    ray_enabled: ClassVar[bool | None] = False
    config: WorldServerConfig

    def setup_webserver(self) -> Any:
        app = super().setup_webserver()

        async def close(request: Any) -> dict[str, Any]:
            await self.close_session(request.session.get("session_id"))
            return {}

        app.add_route("/close", close, methods=["POST"])
        return app

    async def reset(
        self, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str, dict[str, Any]]:
        await self.close_session(session_id)
        session = self.session_state[session_id] = await AsyncSession(self.config.url).__aenter__()
        try:
            turn = await session.reset(
                split=self.config.split, task_id=metadata["task"], reward=self.config.reward
            )
        except BaseException:
            await self.close_session(session_id)
            raise
        # With this key, an agent of nemo-gym 0.7 calls `/close` even if the model fails.
        return turn.text, {"supports_explicit_close": True}

    async def step(
        self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str | None = None
    ) -> tuple[str | None, float, bool, bool, dict[str, Any]]:
        session: AsyncSession = self.session_state[session_id]
        cut_off = (
            action.incomplete_details is not None and action.incomplete_details.reason == "max_output_tokens"
        )
        turn = await session.step(extract_text(action), finish_reason="length" if cut_off else "stop")
        if not turn.done:
            return turn.text, turn.reward, False, False, {}
        state = await session.state()
        by_limit = state["ended_by"] == "turn_limit"
        return None, turn.reward, not by_limit, by_limit, state

    async def close_session(self, session_id: str | None) -> None:
        session = self.session_state.pop(session_id, None)
        if session is not None:
            await session.__aexit__(None, None, None)


def rows(url: str, agent: str, split: str = "train") -> Iterator[dict[str, Any]]:
    """Yield a row for each task. `agent` is the name of the agent in NeMo Gym's configuration."""
    for task in tasks(url, split):
        yield {
            "responses_create_params": {"input": [{"role": "system", "content": task["system_prompt"]}]},
            "task": task["id"],
            "agent_ref": {"type": "responses_api_agents", "name": agent},
        }
