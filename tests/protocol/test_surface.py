"""Actions as data: a table of templates reads and words them."""

from hypothesis import given
from hypothesis import strategies as st

from evalharness.protocol.prompt import Example, PromptFile, Step
from evalharness.protocol.surface import Action, ActionSurface

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


def test_rewording_keeps_the_meaning() -> None:
    assert OTHER.reword("take pen 1 from desk 2", PLAIN) == "from desk 2 take pen 1"
    assert PLAIN.reword("from desk 2 take pen 1", OTHER) == "take pen 1 from desk 2"
    assert PLAIN.reword("dance", OTHER) == "dance"


@given(st.text())
def test_a_surface_reworded_to_itself_changes_nothing(text: str) -> None:
    assert PLAIN.reword(text, PLAIN) == text


_name = st.from_regex(r"[a-z]{1,8} [0-9]", fullmatch=True)


@given(_name, _name)
def test_reading_what_was_worded_gives_the_action_back(thing: str, place: str) -> None:
    action = Action("take", {"object": thing, "place": place})
    for surface in (PLAIN, OTHER):
        assert surface.parse(surface.render(action)) == action


def test_another_surface_changes_the_instruction_and_the_worked_example() -> None:
    prompt = PromptFile(
        environment="toy",
        system="You act.",
        instruction="You can:\n{actions}",
        format_rules="IMPORTANT: two lines.",
        example=Example(
            goal="hold the pen",
            observation="A desk.",
            steps=(Step(thought="t", action="take pen 1 from desk 2", observation="You have it."),),
        ),
    )
    system, user = prompt.messages(OTHER, PLAIN, "hold the cup", "A shelf.")
    assert system == {"role": "system", "content": "You act."}
    assert "- from {place} take {object}" in user["content"]
    assert "Action: from desk 2 take pen 1" in user["content"]
    assert "take pen 1 from" not in user["content"]
    assert user["content"].endswith("Goal: hold the cup\nObservation: A shelf.")
