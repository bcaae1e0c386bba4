"""Actions as data: a table of templates reads and words them."""

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from evalharness.envs import specs
from evalharness.envs.surface import Action, ActionSurface
from evalharness.protocol.prompt import Example, ExampleTurn, PromptFile, load_prompt

PLAIN = ActionSurface(
    {"go": "go to {object}", "goal": "go to goal", "take": "take {object} from {place}", "look": "look"}
)
OTHER = ActionSurface(
    {"go": "move to {object}", "goal": "finish", "take": "from {place} take {object}", "look": "look"}
)


def test_the_most_literal_template_is_read_first() -> None:
    assert PLAIN.parse("go to goal") == Action("goal", {})
    assert PLAIN.parse("go to desk 1") == Action("go", {"object": "desk 1"})
    assert PLAIN.parse("dance") is None


_name = st.from_regex(r"[a-z]{1,8} [0-9]", fullmatch=True)


@given(_name, _name)
def test_reading_what_was_worded_gives_the_action_back(thing: str, place: str) -> None:
    action = Action("take", {"object": thing, "place": place})
    for surface in (PLAIN, OTHER):
        assert surface.parse(surface.render(action)) == action


def test_a_surface_words_the_list_of_actions_and_leaves_the_example_as_it_is() -> None:
    prompt = PromptFile(
        environment="toy",
        system="You act.",
        instruction="You can:\n{actions}",
        format_rules="IMPORTANT: two lines.",
        example=Example(
            goal="hold the pen",
            observation="A desk.",
            steps=(ExampleTurn(thought="t", action="take pen 1 from desk 2", observation="You have it."),),
        ),
    )
    system, user = prompt.messages(OTHER, "hold the cup", "A shelf.")
    assert system == {"role": "system", "content": "You act."}
    assert "- from {place} take {object}" in user["content"]
    assert "Action: take pen 1 from desk 2" in user["content"]
    assert user["content"].endswith("Goal: hold the cup\nObservation: A shelf.")


def test_a_prompt_knows_the_hash_of_its_file(tmp_path: Path) -> None:
    raw = b"environment: babyai\nsystem: s\ninstruction: '{actions}'\nformat_rules: r\nvariants: {k: {system: other}}\n"
    (tmp_path / "babyai.yaml").write_bytes(raw)
    prompt = load_prompt(specs()["babyai"], tmp_path)
    assert prompt.sha256 == hashlib.sha256(raw).hexdigest()
    assert prompt.for_kind("k").sha256 == prompt.sha256
    assert "sha256" not in prompt.model_dump()
