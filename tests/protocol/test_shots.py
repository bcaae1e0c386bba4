"""Another system message and another number of worked examples: what the model reads, and that the hash says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalharness.cli import main
from evalharness.envs import specs
from evalharness.protocol.perturb import make_surface
from evalharness.protocol.played_prompt import played_prompt
from evalharness.protocol.prompt import AS_WRITTEN, Adaptation, load_prompt

SPECS = specs()


def sent(family: str, kind: str, how: Adaptation, perturbation: str | None = None) -> list[str]:
    prompt, surface = load_prompt(SPECS[family], None, how), make_surface(SPECS[family], perturbation)
    messages = surface.prompt(prompt.for_kind(kind)).messages(surface.perturbed, "the goal", "a room")
    return [message["content"] for message in messages]


@pytest.mark.parametrize(
    ("family", "kind"), [("babyai", "GoToObj"), ("pddl", "gripper"), ("alfworld", "heat")]
)
def test_no_example_and_one_as_written(family: str, kind: str) -> None:
    none, one, usual = (
        sent(family, kind, how)[1] for how in (Adaptation(shots=0), Adaptation(shots=1), AS_WRITTEN)
    )
    assert one == usual
    assert "Here is an example." in one
    assert "example" not in none
    assert none.endswith("Goal: the goal\nObservation: a room")


def test_more_examples_begin_with_the_one_of_the_kind() -> None:
    usual, three = sent("alfworld", "heat", AS_WRITTEN)[1], sent("alfworld", "heat", Adaptation(shots=3))[1]
    own = usual.partition("Here is an example.\n")[2].partition("\n\nNow it is your turn")[0]
    assert f"Here are 3 examples.\n\nExample 1.\n{own}\n\nExample 2.\n" in three
    assert three.count("\nExample ") == 3
    every = sent("alfworld", "heat", Adaptation(shots=9))[1]
    assert every.count("\nExample ") == 6, "as many as there are"


def test_examples_of_other_actions_are_not_shown() -> None:
    """A PDDL domain's example would name actions that another domain does not have."""
    assert sent("pddl", "gripper", Adaptation(shots=5)) == sent("pddl", "gripper", AS_WRITTEN)


def test_a_file_may_bring_more_examples(tmp_path: Path) -> None:
    own = load_prompt(SPECS["babyai"])
    assert own.example is not None
    more = own.model_copy(
        update={"more_examples": (own.example.model_copy(update={"goal": "a second goal"}),)}
    )
    assert more.for_kind("").more_examples == ()
    shown = more.adapt(Adaptation(shots=2)).for_kind("")
    assert [example.goal for example in shown.more_examples] == ["a second goal"]


def test_every_example_is_in_the_words_of_a_perturbation() -> None:
    plain = sent("alfworld", "heat", Adaptation(shots=2))[1]
    perturbed = sent("alfworld", "heat", Adaptation(shots=2), "P1")[1]
    examples = [text.partition("Example 2.")[2] for text in (plain, perturbed)]
    assert examples[0] != examples[1]


def test_a_system_message_of_ones_own_counts_for_every_kind() -> None:
    how = Adaptation(system="Play {well}.")
    for family, kind in (("babyai", ""), ("pddl", "barman"), ("sciworld", "boil")):
        assert sent(family, kind, how)[0] == "Play {well}."
        assert sent(family, kind, how)[1] == sent(family, kind, AS_WRITTEN)[1]


def test_an_adapted_prompt_has_a_hash_of_its_own_by_which_it_is_found_again() -> None:
    hashes = {
        load_prompt(SPECS["babyai"], None, Adaptation(*how)).sha256
        for how in ((), ("x",), (None, 0), ("x", 0))
    }
    assert len(hashes) == 4
    how = Adaptation("x", 0)
    sha = load_prompt(SPECS["babyai"], None, how).sha256
    assert played_prompt("babyai", "", None, sha) is None
    found = played_prompt("babyai", "", None, sha, adaptation=how)
    assert found is not None
    assert found[0].system == "x"


def test_prompts_are_exported_to_start_ones_own_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", "prompts", "export", str(tmp_path / "own"), "--tasks", "babyai,pddl"]) == 0
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == [
        "README.md",
        "babyai.yaml",
        "pddl.yaml",
    ]
    assert load_prompt(SPECS["babyai"], tmp_path / "own").sha256 == load_prompt(SPECS["babyai"]).sha256
    assert main(["data", "prompts", "export", str(tmp_path / "own")]) == 2
    assert "--force" in capsys.readouterr().err
    assert (
        main(["data", "prompts", "show", "pddl", "--kind", "gripper", "--shots", "0", "--system", "Hello."])
        == 0
    )
    shown = capsys.readouterr().out
    assert "Hello." in shown
    assert "drop {ball} {room} {gripper}" in shown
    assert main(["data", "prompts", "show", "pddl", "--kind", "gripper", "--shots", "3"]) == 0
    assert "--shots 3: pddl" in capsys.readouterr().err
    assert main(["data", "prompts", "show", "babyia"]) == 2
    assert "'babyai'?" in capsys.readouterr().err
