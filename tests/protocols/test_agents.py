"""The agents of other groups' protocols keep the promises of agents."""

from __future__ import annotations

from typing import Any

import pytest
from agent_contract import check_agent

from evalharness.agents.registry import find_agent
from evalharness.protocols.agentboard import AgentBoardOptions
from evalharness.protocols.agentgym import AgentGymOptions
from evalharness.protocols.tales import TalesOptions
from evalharness.protocols.verl_agent import VerlAgentOptions

OPTIONS: dict[str, list[Any]] = {
    "verl-agent": [VerlAgentOptions(), VerlAgentOptions(history=0)],
    "agentboard": [AgentBoardOptions(), AgentBoardOptions(memory=3, stop=False)],
    "agentgym": [AgentGymOptions(), AgentGymOptions(reading="line", list_actions=True)],
    "tales": [TalesOptions(), TalesOptions(think=True, context_limit=2), TalesOptions(conversation=False)],
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_agent_keeps_the_promises_of_agents(name: str) -> None:
    check_agent(find_agent(name).kind, OPTIONS[name])
